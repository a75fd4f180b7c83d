/** Finds the documents that would differ if issued now, and the documents that replaced others. */
import { execute, query, querying, queryingOne, Transaction } from '#database/transaction';
import { Month } from '#month';
import { AMOUNTS } from './issue/drafts.sql.ts';
import { DocumentKind } from './snapshot.ts';

export type RerunCandidate = Readonly<{
  document_id: number;
  number: string;
  document: DocumentKind;
  currency: string;
  void: boolean;
  amount_paid: string;
  credited: string;
  written_off: string;
  held_at: string | null;
  hold_reason: string | null;
  /** Whether the close put the document on hold. */
  held_by_close: boolean;
  disputed_on: string | null;
  disputed: string | null;
  /** In words. */
  differences: string[];
}>;

type RerunQuestion = Readonly<{
  month: Month;
  partnerId?: string | undefined;
  issuerVersionId: number;
  instructions: Readonly<Record<string, unknown>>;
  termsDays: number;
  newTerms: boolean;
}>;

/** The lines and the tax of each draft, as JSON. A change of tax can split a line. The SQL is for use inside a WITH. */
const DRAFTED = `summed AS (
       SELECT partner_id, currency, arrangement, policy_id, kind, month, sum(count)::bigint AS count,
              ${AMOUNTS}
       FROM pg_temp.draft_lines GROUP BY partner_id, currency, arrangement, policy_id, kind, month
     ), by_rows AS (
       SELECT l.partner_id, l.currency, l.arrangement,
              jsonb_object_agg(l.policy_id, printed_name(o)) AS names,
              jsonb_agg(jsonb_build_array(l.policy_id, l.kind, l.month, l.count, l.spot_price, l.partner_cut,
                                          l.invoice_amount)
                        ORDER BY l.policy_id, l.kind, l.month) AS lines
       FROM summed l JOIN policies o ON o.partner_id = l.partner_id AND o.policy_id = l.policy_id
       GROUP BY l.partner_id, l.currency, l.arrangement
     ), by_rules AS (
       SELECT partner_id, currency, arrangement,
              jsonb_agg(jsonb_build_array(country, registration, name, category, rate, reduced, reason, reason_code,
                                          taxable, tax) ORDER BY country, category, rate, reduced) AS taxes
       FROM pg_temp.draft_taxes GROUP BY partner_id, currency, arrangement
     )`;

/** The lines and the tax printed on document `d`, with the ledger's signs, `s.sign`. */
const PRINTED = `CROSS JOIN LATERAL (
       SELECT jsonb_agg(jsonb_build_array(t.country, t.registration, t.name, t.category, t.rate, t.reduced, t.reason,
                                          t.reason_code, s.sign * t.taxable, s.sign * t.tax)
                        ORDER BY t.country, t.category, t.rate, t.reduced) AS taxes
       FROM document_taxes t WHERE t.document_id = d.document_id) AS x
     CROSS JOIN LATERAL (
       SELECT jsonb_object_agg(l.policy_id, l.policy_name) AS names,
              jsonb_agg(jsonb_build_array(l.policy_id, l.kind, l.month, l.count, s.sign * l.spot_price,
                                          s.sign * l.partner_cut, s.sign * l.invoice_amount)
                        ORDER BY l.policy_id, l.kind, l.month) AS lines
       FROM (SELECT policy_id, min(policy_name) AS policy_name, kind, month, sum(count)::bigint AS count,
                    ${AMOUNTS}
             FROM document_lines WHERE document_id = d.document_id GROUP BY policy_id, kind, month) AS l) AS f`;

/**
 * The last document of each chain of replacements in the month of the drafts, compared with its draft, also by its
 * ledger rows, although those of a closed month should never change.
 */
export async function readRerunCandidates(tx: Transaction, question: RerunQuestion): Promise<RerunCandidate[]> {
  // The planner may have no statistics yet for newly issued documents. Joining 2,000 of them to their lines and
  // balances took 60 s with the documents table, and 0.3 s with this one.
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.last_documents`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE last_documents ON COMMIT DROP AS
     SELECT d.document_id FROM documents d
     WHERE d.month = :month AND d.purpose = 'month'
       AND (:partnerId::text IS NULL OR d.partner_id = :partnerId)
       AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = d.document_id)`,
    { month: question.month, partnerId: question.partnerId ?? null },
  );
  await execute(tx, 'ANALYZE pg_temp.last_documents');
  return query(
    tx,
    `WITH ${DRAFTED}
     SELECT d.document_id, d.number, d.document, d.currency, v.document_id IS NOT NULL AS void, b.amount_paid,
            b.credited,
            (SELECT coalesce(sum(amount), 0) FROM live_write_offs o WHERE o.document_id = d.document_id) AS written_off,
            h.held_at, h.reason AS hold_reason, e.details->>'by' IS NOT DISTINCT FROM 'close' AS held_by_close,
            t.disputed_on, t.amount AS disputed,
            array_remove(ARRAY[
              CASE WHEN f.lines IS DISTINCT FROM r.lines THEN 'the ledger''s sums' END,
              CASE WHEN x.taxes IS DISTINCT FROM m.taxes THEN 'the tax' END,
              CASE WHEN f.names IS DISTINCT FROM r.names THEN 'the policies'' names' END,
              CASE WHEN d.partner_name <> p.name THEN 'the partner''s name' END,
              CASE WHEN (d.address_line1, d.address_line2, d.address_city, d.address_region, d.address_postal_code,
                         d.address_country) IS DISTINCT FROM (p.address_line1, p.address_line2, p.address_city,
                         p.address_region, p.address_postal_code, p.address_country) THEN 'the partner''s address' END,
              CASE WHEN d.tax_id <> p.tax_id THEN 'the tax id' END,
              CASE WHEN d.purchase_order <> p.purchase_order THEN 'the purchase order' END,
              CASE WHEN d.legal_note <> p.legal_note THEN 'the legal note' END,
              CASE WHEN d.document <> 'statement' AND (d.e_invoice, d.buyer_reference, d.electronic_address)
                        IS DISTINCT FROM (p.e_invoice, p.buyer_reference, p.electronic_address)
                   THEN 'the details of e-invoices' END,
              CASE WHEN d.issuer_version_id <> :issuerVersionId::bigint THEN 'the issuer''s details' END,
              CASE WHEN i.content IS NOT NULL AND i.content IS DISTINCT FROM (:instructions::jsonb -> d.currency)
                   THEN 'the payment instructions' END,
              CASE WHEN :newTerms::boolean AND d.document = 'invoice'
                    AND (d.terms_days, d.terms_end_of_month, d.terms_day) IS DISTINCT FROM (
                      coalesce(p.payment_terms_days, :termsDays::integer), p.payment_terms_end_of_month,
                      p.payment_terms_day)
                   THEN 'the payment terms' END], NULL) AS differences
     FROM pg_temp.last_documents
     JOIN documents d USING (document_id)
     JOIN by_rows r ON r.partner_id = d.partner_id AND r.currency = d.currency AND r.arrangement = d.arrangement
     LEFT JOIN by_rules m ON m.partner_id = d.partner_id AND m.currency = d.currency AND m.arrangement = d.arrangement
     CROSS JOIN LATERAL (SELECT document_sign(d.document) AS sign) AS s
     ${PRINTED}
     CROSS JOIN LATERAL (
       SELECT amount_paid, credited FROM document_balances WHERE document_id = d.document_id OFFSET 0) AS b
     JOIN partners p ON p.partner_id = d.partner_id
     LEFT JOIN voids v ON v.document_id = d.document_id
     LEFT JOIN document_pdfs w ON w.document_id = d.document_id
     LEFT JOIN instruction_versions i ON i.instruction_version_id = w.instruction_version_id
     LEFT JOIN current_holds h ON h.document_id = d.document_id
     LEFT JOIN audit_events e ON e.event_id = h.event_id
     LEFT JOIN open_invoice_disputes t ON t.document_id = d.document_id
     ORDER BY d.series, d.sequence`,
    { ...question, partnerId: null },
  );
}

export const readReplacements = querying<{ number: string; replaced_by: string }, { documentIds: readonly number[] }>(`
  SELECT d.number, later.number AS replaced_by
  FROM documents d JOIN documents later ON later.replaces = d.document_id
  WHERE d.document_id = ANY (:documentIds::bigint[]) ORDER BY later.series, later.sequence`);

/** The last document of the chain of replacements that begins with this one, and whether it is void. */
export const readLastOfChain = queryingOne<{ number: string; void: boolean }, { documentId: number }>(`
  WITH RECURSIVE chain AS (
    SELECT document_id, number FROM documents WHERE document_id = :documentId
    UNION ALL
    SELECT later.document_id, later.number FROM chain c JOIN documents later ON later.replaces = c.document_id
  )
  SELECT c.number, EXISTS (SELECT FROM voids v WHERE v.document_id = c.document_id) AS void
  FROM chain c
  WHERE NOT EXISTS (SELECT FROM documents later WHERE later.replaces = c.document_id)`);
