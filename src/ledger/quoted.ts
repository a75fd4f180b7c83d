/**
 * What rows of files say against what was agreed: the quote that our API made under the same id, and the cut of the
 * policy. A row that differs from a quote is a conflict; a cut that is not the policy's is reported.
 */
import { execute, query, type Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';
import { plural } from '../text.ts';

const UNJUDGED = `s.code IS NULL AND NOT EXISTS (SELECT FROM findings f WHERE f.seq = s.seq)`;

/** Staged rows whose id our API gave to a quote or requote of other content. */
export async function findDifferingQuotes(tx: Transaction): Promise<void> {
  await execute(
    tx,
    `INSERT INTO findings (seq, field, code, reason)
     SELECT s.seq, a.field, 'conflict',
            format('%s was priced by the API at %s %s, cut %s, invoice %s; the row differs. Correct it, or record it '
                   'as it is with --accept-differing', s.own_id, a.currency, a.spot_price, a.partner_cut,
                   a.invoice_amount)
     FROM staged s JOIN (
       SELECT 'quote_accepted' AS kind, 'quote_id' AS field, partner_id, quote_id AS own_id, quote_id, policy_id,
              currency, spot_price, partner_cut, invoice_amount
       FROM quotes
       UNION ALL
       SELECT 'requote_accepted', 'requote_id', r.partner_id, r.requote_id, r.quote_id, q.policy_id, r.currency,
              r.spot_price - r.accepted_spot_price, r.partner_cut - r.accepted_partner_cut,
              r.invoice_amount - r.accepted_invoice_amount
       FROM requotes r JOIN quotes q USING (quote_id)
     ) AS a ON a.own_id = s.own_id AND a.kind = s.kind AND a.partner_id = s.partner_id
     WHERE ${UNJUDGED}
       AND (s.quote_id, s.policy_id, s.currency, s.spot_price, s.partner_cut, s.invoice_amount)
           IS DISTINCT FROM
           (a.quote_id, a.policy_id, a.currency, a.spot_price, a.partner_cut, a.invoice_amount)`,
  );
}

/** Rows of one policy and currency whose cut is not the policy's. */
export interface DifferingCuts {
  readonly partner_id: string;
  readonly policy_id: string;
  readonly currency: string;
  readonly partner_cut_rate: string;
  readonly rows: number;
  /** The sums of the rows' cuts, and of the cuts by the policy's rate. */
  readonly partner_cut: string;
  readonly by_rate: string;
}

/**
 * Rates are the policy's of today, and the quote's where our API made one. One minor unit is allowed for rounding: the cut
 * of a requote is the difference of two rounded cuts.
 */
const differingCuts = (rows: string, which: string) => `
  SELECT s.partner_id, s.policy_id, s.currency, r.rate AS partner_cut_rate, count(*) AS rows,
         sum(s.partner_cut) AS partner_cut, sum(round(s.spot_price * r.rate, minor_digits(s.currency))) AS by_rate
  FROM ${rows} s JOIN policies o USING (partner_id, policy_id)
  LEFT JOIN quotes q ON q.quote_id = s.quote_id AND q.partner_id = s.partner_id
  CROSS JOIN LATERAL (SELECT coalesce(q.partner_cut_rate, o.partner_cut_rate) AS rate) AS r
  WHERE s.kind <> 'reversal' AND (${which})
    AND abs(s.partner_cut - s.spot_price * r.rate) > power(10::numeric, -minor_digits(s.currency))
  GROUP BY s.partner_id, s.policy_id, s.currency, r.rate
  ORDER BY s.partner_id COLLATE "C", s.policy_id COLLATE "C", s.currency, r.rate`;

const withDigits = ({ partner_cut, by_rate, ...row }: DifferingCuts): DifferingCuts => ({
  ...row,
  partner_cut: Amount.of(partner_cut, row.currency).toString(),
  by_rate: Amount.of(by_rate, row.currency).toString(),
});

/** Of the staged rows that are to be recorded. */
export async function readStagedCuts(tx: Transaction): Promise<DifferingCuts[]> {
  return (await query<DifferingCuts>(tx, differingCuts('staged', UNJUDGED))).map(withDigits);
}

/** Of the rows that post after one month and up to another; without an end, of all later months. */
export async function readDifferingCuts(
  tx: Transaction,
  months: { readonly after: string | null; readonly to: string | null },
): Promise<DifferingCuts[]> {
  const which = `s.posted_month > coalesce(:after::text, '') AND (:to::text IS NULL OR s.posted_month <= :to)`;
  return (await query<DifferingCuts>(tx, differingCuts('ledger_rows', which), months)).map(withDigits);
}

/** `2 rows of p-1, ticket-protection, have a cut of USD 85.00; its rate of 0.30 gives USD 25.50.` */
export function describeDifferingCut(row: DifferingCuts): string {
  const { partner_id, policy_id, currency, partner_cut_rate, rows, partner_cut, by_rate } = row;
  const people = (amount: string) => Amount.of(amount, currency).forPeople();
  return (
    `${plural(rows, 'row')} of ${partner_id}, ${policy_id}, ${rows === 1 ? 'has' : 'have'} a cut of ` +
    `${people(partner_cut)}; the rate of ${partner_cut_rate} gives ${people(by_rate)}.`
  );
}
