/** Drafts the documents of a month, and taxes each sale by the rule for its tax point. Refusal: tax_rule_missing. */
import { Tax, taxRuleFor, whyNoTaxRule } from '#config/tax';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { RowsOfMonth } from '#ledger/running-lines.sql';
import { lastDay, Month } from '#month';
import { createDrafts, totalDrafts, totalRows, totalRowsByTaxMonth } from './drafts.sql.ts';
import { DraftedSale, insertRules, readUntaxedSales, takeBilledTaxes, totalTaxes, UNNAMED } from './tax.sql.ts';

/**
 * Drafts a document for each partner, currency and arrangement with rows in a month, of some partners or of all. A closed
 * month has the rows that posted after the previous closed month and up to this one, so the first one includes all
 * earlier rows.
 */
export async function draftMonth(tx: Transaction, { tax }: { readonly tax: Tax | null }, rows: RowsOfMonth) {
  await createDrafts(tx);
  if (tax === null || rows.month < tax.from) await totalRows(tx, rows);
  else {
    await totalRowsByTaxMonth(tx, rows);
    await taxDraftedLines(tx, rows.month, tax);
  }
  await totalDrafts(tx);
}

/**
 * Taxes the drafted lines of a month. `taxed_lines` divides them by tax month and by the line that billed a reversed
 * sale; they become `draft_lines`, with the position of their tax total. A refusal names all sales without a rule.
 */
async function taxDraftedLines(tx: Transaction, month: Month, tax: Tax) {
  await takeBilledTaxes(tx, tax);
  const sales = await readUntaxedSales(tx);
  const ruled = sales.map((sale) => ({ ...sale, rule: taxRuleFor(tax, { ...saleOf(sale), ...pointOf(sale) }) }));
  const missing = ruled.filter(({ rule }) => rule === undefined);
  if (missing.length > 0) {
    const lines = missing.map((sale) => ({
      ...{ partner_id: sale.partner_id, policy_id: sale.policy_id, country: sale.country },
      ...pointOf(sale),
      why: whyNoTaxRule(tax, { ...saleOf(sale), ...pointOf(sale) }),
    }));
    throw refuse('tax_rule_missing', { month, lines });
  }
  const rules = ruled.map(({ partner_id, policy_id, tax_month, country, rule }) => {
    const { name, registration } = tax.countries[country] ?? UNNAMED;
    return { ...rule, partner_id, policy_id, tax_month, country, name, registration };
  });
  await insertRules(tx, rules);
  await totalTaxes(tx);
}

const saleOf = ({ partner_id, policy_id, policy_kind, country }: DraftedSale) => ({
  ...{ partner: partner_id, policy: policy_id, kind: policy_kind, country },
});
/** The tax point of a month's sales is its last day (docs/tax.md). */
const pointOf = ({ tax_month }: DraftedSale) => ({ date: lastDay(tax_month) });
