/**
 * Findings for rows that may repeat a sale, for reversals outside the terms, and for months that have other rows than
 * their partner states.
 */
import { readContradicted } from '#close/feeds';
import { query, Transaction } from '#database/transaction';
import { DOUBLED } from '#ledger/doubles.sql';
import { REVERSED_BY_PROCESSOR } from '#ledger/grounds.sql';
import { dueOn } from '#ledger/held';
import { IS_REQUESTED } from '#ledger/held.sql';
import { Amount, plural } from '#values';
import { Finding, FindingQuestion, ReadFindings, Remedy, toDo, toRun } from './finding.ts';

type RowsOfPartner = Readonly<{
  partner_id: string;
  name: string;
  rows: number;
  since: string;
  /** The sums of our share by currency. */
  sums: readonly Readonly<{ amount: string; currency: string }>[];
  /** Whether all rows may repeat a sale. */
  doubtful: boolean;
}>;

const ofPartners = (tx: Transaction, rows: string, { scope, limit }: FindingQuestion): Promise<RowsOfPartner[]> =>
  query(
    tx,
    `SELECT r.partner_id, p.name, sum(r.rows)::bigint AS rows, min(r.since)::date AS since,
            bool_and(r.doubtful) AS doubtful,
            json_agg(json_build_object('amount', r.amount::text, 'currency', r.currency) ORDER BY r.currency) AS sums
     FROM (SELECT partner_id, currency, count(*) AS rows, min(recorded_at) AS since, bool_and(doubtful) AS doubtful,
                  sum(invoice_amount) AS amount
           FROM (${rows}) AS e
           WHERE :scope::text[] IS NULL OR partner_id = ANY (:scope::text[])
           GROUP BY partner_id, currency) AS r
     JOIN partners p USING (partner_id)
     GROUP BY r.partner_id, p.name ORDER BY since, r.partner_id LIMIT :limit`,
    { scope, limit },
  );

const STATES = {
  held: 'held',
  doubled: 'doubled',
  requested: 'requested',
  overdue: 'overdue',
  reversed: 'reversed by processor',
} as const;

function findingOf(
  { partner_id, name, rows, since, sums }: RowsOfPartner,
  kind: keyof typeof STATES,
  reason: string,
  remedies: readonly Remedy[],
): Finding {
  const [money, ...more] = sums;
  return {
    ...{ item: `${kind}:${partner_id}`, kind: 'rows', state: STATES[kind], title: partner_id, since },
    tone: kind === 'overdue' ? 'bad' : 'warn',
    partners: [{ id: partner_id, name }],
    money: money === undefined || more.length > 0 ? null : money,
    ...{ reason, urgent: `${reason}.`, count: rows, remedies },
  };
}

const pageOf = (list: 'rows' | 'doubled' | 'reversals', filter: Readonly<Record<string, string>>) =>
  `/console/queue/${list}?${new URLSearchParams(filter)}`;

export const readHeld: ReadFindings = async (tx, question) => {
  const rows = `SELECT *, sign <> 'held_reversal' AS doubtful FROM undecided_rows WHERE NOT (${IS_REQUESTED})`;
  return (await ofPartners(tx, rows, question)).map((row) => {
    const { partner_id: partner, doubtful } = row;
    const are = row.rows === 1 ? 'is' : 'are';
    const why = doubtful ? `may repeat sales and ${are}` : `${are} held and`;
    return findingOf(row, 'held', `${plural(row.rows, 'row')} of ${partner} ${why} not recorded`, [
      toRun('Decide on them', `ledger held --partner ${partner}`, pageOf('rows', { partner })),
    ]);
  });
};

export const readDoubled: ReadFindings = async (tx, question) =>
  (await ofPartners(tx, `SELECT e.*, true AS doubtful FROM ${DOUBLED}`, question)).map((row) => {
    const { partner_id: partner } = row;
    const reason = `${plural(row.rows, 'API row')} of ${partner} may repeat another and will be billed`;
    return findingOf(row, 'doubled', reason, [
      toRun(
        'See them, and reverse what is billed twice',
        `ledger doubled --partner ${partner}`,
        pageOf('doubled', { partner }),
      ),
      toDo('Keep them', 'rows.separate', { partner }, 'if they are sales of their own'),
    ]);
  });

/** Our share of reversals, above zero: `70.00 USD and 5.00 EUR`. */
const shareOf = ({ sums }: RowsOfPartner) =>
  sums.map(({ amount, currency }) => Amount.of(amount, currency).negated().forPeople()).join(' and ');

const aboveZero = (row: RowsOfPartner): RowsOfPartner => ({
  ...row,
  sums: row.sums.map(({ amount, currency }) => ({
    amount: Amount.of(amount, currency).negated().toString(),
    currency,
  })),
});

/** Reversals that wait until a person grants or refuses them. */
export const readRequested: ReadFindings = async (tx, question) => {
  const rows = `SELECT *, false AS doubtful FROM undecided_rows WHERE ${IS_REQUESTED}`;
  return (await ofPartners(tx, rows, question)).map((row) => {
    const { partner_id: partner } = row;
    const due = dueOn(row.since);
    const isOverdue = question.today > due;
    const wait = row.rows === 1 ? 'waits' : 'wait';
    const what = `${plural(row.rows, 'reversal')} of ${partner} ${wait}${isOverdue ? `, overdue since ${due}` : ''}`;
    // An overdue request is another finding, so that it is reported again.
    return findingOf(
      aboveZero(row),
      isOverdue ? 'overdue' : 'requested',
      `${what}: our share of ${shareOf(row)} would go back`,
      [
        toRun(
          'Grant or refuse them',
          `reversal list --status requested --partner ${partner}`,
          pageOf('reversals', { status: 'requested', partner }),
        ),
      ],
    );
  });
};

/** Reversals of open months that are outside the terms, and are recorded because the processor had reversed our share. */
export const readReversedByProcessor: ReadFindings = async (tx, question) =>
  (await ofPartners(tx, `SELECT *, false AS doubtful FROM (${REVERSED_BY_PROCESSOR}) AS r`, question)).map((row) => {
    const { partner_id: partner } = row;
    const are = row.rows === 1 ? 'is' : 'are';
    return findingOf(
      aboveZero(row),
      'reversed',
      `${plural(row.rows, 'reversal')} of ${partner} ${are} outside the terms, but the processor has already taken ` +
        `back our share of ${shareOf(row)}`,
      [
        toRun(
          'See them',
          `reversal list --ground processor --partner ${partner}`,
          pageOf('reversals', { status: 'recorded', ground: 'processor', partner }),
        ),
      ],
    );
  });

/** Partners whose complete statement of a closed month the ledger contradicts. */
export const readStated: ReadFindings = async (tx, { scope, limit }) => {
  const found = await readContradicted(tx, scope);
  const latest = new Map(found.toReversed().map((each) => [each.partner_id, each]));
  return [...latest.values()].slice(0, limit ?? undefined).map(({ partner_id, name, month, evidence, recorded_at }) => {
    const reason = `${partner_id} ${evidence} for ${month}, which is closed. Missing rows will be billed late`;
    return {
      ...{ item: `stated:${partner_id}`, kind: 'rows', state: 'stated', tone: 'warn', title: partner_id },
      ...{ since: recorded_at.slice(0, 10), partners: [{ id: partner_id, name }], money: null },
      ...{ reason, urgent: `${reason}.`, count: found.filter((each) => each.partner_id === partner_id).length },
      remedies: [
        toRun(
          'Compare them',
          `feed list --partner ${partner_id}`,
          `/console/feeds?partner=${encodeURIComponent(partner_id)}`,
        ),
        toDo('State other totals', 'feed.state', { partnerId: partner_id, month }, 'if the ledger is right'),
      ],
    };
  });
};
