/** Findings for rows that may repeat a sale, and for months that have other rows than their partner states. */
import { readContradicted } from '../close/feeds.ts';
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

const pageOf = (list: 'rows' | 'doubled', partner: string): string =>
  `/console/queue/${list}?partner=${encodeURIComponent(partner)}`;

export const readHeld: ReadFindings = async (tx, question) =>
  (await ofPartners(tx, 'SELECT * FROM undecided_rows', question)).map((row) => {
    const are = row.rows === 1 ? 'is' : 'are';
    const reason = `${plural(row.rows, 'row')} of ${row.partner_id} may repeat sales and ${are} not recorded`;
    return findingOf(row, 'held', reason, [
      toRun('Decide on them', `ledger held --partner ${row.partner_id}`, pageOf('rows', row.partner_id)),
    ]);
  });

export const readDoubled: ReadFindings = async (tx, question) =>
  (await ofPartners(tx, `SELECT e.* FROM ${DOUBLED}`, question)).map((row) => {
    const reason = `${plural(row.rows, 'API row')} of ${row.partner_id} may repeat another and will be billed`;
    return findingOf(row, 'doubled', reason, [
      toRun(
        'See them, and reverse what is billed twice',
        `ledger doubled --partner ${row.partner_id}`,
        pageOf('doubled', row.partner_id),
      ),
      toDo('Keep them', 'rows.separate', { partner: row.partner_id }, 'if they are sales of their own'),
    ]);
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
