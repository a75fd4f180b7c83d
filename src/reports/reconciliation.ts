/** The reconciliation of a month of connected accounts: its partners and payouts, for the terminal and the console. */
import { Block, Cell } from '#blocks';
import { Reconciliation } from '#splits/reconcile-month';
import { PayoutStatus, payoutNeedsWork } from '#splits/verdicts';
import { Amount, groupThousands, moneyText, plural } from '#values';

/** Partners that `names` lacks are named by their ids. */
export const partnersBlocks = (
  { partners }: Pick<Reconciliation, 'partners'>,
  names: ReadonlyMap<string, string> = new Map(),
): Block[] =>
  partners.length === 0
    ? []
    : [
        {
          title: 'By partner',
          table: {
            headings: [
              ...['~partner', 'in', '>quotes', '>matched', '>expected', '>transferred', '>in bank', '>billed', '>open'],
            ],
            rows: partners.map(({ partner_id: id, ...each }): Cell[] => [
              { text: names.get(id) ?? id, page: `/console/partners/${encodeURIComponent(id)}` },
              ...[each.currency, each.quotes, each.matched],
              ...[each.expected, each.routed, each.in_bank, each.billed, each.open].map(groupThousands),
            ]),
            remarks: partners.map(({ statement, awaited }) => {
              const said = [statement ?? 'the month is open', ...(awaited > 0 ? [`${awaited} may still arrive`] : [])];
              return statement === null
                ? said.join(', ')
                : { text: said.join(', '), page: `/console/invoices/${statement}` };
            }),
          },
        },
      ];

const STATUS: Readonly<Record<PayoutStatus, string>> = {
  arrived: 'in the bank',
  on_its_way: 'in transit',
  not_arrived: 'not in the bank',
  contents_unknown: 'contents unknown',
  failed: 'failed',
};

const TO_DO: Readonly<Partial<Record<PayoutStatus, string>>> = {
  not_arrived: 'no bank line matches it: ask the bank and the processor',
  contents_unknown: 'read the account from the processor again, or import its settlement file',
};

/** Those that need work come first. */
export function payoutsBlocks(
  found: Pick<Reconciliation, 'payouts' | 'not_paid_out' | 'other_balance_transactions'>,
  most: number,
): Block[] {
  const isOpen = ({ status }: Reconciliation['payouts'][number]) => Number(payoutNeedsWork(status));
  const payouts = found.payouts.toSorted((one, other) => isOpen(other) - isOpen(one)).slice(0, most);
  const lines = [
    ...found.not_paid_out.map(
      ({ count, account, net, currency, since, balance_transactions: ids }) =>
        `${plural(count, 'balance transaction')} on ${account}, ${moneyText(net, currency)}, not in a payout since ` +
        `${since.slice(0, 10)}: ${ids.slice(0, 3).join(', ')}${count > 3 ? ', …' : ''}`,
    ),
    ...found.other_balance_transactions
      .filter(({ type }) => type !== 'payout')
      .map(({ count, type, account, net, currency }) => `${count} ${type} on ${account}, ${moneyText(net, currency)}`),
  ];
  const table = {
    headings: ['~payout', '~account', 'on', '~status', '>amount'],
    rows: payouts.map(({ payout, account, occurred_at, status, arrived_on, amount, currency }): Cell[] => [
      ...[payout, account, occurred_at.slice(0, 10)],
      STATUS[status] + (arrived_on === null ? '' : ` on ${arrived_on}`),
      Amount.of(amount, currency),
    ]),
    remarks: payouts.map(({ status }) => TO_DO[status] ?? ''),
  };
  return [
    ...(payouts.length === 0 ? [] : [{ title: plural(found.payouts.length, 'payout'), table }]),
    ...(lines.length === 0 ? [] : [{ title: 'Other balance transactions', tone: 'warn' as const, lines }]),
  ];
}
