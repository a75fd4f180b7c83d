/** Aging: what partners owe on a day, by how long it has been due, with a bar for the shares and links to the documents. */
import { type Aging, type AgingRow, BUCKETS, type Bucket } from '../../reports/aging.ts';
import { Card, Chip, type Column, DataTable, Money } from '../kit.tsx';
import type { Screen } from '../page.tsx';

const NAMES: Readonly<Record<Bucket, string>> = {
  not_due: 'Not due',
  days_1_30: '1–30 days',
  days_31_60: '31–60 days',
  days_61_90: '61–90 days',
  over_90: 'Over 90 days',
};

export function agingScreen(aging: Aging): Screen {
  return {
    place: 'aging',
    title: 'Aging',
    lead: `as of ${aging.as_of}`,
    acts: (
      <>
        <a class="button" href={`/console/aging.csv?as_of=${aging.as_of}`}>
          CSV
        </a>
        <a class="button" href={`/console/aging.xlsx?as_of=${aging.as_of}`}>
          XLSX
        </a>
      </>
    ),
    content: (
      <div class="stack">
        <form class="filters" action="/console/aging">
          <label class="field">
            As of
            <input type="date" name="as_of" value={aging.as_of} />
          </label>
          <button type="submit">Show</button>
          <Chip tone={aging.ties ? 'good' : 'bad'}>
            {aging.ties ? 'ties to the journal' : 'does not tie to the journal'}
          </Chip>
          {aging.preliminary && <Chip tone="warn">preliminary: books are open</Chip>}
        </form>
        {aging.totals.map((total) => (
          <Currency aging={aging} total={total} />
        ))}
        {aging.totals.length === 0 && <p class="nothing">Nothing is open.</p>}
      </div>
    ),
  };
}

function Currency({ aging, total }: { aging: Aging; total: Aging['totals'][number] }) {
  const { currency } = total;
  const rows = aging.partners.filter((each) => each.currency === currency);
  const amountOf = (column: Bucket | 'credit' | 'unapplied' | 'net') => ({
    number: true,
    cell: (row: AgingRow) => <Quiet amount={row[column]} currency={currency} />,
  });
  const columns: Column<AgingRow>[] = [
    {
      heading: 'Partner',
      cell: ({ partner_id, partner_name }) =>
        partner_id === null ? (
          <span class="soft">Unknown payers</span>
        ) : (
          <a class="row" href={`/console/invoices?status=open&partner=${partner_id}`}>
            {partner_name}
          </a>
        ),
    },
    ...BUCKETS.map((bucket) => ({ heading: NAMES[bucket], ...amountOf(bucket) })),
    { heading: 'Credit', ...amountOf('credit') },
    { heading: 'Unapplied', ...amountOf('unapplied') },
    { heading: 'Net', ...amountOf('net') },
  ];
  return (
    <Card title={currency} note={<Shares total={total} />} flush>
      <DataTable
        columns={columns}
        rows={rows}
        nothing="Nothing is open."
        caption={`Aging in ${currency}`}
        foot={
          <tr>
            <td>Total</td>
            {[...BUCKETS, 'credit' as const, 'unapplied' as const, 'net' as const].map((column) => (
              <td class="num">
                <Quiet amount={total[column]} currency={currency} />
              </td>
            ))}
          </tr>
        }
      />
    </Card>
  );
}

/** Zero is a dash: the eye finds what is owed. */
const Quiet = ({ amount, currency }: { amount: string; currency: string }) =>
  /[1-9]/.test(amount) ? <Money amount={amount} currency={currency} /> : <span class="soft">–</span>;

/** The shares of the buckets as one bar. Widths are for the eye and may be rounded; the figures beside them are not. */
function Shares({ total }: { total: Aging['totals'][number] }) {
  const open = Number(total.open);
  let at = 0;
  return (
    <svg class="shares" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="Shares of the buckets">
      {open > 0 &&
        BUCKETS.map((bucket) => {
          const width = (Number(total[bucket]) * 100) / open;
          const x = at;
          at += width;
          return width === 0 ? null : <rect class={bucket} x={x} width={width} height="6" />;
        })}
    </svg>
  );
}
