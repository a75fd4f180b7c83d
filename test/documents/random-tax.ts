/**
 * Tax in random histories: rules with a change of rates, a policy of its own and a partner under reverse charge. What a
 * document taxes is added up again from its lines, in whole units of the currency, and rounded once for each rate.
 */
import { expect } from 'vitest';
import { type Settings, settingsSchema } from '../../src/config/settings.ts';
import type { DocumentJson } from '../../src/documents/document.ts';

const RULES = [
  { category: 'exempt', reason: 'Billed before the tax', until: '2026-02-28' },
  { category: 'standard', rate: '19', until: '2026-04-30' },
  { category: 'standard', rate: '7.75', from: '2026-05-01' },
  { policy: 'parking', category: 'standard', rate: '5.5', reduced: true },
  { partner: 'p-2', category: 'reverse_charge' },
];

/** From March on, which histories begin in. */
export const taxed = (settings: Settings): Settings => ({
  ...settings,
  tax: settingsSchema.shape.tax.parse({ from: '2026-03', rules: RULES }),
});

const units = (amount: string): bigint => BigInt(amount.replace('.', ''));
const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((one, other) => one + other, 0n);

/** Half away from zero, of a rate with at most four decimals. */
function taxOf(taxable: bigint, rate: string): bigint {
  const [whole = '0', fraction = ''] = rate.split('.');
  const product = taxable * BigInt(whole + fraction.padEnd(4, '0'));
  const size = ((product < 0n ? -product : product) * 2n + 1_000_000n) / 2_000_000n;
  return product < 0n ? -size : size;
}

/** The gross amount is that before tax and the tax of each rate; each rate's is that of its lines. Gives how many have tax. */
export function expectTaxToTie(documents: readonly DocumentJson[]): number {
  const withTax = documents.filter(({ taxTotals }) => taxTotals !== undefined);
  for (const { number, invoiceAmount, gross, taxTotals = [], lines, credits } of withTax) {
    const own = taxTotals.map(({ category, rate, taxable, tax }) => ({
      of: `${category} ${rate}`,
      taxable,
      tax,
      rate,
    }));
    expect([number, units(gross ?? '')]).toEqual([
      ...[number, units(invoiceAmount) + sum(own.map(({ tax }) => units(tax)))],
    ]);
    expect([number, sum(own.map(({ taxable }) => units(taxable)))]).toEqual([number, units(invoiceAmount)]);
    // The tax of a credit is what is left of its invoice's: see below.
    if (credits !== null) continue;
    for (const { of, taxable, tax, rate } of own) {
      expect([number, of, units(tax)]).toEqual([number, of, taxOf(units(taxable), rate)]);
      const totals = own.filter((other) => other.of === of);
      const alike = lines.filter(({ tax: line }) => `${line?.category} ${line?.rate}` === of);
      const expected = sum(alike.map(({ invoiceAmount: amount }) => units(amount)));
      expect([number, of, sum(totals.map((each) => units(each.taxable)))]).toEqual([number, of, expected]);
    }
  }
  for (const invoice of withTax.filter(({ credits }) => credits === null)) expectCreditsToTie(invoice, withTax);
  return withTax.length;
}

/** All credits of an invoice together have the tax of what they credit, and those of all of it exactly its tax. */
function expectCreditsToTie({ number, invoiceAmount, gross }: DocumentJson, documents: readonly DocumentJson[]): void {
  const credits = documents.filter((each) => each.credits === number && each.status !== 'void');
  if (credits.length === 0) return;
  const before = sum(credits.map((each) => units(each.invoiceAmount)));
  const after = sum(credits.map((each) => units(each.gross ?? '')));
  expect([number, after <= units(gross ?? '')]).toEqual([number, true]);
  if (before === units(invoiceAmount)) expect([number, after]).toEqual([number, units(gross ?? '')]);
}
