/**
 * Drafts: documents to issue, in temporary tables. `drafts` has a row for each document, keyed by partner, currency and
 * arrangement, with the printed amounts. `draft_lines` has the lines, with the ledger's signs.
 */
import { execute, executing, queryingColumn, Transaction } from '#database/transaction';
import { CreditShare } from '#documents/document-tax';
import { LINES_OF_MONTH, RowsOfMonth } from '#ledger/running-lines.sql';
import { createDraftTaxes, draftCreditTaxes } from './tax.sql.ts';

/** The sums of the amounts of lines, with the names of these columns. */
export const AMOUNTS = `
  sum(spot_price) AS spot_price, sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount`;

/**
 * Creates empty `drafts` and `draft_taxes`. A draft's own due date and terms take precedence over the partner's terms.
 */
export async function createDrafts(tx: Transaction) {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.drafts, pg_temp.draft_lines, pg_temp.draft_taxes`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE drafts (
       partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL, arrangement text NOT NULL,
       document text NOT NULL, enrollments bigint NOT NULL, entries bigint NOT NULL, spot_price numeric NOT NULL,
       partner_cut numeric NOT NULL, invoice_amount numeric NOT NULL, tax numeric NOT NULL DEFAULT 0, due_on date,
       terms_days integer, terms_end_of_month boolean, terms_day integer, replaces bigint, credits bigint,
       invoice_lowered_by numeric, invoice_left numeric, reason text NOT NULL DEFAULT ''
     ) ON COMMIT DROP`,
  );
  await createDraftTaxes(tx);
}

/** Creates empty `drafts` and `draft_lines`, for documents of a purpose other than a month's. */
export async function createEmptyDrafts(tx: Transaction) {
  await createDrafts(tx);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE draft_lines (
       partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL, arrangement text NOT NULL,
       policy_id text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, month text COLLATE "C" NOT NULL,
       count bigint NOT NULL, spot_price numeric NOT NULL, partner_cut numeric NOT NULL,
       invoice_amount numeric NOT NULL, tax integer
     ) ON COMMIT DROP`,
  );
}

/** Totals the lines of a month by document, after each line has its tax. */
export async function totalDrafts(tx: Transaction) {
  await execute(tx, 'ANALYZE pg_temp.draft_lines');
  await execute(
    tx,
    `INSERT INTO pg_temp.drafts (
       partner_id, currency, arrangement, document, enrollments, entries, spot_price, partner_cut, invoice_amount, tax)
     SELECT partner_id, currency, arrangement, document, enrollments, entries, sign * spot_price, sign * partner_cut,
            sign * invoice_amount, sign * tax
     FROM (
       SELECT partner_id, currency, arrangement, sum(count) AS entries,
              coalesce(sum(count) FILTER (WHERE kind = 'quote_accepted'), 0) AS enrollments,
              ${AMOUNTS}
       FROM pg_temp.draft_lines GROUP BY partner_id, currency, arrangement
     ) AS totals
     CROSS JOIN LATERAL (
       SELECT coalesce(sum(t.tax), 0) AS tax FROM pg_temp.draft_taxes t
       WHERE t.partner_id = totals.partner_id AND t.currency = totals.currency AND t.arrangement = totals.arrangement
     ) AS taxes
     CROSS JOIN LATERAL (
       SELECT CASE WHEN arrangement = 'connected_account' THEN 'statement'
                   WHEN invoice_amount + tax < 0 THEN 'credit_note' ELSE 'invoice' END AS document) AS kind
     CROSS JOIN LATERAL (SELECT document_sign(document) AS sign) AS sign`,
  );
}

/** Creates `draft_lines`: rows by policy, kind and month. Only CREATE TABLE AS totals the rows in parallel. */
export const totalRows = executing<RowsOfMonth>(`
  CREATE TEMPORARY TABLE draft_lines ON COMMIT DROP AS
  SELECT partner_id, currency, arrangement, policy_id, kind, month, sum(count)::bigint AS count,
         ${AMOUNTS},
         NULL::integer AS tax
  FROM (${LINES_OF_MONTH}) AS lines
  GROUP BY partner_id, currency, arrangement, policy_id, kind, month`);

/**
 * Creates `taxed_lines`: rows by policy, kind, month, and the month whose tax applies. A reversal is taxed as the month
 * of the reversed row was. If an earlier month billed that row, `billed_month` and `billed_kind` name its line;
 * otherwise both are empty.
 */
export async function totalRowsByTaxMonth(tx: Transaction, rows: RowsOfMonth) {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.taxed_lines`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE taxed_lines ON COMMIT DROP AS
     SELECT partner_id, currency, arrangement, policy_id, kind, month,
            CASE sold_month WHEN '' THEN month ELSE sold_month END AS tax_month,
            CASE WHEN sold_posted <= :previous::text THEN sold_posted ELSE '' END AS billed_month,
            CASE WHEN sold_posted <= :previous::text THEN sold_kind ELSE '' END AS billed_kind,
            sum(count)::bigint AS count, ${AMOUNTS}
     FROM (${LINES_OF_MONTH}) AS lines
     GROUP BY partner_id, currency, arrangement, policy_id, kind, month, 7, 8, 9`,
    { ...rows },
  );
  await execute(tx, 'ANALYZE pg_temp.taxed_lines');
}

export const readDraftCurrencies = queryingColumn<string>(`SELECT DISTINCT currency FROM pg_temp.drafts`);

/**
 * Keeps only the drafts that replace these void documents. A replacement keeps the old due date, unless it gets new
 * terms.
 */
export async function keepReplacements(tx: Transaction, documentIds: readonly number[], newTerms: boolean) {
  await execute(
    tx,
    `UPDATE pg_temp.drafts AS draft
     SET replaces = d.document_id,
         due_on = CASE WHEN :newTerms::boolean THEN NULL ELSE d.due_on END,
         terms_days = CASE WHEN :newTerms::boolean THEN NULL ELSE d.terms_days END,
         terms_end_of_month = CASE WHEN :newTerms::boolean THEN NULL ELSE d.terms_end_of_month END,
         terms_day = CASE WHEN :newTerms::boolean THEN NULL ELSE d.terms_day END
     FROM documents d
     WHERE d.document_id = ANY (:documentIds::bigint[])
       AND (d.partner_id, d.currency, d.arrangement) = (draft.partner_id, draft.currency, draft.arrangement)`,
    { documentIds, newTerms },
  );
  await execute(tx, `DELETE FROM pg_temp.drafts WHERE replaces IS NULL`);
  await execute(
    tx,
    `DELETE FROM pg_temp.draft_lines l WHERE NOT EXISTS (
       SELECT FROM pg_temp.drafts draft
       WHERE draft.partner_id = l.partner_id AND draft.currency = l.currency AND draft.arrangement = l.arrangement)`,
  );
}

/** Drafts a credit note against an invoice. It has no lines, because it bills no ledger rows. */
export async function draftAdjustment(
  tx: Transaction,
  adjustment: {
    documentId: number;
    amount: string;
    reason: string;
    /** The amount applied to the invoice at once, and the invoice's balance after that. */
    loweredBy: string;
    left: string;
    tax: string;
    /** The share of each tax total of the invoice; none without tax. */
    shares: readonly CreditShare[];
  },
) {
  const { shares, ...amounts } = adjustment;
  await createEmptyDrafts(tx);
  await execute(
    tx,
    `INSERT INTO pg_temp.drafts (
       partner_id, currency, arrangement, document, enrollments, entries, spot_price, partner_cut, invoice_amount, tax,
       credits, invoice_lowered_by, invoice_left, reason)
     SELECT partner_id, currency, arrangement, 'credit_note', 0, 0, :amount::numeric, 0, :amount::numeric,
            :tax::numeric, document_id, :loweredBy::numeric, :left::numeric, :reason
     FROM documents WHERE document_id = :documentId`,
    amounts,
  );
  await draftCreditTaxes(tx, { documentId: adjustment.documentId, shares });
}
