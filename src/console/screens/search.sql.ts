/** SQL of the search. Each query uses an index or a small table, and is limited to the user's partners. */
import { querying, queryingFirst } from '../../database/transaction.ts';
import type { Scope } from '../../people/scope.ts';

export type FoundRow = Readonly<{
  quote_id: string;
  order_reference: string | null;
  kind: 'quote_accepted' | 'requote_accepted' | 'reversal';
  partner_id: string;
  partner_name: string;
  posted_month: string;
  number: string | null;
  currency: string;
  amount: string;
}>;

/** The number of the document itself. */
export const readFoundNumber = queryingFirst<
  { number: string },
  Readonly<{
    number: string;
    scope: Scope;
  }>
>(`
  SELECT number FROM documents
  WHERE number = :number AND (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))`);

type SearchParameters = Readonly<{
  q: string;
  scope: Scope;
  limit: number;
}>;

/** The rows of a quote or of a partner's order, by one probe of each index for each partner. */
export const readFoundRows = querying<FoundRow, SearchParameters>(`
  SELECT r.quote_id, r.order_reference, r.kind, r.partner_id, p.name AS partner_name, r.posted_month, r.currency,
         r.invoice_amount::text AS amount,
         (SELECT d.number FROM documents d
          WHERE d.partner_id = r.partner_id AND d.month = r.posted_month AND d.currency = r.currency
            AND d.arrangement = r.arrangement AND d.purpose = 'month'
          ORDER BY d.document_id DESC LIMIT 1) AS number
  FROM partners p CROSS JOIN LATERAL (
    SELECT * FROM ledger_rows a
    WHERE a.partner_id = p.partner_id AND a.kind = 'quote_accepted'
      AND coalesce(a.reversal_id, a.requote_id, a.quote_id) = :q
    UNION ALL
    SELECT * FROM ledger_rows b
    WHERE b.partner_id = p.partner_id AND b.kind <> 'quote_accepted' AND b.quote_id = :q
    UNION ALL
    SELECT * FROM ledger_rows o
    WHERE o.partner_id = p.partner_id AND o.order_reference = :q AND o.quote_id <> :q) AS r
  WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
  ORDER BY r.entry_id LIMIT :limit`);
