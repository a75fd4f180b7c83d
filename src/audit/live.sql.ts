/**
 * The facts as the rules read them (templates/export/checks.sql), and rules about the program's own views. Each kind of
 * fact has a temporary view over its table, with the same columns and types that a verifier loads from a pack. In these
 * views, money is in whole minor units, days are numbers, and times are texts.
 */

import { execute, query, Transaction } from '#database/transaction';
import { groupsOf } from '#ledger/row-groups.sql';
import { LAST_CLOSED, linesOf, saleKind } from '#ledger/running-lines.sql';
import { DerivedRows } from '#log/derive';
import { COMPUTED, LOG_FORMS, LogColumn, LogForm, numberOf } from '#log/forms';
import { time } from '#log/lines.sql';
import { quoteFacts } from '#splits/reconcile.sql';
import { columnsIn, Rule } from './columns.sql.ts';

/** A column's value for the rules; undefined for a map, whose values are rows of map_values. */
function expressionOf({ kind }: LogForm, { name, type }: LogColumn) {
  const value = COMPUTED[`${kind}.${name}`] ?? `f."${name}"`;
  const [base, currency = 'currency'] = type.split('@');
  switch (base) {
    case 'map':
      return undefined;
    case 'int':
      return `(${value})::bigint`;
    case 'amount': {
      const own = COMPUTED[`${kind}.${currency}`] ?? `f."${currency}"`;
      return `(${value} * log_units(${own}))::bigint`;
    }
    case 'rate':
      return `(${value} * 10000)::bigint`;
    case 'number':
      return `trim_scale(${value})::text`;
    case 'day':
      return `(${value} - date '1970-01-01')::bigint`;
    case 'time':
      return time(value);
    case 'flag':
      return `(${value})::int::bigint`;
    case 'hex':
      return `encode(${value}, 'hex')`;
    default:
      return `(${value})::text COLLATE "C"`;
  }
}

const viewOf = (home: string, form: LogForm, to: number | undefined) => {
  const columns = form.columns.flatMap((column) => {
    const value = expressionOf(form, column);
    return value === undefined ? [] : [`${value} AS "${column.name}"`];
  });
  const number = numberOf(form.kind);
  return `CREATE TEMP VIEW ${form.kind} AS
    SELECT f.${number} AS log_no, ${columns.join(', ')}
    FROM ${home}.${form.kind} f${upTo(number, to)}`;
};

const upTo = (number: string, to: number | undefined) => (to === undefined ? '' : ` WHERE f.${number} <= ${to}`);

/**
 * The reversals that stay in archived months, without those whose sales were copied. A `verify` of all months, or of the
 * month of such a reversal, must find its sale.
 */
const unread = (home: string, copied: DerivedRows) => `
  SELECT r.entry_id AS log_no FROM ONLY ${home}.ledger_rows r JOIN ${home}.archived_postings p
    ON r.posted_month > p.after AND r.posted_month <= p.month
  WHERE r.kind = 'reversal' AND ${copied === 'all' ? 'false' : `p.month <> '${copied.month ?? ''}'`}
    AND NOT EXISTS (SELECT FROM ${home}.ledger_rows s WHERE s.partner_id = r.partner_id AND s.kind = 'quote_accepted'
                      AND ${home}.own_id(s) = r.quote_id)`;

/** The first instants that the next checkpoint will record (recordMonthZones), for the rows since the last one. */
const comingZones = (home: string) => `
  UNION ALL
  SELECT NULL, r.time_zone COLLATE "C", each::text COLLATE "C", ${time('first_instant(each, r.time_zone)')}
  FROM (SELECT DISTINCT time_zone, month FROM ${home}.ledger_rows
        WHERE entry_id > (SELECT coalesce(max(last_no), 0) FROM ${home}.log_checkpoints)) AS r
  CROSS JOIN LATERAL (VALUES (r.month), (month_after(r.month))) AS m (each)
  WHERE NOT EXISTS (SELECT FROM ${home}.month_zones z WHERE z.time_zone = r.time_zone AND z.month = each)
  GROUP BY r.time_zone, each`;

const mapsOf = (home: string, { kind, columns }: LogForm, to: number | undefined) =>
  columns
    .filter(({ type }) => type === 'map')
    .map(
      ({ name }) =>
        `SELECT f.log_no, '${name}' AS column_name, m.path, m.value FROM ${home}.${kind} f
         CROSS JOIN LATERAL log_map_values(to_jsonb(${COMPUTED[`${kind}.${name}`] ?? `f."${name}"`}))
           AS m (path, value)${upTo('log_no', to)}`,
    );

/**
 * Makes the views of the facts up to a number for this transaction, which is rolled back. The views hide the tables with
 * the same names from this transaction. Returns the schema of the tables.
 */
export async function makeLiveViews(tx: Transaction, to?: number) {
  const [{ home } = { home: 'public' }] = await query<{ home: string }>(
    tx,
    'SELECT quote_ident(current_schema()) AS home',
  );
  const views = LOG_FORMS.map(
    (form) => viewOf(home, form, to) + (form.kind === 'month_zones' && to === undefined ? comingZones(home) : ''),
  );
  const maps = LOG_FORMS.flatMap((form) => mapsOf(home, form, to));
  // Without this, a view would read the views made before it instead of the tables.
  await execute(tx, `SET LOCAL search_path = ${home}, pg_temp`);
  await execute(tx, `${views.join(';\n')};\nCREATE TEMP VIEW map_values AS ${maps.join('\nUNION ALL ')}`);
  await execute(
    tx,
    `CREATE TEMP TABLE currencies AS
     SELECT DISTINCT code COLLATE "C" AS code, minor_digits(code) AS digits
     FROM (SELECT currency FROM ${home}.ledger_rows UNION SELECT currency FROM ${home}.archived_groups
           UNION SELECT currency FROM ${home}.documents
           UNION SELECT currency FROM ${home}.payments UNION SELECT currency FROM ${home}.bank_lines
           UNION SELECT currency FROM ${home}.balance_transactions
           UNION SELECT currency FROM ${home}.feed_statement_totals
           UNION SELECT settled_currency FROM ${home}.share_allocations) AS c (code);
     CREATE TEMP TABLE pack AS
     SELECT 0::bigint AS first, (SELECT coalesce(max(size), 0) FROM ${home}.log_checkpoints)::bigint AS size,
            (SELECT min(month) FROM ${home}.closed_months)::text AS from_month,
            (SELECT max(month) FROM ${home}.closed_months)::text AS to_month;
     ANALYZE currencies, pack;
     SET LOCAL search_path = pg_temp, ${home}`,
  );
  return home;
}

const units = (sum: string, currency = 'currency') => `(${sum} * log_units(${currency}))::bigint`;

const converted = (groups: string) => `
  SELECT posted_month, partner_id, currency, arrangement, policy_id, kind, month, time_zone COLLATE "C" AS time_zone,
         event_id, entries, ${units('spot_price')} AS spot_price, ${units('partner_cut')} AS partner_cut,
         ${units('invoice_amount')} AS invoice_amount, ${time('first_at')} AS first_at, ${time('last_at')} AS last_at,
         ${time('first_recorded')} AS first_recorded, ${time('last_recorded')} AS last_recorded, first_no, last_no,
         quote_id, unbalanced, misnamed, uncovered
  FROM (${groups}) AS g`;

const QUOTE_NUMBER = 'hashtextextended(r.quote_id, hashtextextended(r.partner_id, 0))';

/**
 * Shared tables of the rules that read all rows. They are made from the table itself, so that amounts and times are
 * converted only after grouping. For 300,000 rows this takes 1.0 s instead of 3.3 s. A test compares these tables with
 * those that the rules make. `rows` are the ledger rows, or those up to a number.
 */
export const ROW_TABLES: Readonly<Record<string, (rows: string) => string>> = {
  row_groups: (rows) => `CREATE TABLE row_groups AS ${converted(groupsOf(rows))}`,
  // A number for each quote takes half the work of its names. Two quotes may have one number.
  quotes: (rows) => `CREATE TABLE quotes AS
    WITH several AS MATERIALIZED (SELECT ${QUOTE_NUMBER} AS number FROM ${rows} AS r GROUP BY 1 HAVING count(*) > 1)
    SELECT r.partner_id, r.quote_id, count(*) AS entries,
           count(*) FILTER (WHERE r.kind = 'quote_accepted') AS sales, min(r.policy_id) AS policy_id,
           max(r.policy_id) AS other_policy_id, min(r.currency) AS currency, max(r.currency) AS other_currency,
           ${units('sum(r.spot_price)', 'min(r.currency)')} AS spot_price,
           ${units('sum(r.partner_cut)', 'min(r.currency)')} AS partner_cut,
           ${units('sum(r.invoice_amount)', 'min(r.currency)')} AS invoice_amount,
           min(r.arrangement) FILTER (WHERE r.kind = 'quote_accepted') AS arrangement
    FROM ${rows} AS r WHERE r.kind <> 'quote_accepted' OR ${QUOTE_NUMBER} IN (SELECT number FROM several)
    GROUP BY r.partner_id, r.quote_id HAVING count(*) > 1 OR min(r.kind) <> 'quote_accepted'`,
};

/** The schema of the facts, and the number up to which they are read. */
interface LiveFacts {
  readonly home: string;
  readonly to?: number;
  /** The archived months whose quotes were copied whole. */
  readonly copied?: DerivedRows;
}

const tableOf = (statement: string) => /^(?:--.*\n)*(?:CREATE TABLE|INSERT INTO) (\w+)/.exec(statement)?.[1] ?? '';

/** The rows that are in no group of an archived month. */
const ungrouped = (home: string) => `(
  SELECT * FROM ${home}.ledger_rows WHERE posted_month NOT IN (SELECT posted_month FROM ${home}.archived_posting_months)
    OR event_id NOT IN (SELECT event_id FROM ${home}.ledger_receipts
                        WHERE posted_month IN (SELECT posted_month FROM ${home}.archived_posting_months)))`;

/** A statement of PREPARE over the views of `makeLiveViews`. */
export function liveStatement(statement: string, { home, to, copied = 'all' }: LiveFacts) {
  const table = tableOf(statement);
  const of = ROW_TABLES[table];
  if (to !== undefined) return of?.(`(SELECT * FROM ${home}.ledger_rows WHERE entry_id <= ${to})`) ?? statement;
  if (table === 'unread') return `CREATE TABLE unread AS ${unread(home, copied)}`;
  const read = `(SELECT * FROM ${home}.ledger_rows WHERE entry_id NOT IN (SELECT log_no FROM pg_temp.unread))`;
  return of?.(table === 'row_groups' ? ungrouped(home) : read) ?? statement;
}

/** Runs statements of PREPARE over the views of `makeLiveViews`. */
export async function prepareTables(tx: Transaction, prepare: readonly string[], facts: LiveFacts) {
  // The planner underestimates the work of grouping, and would use only one process without the first setting. With the
  // second, a sample of 6,000 rows describes each table.
  await execute(tx, 'SET LOCAL parallel_tuple_cost TO 0.001; SET LOCAL default_statistics_target TO 20');
  for (const statement of prepare) {
    await execute(tx, liveStatement(statement, facts));
    const table = tableOf(statement);
    if (table === 'row_groups' && facts.to === undefined) {
      await execute(tx, `INSERT INTO row_groups ${converted(`TABLE ${facts.home}.archived_groups`)}`);
    }
    if (table !== '') await execute(tx, `ANALYZE ${table}`);
  }
}

/**
 * What the program shows, compared with what the rules derive from the facts. The name and sentence are as those of a
 * rule. Each statement reads the program's tables and views by name, and the tables of the rules in `pg_temp`.
 */
export const LIVE_RULES: readonly Rule[] = [
  {
    name: 'journal_shown',
    sentence: 'The journal that reports read is the journal of the facts, account by account and month by month.',
    columns: columnsIn('at currency shown:amount of_facts:amount'),
    query: `
      SELECT account || ' in ' || month, currency, sum(shown), sum(derived)
      FROM (SELECT month COLLATE "C" AS month, account COLLATE "C" AS account, currency COLLATE "C" AS currency,
                   amount * log_units(currency) AS shown, 0 AS derived
            FROM (SELECT month, account, currency, amount FROM journal_months
                  WHERE month NOT IN (SELECT posted_month FROM archived_posting_months)
                  UNION ALL
                  SELECT month, account, currency, amount
                  FROM (SELECT month, account, currency, amount FROM journal_of_row_months
                        UNION ALL SELECT month, account, currency, amount FROM journal_of_facts) AS closed
                  WHERE month IN (SELECT posted_month FROM archived_posting_months)) AS shown
            UNION ALL
            SELECT coalesce((SELECT p.month FROM archived_postings p
                             WHERE j.month > p.after AND j.month <= p.month), j.month)
                     COLLATE "C", account, currency, 0, amount
            FROM pg_temp.journal j) AS both_ways
      GROUP BY month, account, currency HAVING sum(shown) <> sum(derived)`,
  },
  {
    name: 'running_lines',
    sentence:
      'The lines of the open months that the next close continues are those of the rows that a checkpoint covers.',
    columns: columnsIn('at partner policy kind currency kept:amount of_rows:amount kept_rows:int counted_rows:int'),
    query: `
      SELECT 'lines of ' || posted_month, partner_id, policy_id, kind, currency, sum(kept) * log_units(currency),
             sum(of_rows) * log_units(currency), sum(kept_rows), sum(counted_rows)
      FROM (SELECT posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted,
                   sold_kind, by_receipt, spot_price AS price, partner_cut AS cut, invoice_amount AS kept, 0 AS of_rows,
                   count AS kept_rows, 0 AS counted_rows, last_accepted_at AS last
            FROM running_lines
            UNION ALL
            SELECT posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted,
                   sold_kind, by_receipt, -spot_price, -partner_cut, 0, invoice_amount, 0, count, last_accepted_at
            FROM (${linesOf(`e.posted_month > ${LAST_CLOSED}
              AND e.entry_id <= (SELECT max(last_no) FROM log_checkpoints)`)}) AS l) AS both_ways
      GROUP BY posted_month, partner_id, currency, arrangement, policy_id, kind, month, sold_month, sold_posted,
               sold_kind, by_receipt
      HAVING sum(kept) <> sum(of_rows) OR sum(kept_rows) <> sum(counted_rows) OR sum(price) <> 0 OR sum(cut) <> 0
          OR min(last) <> max(last)`,
  },
  {
    name: 'archived_sales',
    sentence: 'The months of archived sales that have a reversal are those of their rows.',
    columns: columnsIn('at partner month posted_month'),
    query: `
      SELECT s.kind || ' ' || s.own_id, s.partner_id, s.month, s.posted_month
      FROM archived_sales s LEFT JOIN ledger_rows e ON e.partner_id = s.partner_id AND e.kind = s.kind
        AND own_id(e) = s.own_id
      WHERE (e.month, e.posted_month) IS DISTINCT FROM (s.month, s.posted_month)
        AND NOT EXISTS (SELECT FROM pg_temp.unread JOIN pg_temp.named_rows n USING (log_no)
                        WHERE n.partner_id = s.partner_id AND coalesce(n.requote_id, n.quote_id) = s.own_id
                          AND ${saleKind('n')} = s.kind)`,
  },
  {
    name: 'balance_shown',
    sentence: 'The tax, gross amount, paid amount and balance that a document shows are those of its facts.',
    columns: columnsIn(
      'at status currency balance:amount of_facts:amount paid:amount paid_by_facts:amount tax:amount tax_of_facts:amount',
    ),
    query: `
      SELECT p.number, b.status, d.currency, b.balance * log_units(d.currency), coalesce(m.balance, 0),
             b.amount_paid * log_units(d.currency), coalesce(m.amount_paid, 0), d.tax * log_units(d.currency), p.tax
      FROM pg_temp.papers p JOIN documents d USING (document_id) LEFT JOIN document_balances b USING (document_id)
      LEFT JOIN (SELECT document_id, sum(amount) AS balance,
                        -coalesce(sum(amount) FILTER (WHERE what IN ('payment', 'refund')), 0) AS amount_paid
                 FROM pg_temp.document_moves GROUP BY document_id) AS m USING (document_id)
      WHERE b.document_id IS NULL OR d.tax * log_units(d.currency) <> p.tax
         OR d.gross * log_units(d.currency) <> p.gross
         OR b.amount_paid * log_units(d.currency) <> coalesce(m.amount_paid, 0)
         OR (b.status = 'void') <> (p.void_no IS NOT NULL)
         OR b.balance * log_units(d.currency) <> CASE WHEN p.void_no IS NULL THEN coalesce(m.balance, 0) ELSE 0 END
         OR (b.status <> 'void' AND b.balance <> b.amount_due - b.credited - b.amount_paid)`,
  },
  {
    name: 'cash_shown',
    sentence: 'The applied, reversed and unapplied amounts that a payment shows are those of its facts, by partner.',
    columns: columnsIn('at currency shown:amount of_facts:amount reversed:amount reversed_by_facts:amount'),
    query: `
      SELECT 'payment ' || p.payment_id, p.currency, b.applied * log_units(p.currency), coalesce(a.amount, 0),
             b.reversed * log_units(p.currency), coalesce(r.amount, 0)
      FROM payments p LEFT JOIN payment_balances b USING (payment_id)
      LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM pg_temp.applied GROUP BY payment_id) AS a
        USING (payment_id)
      LEFT JOIN (SELECT payment_id, sum(amount) AS amount FROM pg_temp.reversed GROUP BY payment_id) AS r
        USING (payment_id)
      WHERE b.payment_id IS NULL OR b.applied * log_units(p.currency) <> coalesce(a.amount, 0)
         OR b.reversed * log_units(p.currency) <> coalesce(r.amount, 0)
         OR b.unapplied <> b.amount - b.applied - b.reversed OR b.amount <> p.amount
      UNION ALL
      SELECT format('payment %s of %s', payment_id, partner_id),
             (SELECT p.currency FROM payments p WHERE p.payment_id = both_ways.payment_id), sum(shown), sum(derived),
             NULL, NULL
      FROM (SELECT c.payment_id, coalesce(c.partner_id, '') COLLATE "C" AS partner_id,
                   c.amount * log_units(p.currency) AS shown, 0 AS derived
            FROM payment_cash c JOIN payments p USING (payment_id)
            UNION ALL
            SELECT payment_id, partner_id, 0, amount FROM pg_temp.cash_moves) AS both_ways
      GROUP BY payment_id, partner_id HAVING sum(shown) <> sum(derived)`,
  },
  {
    name: 'shares_shown',
    sentence: 'What the reconciliation expects from the processor, quote by quote, is the balance of its account.',
    columns: columnsIn('at currency expected:amount in_journal:amount'),
    query: `
      SELECT partner_id, currency, sum(shown), sum(posted)
      FROM (SELECT partner_id COLLATE "C" AS partner_id, currency COLLATE "C" AS currency,
                   log_units(currency) * sum(CASE kind WHEN 'share' THEN paid - amount WHEN 'billed' THEN -amount
                                                       ELSE amount END) AS shown, 0 AS posted
            FROM (${quoteFacts('all')}) AS facts
            GROUP BY partner_id, quote_id, currency HAVING bool_or(kind NOT IN ('share', 'billed'))
            UNION ALL
            SELECT partner_id, currency, 0, amount FROM pg_temp.journal
            WHERE control = 'assets:receivable:processor') AS both_ways
      GROUP BY partner_id, currency HAVING sum(shown) <> sum(posted)`,
  },
];
