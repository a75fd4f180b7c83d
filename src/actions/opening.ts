import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { openingFile } from '#opening/file';
import { importOpening, OpeningImport } from '#opening/import';
import { CarriedItem, OpeningTotal, readItems } from '#opening/openings.sql';
import { reverseOpening } from '#opening/reverse';
import { NOBODY } from '#people/roles';
import { Amount, moneyText, plural } from '#values';
import { date, defineAction, Facts, file, line, onLatestDate, Report, reason, several, text, whole } from './action.ts';
import { contentOf } from './contents.ts';
import { amountsIn, deliver } from './documents.ts';

export const openingImport = defineAction({
  name: 'opening.import',
  title: 'Import open items from the previous system',
  command: {
    summary: 'Import open items from the previous system, all or nothing',
    arguments: { file: '<file>' },
    options: { control: '--control <currency=total...>' },
    dryRun: 'show what would be carried over; record nothing',
    deliver: true,
  },
  role: 'finance',
  input: {
    file: file('File', 'Open invoices, credits and unapplied cash, as CSV or JSON. All or nothing is carried over.'),
    cutOver: date('Cut-over', 'The items were open at the end of this day.'),
    control: several(
      text('Control total', "The previous system's receivables less credit and unapplied cash, as EUR=1234.56."),
    ),
    count: whole('Items', "The number of items in the previous system's list.", { value: 'items' }),
  },
  subject: ({ file }) => file.name,
  read: (_context, { file, cutOver: cutOverOn }) => contentOf(file, openingFile, { cutOverOn }),
  perform: async (tx, context, { cutOver: cutOverOn, ...request }) =>
    importOpening(tx, context, { cutOverOn, ...request }, await contentOf(request.file, openingFile, { cutOverOn })),
  committed: () => failpoint('opening.committed'),
  async after(context, { result }) {
    const invoices = result.items.filter(({ kind }) => kind === 'invoice');
    if (invoices.length > 0) await deliver(context, await numbersOf(context.database.reading, result));
  },
  facts: async (_tx, _input, result): Promise<Facts> =>
    Object.fromEntries(
      (result?.items ?? []).map(({ kind, number, currency, amount, partner_id, due_on }) => [
        `${kind} ${number}`,
        { amount: Amount.of(amount, currency), partner: partner_id, 'due on': due_on },
      ]),
    ),
  amounts: ({ after }) => amountsIn(after, Object.keys(after), 'amount'),
  report: async ({ result, preview }) => ({
    json: { ...result, items: result.items.map(({ line: _, ...item }) => item), dry_run: preview },
    ...described(result, preview),
  }),
});

const numbersOf = (
  reading: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>,
  { opening_id }: OpeningImport,
) =>
  reading(async (tx) =>
    (await readItems(tx, { openingId: opening_id }))
      .filter(({ kind }) => kind === 'invoice')
      .map(({ number }) => number),
  );

function described(result: OpeningImport, preview: boolean): Omit<Report, 'json'> {
  const { file: name, already_imported: at, cut_over_on: day, items, opening_id: id } = result;
  if (at !== null)
    return { text: `${name} was already carried over as of ${day}, at ${at}, as opening ${id}. Nothing to do.` };
  const done = preview ? 'Would carry over' : 'Carried over';
  return {
    text: `${done} ${plural(items.length, 'item')} as of ${day}${preview ? '' : ` as opening ${id}`}.`,
    blocks: [{ title: 'Totals', table: totalsTable(result.totals) }],
  };
}

export const totalsTable = (totals: readonly OpeningTotal[]) => ({
  headings: ['currency', '>items', '>invoices', '>credits', '>cash', '>control'],
  rows: totals.map(({ currency, items, invoices, credits, cash, control }) => [
    currency,
    String(items),
    ...[invoices, credits, cash, control].map((each) => moneyText(each, currency).replace(` ${currency}`, '')),
  ]),
});

const KIND = { invoice: 'invoice', credit: 'credit', cash: 'cash' } as const;
const itemFacts = (items: readonly CarriedItem[]): Facts =>
  Object.fromEntries(
    items.map(({ kind, number, currency, balance, reversed }) => [
      `${KIND[kind]} ${number}`,
      {
        status: !reversed ? 'open' : kind === 'cash' ? 'reversed' : 'void',
        balance: Amount.of(reversed ? '0' : balance, currency),
      },
    ]),
  );

export const openingReverse = defineAction({
  name: 'opening.reverse',
  danger: true,
  title: 'Reverse items that were carried over',
  command: {
    summary: 'Reverse items that were carried over, if nothing was applied to them',
    arguments: { numbers: '[numbers...]' },
    options: { openingId: '--all <opening>' },
  },
  role: 'finance',
  voids: true,
  input: {
    numbers: several(line('Item', "The item's number in the previous system.")).optional(),
    openingId: whole('Opening', 'All remaining items of this opening.').optional(),
    reason: reason(),
    onLatestDate: onLatestDate(),
  },
  check({ numbers, openingId }) {
    if ((numbers === undefined) !== (openingId === undefined)) return;
    throw refuse('usage', { reason: 'give the item numbers, or an opening to reverse all of its items' });
  },
  subject: ({ numbers, openingId }) => (openingId === undefined ? (numbers ?? []).join(', ') : `opening ${openingId}`),
  async partners(tx, { numbers, openingId }) {
    const items = await readItems(tx, { ...(openingId !== undefined && { openingId }), ...(numbers && { numbers }) });
    return [...new Set(items.map(({ partner_id }) => partner_id ?? NOBODY))];
  },
  perform: (tx, context, { onLatestDate: latest, ...request }) =>
    reverseOpening(tx, { ...context, onLatestDate: latest }, request),
  committed: () => failpoint('opening_reversal.committed'),
  async facts(tx, { numbers, openingId }, result) {
    if (openingId !== undefined) return itemFacts(await readItems(tx, { openingId }));
    if (result === undefined) return itemFacts(await readItems(tx, { numbers: numbers ?? [] }));
    return itemFacts(result.map((each) => ({ ...each, reversed: true })));
  },
  amounts: ({ before }) => amountsIn(before, Object.keys(before), 'balance'),
  report: async ({ result }) => ({
    json: { reversed: result.map(({ kind, number, currency, amount }) => ({ kind, number, currency, amount })) },
    text:
      result.length === 0
        ? 'Nothing is left to reverse.'
        : `Reversed ${plural(result.length, 'item')}: ${result
            .slice(0, 10)
            .map(({ number }) => number)
            .join(', ')}` + `${result.length > 10 ? ', …' : ''}. Import a corrected file to carry them over again.`,
  }),
});
