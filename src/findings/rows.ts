/** Findings for rows that may repeat a sale, one for each partner. */
import { query } from '../database/transaction.ts';
import { toRun } from '../remedy.ts';
import { plural } from '../text.ts';
import type { Finding, ReadFindings } from './finding.ts';

export const readHeld: ReadFindings = async (tx, { scope, limit }) => {
  const partners = await query<{
    partner_id: string;
    name: string;
    rows: number;
    since: string;
    currency: string | null;
    amount: string;
  }>(
    tx,
    `SELECT h.partner_id, p.name, count(*) AS rows, min(h.recorded_at)::date AS since,
            CASE WHEN count(DISTINCT h.currency) = 1 THEN min(h.currency) END AS currency,
            sum(h.invoice_amount)::text AS amount
     FROM undecided_rows h JOIN partners p USING (partner_id)
     WHERE :scope::text[] IS NULL OR h.partner_id = ANY (:scope::text[])
     GROUP BY h.partner_id, p.name ORDER BY since, h.partner_id LIMIT :limit`,
    { scope, limit },
  );
  return partners.map(({ partner_id, name, rows, since, currency, amount }): Finding => {
    const each = `${plural(rows, 'row')} of ${partner_id} may repeat sales and ${rows === 1 ? 'is' : 'are'} not recorded`;
    return {
      ...{ item: `held:${partner_id}`, kind: 'rows', state: 'held', tone: 'warn', title: partner_id, since },
      partners: [{ id: partner_id, name }],
      money: currency === null ? null : { amount, currency },
      ...{ reason: each, urgent: `${each}.`, count: rows },
      remedies: [
        toRun(
          'Decide on them',
          `ledger held --partner ${partner_id}`,
          `/console/queue/rows?partner=${encodeURIComponent(partner_id)}`,
        ),
      ],
    };
  });
};
