/**
 * The places of personal texts. A fact has the commitment of a text, and the table `personal_texts` the text
 * (docs/personal-data.md). A column of the type `personal` is one commitment; these other columns contain some.
 */
import { querying } from '#database/transaction';
import { LOG_FORMS, numberOf } from './forms.ts';

/** Columns of facts with commitments among other values: in JSON, in a list, or only for some actions. */
export const PARTLY_PERSONAL: readonly string[] = [
  'audit_events.subject',
  'audit_events.details',
  'approval_requests.input',
  'approval_requests.subject',
  'approval_requests.preview',
  'bank_lines.references',
  'payment_applications.evidence',
  'payment_suggestions.evidence',
  'refund_matches.evidence',
  'email_attempts.recipients',
];

export const PERSONAL_COLUMNS: readonly string[] = LOG_FORMS.flatMap(({ kind, columns }) =>
  columns.filter(({ type }) => type === 'personal').map(({ name }) => `${kind}.${name}`),
);

/** Acceptances are the only events in large numbers, and name no one. */
const MAY_NAME: Readonly<Record<string, string>> = {
  audit_events: `action NOT IN ('quote.accept', 'requote.accept', 'quote.reverse')`,
};

const split = (place: string): readonly [table: string, column: string] => {
  const [table = '', column = ''] = place.split('.');
  return [table, column];
};

const found = (table: string, number: string, column: string) =>
  `SELECT '${table}' AS "table", ${number} AS number,
          (regexp_matches("${column}"::text, '#[A-Za-z0-9+/]{43}=', 'g'))[1] AS commitment
   FROM ${table} WHERE ${MAY_NAME[table] ?? 'true'}`;

/** Each use of a commitment: its table, the number of its row, and the commitment, or a plain text in its place. */
export const COMMITMENTS_USED = [
  ...PERSONAL_COLUMNS.map(split).map(
    ([table, column]) =>
      `SELECT '${table}' AS "table", ${numberOf(table)} AS number, "${column}" AS commitment
   FROM ${table} WHERE "${column}" <> ''`,
  ),
  ...PARTLY_PERSONAL.map(split).map(([table, column]) => found(table, numberOf(table), column)),
].join('\n   UNION ALL ');

/** How many places of each table name these texts. */
export const countPlaces = querying<{ table: string; places: number }, { commitments: readonly string[] }>(`
  SELECT "table", count(*) AS places FROM (
    ${COMMITMENTS_USED}) AS used
  WHERE commitment = ANY (:commitments::text[]) GROUP BY "table" ORDER BY "table"`);
