import { execute, executing, query, querying, queryingFirst, Transaction } from '#database/transaction';

export type CheckoutEnding =
  | 'paid'
  | 'replaced'
  | 'canceled'
  | 'changed'
  | 'expired'
  | 'failed'
  | 'refused'
  | 'not_made';

export type CheckoutPart = Readonly<{
  document_id: number;
  number: string;
  amount: string;
  status: 'open' | 'paid' | 'void';
  balance: string;
}>;

export type Checkout = Readonly<{
  checkout_id: number;
  reference: string;
  partner_id: string;
  provider: string;
  currency: string;
  amount: string;
  request: Readonly<Record<string, unknown>>;
  idempotency_key: string;
  expires_at: string;
  recorded_at: string;
  provider_id: string | null;
  url: string | null;
  /** The day on which a bank debit was ordered. */
  ordered_on: string | null;
  ending: CheckoutEnding | null;
  detail: string | null;
  /** In the order in which a payment is applied to them. */
  invoices: readonly CheckoutPart[];
}>;

const CHECKOUT = `SELECT c.checkout_id, c.reference, c.partner_id, c.provider, c.currency, c.amount, c.request,
         c.idempotency_key, c.expires_at, c.recorded_at, s.provider_id, s.url, o.ordered_on, e.why AS ending, e.detail,
         (SELECT json_agg(json_build_object('document_id', i.document_id, 'number', d.number, 'amount', i.amount::text,
                                            'status', b.status, 'balance', b.balance::text) ORDER BY i.position)
          FROM checkout_invoices i JOIN documents d ON d.document_id = i.document_id
          JOIN document_balances b ON b.document_id = i.document_id
          WHERE i.checkout_id = c.checkout_id) AS invoices
  FROM checkouts c
  LEFT JOIN checkout_sessions s ON s.checkout_id = c.checkout_id
  LEFT JOIN checkout_orders o ON o.checkout_id = c.checkout_id
  LEFT JOIN checkout_endings e ON e.checkout_id = c.checkout_id`;

/** A partner's checkout; undefined if the checkout belongs to a different partner. */
export const readCheckout = queryingFirst<Checkout, Readonly<{ partnerId: string; reference: string }>>(
  `${CHECKOUT} WHERE c.reference = :reference AND c.partner_id = :partnerId`,
);

export const readLiveCheckouts = querying<Checkout, { documentIds: readonly number[] }>(`
  ${CHECKOUT} WHERE e.checkout_id IS NULL AND c.checkout_id IN (
    SELECT i.checkout_id FROM checkout_invoices i WHERE i.document_id = ANY (:documentIds))
  ORDER BY c.checkout_id`);

/** Whether an open checkout asks for an amount other than the document's balance. */
export const HAS_CHANGED_CHECKOUT = `EXISTS (
  SELECT FROM checkout_invoices x
  WHERE x.document_id = d.document_id AND (b.status <> 'open' OR b.balance <> x.amount)
    AND NOT EXISTS (SELECT FROM checkout_endings z WHERE z.checkout_id = x.checkout_id))`;

export type InvoiceInCheckout = Readonly<{
  document_id: number;
  /** The checkout's reference; null for a debit that was ordered through the invoice's own link. */
  reference: string | null;
  /** The day on which a bank debit was ordered; null while its payer is still at the processor's page. */
  ordered_on: string | null;
  amount: string;
}>;

/** Open invoices with a payment in progress: all of a partner's, or one of them. */
export function readInvoicesInCheckout(
  tx: Transaction,
  { documentId = null, ...given }: { partnerId: string; documentId?: number | null; now: string },
): Promise<InvoiceInCheckout[]> {
  return query(
    tx,
    `SELECT document_id, reference, ordered_on, amount FROM (
       SELECT o.document_id, o.reference, o.ordered_on, o.amount
       FROM ordered_payments o JOIN documents d USING (document_id) WHERE d.partner_id = :partnerId
       UNION ALL
       SELECT i.document_id, c.reference, NULL, i.amount
       FROM checkouts c JOIN checkout_invoices i USING (checkout_id) JOIN checkout_sessions s USING (checkout_id)
       WHERE c.partner_id = :partnerId AND c.expires_at > :now
         AND NOT EXISTS (SELECT FROM ordered_payments o WHERE o.document_id = i.document_id)
         AND NOT EXISTS (SELECT FROM checkout_endings e WHERE e.checkout_id = c.checkout_id)) AS u
     WHERE :documentId::bigint IS NULL OR document_id = :documentId`,
    { ...given, documentId },
  );
}

export type PayableInvoice = Readonly<{
  document_id: number;
  number: string;
  currency: string;
  balance: string;
  payable: boolean;
  /** The day on which a bank debit in progress was ordered through the invoice's own link; null if there is none. */
  ordered_on: string | null;
}>;

/** The partner's documents among the given ones, oldest due date first. */
export const readPayableInvoices = querying<PayableInvoice, { partnerId: string; numbers: readonly string[] }>(`
  SELECT d.document_id, d.number, d.currency, b.balance,
         d.document = 'invoice' AND b.status = 'open' AND b.balance > 0 AS payable,
         (SELECT o.ordered_on FROM ordered_payments o
          WHERE o.document_id = d.document_id AND o.reference IS NULL LIMIT 1) AS ordered_on
  FROM documents d JOIN document_balances b USING (document_id)
  WHERE d.partner_id = :partnerId AND d.number = ANY (:numbers)
  ORDER BY d.due_on, d.document_id`);

/** Makes concurrent requests of a partner wait for each other. */
export const lockPartner = executing<{ partnerId: string }>(
  `SELECT FROM partners WHERE partner_id = :partnerId FOR NO KEY UPDATE`,
);

type NewCheckout = Readonly<{
  reference: string;
  partnerId: string;
  provider: string;
  currency: string;
  amount: string;
  request: object;
  key: string;
  expiresAt: string;
  now: string;
  eventId: number;
  invoices: readonly Readonly<{ document_id: number; amount: string }>[];
}>;

export async function insertCheckout(tx: Transaction, checkout: NewCheckout) {
  await execute(
    tx,
    `WITH made AS (
       INSERT INTO checkouts (reference, partner_id, provider, currency, amount, request, idempotency_key, expires_at,
                              recorded_at, event_id)
       VALUES (:reference, :partnerId, :provider, :currency, :amount, :request::jsonb, :key, :expiresAt, :now, :eventId)
       RETURNING checkout_id, partner_id, currency
     )
     INSERT INTO checkout_invoices (checkout_id, position, document_id, partner_id, currency, amount)
     SELECT checkout_id, place, document_id, partner_id, currency, amount
     FROM made CROSS JOIN json_to_recordset(:invoices::json) AS r (place integer, document_id bigint, amount numeric)`,
    {
      ...checkout,
      request: checkout.request,
      invoices: checkout.invoices.map((each, index) => ({ ...each, place: index + 1 })),
    },
  );
}

export const insertSession = executing<{ checkoutId: number; providerId: string; url: string; now: string }>(`
  INSERT INTO checkout_sessions (checkout_id, provider_id, url, created_at)
  VALUES (:checkoutId, :providerId, :url, :now) ON CONFLICT (checkout_id) DO NOTHING`);

export async function insertEnding(
  tx: Transaction,
  ending: { checkoutId: number; why: CheckoutEnding; detail?: string | undefined; now: string },
) {
  await execute(
    tx,
    `INSERT INTO checkout_endings (checkout_id, why, detail, ended_at)
     VALUES (:checkoutId, :why, :detail, :now) ON CONFLICT (checkout_id) DO NOTHING`,
    { ...ending, detail: ending.detail ?? null },
  );
}
