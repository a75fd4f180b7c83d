import { Adjustment } from '#approvals/amounts-before';
import { Transaction } from '#database/transaction';
import { typedAmount } from '#errors/amounts';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { DoubledRow, readDoubledRows } from '#ledger/doubles.sql';
import {
  Decided,
  discardRows,
  GrantedAmounts,
  grantReversal,
  refuseReversal,
  releaseRows,
  separateRows,
} from '#ledger/held';
import { HeldRow, readHeldRows, readWithRelated } from '#ledger/held.sql';
import { NOBODY } from '#people/roles';
import { Amount, plural } from '#values';
import { amount, defineAction, Facts, FactsChange, line, partner, reason, several, whole } from './action.ts';
import { amountsIn, sizesOf } from './documents.ts';

const heldRowIds = () =>
  several(whole('Held rows', 'The numbers of held rows. Requotes and reversals follow their sale.'));

const arguments_ = { rows: '<rows...>' };

const nameOf = ({ held_row_id }: HeldRow) => `held row ${held_row_id}`;

const partnersOf = async (tx: Transaction, ids: readonly number[]) => {
  const rows = await readHeldRows(tx, { ids });
  const known = rows.map(({ partner_id }) => partner_id);
  return [...new Set(rows.length === new Set(ids).size ? known : [...known, NOBODY])];
};

const factsOf = async (
  tx: Transaction,
  ids: readonly number[],
  { alone = false, granted = [] }: { alone?: boolean; granted?: readonly HeldRow[] } = {},
): Promise<Facts> => {
  const amounts = new Map(granted.map((row) => [row.held_row_id, row.invoice_amount]));
  return Object.fromEntries(
    (await readHeldRows(tx, { ids: alone ? ids : await readWithRelated(tx, { ids }) })).map((row) => [
      nameOf(row),
      {
        row: `${row.partner_id} ${row.own_id}`,
        status: row.decision ?? 'held',
        amount: Amount.of(amounts.get(row.held_row_id) ?? row.invoice_amount, row.currency),
      },
    ]),
  );
};

/** The JSON of a held row, in lists and results. */
export const heldRowJson = ({ partner_name: _, own_id: __, ...row }: HeldRow) => {
  const of = (amount: string) => Amount.of(amount, row.currency).toString();
  const { spot_price, partner_cut, invoice_amount, ...rest } = row;
  return { ...rest, spotPrice: of(spot_price), partnerCut: of(partner_cut), invoiceAmount: of(invoice_amount) };
};

/** The JSON of a recorded row that may repeat another one. */
export const doubledRowJson = ({ partner_name: _, invoice_amount, ...row }: DoubledRow) => ({
  ...row,
  invoiceAmount: Amount.of(invoice_amount, row.currency).toString(),
});

const resultOf = async (tx: Transaction, { rows, late }: Decided, done: string) => ({
  json: (await readHeldRows(tx, { ids: rows.map(({ held_row_id }) => held_row_id) })).map(heldRowJson),
  text:
    `${plural(rows.length, 'row')} ${done}.` +
    (late > 0
      ? ` ${plural(late, 'row belongs', 'rows belong')} to a closed month, billed in the earliest open month.`
      : ''),
});

const OF_ROWS = {
  role: 'finance',
  subject: ({ rows }: { rows: readonly number[] }) => rows.join(' '),
  partners: (tx: Transaction, { rows }: { rows: readonly number[] }) => partnersOf(tx, rows),
  locksImporters: true,
  facts: (tx: Transaction, { rows }: { rows: readonly number[] }) => factsOf(tx, rows),
  amounts: ({ before }: FactsChange) => amountsIn(before, Object.keys(before), 'amount'),
} as const;

export const rowsRelease = defineAction({
  ...OF_ROWS,
  name: 'rows.release',
  title: 'Record held rows as sales of their own',
  command: { called: 'ledger release', arguments: arguments_ },
  input: { rows: heldRowIds(), reason: reason() },
  perform: (tx, context, { rows, reason }) => releaseRows(tx, context, { ids: rows, reason }),
  report: ({ result }, _context, tx) => resultOf(tx, result, 'recorded'),
});

export const rowsDiscard = defineAction({
  ...OF_ROWS,
  name: 'rows.discard',
  title: 'Discard held rows that repeat a sale',
  command: { called: 'ledger discard', arguments: arguments_ },
  input: { rows: heldRowIds(), reason: reason() },
  perform: (tx, context, { rows, reason }) => discardRows(tx, context, { ids: rows, reason }),
  report: ({ result }, _context, tx) => resultOf(tx, result, 'discarded'),
});

const HELD_REVERSAL = () => whole('Held row', 'The number of the held reversal.');

const OF_REVERSAL = {
  command: { arguments: { row: '<row>' } },
  role: 'finance',
  subject: ({ row }: { row: number }) => String(row),
  partners: (tx: Transaction, { row }: { row: number }) => partnersOf(tx, [row]),
  locksImporters: true,
  committed: () => failpoint('reversal.committed'),
  amounts: (_seen: unknown, _input: unknown, { rows }: Decided) => sizesOf(sharesOf(rows).map(({ amount }) => amount)),
} as const;

export const reversalGrant = defineAction({
  ...OF_REVERSAL,
  name: 'reversal.grant',
  title: 'Grant a reversal that the terms do not cover',
  input: {
    row: HELD_REVERSAL(),
    invoiceAmount: amount('Our share', 'Our share that goes back, if not as requested. Needs the cut, too.').optional(),
    partnerCut: amount("Partner's cut", 'The cut that goes back with it.').optional(),
    reason: reason(),
  },
  async perform(tx, context, { row, invoiceAmount, partnerCut, reason }) {
    const [held] = await readHeldRows(tx, { ids: [row] });
    const amounts = held && grantedAmounts(held.currency, { invoiceAmount, partnerCut });
    return grantReversal(tx, context, { id: row, amounts, reason });
  },
  facts: (tx, { row }, granted) => factsOf(tx, [row], { granted: granted?.rows ?? [] }),
  adjusts: async (_tx, _seen, _input, { rows }) => sharesOf(rows),
  report: ({ result }, _context, tx) => resultOf(tx, result, 'recorded'),
});

export const reversalRefuse = defineAction({
  ...OF_REVERSAL,
  name: 'reversal.refuse',
  title: 'Refuse a reversal that the terms do not cover',
  input: { row: HELD_REVERSAL(), reason: line('Reason', 'The reason. It is recorded, and the partner receives it.') },
  perform: (tx, context, { row, reason }) => refuseReversal(tx, context, { id: row, reason }),
  facts: (tx, { row }) => factsOf(tx, [row], { alone: true }),
  report: ({ result }, _context, tx) => resultOf(tx, result, 'refused'),
});

/** Our shares of reversals, above zero, with their partner. */
const sharesOf = (rows: readonly HeldRow[]): Adjustment[] =>
  rows
    .filter(({ kind }) => kind === 'reversal')
    .map(({ partner_id: partner, invoice_amount, currency }) => ({
      ...{ partner, amount: Amount.of(invoice_amount, currency).negated() },
    }));

/** The amounts of the options, which are given together or not at all. Refusals: usage, amount_invalid. */
function grantedAmounts(
  currency: string,
  { invoiceAmount, partnerCut }: { invoiceAmount: string | undefined; partnerCut: string | undefined },
): GrantedAmounts | undefined {
  if (invoiceAmount === undefined && partnerCut === undefined) return undefined;
  if (invoiceAmount === undefined || partnerCut === undefined) {
    const [share, cut] = [fieldName('invoiceAmount', 'AMOUNT'), fieldName('partnerCut', 'AMOUNT')];
    throw refuse('usage', { reason: `${share} and ${cut} go together` });
  }
  const amounts = {
    invoiceAmount: typedAmount(invoiceAmount, currency, fieldName('invoiceAmount')),
    partnerCut: typedAmount(partnerCut, currency, fieldName('partnerCut')),
  };
  const refuseIt = (argument: keyof typeof amounts, reason: string) =>
    refuse('amount_invalid', {
      ...{ argument: fieldName(argument), value: amounts[argument].toString(), currency, reason },
      problem: 'amount_sign',
    });
  for (const argument of ['invoiceAmount', 'partnerCut'] as const) {
    if (amounts[argument].isNegative()) throw refuseIt(argument, 'is below zero: state what goes back as it is');
  }
  if (!amounts.invoiceAmount.plus(amounts.partnerCut).isPositive()) {
    throw refuseIt('invoiceAmount', 'gives nothing back, and neither does the cut: refuse the reversal instead');
  }
  return amounts;
}

export const rowsSeparate = defineAction({
  name: 'rows.separate',
  title: 'Keep doubled API rows as sales of their own',
  command: { called: 'ledger separate', arguments: { partner: '<partner>' } },
  role: 'finance',
  input: { partner: partner('The partner whose API rows are sales of their own.'), reason: reason() },
  subject: ({ partner }) => partner,
  partners: async (_tx, { partner }) => [partner],
  perform: separateRows,
  facts: async (tx, { partner }) =>
    Object.fromEntries(
      (await readDoubledRows(tx, { partner })).map((row) => [
        `row ${row.own_id}`,
        { repeats: row.repeats, amount: Amount.of(row.invoice_amount, row.currency) },
      ]),
    ),
  amounts: ({ before }) => amountsIn(before, Object.keys(before), 'amount'),
  report: async ({ input: { partner }, result: rows }) => ({
    json: rows.map(doubledRowJson),
    text: `${plural(rows.length, 'row')} of ${partner} kept: no longer possible repetitions.`,
  }),
});
