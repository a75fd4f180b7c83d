/** SQL of the search. Each query uses an index or a small table, and is limited to the user's partners. */
import { querying, queryingFirst } from '#database/transaction';
import { BILLED_BY } from '#documents/billing.sql';
import { Scope } from '#people/scope';

export type FoundRow = Readonly<{
  quote_id: string;
  enrollment_id: string | null;
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

/** At least four characters of an id: fewer would find most rows. */
const BEGINS = (column: string): string => `CASE WHEN length(:q) < 4 THEN ${column} = :q ELSE ${column} ^@ :q END`;

/**
 * The rows of a quote, and those whose enrollment or order begins with the text, by one probe of each index for each
 * partner.
 */
export const readFoundRows = querying<FoundRow, SearchParameters>(`
  SELECT e.quote_id, e.enrollment_id, e.order_reference, e.kind, e.partner_id, p.name AS partner_name, e.posted_month,
         e.currency, e.invoice_amount::text AS amount, ${BILLED_BY} AS number
  FROM partners p CROSS JOIN LATERAL (
    SELECT * FROM ledger_rows a
    WHERE a.partner_id = p.partner_id AND a.kind = 'quote_accepted'
      AND coalesce(a.reversal_id, a.requote_id, a.quote_id) = :q
    UNION ALL
    SELECT * FROM ledger_rows b
    WHERE b.partner_id = p.partner_id AND b.kind <> 'quote_accepted' AND b.quote_id = :q
    UNION ALL
    (SELECT * FROM ledger_rows n
     WHERE n.partner_id = p.partner_id AND ${BEGINS('n.enrollment_id')} AND n.quote_id <> :q
     ORDER BY n.enrollment_id LIMIT :limit)
    UNION ALL
    (SELECT * FROM ledger_rows o
     WHERE o.partner_id = p.partner_id AND ${BEGINS('o.order_reference')} AND o.quote_id <> :q
       AND o.enrollment_id IS DISTINCT FROM :q
     ORDER BY o.order_reference LIMIT :limit)) AS e
  WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
  ORDER BY e.entry_id LIMIT :limit`);
