/** Files of open items of a system before, as its list would be exported. */
export interface Item {
  readonly kind: 'invoice' | 'credit' | 'cash';
  readonly number: string;
  readonly partner_id: string;
  readonly date: string;
  readonly due_on: string;
  readonly currency: string;
  readonly amount: string;
  readonly original_amount?: string;
  readonly reference?: string;
}

const COLUMNS = [
  'kind',
  'number',
  'partner_id',
  'date',
  'due_on',
  'currency',
  'amount',
  'original_amount',
  'reference',
];

export const csvOf = (items: readonly Item[]): string =>
  [COLUMNS.join(','), ...items.map((item) => COLUMNS.map((name) => item[name as keyof Item] ?? '').join(','))].join(
    '\n',
  );

export const invoice = (number: string, amount: string, given: Partial<Item> = {}): Item => ({
  ...{ kind: 'invoice', number, partner_id: 'p-1', date: '2026-05-31', due_on: '2026-06-30', currency: 'USD', amount },
  ...given,
});
export const credit = (number: string, amount: string, given: Partial<Item> = {}): Item =>
  invoice(number, amount, { kind: 'credit', due_on: '', ...given });
export const cash = (number: string, amount: string, given: Partial<Item> = {}): Item =>
  invoice(number, amount, { kind: 'cash', due_on: '', ...given });
