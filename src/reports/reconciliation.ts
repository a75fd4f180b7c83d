/** The reconciliation of a month of connected accounts: its partners, payouts and exceptions. */
import { Block, Cell, documentCell, partnerCell } from '#blocks';
import { ToDo, toDo } from '#remedy';
import { Reconciliation, ReconciliationException } from '#splits/reconcile-month';
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
              partnerCell(id, names.get(id) ?? id),
              ...[each.currency, each.quotes, each.matched],
              ...[each.expected, each.routed, each.in_bank, each.billed, each.open].map(groupThousands),
            ]),
            remarks: partners.map(({ statement, awaited }) => {
              const said = [statement ?? 'the month is open', ...(awaited > 0 ? [`${awaited} may still arrive`] : [])];
              return statement === null ? said.join(', ') : { ...documentCell(statement), text: said.join(', ') };
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

type Decided = Readonly<{ id: string; account: string }>;
type DecidedFor = Readonly<{ quote_id: string; partner_id: string; own_account?: boolean }>;

const closing = ({ id, account }: Decided) =>
  toDo('Close without a quote', 'processor.close', { balance_transactions: id, account });

/** How finance decides on money without a quote: it is the quote's share, or it is not. */
export const decisions = (money: Decided, { quote_id: quoteId, partner_id: partnerId, own_account }: DecidedFor) => [
  toDo(`Match to ${quoteId}`, 'processor.match', {
    ...{ balance_transaction: money.id, quoteId, partnerId, account: money.account },
    ...(own_account === false && { otherAccount: 'yes' }),
  }),
  closing(money),
];

/** Why an exception is one, and how finance decides on it. */
export function explained(exception: ReconciliationException): Readonly<{ text: string; remedies: readonly ToDo[] }>[] {
  const { status, partner_id, account, currency, sent, quote_id, named, candidates, other_accounts } = exception;
  const money = { id: exception.balance_transactions[0] ?? '', account: account ?? '' };
  if (other_accounts.length > 0) {
    const text = `received on ${other_accounts.join(', ')}, which is not the account that it was accepted under`;
    return [{ text, remedies: [] }];
  }
  if (status !== 'unknown') return [];
  const sentAs = sent === null ? '' : `(sent as ${moneyText(sent.amount, sent.currency)}) `;
  if (quote_id === null) {
    const open = candidates.map((each) => `${each.quote_id} of ${each.partner_id}`).join(', ');
    const text = `${sentAs}matches no quote${open === '' ? '' : `. The same amount is open on ${open}`}. Ask the partner`;
    const matches = candidates.flatMap((each) => decisions(money, each).slice(0, 1));
    return [{ text, remedies: [...matches, closing(money)] }];
  }
  const names = `${sentAs}names quote ${quote_id}, which`;
  if (named.length === 0) return [{ text: `${names} is not in the ledger yet`, remedies: [closing(money)] }];
  return named.map((quote) => {
    if (!quote.is_routed) {
      const where = quote.invoice === null ? 'is invoiced with its month' : `is already on invoice ${quote.invoice}`;
      const text =
        `${names} belongs to ${quote.partner_id} and ${where}. If ${partner_id ?? 'its sender'} reverses the transfer, ` +
        `this resolves itself. If the money stays, settle it with ${quote.partner_id} and close it`;
      return { text, remedies: [closing(money)] };
    }
    const why = [
      ...(quote.own_account ? [] : [`belongs to ${quote.partner_id}, whose account is not ${account}`]),
      ...(quote.currency === (sent?.currency ?? currency)
        ? []
        : [`is in ${quote.currency}, so a match states what it counts as`]),
    ];
    const text = `${names} ${why.length === 0 ? 'is not fully explained by it' : why.join(' and ')}`;
    return { text, remedies: decisions(money, { ...quote, quote_id }) };
  });
}
