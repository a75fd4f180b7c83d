import { Column, choiceAsked, DayInput, Downloads, dayAsked, Quiet, Screen, TableCard, Verdict } from '#console/parts';
import { Transaction } from '#database/transaction';
import { refuseFutureDay } from '#reports/future-day';
import { trialBalanceSheet } from '#reports/sheets';
import { readTrialBalance as readTrialBalanceReport, TrialBalance } from '#reports/trial-balance';
import { Sheet } from '#sheet';

type TrialBalanceQuestion = Readonly<Partial<Record<'as_of' | 'detail', string>>>;

type TrialBalanceView = Readonly<{
  trial: TrialBalance;
  detail: boolean;
}>;

const PATH = '/console/reports/trial-balance';

export async function readTrialBalance(
  tx: Transaction,
  asked: TrialBalanceQuestion,
  { today }: { today: string },
): Promise<TrialBalanceView> {
  const asOf = dayAsked('as_of', asked.as_of);
  const detail = choiceAsked('detail', asked.detail, ['yes']) !== undefined;
  await refuseFutureDay(tx, asOf, today);
  return { trial: await readTrialBalanceReport(tx, { asOf, today, detail }), detail };
}

export const sheetOfTrialBalance = ({ trial }: TrialBalanceView): Sheet => trialBalanceSheet(trial);

type Account = TrialBalance['accounts'][number];

export function trialBalanceScreen({ trial, detail }: TrialBalanceView): Screen {
  const question = { as_of: trial.as_of, detail: detail ? 'yes' : undefined };
  return {
    ...FRAME,
    lead: `as of ${trial.as_of}`,
    actions: <Downloads path={PATH} question={question} />,
    content: (
      <>
        <form class="filters" action={PATH}>
          <DayInput label="As of" name="as_of" value={trial.as_of} />
          <label class="field">
            Accounts
            <select name="detail">
              <option value="">Control accounts</option>
              <option value="yes" selected={detail}>
                With subaccounts
              </option>
            </select>
          </label>
          <button type="submit">Show</button>
          <Verdict good={trial.balanced} preliminary={trial.preliminary}>
            {trial.balanced ? 'debits equal credits' : 'debits do not equal credits'}
          </Verdict>
        </form>
        <div class="stack">
          {trial.totals.map((total) => (
            <Currency trial={trial} total={total} />
          ))}
          {trial.totals.length === 0 && <p class="nothing">All accounts are zero on this day.</p>}
        </div>
      </>
    ),
  };
}

const FRAME = { place: 'aging', title: 'Trial balance', tab: PATH } as const;

function Currency({ trial, total }: { trial: TrialBalance; total: TrialBalance['totals'][number] }) {
  const { currency } = total;
  const columns: Column<Account>[] = [
    { heading: 'Account', cell: ({ account }) => <code class="account">{account}</code> },
    ...(['debit', 'credit'] as const).map(
      (side): Column<Account> => ({
        heading: side === 'debit' ? 'Debit' : 'Credit',
        number: true,
        cell: (row) => <Quiet amount={row[side]} currency={currency} bare />,
      }),
    ),
  ];
  return (
    <TableCard
      title={currency}
      columns={columns}
      rows={trial.accounts.filter((each) => each.currency === currency)}
      nothing="All accounts are zero."
      foot={
        <tr>
          <td>Total</td>
          <td class="num" data-label="Debit">
            <Quiet amount={total.debit} currency={currency} bare />
          </td>
          <td class="num" data-label="Credit">
            <Quiet amount={total.credit} currency={currency} bare />
          </td>
        </tr>
      }
    />
  );
}
