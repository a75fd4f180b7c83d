/** Findings for rows that may repeat a sale, recorded or held, one for each partner. */
import { query, type Transaction } from '../database/transaction.ts';
import { DOUBLED } from '../ledger/doubles.sql.ts';
import { type Remedy, toDo, toRun } from '../remedy.ts';
import { plural } from '../text.ts';
import type { Finding, FindingQuestion, ReadFindings } from './finding.ts';

interface RowsOfPartner {
  readonly partner_id: string;
  readonly name: string;
  readonly rows: number;
  readonly since: string;
  readonly currency: string | null;
  readonly amount: string;
}

const ofPartners = (tx: Transaction, rows: string, { scope, limit }: FindingQuestion): Promise<RowsOfPartner[]> =>
  query(
    tx,
    `SELECT r.partner_id, p.name, count(*) AS rows, min(r.recorded_at)::date AS since,
            CASE WHEN count(DISTINCT r.currency) = 1 THEN min(r.currency) END AS currency,
            sum(r.invoice_amount)::text AS amount
     FROM (${rows}) AS r JOIN partners p USING (partner_id)
     WHERE :scope::text[] IS NULL OR r.partner_id = ANY (:scope::text[])
     GROUP BY r.partner_id, p.name ORDER BY since, r.partner_id LIMIT :limit`,
    { scope, limit },
  );

function findingOf(row: RowsOfPartner, kind: 'held' | 'doubled', reason: string, remedies: readonly Remedy[]): Finding {
  const { partner_id, name, rows, since, currency, amount } = row;
  return {
    ...{ item: `${kind}:${partner_id}`, kind: 'rows', state: kind, tone: 'warn', title: partner_id, since },
    partners: [{ id: partner_id, name }],
    money: currency === null ? null : { amount, currency },
    ...{ reason, urgent: `${reason}.`, count: rows, remedies },
  };
}

const seeRows = (label: string, list: 'held' | 'doubled', partner: string) =>
  toRun(
    label,
    `ledger ${list} --partner ${partner}`,
    `/console/queue/${list === 'held' ? 'rows' : list}?partner=${encodeURIComponent(partner)}`,
  );

export const readHeld: ReadFindings = async (tx, question) =>
  (await ofPartners(tx, 'SELECT * FROM undecided_rows', question)).map((row) => {
    const are = row.rows === 1 ? 'is' : 'are';
    const reason = `${plural(row.rows, 'row')} of ${row.partner_id} may repeat sales and ${are} not recorded`;
    return findingOf(row, 'held', reason, [seeRows('Decide on them', 'held', row.partner_id)]);
  });

export const readDoubled: ReadFindings = async (tx, question) =>
  (await ofPartners(tx, `SELECT e.* FROM ${DOUBLED}`, question)).map((row) => {
    const reason = `${plural(row.rows, 'API row')} of ${row.partner_id} may repeat another and will be billed`;
    return findingOf(row, 'doubled', reason, [
      seeRows('See them, and reverse what is billed twice', 'doubled', row.partner_id),
      toDo('Keep them', 'rows.separate', { partner: row.partner_id }, 'if they are sales of their own'),
    ]);
  });
