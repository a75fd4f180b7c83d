/** Each partner's change in billing from the previous month, largest first. */
import { ComponentChildren } from 'preact';
import { addressOf, amountColumn, Column, InvoiceLink, Money, PARTNER, TableCard } from '#console/parts';
import { CloseFigures } from '#reports/close';
import { whyChanged } from '#reports/close-text';
import { counted } from '#text';
import { Month } from '#values';

/** Lines of a list in the cockpit; of the changes, for each currency. */
export const LISTED = 100;

export const More = ({ count, children }: { count: number; children: ComponentChildren }) =>
  count > 0 && (
    <p class="soft">
      {`and ${counted(count)} more: `}
      {children}
    </p>
  );

type Changed = CloseFigures['partners'][number];

/** Why a partner's amount changed, with a link to its rows. */
export const Why = ({ row, month }: { row: Changed; month: Month }) => (
  <a class="small line" href={addressOf('/console/rows', { partner: row.partner_id, month })}>
    {whyChanged(row) || 'Rows'}
  </a>
);

type ChangesProps = Readonly<{
  month: Month;
  partners: CloseFigures['partners'];
  nothing: string;
  all: ComponentChildren;
}>;

export function MonthChanges({ month, partners, nothing, all }: ChangesProps) {
  const largest = largestChanges(partners);
  return (
    <TableCard title="Compared with the previous month" columns={changeColumns(month)} rows={largest} nothing={nothing}>
      {largest.length < partners.length && (
        <div class="in">
          <More count={partners.length - largest.length}>{all}</More>
        </div>
      )}
    </TableCard>
  );
}

/** Names the currency of the row's other amounts. */
const changeColumns = (month: Month): Column<Changed>[] => [
  {
    heading: PARTNER.heading,
    cell: (row) => (
      <>
        {PARTNER.cell(row)}
        <Numbers documents={row.documents} />
        <Why row={row} month={month} />
      </>
    ),
  },
  {
    heading: 'Last month',
    number: true,
    cell: ({ last_month, currency }) => (
      <span class="soft">
        <Money amount={last_month} currency={currency} bare />
      </span>
    ),
  },
  { heading: 'Change', number: true, cell: ({ change, currency }) => <Change amount={change} currency={currency} /> },
  amountColumn('This month', 'invoice_amount'),
];

/** Keeps the largest changes of each currency. */
function largestChanges(partners: CloseFigures['partners']): CloseFigures['partners'] {
  const listed = new Map<string, number>();
  return partners.filter(({ currency }) => {
    const place = (listed.get(currency) ?? 0) + 1;
    listed.set(currency, place);
    return place <= LISTED;
  });
}

const Numbers = ({ documents }: { documents: readonly string[] }) => (
  <div class="small">
    {documents.map((number, at) => (
      <>
        {at > 0 && ', '}
        <InvoiceLink number={number} />
      </>
    ))}
  </div>
);

const Change = ({ amount, currency }: { amount: string; currency: string }) =>
  /[1-9]/.test(amount) ? <Money amount={amount} currency={currency} signed bare /> : <span class="soft">none</span>;
