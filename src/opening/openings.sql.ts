/** Writes and reads openings, with the open parts of their items. */
import { execute, executing, query, querying, queryingValue, Transaction } from '#database/transaction';
import { OpeningItem } from './file.ts';

type NewOpening = Readonly<{
  cutOverOn: string;
  sha256: string;
  name: string;
  now: string;
  eventId: number;
}>;

export const insertOpening = queryingValue<number, NewOpening>(`
  INSERT INTO openings (cut_over_on, sha256, name, recorded_at, event_id)
  VALUES (:cutOverOn, :sha256, :name, :now, :eventId) RETURNING opening_id`);

export type OpeningTotal = Readonly<{
  currency: string;
  items: number;
  invoices: string;
  credits: string;
  cash: string;
  /** Invoices less credits and cash. */
  control: string;
}>;

export const insertTotals = executing<{ openingId: number; totals: readonly OpeningTotal[] }>(`
  INSERT INTO opening_totals (opening_id, currency, items, invoices, credits, cash, control)
  SELECT :openingId, currency, items, invoices, credits, cash, control
  FROM json_populate_recordset(NULL::opening_totals, :totals::json) ORDER BY currency`);

export type Carrying = Readonly<{
  openingId: number;
  cutOverOn: string;
  issuerVersionId: number;
  sandbox: boolean;
  now: string;
  eventId: number;
}>;

/**
 * Stores invoices and credits as documents, in file order, with the partner's current name and address. An item whose
 * number was reversed becomes the document's next revision. Returns the documents' ids.
 */
export const insertDocuments = querying<
  { document_id: number; document: 'invoice' | 'credit_note' },
  { items: readonly OpeningItem[] } & Carrying
>(`
  INSERT INTO documents (
    series, sequence, document, purpose, partner_id, month, currency, arrangement, issued_on, due_on, terms_days,
    enrollments, entries, spot_price, partner_cut, invoice_amount, credit_applied, partner_name, contact_name,
    address_line1, address_line2, address_city, address_region, address_postal_code, address_country, tax_id,
    purchase_order, legal_note, issuer_version_id, sandbox, issued_at, reopened_on, opening_id, opening_number,
    opening_revision, opening_follows, original_amount)
  SELECT 'OPENING', coalesce((SELECT max(sequence) FROM documents WHERE series = 'OPENING'), 0) + i.place,
         CASE i.kind WHEN 'credit' THEN 'credit_note' ELSE 'invoice' END, 'opening', p.partner_id,
         to_char(i.date, 'YYYY-MM'), i.currency, 'invoicing', i.date, i.due_on, i.due_on - i.date, 0, 0, i.amount, 0,
         i.amount, 0, p.name, p.contact_name, p.address_line1, p.address_line2, p.address_city, p.address_region,
         p.address_postal_code, p.address_country, p.tax_id, p.purchase_order, p.legal_note,
         :issuerVersionId, :sandbox, :now, :cutOverOn, :openingId,
         coalesce(before.opening_number, i.number), coalesce(before.opening_revision, 0) + 1, before.document_id,
         i.original_amount
  FROM ROWS FROM (json_to_recordset(:items::json) AS (
         kind text, number text, partner_id text, date date, due_on date, currency text, amount numeric,
         original_amount numeric)) WITH ORDINALITY
       AS i (kind, number, partner_id, date, due_on, currency, amount, original_amount, place)
  JOIN partners p ON p.partner_id = i.partner_id
  LEFT JOIN LATERAL (
    SELECT d.document_id, d.opening_number, d.opening_revision FROM documents d
    WHERE lower(d.opening_number) = lower(i.number) ORDER BY d.opening_revision DESC LIMIT 1) AS before ON true
  ORDER BY i.place
  RETURNING document_id, document`);

/** Stores unapplied cash as payments that the bank received before the cut-over. */
export async function insertCash(
  tx: Transaction,
  items: readonly OpeningItem[],
  { openingId, cutOverOn, now, eventId }: Carrying,
) {
  await execute(
    tx,
    `WITH carried AS (
       INSERT INTO payments (
         identity, source, partner_id, currency, amount, method, account, received_on, entry_on, reference, recorded_at,
         event_id, opening_id, opening_number)
       SELECT concat_ws('|', 'opening', :openingId::bigint, i.number), 'opening', i.partner_id, i.currency, i.amount,
              'other', '', i.date, :cutOverOn, coalesce(nullif(i.reference, ''), i.number), :now,
              :eventId, :openingId, i.number
       FROM ROWS FROM (json_to_recordset(:items::json) AS (
              number text, partner_id text, date date, currency text, amount numeric, reference text)) WITH ORDINALITY
            AS i (number, partner_id, date, currency, amount, reference, place)
       ORDER BY i.place
       RETURNING *)
     INSERT INTO payment_sources (identity, payment_id, source, reference, recorded_at, event_id)
     SELECT identity, payment_id, 'opening', reference, recorded_at, event_id FROM carried ORDER BY payment_id`,
    { openingId, cutOverOn, now, eventId, items },
  );
}

/** The reasons why items cannot be carried over, by line. */
export const readClashes = querying<
  { line: number; clash: 'partner' | 'document' | 'cash'; of: string },
  { items: readonly OpeningItem[] }
>(`
  WITH items AS (
    SELECT * FROM json_to_recordset(:items::json) AS i (line integer, kind text, number text, partner_id text)
  )
  SELECT i.line, 'partner' AS clash, i.partner_id AS of FROM items i
  WHERE i.partner_id IS NOT NULL AND NOT EXISTS (SELECT FROM partners p WHERE p.partner_id = i.partner_id)
  UNION ALL
  -- This ledger's own numbers are never reused, not even those of void documents.
  SELECT i.line, 'document', d.number FROM items i JOIN documents d ON lower(d.number) = lower(i.number)
  WHERE i.kind <> 'cash' AND d.opening_number IS NULL
  UNION ALL
  SELECT i.line, 'document', d.number FROM items i
  JOIN live_documents d ON lower(d.opening_number) = lower(i.number)
  WHERE i.kind <> 'cash'
  UNION ALL
  SELECT i.line, 'cash', p.payment_id::text FROM items i JOIN payments p ON lower(p.opening_number) = lower(i.number)
  JOIN payment_balances b USING (payment_id)
  WHERE i.kind = 'cash' AND b.status <> 'reversed'
  ORDER BY line, clash`);

export type CarriedItem = Omit<OpeningItem, 'line' | 'reference'> &
  Readonly<{
    document_id: number | null;
    payment_id: number | null;
    balance: string;
    reversed: boolean;
    /** The reason why the item cannot be reversed. Null if the item can be reversed. */
    used: 'paid' | 'credited' | 'written_off' | 'applied' | null;
  }>;

/**
 * The items of one opening or of all openings, in file order. `numbers` selects the items with these numbers that are
 * not reversed.
 */
export function readItems(
  tx: Transaction,
  filter: { openingId?: number; numbers?: readonly string[] },
): Promise<CarriedItem[]> {
  return query(
    tx,
    `SELECT * FROM (
       SELECT CASE d.document WHEN 'invoice' THEN 'invoice' ELSE 'credit' END AS kind, d.number, d.document_id,
              NULL::bigint AS payment_id, d.partner_id, d.issued_on AS date, d.due_on, d.currency,
              d.invoice_amount AS amount, d.original_amount, b.balance, b.status = 'void' AS reversed,
              CASE WHEN b.status = 'void' THEN NULL
                   WHEN b.amount_paid <> 0 THEN 'paid'
                   WHEN EXISTS (SELECT FROM live_write_offs w WHERE w.document_id = d.document_id) THEN 'written_off'
                   WHEN b.credited <> 0 OR EXISTS (SELECT FROM live_documents n WHERE n.credits = d.document_id)
                     THEN 'credited' END AS used
       FROM documents d JOIN document_balances b USING (document_id)
       WHERE d.purpose = 'opening' AND (:openingId::bigint IS NULL OR d.opening_id = :openingId)
         AND (:numbers::text[] IS NULL OR (d.number = ANY (:numbers) AND b.status <> 'void'))
       UNION ALL
       SELECT 'cash', p.opening_number, NULL, p.payment_id, b.partner_id, p.received_on, NULL, p.currency, p.amount,
              p.amount, b.unapplied, b.status = 'reversed',
              CASE WHEN b.status NOT IN ('unapplied', 'reversed') OR (b.status = 'unapplied' AND b.reversed <> 0)
                   THEN 'applied' END
       FROM payments p JOIN payment_balances b USING (payment_id)
       WHERE p.source = 'opening' AND (:openingId::bigint IS NULL OR p.opening_id = :openingId)
         AND (:numbers::text[] IS NULL OR (p.opening_number = ANY (:numbers) AND b.status <> 'reversed'))
     ) AS items ORDER BY document_id NULLS LAST, payment_id`,
    { openingId: filter.openingId ?? null, numbers: filter.numbers ?? null },
  );
}

export type OpeningRow = Readonly<{
  opening_id: number;
  cut_over_on: string;
  name: string;
  sha256: string;
  recorded_at: string;
  totals: readonly OpeningTotal[];
  items: number;
  reversed: number;
}>;

/** The openings in order: all of them, one of them, or those of one file. */
export function readOpenings(
  tx: Transaction,
  filter: { openingId?: number; sha256?: string } = {},
): Promise<OpeningRow[]> {
  return query(
    tx,
    `SELECT o.opening_id, o.cut_over_on, o.name, o.sha256, o.recorded_at, t.totals, s.items, s.reversed
     FROM openings o
     CROSS JOIN LATERAL (
       SELECT json_agg(json_build_object('currency', t.currency, 'items', t.items, 'invoices', t.invoices::text,
                'credits', t.credits::text, 'cash', t.cash::text, 'control', t.control::text)
              ORDER BY t.currency) AS totals
       FROM opening_totals t WHERE t.opening_id = o.opening_id) AS t
     CROSS JOIN LATERAL (
       SELECT count(*) AS items, count(*) FILTER (WHERE reversed) AS reversed
       FROM (SELECT v.document_id IS NOT NULL AS reversed
             FROM documents d LEFT JOIN voids v USING (document_id) WHERE d.opening_id = o.opening_id
             UNION ALL
             SELECT b.status = 'reversed' FROM payments p JOIN payment_balances b USING (payment_id)
             WHERE p.opening_id = o.opening_id) AS items) AS s
     WHERE (:openingId::bigint IS NULL OR o.opening_id = :openingId)
       AND (:sha256::text IS NULL OR o.sha256 = :sha256)
     ORDER BY o.opening_id`,
    { openingId: filter.openingId ?? null, sha256: filter.sha256 ?? null },
  );
}
