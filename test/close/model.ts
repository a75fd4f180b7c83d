/** The ledger as it should be, beside the one that there is: which rows were sent, and what they add up to. */
import type { HeldRow } from '../../src/ledger/held.sql.ts';
import type { World } from '../support/world.ts';

export const PARTNERS = ['p-1', 'p-2', 'p-3'] as const;
export const DIGITS = { USD: 2, JPY: 0, KWD: 3 } as const;
export type Currency = keyof typeof DIGITS;

/** A row to come. A requote or reversal is of one of the quotes that there are by then. */
export interface Intent {
  kind: 'quote_accepted' | 'requote_accepted' | 'reversal';
  partner: number;
  currency: Currency;
  policy: 'ticket-protection' | 'parking';
  /** How many months late it comes. */
  late: number;
  /** In minor units. */
  cut: number;
  rest: number;
  /** Which of the quotes. */
  of: number;
  part: 'half' | 'all';
}

type Sums = 'partner_cut' | 'invoice_amount';

interface Quote {
  readonly fields: { quote_id: string; partner_id: string; policy_id: string; currency: Currency };
  cut: number;
  rest: number;
}

/** The ledger as it should be, in whole minor units. */
export class Model {
  readonly quotes: Quote[] = [];
  readonly totals: Record<string, number> = {};
  rows = 0;
  private ids = 0;

  /** The row that an intent becomes; undefined where there is nothing to requote or reverse. */
  row(intent: Intent, now: number): Record<string, unknown> | undefined {
    this.ids += 1;
    // No two rows of a quote are accepted in one second, so that none repeats another.
    const accepted = Date.UTC(2026, now - intent.late, 10, 12, 0, this.ids % 3600);
    const own = {
      kind: intent.kind,
      enrollment_id: `e-${this.ids}`,
      accepted_at: new Date(accepted).toISOString(),
      // Several quotes share an order, and each kind of row may have what the others do not have.
      ...(this.ids % 3 === 0 && { order_reference: `=ORD ${this.ids % 5}, "x"` }),
      ...(this.ids % 4 === 0 && { cover_from: '2026-07-01' }),
      ...(this.ids % 8 === 0 && { cover_to: '2027-06-30' }),
      ...(intent.kind === 'requote_accepted' ? { requote_id: `rq-${this.ids}` } : {}),
      ...(intent.kind === 'reversal' ? { reversal_id: `rv-${this.ids}` } : {}),
    };
    if (intent.kind === 'quote_accepted') {
      const { currency } = intent;
      const partner_id = PARTNERS[intent.partner] as string;
      const fields = { quote_id: `q-${this.ids}`, partner_id, policy_id: intent.policy, currency };
      this.quotes.push({ fields, cut: 0, rest: 0 });
      return this.post(this.quotes.length - 1, own, intent.cut, intent.rest);
    }
    if (this.quotes.length === 0) return undefined;
    const index = intent.of % this.quotes.length;
    if (intent.kind === 'requote_accepted') return this.post(index, own, intent.cut, intent.rest);
    const { cut, rest } = this.quotes[index] as Quote;
    return intent.part === 'all'
      ? this.post(index, own, -cut, -rest)
      : this.post(index, own, -Math.floor(cut / 2), -Math.floor(rest / 2));
  }

  /** A reversal that the program itself recorded, of what was pulled back. */
  reversed(row: { quote_id: string; partnerCut: string; invoiceAmount: string }): void {
    const index = this.quotes.findIndex(({ fields }) => fields.quote_id === row.quote_id);
    const digits = DIGITS[(this.quotes[index] as Quote).fields.currency];
    const minor = (amount: string) => Math.round(Number(amount) * 10 ** digits);
    this.post(index, {}, minor(row.partnerCut), minor(row.invoiceAmount));
  }

  /** A row that was sent and waits for a person: it is not in the ledger. */
  held(row: Record<string, unknown>): void {
    const index = this.quotes.findIndex(({ fields }) => fields.quote_id === row['quote_id']);
    const { currency } = (this.quotes[index] as Quote).fields;
    const minor = (field: string) => Math.round(Number(row[field]) * 10 ** DIGITS[currency]);
    this.post(index, {}, -minor('partnerCut'), -minor('invoiceAmount'));
    this.rows -= 2;
  }

  /** A row that a person or the processor let into the ledger, or that the API recorded. */
  recorded(row: Pick<HeldRow, 'kind' | 'quote_id' | 'partner_id' | 'policy_id' | 'currency' | Sums>): void {
    const { kind, quote_id, partner_id, policy_id, partner_cut, invoice_amount } = row;
    const currency = row.currency as Currency;
    const minor = (amount: string) => Math.round(Number(amount) * 10 ** DIGITS[currency]);
    if (kind === 'quote_accepted') {
      this.quotes.push({ fields: { quote_id, partner_id, policy_id, currency }, cut: 0, rest: 0 });
    }
    const index = this.quotes.findIndex(({ fields }) => fields.quote_id === quote_id);
    this.post(index, {}, minor(partner_cut), minor(invoice_amount));
  }

  private post(index: number, own: object, cut: number, rest: number): Record<string, unknown> {
    const quote = this.quotes[index] as Quote;
    quote.cut += cut;
    quote.rest += rest;
    this.rows += 1;
    const { partner_id, currency } = quote.fields;
    this.totals[`${partner_id} ${currency}`] = (this.totals[`${partner_id} ${currency}`] ?? 0) + rest;
    const text = (minor: number) => inMajorUnits(minor, DIGITS[currency]);
    return { ...quote.fields, ...own, spotPrice: text(cut + rest), partnerCut: text(cut), invoiceAmount: text(rest) };
  }
}

export function inMajorUnits(minor: number, digits: number): string {
  const text = String(Math.abs(minor)).padStart(digits + 1, '0');
  const sign = minor < 0 ? '-' : '';
  return digits === 0 ? sign + text : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** What the ledger really holds, in the model's terms. */
export async function ledgerTotals(world: World): Promise<{ rows: number; totals: Record<string, number> }> {
  const sums = await world.sql<{ partner_id: string; currency: Currency; count: number; rest: string }>(
    `SELECT partner_id, currency, count(*)::int AS count, sum(invoice_amount)::text AS rest FROM ledger_rows GROUP BY 1, 2`,
  );
  return {
    rows: sums.reduce((total, { count }) => total + count, 0),
    totals: Object.fromEntries(
      sums.map(({ partner_id, currency, rest }) => [
        `${partner_id} ${currency}`,
        Math.round(Number(rest) * 10 ** DIGITS[currency]),
      ]),
    ),
  };
}
