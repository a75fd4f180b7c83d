/** SQL of the search. Each query uses an index or a small table, and is limited to the user's partners. */
import { querying } from '../../database/transaction.ts';
import { BILLED_BY } from '../../documents/billing.sql.ts';
import type { Scope } from '../../people/scope.ts';

export type FoundDocument = Readonly<{
  number: string;
  partner_name: string;
  month: string;
  currency: string;
  amount: string;
  exact: boolean;
}>;

export type FoundPayment = Readonly<{
  payment_id: number;
  payer: string | null;
  received_on: string;
  reference: string;
  currency: string;
  amount: string;
}>;

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

export type FoundPartner = Readonly<{
  partner_id: string;
  name: string;
}>;

type SearchParameters = Readonly<{
  [name: string]: unknown;
  q: string;
  amount: string | null;
  scope: Scope;
  limit: number;
}>;

export const readFoundDocuments = querying<FoundDocument, SearchParameters>(`
  SELECT number, partner_name, month, currency, gross::text AS amount, number = upper(:q) AS exact
  FROM documents
  WHERE (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
    AND (strpos(number, upper(:q)) > 0 OR gross = :amount::numeric
         OR gross - credit_applied = :amount::numeric OR lower(purchase_order) = lower(:q))
  ORDER BY number = upper(:q) DESC, document_id DESC LIMIT :limit`);

export const readFoundPartners = querying<FoundPartner, SearchParameters>(`
  SELECT partner_id, name FROM partners
  WHERE (:scope::text[] IS NULL OR partner_id = ANY (:scope::text[]))
    AND strpos(lower(concat_ws(E'\\n', partner_id, name, contact_email)), lower(:q)) > 0
  ORDER BY partner_id = :q DESC, lower(name), partner_id LIMIT :limit`);

/** Matches the full reference, or the exact amount in any currency. */
export const readFoundPayments = querying<FoundPayment, SearchParameters>(`
  WITH found AS (
    SELECT payment_id FROM payment_sources
    WHERE reference = ANY (commitments_to(ARRAY[:q, upper(:q), lower(:q)]))
    UNION
    SELECT payment_id FROM payments
    WHERE currency IN (SELECT DISTINCT currency FROM partners) AND amount = :amount::numeric
  )
  SELECT p.payment_id, coalesce(n.name, personal(p.payer_name)) AS payer, p.received_on,
         personal(p.reference) AS reference, p.currency,
         p.amount::text
  FROM found JOIN payments p USING (payment_id) JOIN payment_balances b USING (payment_id)
  LEFT JOIN partners n ON n.partner_id = b.partner_id
  WHERE :scope::text[] IS NULL OR b.partner_id = ANY (:scope::text[])
  ORDER BY p.payment_id DESC LIMIT :limit`);

export type FoundLine = Readonly<{
  bank_line_id: number;
  booked_on: string;
  text: string;
  state: string;
  currency: string;
  amount: string;
}>;

/** The latest bank lines with the text or the exact amount, for users who see the whole ledger. */
export const readFoundLines = querying<FoundLine, SearchParameters>(`
  SELECT l.bank_line_id, l.bank_booked_on AS booked_on, t.text, s.state, l.currency, signed_amount(l)::text AS amount
  FROM bank_lines l JOIN bank_line_states s USING (bank_line_id)
  CROSS JOIN LATERAL (
    SELECT concat_ws(' · ', personal(l.payer_name), nullif(personal(l.text), ''), l.bank_reference) AS text) AS t
  WHERE :scope::text[] IS NULL AND l.bank_line_id > (SELECT max(bank_line_id) - 20000 FROM bank_lines)
    AND (l.amount = :amount::numeric OR strpos(lower(t.text), lower(:q)) > 0)
  ORDER BY l.bank_line_id DESC LIMIT :limit`);

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
