import { ComponentChildren } from 'preact';
import { describeOtherCurrency } from '#close/other-currencies';
import {
  Card,
  Chip,
  Column,
  Downloads,
  InvoiceLink,
  Money,
  MonthInput,
  monthAsked,
  Screen,
  Seer,
  seesAll,
  TableCard,
} from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { describeDifferingCut } from '#ledger/quoted';
import { periodOf } from '#people/roles';
import { isInPeriod, isInScope, Period, Scope } from '#people/scope';
import { CloseReport, readCloseReport as readReport } from '#reports/close';
import { beforeTax } from '#reports/close-text';
import { closeSheet } from '#reports/sheets';
import { Sheet } from '#sheet';
import { Month, monthName, plural } from '#values';
import { readClosedMonths } from './audit.sql.ts';
import { MonthChanges } from './month-changes.tsx';

type CloseReportQuestion = Readonly<Partial<Record<'month', string>>>;

/** Users limited to some partners see their own lines, without totals. */
type OwnReport = Pick<
  CloseReport,
  | 'month'
  | 'previous'
  | 'closed_at'
  | 'partners'
  | 'no_activity'
  | 'late'
  | 'other_currencies'
  | 'differing_cuts'
  | 'held'
  | 'accepted_doubts'
>;

type CloseReportView = Readonly<{
  report: OwnReport | null;
  totals: CloseReport['totals'] | null;
  /** Whether documents add tax; for users who see all partners, also how much. */
  tax: string;
  months: readonly Month[];
}>;

const PATH = '/console/reports/close';

/** Throws month_not_closed. */
export async function readCloseReport(
  tx: Transaction,
  asked: CloseReportQuestion,
  { scope, period }: Pick<Visit, 'scope' | 'period'>,
): Promise<CloseReportView> {
  const months = (await readClosedMonths(tx)).filter(({ month }) => isInPeriod(period, month));
  const month = monthAsked('month', asked.month) ?? (period === null ? undefined : months[0]?.month);
  if (month !== undefined && period !== null && !isInPeriod(period, month)) throw refuse('access_limited', period);
  const none = period !== null && month === undefined;
  const whole = none ? undefined : within(period, await readReport(tx, month));
  const own = <Row extends { readonly partner_id: string }>(rows: readonly Row[]) =>
    rows.filter(({ partner_id }) => isInScope(scope, partner_id));
  return {
    months: months.map(({ month }) => month),
    totals: scope === null && whole !== undefined ? whole.totals : null,
    tax: taxNote(whole, scope),
    report:
      whole === undefined
        ? null
        : {
            month: whole.month,
            previous: whole.previous,
            closed_at: whole.closed_at,
            partners: own(whole.partners),
            no_activity: own(whole.no_activity),
            late: own(whole.late),
            other_currencies: own(whole.other_currencies),
            differing_cuts: own(whole.differing_cuts),
            held: own(whole.held),
            accepted_doubts: own(whole.accepted_doubts),
          },
  };
}

/** The first of the months that a user may see is compared with none. */
function within(period: Period, report: CloseReport | undefined): CloseReport | undefined {
  if (report?.previous == null || isInPeriod(period, report.previous)) return report;
  const partners = report.partners.filter(({ documents }) => documents.length > 0);
  return {
    ...report,
    previous: null,
    partners: partners.map((row) => ({ ...row, last_month: '0', change: '0', new_policies: [], ended_policies: [] })),
  };
}

function taxNote(report: CloseReport | undefined, scope: Scope) {
  if (report?.taxes === undefined) return '';
  return scope === null ? beforeTax(report) : 'Amounts are before tax.';
}

export const sheetOfCloseReport = ({ report }: CloseReportView): Sheet => closeSheet(report ?? undefined);

export function closeReportScreen({ report, totals, tax, months }: CloseReportView, { user }: { user: Seer }): Screen {
  return {
    place: 'aging',
    tab: PATH,
    title: 'Close report',
    lead: report === null ? 'no month is closed yet' : monthName(report.month),
    actions: report !== null && (
      <>
        {seesAll(user) && periodOf(user) === null && (
          <a class="button" href={`/console/close/${report.month}`}>
            Cockpit
          </a>
        )}
        <Downloads path={PATH} question={{ month: report.month }} />
      </>
    ),
    content: (
      <>
        {report === null ? (
          <p class="nothing">The first report appears once a month is closed.</p>
        ) : (
          <>
            <form class="filters" action={PATH}>
              <MonthInput months={months} value={report.month} />
              <button type="submit">Show</button>
            </form>
            <div class="stack">
              {totals !== null && <Totals totals={totals} />}
              {tax !== '' && <p class="soft">{tax}</p>}
              <MonthChanges
                title={plural(report.partners.length, 'line')}
                note="by currency, largest change first"
                report={report}
              />
              <Remarks report={report} />
            </div>
          </>
        )}
      </>
    ),
  };
}

function Totals({ totals }: { totals: CloseReport['totals'] }) {
  type Total = CloseReport['totals'][string];
  const amount = (heading: string, pick: (total: Total) => string): Column<[string, Total]> => ({
    heading,
    number: true,
    cell: ([currency, total]) => <Money amount={pick(total)} currency={currency} bare />,
  });
  return (
    <TableCard
      title="Totals"
      columns={[
        { heading: 'Currency', cell: ([currency]) => currency },
        amount('Sales', ({ spotPrice }) => spotPrice),
        amount("Partners' cut", ({ partnerCut }) => partnerCut),
        amount('Invoice amount', ({ invoiceAmount }) => invoiceAmount),
      ]}
      rows={Object.entries(totals)}
      nothing="Nothing was billed."
    />
  );
}

function Remarks({ report }: { report: OwnReport }) {
  const partner = (id: string, name: string) => <a href={`/console/partners/${id}`}>{name}</a>;
  return (
    <div class="columns even">
      <Remark title="Held or not sent" none="All documents were sent.">
        {report.held.map(({ number, partner_id, name, status, reason }) => (
          <>
            <InvoiceLink number={number} /> {partner(partner_id, name)}{' '}
            <Chip tone={status === 'failed' ? 'bad' : 'warn'}>{status}</Chip>
            {reason !== '' && <p class="soft">{reason}</p>}
          </>
        ))}
      </Remark>
      <Remark title="Late rows" none="No rows arrived after their month had closed.">
        {report.late.map((row) => (
          <>
            {partner(row.partner_id, row.name)} {`${plural(row.entries, 'row')} of ${row.month}: `}
            <Money amount={row.invoice_amount} currency={row.currency} />
          </>
        ))}
      </Remark>
      <Remark title="Without rows" none="Every active partner had rows.">
        {report.no_activity.map(({ partner_id, name }) => partner(partner_id, name))}
      </Remark>
      <Remark title="In doubt and accepted" none="No rows were in doubt.">
        {report.accepted_doubts.map(({ partner_id, name, evidence, reason }) => (
          <>
            {partner(partner_id, name)} {evidence}
            {reason !== null && <p class="soft">{reason}</p>}
          </>
        ))}
      </Remark>
      <Remark title="Currencies and cuts" none="All rows are in their partner's currency, with their policy's cut.">
        {[...report.other_currencies.map(describeOtherCurrency), ...report.differing_cuts.map(describeDifferingCut)]}
      </Remark>
    </div>
  );
}

const Remark = ({ title, none, children }: { title: string; none: string; children: readonly ComponentChildren[] }) => (
  <Card title={title} note={children.length > 0 && String(children.length)}>
    {children.length === 0 ? (
      <p class="soft">{none}</p>
    ) : (
      <ul class="ticks plain">
        {children.map((each) => (
          <li>
            <div>{each}</div>
          </li>
        ))}
      </ul>
    )}
  </Card>
);
