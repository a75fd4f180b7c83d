import { totalsTable } from '#actions/opening';
import { tableText } from '#blocks';
import { amount, CommandContext, Definition, printable, refuse, table } from '#cli/command';
import { showing } from '#cli/report-command';
import { CarriedItem, OpeningRow, readItems, readOpenings } from '#opening/openings.sql';
import { Sheet } from '#sheet';

export const define: Definition = (opening, action) => {
  showing(opening.command('list').description('List openings imported from the previous system'), action, openingList);
  showing(
    opening.command('show <opening>').description('Show the items of an opening with their status'),
    action,
    openingShow,
  );
};

async function openingList({ database }: CommandContext) {
  const openings = await database.reading((tx) => readOpenings(tx));
  return {
    json: openings,
    sheet: () => sheetOfOpenings(openings),
    text: () => (openings.length === 0 ? 'Nothing was carried over.' : openings.map(describedOpening).join('\n\n')),
  };
}

const describedOpening = ({ opening_id, cut_over_on, name, recorded_at, items, reversed, totals }: OpeningRow) =>
  `Opening ${opening_id} as of ${cut_over_on}, ${printable(name)}, recorded at ${recorded_at}: ${items} items` +
  `${reversed > 0 ? `, ${reversed} reversed` : ''}\n${tableText(totalsTable(totals))}`;

const sheetOfOpenings = (openings: readonly OpeningRow[]): Sheet => ({
  name: 'Openings',
  columns: {
    ...{ opening_id: 'count', cut_over_on: 'date', name: 'text', currency: 'text', items: 'count' },
    ...{ invoices: 'amount', credits: 'amount', cash: 'amount', control: 'amount' },
  },
  rows: openings.flatMap(({ opening_id, cut_over_on, name, totals }) =>
    totals.map((total) => ({ opening_id, cut_over_on, name, ...total })),
  ),
});

async function openingShow({ database }: CommandContext, id: string) {
  const openingId = /^\d{1,15}$/.test(id) ? Number(id) : 0;
  const { opening, items } = await database.reading(async (tx) => {
    const [found] = await readOpenings(tx, { openingId });
    if (found === undefined) throw refuse('opening_unknown', { opening: openingId });
    return { opening: found, items: await readItems(tx, { openingId }) };
  });
  return {
    json: { ...opening, items },
    sheet: () => sheetOfItems(items),
    text: () => `${describedOpening(opening)}\n\n${itemsTable(items)}`,
  };
}

const stateOf = ({ kind, reversed, used, balance }: CarriedItem): string => {
  if (reversed) return 'reversed';
  if (/^-?0*\.?0*$/.test(balance)) return kind === 'cash' ? 'applied' : 'settled';
  return used === null ? 'open' : 'partly settled';
};

const itemsTable = (items: readonly CarriedItem[]) =>
  table(
    ['', 'number', 'partner', 'date', 'due', '>carried over', '>open', '', 'is'],
    items.map((each) => [
      ...[each.kind, each.number, each.partner_id ?? '', each.date, each.due_on ?? ''],
      ...[amount(each.amount, each.currency), amount(each.balance, each.currency), each.currency, stateOf(each)],
    ]),
  );

const sheetOfItems = (items: readonly CarriedItem[]): Sheet => ({
  name: 'Opening',
  columns: {
    ...{ kind: 'text', number: 'text', partner_id: 'text', date: 'date', due_on: 'date', currency: 'text' },
    ...{ original_amount: 'amount', amount: 'amount', balance: 'amount', status: 'text' },
  },
  rows: items.map((each) => ({ ...each, status: stateOf(each) })),
});
