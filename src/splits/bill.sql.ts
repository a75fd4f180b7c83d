/** SQL of the invoices for missing shares. */
import { type Issue, OPEN_CREDIT } from '../close/queries.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';

/**
 * Issues an invoice for each partner and currency of these, with a line for each policy and month of its quotes, and
 * gives the numbers. Leaves `issued_documents` for what follows an issue. Needs the ledger's lock.
 */
export async function insertMissingShares(
  tx: Transaction,
  issue: Issue,
  billable: readonly { partner_id: string; currency: string; quote_id: string; amount: string }[],
): Promise<string[]> {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.missing, pg_temp.issued_documents`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE missing ON COMMIT DROP AS
     SELECT b.partner_id COLLATE "C" AS partner_id, b.currency COLLATE "C" AS currency, b.quote_id, b.amount,
            e.policy_id, e.month
     FROM json_to_recordset(:billable::json) AS b (partner_id text, currency text, quote_id text, amount numeric)
     JOIN ledger_rows e ON e.partner_id = b.partner_id COLLATE "C" AND e.kind = 'quote_accepted'
       AND coalesce(e.reversal_id, e.requote_id, e.quote_id) = b.quote_id COLLATE "C"`,
    { billable: JSON.stringify(billable) },
  );
  await execute(
    tx,
    `CREATE TEMPORARY TABLE issued_documents (
       document_id bigint NOT NULL, partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL,
       arrangement text NOT NULL, sign integer NOT NULL
     ) ON COMMIT DROP`,
  );
  const issued = await query<{ number: string }>(
    tx,
    `WITH totals AS (
       SELECT partner_id, currency, count(*) AS quotes, sum(amount) AS amount
       FROM pg_temp.missing GROUP BY partner_id, currency
     ), ${OPEN_CREDIT}, issued AS (
       INSERT INTO documents (
         series, sequence, document, purpose, partner_id, month, currency, arrangement, issued_on, due_on, terms_days,
         enrollments, entries, spot_price, partner_cut, invoice_amount, credit_applied, partner_name, address_line1,
         address_line2, address_city, address_region, address_postal_code, address_country, tax_id, purchase_order,
         legal_note, issuer_version_id, sandbox, issued_at)
       SELECT series.series,
              row_number() OVER (ORDER BY t.partner_id, t.currency)
                + coalesce((SELECT max(d.sequence) FROM documents d WHERE d.series = series.series), 0),
              'invoice', 'missing_shares', t.partner_id, :month, t.currency, 'connected_account',
              :issuedOn::date, :issuedOn::date + terms.days, terms.days, t.quotes, 0, t.amount, 0, t.amount,
              least(coalesce(c.balance, 0), t.amount), p.name, p.address_line1, p.address_line2, p.address_city,
              p.address_region, p.address_postal_code, p.address_country, p.tax_id, p.purchase_order, p.legal_note,
              :issuerVersionId::bigint, :sandbox::boolean, :now::timestamptz
       FROM totals t
       JOIN partners p ON p.partner_id = t.partner_id
       LEFT JOIN open_credit c ON c.partner_id = t.partner_id AND c.currency = t.currency
       CROSS JOIN (SELECT 'INV-' || left(:issuedOn, 4) COLLATE "C" AS series) AS series
       CROSS JOIN LATERAL (SELECT coalesce(p.payment_terms_days, :termsDays::integer) AS days) AS terms
       ORDER BY t.partner_id, t.currency
       RETURNING document_id, number, partner_id, currency, arrangement
     ), kept AS (
       INSERT INTO pg_temp.issued_documents
       SELECT document_id, partner_id, currency, arrangement, 1 FROM issued RETURNING document_id
     )
     SELECT number FROM issued ORDER BY document_id`,
    { ...issue },
  );
  await execute(
    tx,
    `INSERT INTO missing_shares (document_id, partner_id, month, currency, arrangement, quote_id, amount)
     SELECT d.document_id, m.partner_id, :month, m.currency, d.arrangement, m.quote_id, trim_scale(m.amount)
     FROM pg_temp.missing m JOIN pg_temp.issued_documents d USING (partner_id, currency)`,
    { month: issue.month },
  );
  await execute(
    tx,
    `INSERT INTO document_lines (
       document_id, position, policy_id, policy_name, kind, month, count, spot_price, partner_cut, invoice_amount)
     SELECT d.document_id,
            row_number() OVER (PARTITION BY d.document_id ORDER BY m.month < :month, m.month, m.policy_id),
            m.policy_id, o.name, 'quote_accepted', m.month, count(*), sum(m.amount), 0, sum(m.amount)
     FROM pg_temp.missing m
     JOIN pg_temp.issued_documents d USING (partner_id, currency)
     JOIN policies o ON o.partner_id = m.partner_id AND o.policy_id = m.policy_id
     GROUP BY d.document_id, m.policy_id, o.name, m.month`,
    { month: issue.month },
  );
  return issued.map(({ number }) => number);
}
