/** Each partner's change in billing from the previous month, largest first. */
import { ComponentChildren } from 'preact';
import { addressOf, amountColumn, Column, InvoiceLink, Joined, PARTNER, TableCard } from '#console/parts';
import { CloseFigures } from '#reports/close';
import { whyChanged } from '#reports/close-text';
import { counted } from '#text';

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

type ChangesProps = Readonly<{
  title: string;
  note?: string;
  report: Pick<CloseFigures, 'month' | 'partners' | 'previous'>;
  /** The largest changes of each currency; all of them by default. */
  most?: number;
  /** Where the others are. */
  all?: ComponentChildren;
}>;

export function MonthChanges({ title, note, report, most = Infinity, all }: ChangesProps) {
  const { month, partners, previous } = report;
  const listed = new Map<string, number>();
  const largest = partners.filter(({ currency }) => {
    const place = (listed.get(currency) ?? 0) + 1;
    listed.set(currency, place);
    return place <= most;
  });
  const columns: Column<Changed>[] = [
    {
      heading: PARTNER.heading,
      cell: (row) => (
        <>
          {PARTNER.cell(row)}
          <div class="small">
            <Joined>
              {row.documents.map((number) => (
                <InvoiceLink number={number} />
              ))}
            </Joined>
          </div>
          <a class="small line" href={addressOf('/console/rows', { partner: row.partner_id, month })}>
            {whyChanged(row) || 'Rows'}
          </a>
        </>
      ),
    },
    ...(previous === null
      ? []
      : [
          amountColumn(previous, 'last_month', { quiet: true, bare: true }),
          amountColumn('Change', 'change', { quiet: true, signed: true, bare: true }),
        ]),
    // Names the currency of the row's other amounts.
    amountColumn('This month', 'invoice_amount'),
  ];
  return (
    <TableCard {...{ title, note, columns }} rows={largest} nothing="No documents were issued.">
      {largest.length < partners.length && (
        <div class="in">
          <More count={partners.length - largest.length}>{all}</More>
        </div>
      )}
    </TableCard>
  );
}
