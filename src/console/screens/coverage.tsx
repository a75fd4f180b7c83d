/**
 * Coverage: a row for each partner, a column for each closed month, and in each cell documents, no activity or a gap.
 */

import {
  addressOf,
  Chip,
  Column,
  choiceAsked,
  DayInput,
  Downloads,
  dayAsked,
  None,
  Pager,
  PartnerLink,
  Screen,
  TableCard,
  textAsked,
  Verdict,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { readPartnerNames } from '#partners/partners.sql';
import { isInScope, Scope } from '#people/scope';
import { Coverage, readCoverage as readCoverageReport } from '#reports/coverage';
import { CoverageCell, readGaps } from '#reports/coverage.sql';
import { refuseFutureDay } from '#reports/future-day';
import { coverageSheet } from '#reports/sheets';
import { Sheet } from '#sheet';
import { Month, plural } from '#values';

type CoverageQuestion = Readonly<Partial<Record<'as_of' | 'only' | 'after', string>>>;

type CoverageView = Readonly<{
  /** `cells` covers one page of partners, and `gaps` covers all partners. */
  coverage: Coverage;
  listed: number;
  asOf: string | undefined;
  today: string;
  gapsOnly: boolean;
  /** The last partner of the previous page, and of this page. */
  after: string | undefined;
  next: string | null;
  names: ReadonlyMap<string, string>;
}>;

const PATH = '/console/reports/coverage';
const PAGE = 50;
/** A year, and the month before it. More would not fit on the page. */
const MONTHS_SHOWN = 13;

export async function readCoverage(
  tx: Transaction,
  asked: CoverageQuestion,
  { today, scope }: { today: string; scope: Scope },
): Promise<CoverageView> {
  const asOf = dayAsked('as_of', asked.as_of);
  await refuseFutureDay(tx, asOf, today);
  const gapsOnly = choiceAsked('only', asked.only, ['gaps']) !== undefined;
  const after = textAsked(asked.after);
  const names = await readPartnerNames(tx);
  const gaps = new Map((await readGaps(tx, { asOf, scope })).map((each) => [each.partner_id, each.gaps]));
  const partners = [...names.keys()].filter((id) => isInScope(scope, id) && (!gapsOnly || gaps.has(id))).sort();
  const left = partners.filter((id) => after === undefined || id > after);
  const shown = left.slice(0, PAGE);
  const coverage = await readCoverageReport(tx, { asOf, scope: shown });
  return {
    coverage: { ...coverage, gaps: [...gaps.values()].reduce((sum, count) => sum + count, 0) },
    listed: partners.length,
    ...{ asOf, today, gapsOnly, after, names },
    next: left.length > PAGE ? (shown.at(-1) ?? null) : null,
  };
}

export async function readCoverageSheet(
  tx: Transaction,
  asked: CoverageQuestion,
  { today, scope }: { today: string; scope: Scope },
): Promise<Sheet> {
  const asOf = dayAsked('as_of', asked.as_of);
  await refuseFutureDay(tx, asOf, today);
  return coverageSheet(await readCoverageReport(tx, { asOf, scope }));
}

type Line = Coverage['partners'][number];

export function coverageScreen(view: CoverageView): Screen {
  const { coverage, asOf, today, gapsOnly } = view;
  const { months, gaps, books_open } = coverage;
  const question = { as_of: asOf, only: gapsOnly ? 'gaps' : undefined };
  return {
    place: 'aging',
    tab: PATH,
    title: 'Coverage',
    lead: months.length === 0 ? 'no month is closed yet' : `${months[0]} to ${months.at(-1)}`,
    actions: <Downloads path={PATH} question={{ as_of: asOf }} />,
    content: (
      <>
        <form class="filters" action={PATH}>
          <DayInput label="Months closed by" name="as_of" value={asOf ?? today} />
          <label class="field">
            Partners
            <select name="only">
              <option value="">All</option>
              <option value="gaps" selected={gapsOnly}>
                With a gap
              </option>
            </select>
          </label>
          <button type="submit">Show</button>
          {months.length > 0 && (
            <Verdict good={gaps === 0}>
              {gaps === 0 ? 'no gaps' : `${plural(gaps, 'gap')}: rows without a document`}
            </Verdict>
          )}
          {books_open.length > 0 && <Chip tone="warn">{`books open: ${books_open.join(', ')}`}</Chip>}
        </form>
        <Matrix view={view} question={question} />
      </>
    ),
  };
}

function Matrix({
  view: { coverage, listed, gapsOnly, after, next, names },
  question,
}: {
  view: CoverageView;
  question: Readonly<Record<string, string | undefined>>;
}) {
  const months = coverage.months.slice(-MONTHS_SHOWN);
  const columns: Column<Line>[] = [
    {
      heading: 'Partner',
      cell: ({ partner_id }) => <PartnerLink id={partner_id}>{names.get(partner_id) ?? partner_id}</PartnerLink>,
    },
    ...months.map(
      (month): Column<Line> => ({
        heading: month,
        cell: ({ cells }) => <Cell cell={cells.find((each) => each.month === month)} month={month} />,
      }),
    ),
  ];
  const left = coverage.months.length - months.length;
  return (
    <TableCard
      title={plural(listed, 'partner')}
      note={left > 0 && `the last ${MONTHS_SHOWN} months; the file also has ${plural(left, 'earlier month')}`}
      columns={columns}
      rows={coverage.partners}
      nothing={gapsOnly ? 'No partners have gaps.' : 'There are no partners.'}
    >
      <Pager
        first={after === undefined ? null : addressOf(PATH, question)}
        next={next === null ? null : addressOf(PATH, { ...question, after: next })}
      />
    </TableCard>
  );
}

function Cell({ cell, month }: { cell: CoverageCell | undefined; month: Month }) {
  if (cell === undefined || cell.state === 'no_activity') return <None />;
  return (
    <>
      {cell.state === 'gap' && <Chip tone="bad">{`gap: ${plural(cell.entries, 'row')}`}</Chip>}
      {cell.documents.map((number) => (
        <span class="line">
          <a class="number" href={`/console/invoices/${number}`} title={`${number}, ${month}`}>
            {number}
          </a>
        </span>
      ))}
    </>
  );
}
