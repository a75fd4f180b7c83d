/** How well the credits of bank files were applied, by month, and the credits whose automatic application was undone. */
import { lastDay, type Month } from '../../month.ts';
import type { UndoneCredit } from '../../reports/cash-application.sql.ts';
import type { CashApplication } from '../../reports/cash-application.ts';
import { addressOf, Card, type Column, DataTable, Downloads, Money, None } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { ReportsMenu } from './reports-menu.tsx';

type Line = CashApplication['total'];

const share = (text: string | null) => (text === null ? <None /> : `${text}%`);

const COUNTS: readonly Column<Line>[] = [
  { heading: 'Credits', number: true, cell: ({ credits }) => credits },
  { heading: 'Applied automatically', number: true, cell: ({ applied }) => applied },
  { heading: 'Undone later', number: true, cell: ({ undone }) => undone || <None /> },
  { heading: 'Precision', number: true, cell: ({ precision }) => share(precision) },
  { heading: 'Touchless', number: true, cell: ({ touchless }) => touchless },
  { heading: 'Touchless share', number: true, cell: ({ touchless_share }) => share(touchless_share) },
];

const MONTH: Column<CashApplication['months'][number]> = {
  heading: 'Month',
  cell: ({ month }) => (
    <a class="row" href={addressOf('/console/payments/all', { from: `${month}-01`, to: lastDay(month as Month) })}>
      {month}
    </a>
  ),
};

const UNDONE: readonly Column<UndoneCredit>[] = [
  {
    heading: 'Payment',
    cell: ({ payment_id }) => (
      <a class="row" href={`/console/payments/payment-${payment_id}`}>
        {payment_id}
      </a>
    ),
  },
  { heading: 'Received on', cell: ({ received_on }) => received_on },
  { heading: 'Amount', number: true, cell: ({ amount, currency }) => <Money amount={amount} currency={currency} /> },
  { heading: 'What happened', cell: ({ how }) => HOW[how] },
  { heading: 'On', cell: ({ undone_on }) => undone_on },
];

const HOW: Readonly<Record<UndoneCredit['how'], string>> = {
  unapplied: 'unapplied',
  reassigned: 'given to another payer',
  mistake: 'reversed as a mistake',
  duplicate: 'reversed as a duplicate',
  other: 'reversed: no payment of a customer',
};

export function cashApplicationScreen({ months, total, undone }: CashApplication): Screen {
  return {
    place: 'aging',
    title: 'Cash application',
    lead: 'credits of bank files, by month of receipt',
    actions: <Downloads path="/console/reports/cash-application" question={{}} />,
    content: (
      <>
        <ReportsMenu current="cash-application" />
        <div class="stack">
          <Card
            title="Precision and touchless share"
            note="Precision: applied automatically and not undone. Touchless: applied in full without a person."
            flush
          >
            <DataTable
              columns={[MONTH, ...COUNTS]}
              rows={months}
              labelled
              nothing="No bank file has had a credit yet."
              caption="Cash application by month"
              foot={
                months.length > 1 && (
                  <tr>
                    <td>Total</td>
                    {COUNTS.map(({ heading, cell }) => (
                      <td class="num" data-label={heading}>
                        {cell(total)}
                      </td>
                    ))}
                  </tr>
                )
              }
            />
          </Card>
          {months.length > 0 && (
            <Card title="Undone later" note="What the bank returned is not counted." flush>
              <DataTable
                columns={UNDONE}
                rows={undone}
                labelled
                nothing="Nothing that was applied automatically was undone."
                caption="Credits whose automatic application was undone"
              />
            </Card>
          )}
        </div>
      </>
    ),
  };
}
