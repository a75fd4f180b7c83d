import {
  amountColumn,
  Column,
  choiceAsked,
  DayInput,
  Downloads,
  dayAsked,
  Screen,
  TableCard,
  Verdict,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { readPresentDay } from '#reports/balances.sql';
import { refuseFutureDay } from '#reports/future-day';
import { readTaxReport } from '#reports/tax';
import { TAX_BASES, TaxLine } from '#reports/tax.sql';
import { readUnearned as readUnearnedReport } from '#reports/unearned';
import { UnearnedLine } from '#reports/unearned.sql';
import { lastDay, Month } from '#values';

type Asked = Readonly<Partial<Record<'as_of' | 'from' | 'to' | 'by', string>>>;
type Shown<Report> = Report extends (...given: never[]) => Promise<infer Value> ? Value : never;

/** The tax of a period; by default, of the current month. */
export async function readTax(tx: Transaction, asked: Asked, { today }: { today: string }) {
  const month = today.slice(0, 7) as Month;
  const from = dayAsked('from', asked.from) ?? `${month}-01`;
  const to = dayAsked('to', asked.to) ?? lastDay(from.slice(0, 7) as Month);
  return readTaxReport(tx, { from, to, by: choiceAsked('by', asked.by, TAX_BASES) ?? 'tax-point' });
}

export async function readUnearned(tx: Transaction, asked: Asked, { today }: { today: string }) {
  const asOf = dayAsked('as_of', asked.as_of);
  await refuseFutureDay(tx, asOf, today);
  return readUnearnedReport(tx, asOf ?? (await readPresentDay(tx, today)));
}

const verdicts = ({ ties, preliminary }: Readonly<{ ties: boolean; preliminary?: boolean }>) => (
  <>
    <button type="submit">Show</button>
    <Verdict good={ties} preliminary={preliminary}>
      {ties ? 'ties to the journal' : 'does not tie to the journal'}
    </Verdict>
  </>
);

export function taxScreen(report: Shown<typeof readTax>): Screen {
  const { from, to, by, lines } = report;
  const columns: Column<TaxLine>[] = [
    { heading: 'Country', cell: ({ country }) => country },
    { heading: 'Category', cell: ({ category }) => category.replace('_', ' ') },
    { heading: 'Rate', number: true, cell: ({ rate }) => `${rate}%` },
    { heading: 'Issued', number: true, cell: ({ issued }) => issued },
    { heading: 'Voided', number: true, cell: ({ voided }) => voided },
    amountColumn('Taxable', 'taxable', { quiet: true }),
    amountColumn('Recorded late', 'late', { quiet: true }),
    amountColumn('Tax', 'tax', { quiet: true }),
  ];
  return {
    ...{ place: 'aging', tab: '/console/reports/tax', title: 'Tax', lead: `${from} to ${to}` },
    actions: <Downloads path="/console/reports/tax" question={{ from, to, by }} />,
    content: (
      <>
        <form class="filters" action="/console/reports/tax">
          <DayInput label="From" name="from" value={from} />
          <DayInput label="To" name="to" value={to} />
          <label class="field">
            Of
            <select name="by">
              <option value="tax-point">Sales of the period</option>
              <option value="issued" selected={by === 'issued'}>
                Documents issued in it
              </option>
            </select>
          </label>
          {verdicts(report)}
        </form>
        <TableCard
          title="Tax by rate"
          columns={columns}
          rows={lines}
          nothing="No documents in this period carry tax."
        />
      </>
    ),
  };
}

export function unearnedScreen(report: Shown<typeof readUnearned>): Screen {
  const { as_of: asOf, lines } = report;
  const columns: Column<UnearnedLine>[] = [
    { heading: 'Partner', cell: ({ partner_id, name }) => <a href={`/console/partners/${partner_id}`}>{name}</a> },
    { heading: 'Policy', cell: ({ policy_id }) => policy_id },
    amountColumn('Unearned', 'unearned', { quiet: true }),
    amountColumn('Within a year', 'within_a_year', { quiet: true }),
    { heading: 'Earned by', cell: ({ earned_by }) => earned_by },
  ];
  return {
    ...{ place: 'aging', tab: '/console/reports/unearned', title: 'Unearned sales', lead: `as of ${asOf}` },
    actions: <Downloads path="/console/reports/unearned" question={{ as_of: asOf }} />,
    content: (
      <>
        <form class="filters" action="/console/reports/unearned">
          <DayInput label="As of" name="as_of" value={asOf} />
          {verdicts(report)}
        </form>
        <TableCard
          title="By partner and policy"
          columns={columns}
          rows={lines}
          nothing="No sales are unearned on this day."
        />
      </>
    ),
  };
}
