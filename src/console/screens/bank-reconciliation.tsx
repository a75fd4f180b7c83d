import {
  ActionLink,
  Chip,
  Column,
  DataTable,
  DayInput,
  Downloads,
  dayAsked,
  Money,
  Screen,
  Seer,
  TableCard,
  textAsked,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import {
  AccountReconciliation,
  accountName,
  BankItem,
  BankReconciliation,
  ITEM_KINDS,
  nameOfItem,
  readBankReconciliation as readReport,
  stepsOf,
  summaryOf,
  verdictOf,
} from '#reports/bank-reconciliation';
import { refuseFutureDay } from '#reports/future-day';
import { capitalized } from '#text';

const PATH = '/console/reports/bank-reconciliation';

export async function readBankReconciliation(
  tx: Transaction,
  asked: Readonly<Partial<Record<'on' | 'account', string>>>,
  { today }: { today: string },
): Promise<BankReconciliation> {
  const on = dayAsked('on', asked.on);
  await refuseFutureDay(tx, on, today, 'on');
  return readReport(tx, { on, account: textAsked(asked.account), today });
}

export function bankReconciliationScreen(report: BankReconciliation, { user }: { user: Seer }): Screen {
  const { on, accounts, ties } = report;
  return {
    ...{ place: 'aging', tab: PATH, title: 'Bank reconciliation', lead: `as of ${on}` },
    actions: <Downloads path={PATH} question={{ on }} />,
    content: (
      <>
        <form class="filters" action={PATH}>
          <DayInput label="On" name="on" value={on} />
          <button type="submit">Show</button>
          <Chip tone={ties === null ? 'plain' : ties ? 'good' : 'bad'}>{summaryOf(report)}</Chip>
        </form>
        <div class="stack">
          {accounts.map((account) => (
            <Account account={account} user={user} />
          ))}
          {accounts.length === 0 && <p class="nothing">No bank account has reported.</p>}
        </div>
      </>
    ),
  };
}

const TONES = { tied: 'good', no_statement: 'plain', items: 'warn', differs: 'warn' } as const;

function Account({ account: each, user }: { account: AccountReconciliation; user: Seer }) {
  const { currency, items } = each;
  const [bank, ...before] = stepsOf(each).reverse();
  const steps: readonly Column<readonly [string, string]>[] = [
    { heading: 'Step', cell: ([name]) => <span class="wrap">{capitalized(name)}</span> },
    { heading: 'Amount', number: true, cell: ([, amount]) => <Money amount={amount} currency={currency} /> },
  ];
  return (
    <TableCard
      title={accountName(each)}
      note={<Chip tone={TONES[each.state]}>{verdictOf(each)}</Chip>}
      columns={steps}
      rows={before.reverse()}
      foot={
        <tr>
          <td>{capitalized(bank?.[0] ?? '')}</td>
          <td class="num">
            <Money amount={bank?.[1] ?? '0'} currency={currency} />
          </td>
        </tr>
      }
    >
      {items.length > 0 && (
        <DataTable columns={itemColumns(each, user)} rows={items} caption={`Items of ${accountName(each)}`} />
      )}
    </TableCard>
  );
}

const itemColumns = ({ currency }: AccountReconciliation, user: Seer): Column<BankItem>[] => [
  { heading: 'Item of', cell: ({ dated_on }) => <span class="day">{dated_on}</span> },
  {
    heading: 'Item',
    cell: (item) => (
      <span class="wrap">
        {item.payment_id === null ? (
          nameOfItem(item)
        ) : (
          <a href={`/console/payments/${item.payment_id}`}>{nameOfItem(item)}</a>
        )}
        <span class="soft">{` ${item.text}`}</span>
      </span>
    ),
  },
  {
    heading: '',
    cell: ({ kind, state, bank_line_id }) =>
      state === 'unbooked' ? (
        <ActionLink user={user} action="bank.book" partner={null} input={{ bankLineId: String(bank_line_id) }}>
          Book it
        </ActionLink>
      ) : (
        <span class="soft">{ITEM_KINDS[kind].replace(/:.*/, '')}</span>
      ),
  },
  { heading: 'Amount', number: true, cell: ({ amount }) => <Money amount={amount} currency={currency} /> },
];
