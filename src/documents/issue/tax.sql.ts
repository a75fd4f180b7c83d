/**
 * Computes the tax of drafts: a reversal of a billed sale gets the tax that the sale had, any other sale that of its
 * rule. The lines are then totaled by category and rate, and divided by total.
 */
import { Tax } from '#config/tax';
import { execute, executing, querying, Transaction } from '#database/transaction';
import { CreditedTax, CreditShare } from '#documents/document-tax';
import { Month } from '#month';

export type DraftedSale = Readonly<{
  partner_id: string;
  country: string;
  policy_id: string;
  policy_kind: string;
  /** The month of acceptance; for a reversal, the month of the reversed row. */
  tax_month: Month;
}>;

/** The tax in a country that the settings do not name. */
export const UNNAMED = { name: 'VAT', registration: '' };

/** The columns that identify a tax in `sale_taxes`. */
const SALE = 'partner_id, currency, policy_id, tax_month, billed_month, billed_kind';
/** The condition that a line `l` has no tax yet. */
const NOT_BILLED = `NOT EXISTS (
       SELECT FROM pg_temp.sale_taxes s
       WHERE s.partner_id = l.partner_id AND s.currency = l.currency AND s.policy_id = l.policy_id
         AND s.tax_month = l.tax_month AND s.billed_month = l.billed_month AND s.billed_kind = l.billed_kind)`;

/** Creates empty `draft_taxes`: the totals of each draft, with the ledger's signs. */
export const createDraftTaxes = executing(`
  CREATE TEMPORARY TABLE draft_taxes (
    partner_id text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL, arrangement text NOT NULL,
    position integer NOT NULL, country text NOT NULL, registration text NOT NULL, name text NOT NULL,
    category text NOT NULL, rate numeric NOT NULL, reduced boolean NOT NULL, reason text NOT NULL,
    reason_code text NOT NULL, taxable numeric NOT NULL, tax numeric NOT NULL
  ) ON COMMIT DROP`);

export const readUntaxedSales = querying<DraftedSale>(`
  SELECT DISTINCT l.partner_id, p.address_country AS country, l.policy_id, o.kind AS policy_kind, l.tax_month
  FROM pg_temp.taxed_lines l JOIN partners p ON p.partner_id = l.partner_id
  JOIN policies o ON o.partner_id = l.partner_id AND o.policy_id = l.policy_id
  WHERE l.arrangement = 'invoicing' AND ${NOT_BILLED} ORDER BY l.partner_id, l.policy_id, l.tax_month`);

/**
 * Creates `sale_taxes` with the reversals of earlier months' sales, taxed as on the live document that billed the sale,
 * whatever the current rules and the partner's country are. The current settings decide only our tax number and the
 * name of the tax. All rows from before the first closed month were billed in that month. A policy's sales of a month
 * are on one line, so they have one tax.
 */
export async function takeBilledTaxes(tx: Transaction, { countries }: Tax) {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.sale_taxes`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE sale_taxes ON COMMIT DROP AS
     SELECT s.*, t.country, coalesce(:countries::jsonb -> t.country ->> 'registration', :registration) AS registration,
            coalesce(:countries::jsonb -> t.country ->> 'name', :name) AS name, t.category, t.rate, t.reduced,
            t.reason, t.reason_code, true AS billed
     FROM (SELECT DISTINCT ${SALE} FROM pg_temp.taxed_lines WHERE arrangement = 'invoicing' AND billed_month <> '') AS s
     JOIN live_documents d ON d.partner_id = s.partner_id AND d.currency = s.currency
       AND d.month = greatest(s.billed_month, (SELECT min(month) FROM closed_months))
       AND d.arrangement = 'invoicing' AND d.purpose = 'month'
     JOIN document_lines l ON l.document_id = d.document_id AND l.policy_id = s.policy_id AND l.kind = s.billed_kind
       AND l.month = s.tax_month
     JOIN document_taxes t ON t.document_id = l.document_id AND t.position = l.tax`,
    { countries, ...UNNAMED },
  );
  await execute(tx, 'ANALYZE pg_temp.sale_taxes');
}

export async function insertRules(tx: Transaction, rules: readonly object[]) {
  await execute(
    tx,
    `INSERT INTO pg_temp.sale_taxes (
       ${SALE}, country, registration, name, category, rate, reduced, reason, reason_code, billed)
     SELECT ${SALE}, r.country, r.registration, r.name, r.category, r.rate, r.reduced, r.reason, r.reason_code, false
     FROM (SELECT DISTINCT ${SALE} FROM pg_temp.taxed_lines l WHERE arrangement = 'invoicing' AND ${NOT_BILLED}) AS s
     JOIN json_to_recordset(:rules::json) AS r (partner_id text, policy_id text, tax_month text, country text,
       registration text, name text, category text, rate numeric, reduced boolean, reason text, reason_code text)
       USING (partner_id, policy_id, tax_month)`,
    { rules },
  );
  await execute(tx, 'ANALYZE pg_temp.sale_taxes');
}

/**
 * Totals by country, category and rate; reduced rates have their own. Tax is computed once on each total. Totals of the
 * partner's current country come first, because the document states our tax number there. If a total has several
 * reasons, each is listed once; a code is kept only if all lines have it.
 */
export async function totalTaxes(tx: Transaction) {
  await execute(
    tx,
    `INSERT INTO pg_temp.draft_taxes
     SELECT partner_id, currency, arrangement,
            row_number() OVER (PARTITION BY partner_id, currency, arrangement
              ORDER BY country <> (SELECT p.address_country FROM partners p WHERE p.partner_id = totals.partner_id),
                array_position(ARRAY['standard', 'zero', 'exempt', 'reverse_charge', 'outside_scope'], category),
                rate DESC, country COLLATE "C", reduced),
            country, registration, name, category, rate, reduced,
            -- A billed total may already list several reasons.
            CASE WHEN billed AND reason <> '' THEN (
              SELECT string_agg(DISTINCT part, '; ') FROM unnest(string_to_array(reason, '; ')) AS part)
              ELSE reason END,
            reason_code, taxable, tax_of(taxable, rate, currency)
     FROM (
       SELECT l.partner_id, l.currency, l.arrangement, s.country, min(s.registration) AS registration,
              min(s.name) AS name, s.category, s.rate, s.reduced, string_agg(DISTINCT s.reason, '; ') AS reason,
              CASE WHEN min(s.reason_code) = max(s.reason_code) THEN min(s.reason_code) ELSE '' END AS reason_code,
              bool_or(s.billed) AS billed, sum(l.invoice_amount) AS taxable
       FROM pg_temp.taxed_lines l JOIN pg_temp.sale_taxes s USING (${SALE})
       WHERE l.arrangement = 'invoicing'
       GROUP BY l.partner_id, l.currency, l.arrangement, s.country, s.category, s.rate, s.reduced) AS totals`,
  );
  await execute(
    tx,
    `CREATE TEMPORARY TABLE draft_lines ON COMMIT DROP AS
     SELECT l.partner_id, l.currency, l.arrangement, l.policy_id, l.kind, l.month, sum(l.count)::bigint AS count,
            sum(l.spot_price) AS spot_price, sum(l.partner_cut) AS partner_cut, sum(l.invoice_amount) AS invoice_amount,
            t.position AS tax
     FROM pg_temp.taxed_lines l
     LEFT JOIN pg_temp.sale_taxes s ON l.arrangement = 'invoicing' AND s.partner_id = l.partner_id
       AND s.currency = l.currency AND s.policy_id = l.policy_id AND s.tax_month = l.tax_month
       AND s.billed_month = l.billed_month AND s.billed_kind = l.billed_kind
     LEFT JOIN pg_temp.draft_taxes t ON t.partner_id = l.partner_id AND t.currency = l.currency
       AND t.arrangement = l.arrangement AND t.country = s.country AND t.category = s.category AND t.rate = s.rate
       AND t.reduced = s.reduced
     GROUP BY l.partner_id, l.currency, l.arrangement, l.policy_id, l.kind, l.month, t.position`,
  );
}

/** Drafts the totals of a credit note against an invoice: for each total of the invoice, the credited share. */
export const draftCreditTaxes = executing<{ documentId: number; shares: readonly CreditShare[] }>(`
  INSERT INTO pg_temp.draft_taxes
  SELECT d.partner_id, d.currency, d.arrangement, t.position, t.country, t.registration, t.name, t.category, t.rate,
         t.reduced, t.reason, t.reason_code, -s.taxable, -s.tax
  FROM json_to_recordset(:shares::json) AS s (position integer, taxable numeric, tax numeric)
  JOIN document_taxes t ON t.document_id = :documentId AND t.position = s.position
  JOIN documents d ON d.document_id = t.document_id`);

export const insertDocumentTaxes = executing(`
  INSERT INTO document_taxes (
    document_id, position, currency, country, registration, name, category, rate, reduced, reason, reason_code,
    taxable, tax)
  SELECT d.document_id, t.position, t.currency, t.country, t.registration, t.name, t.category, t.rate, t.reduced,
         t.reason, t.reason_code, d.sign * t.taxable, d.sign * t.tax
  FROM pg_temp.draft_taxes t
  JOIN pg_temp.issued_documents d ON d.partner_id = t.partner_id AND d.currency = t.currency
    AND d.arrangement = t.arrangement
  ORDER BY d.document_id, t.position`);

/**
 * The part of each tax total of an invoice that credit notes have credited, also those against the void invoices that
 * it replaces.
 */
export const readCreditedTaxes = querying<CreditedTax, { documentId: number }>(`
  WITH RECURSIVE chain AS (
    SELECT document_id, replaces FROM documents WHERE document_id = :documentId
    UNION ALL
    SELECT d.document_id, d.replaces FROM documents d JOIN chain c ON d.document_id = c.replaces
  )
  SELECT own.position, sum(t.taxable)::numeric AS taxable, sum(t.tax)::numeric AS tax
  FROM chain c JOIN live_documents n ON n.credits = c.document_id
  JOIN document_taxes t ON t.document_id = n.document_id
  JOIN document_taxes own ON own.document_id = :documentId AND own.country = t.country
    AND own.category = t.category AND own.rate = t.rate AND own.reduced = t.reduced
  GROUP BY own.position ORDER BY own.position`);
