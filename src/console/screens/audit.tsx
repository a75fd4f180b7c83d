/** The evidence for the ledger: its checkpoints, the nightly checks, settings changes, and packs. */

import { EXPORT_CONTENTS, EXPORT_KINDS, exportFormats } from '#audit/export';
import { AuditTask } from '#audit/tasks.sql';
import { ChangeLog } from '#console/change-log';
import { Card, Chip, Column, Form, Instant, MonthInput, monthAsked, PageUser, Screen, TableCard } from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ChangeEvent } from '#people/audit-events.sql';
import { isInPeriod } from '#people/scope';
import { Month, monthName, plural } from '#values';
import {
  ClosedMonth,
  Run,
  readClosedMonths,
  readOtherRuns,
  readVerifyFindings,
  readVerifyRuns,
  VerifyFinding,
} from './audit.sql.ts';
import { MadePacks, mayGet, PACKS_PATH, readPackTasks, readVerifyTask, Verify } from './audit-tasks.tsx';

// --- Checks ---

type ChecksView = Readonly<{
  runs: readonly Run[];
  /** The latest run of each job other than verify. */
  others: readonly Run[];
  findings: readonly VerifyFinding[];
  task: AuditTask | undefined;
}>;

export async function readChecks(tx: Transaction): Promise<ChecksView> {
  return {
    runs: await readVerifyRuns(tx),
    others: await readOtherRuns(tx),
    findings: await readVerifyFindings(tx),
    task: await readVerifyTask(tx),
  };
}

const AUDIT = { place: 'audit', title: 'Audit' } as const;

export function checksScreen({ runs, others, findings, task }: ChecksView, { reader }: { reader: PageUser }): Screen {
  const [last] = runs;
  return {
    ...AUDIT,
    tab: '/console/audit/checks',
    lead: last === undefined ? 'the nightly checks have not run yet' : outcomeOf(last),
    content: (
      <div class="columns">
        <div class="stack">
          <Verify task={task} reader={reader} />
          {task === undefined && (
            <TableCard
              title="Findings of the latest run"
              note={last !== undefined && <Instant at={last.finished_at} />}
              columns={FINDINGS}
              rows={findings}
              nothing={last === undefined ? 'The nightly checks have not run yet.' : 'All checks passed.'}
            />
          )}
        </div>
        <div class="stack">
          <TableCard title="Runs of verify" note="latest first" columns={RUNS} rows={runs} nothing="None yet." />
          <TableCard
            title="Other jobs"
            note="the latest run of each"
            columns={JOBS}
            rows={others}
            nothing="No other jobs have run yet."
          />
        </div>
      </div>
    ),
  };
}

const outcomeOf = ({ exit_status }: Run): string =>
  exit_status === 0 ? 'verified' : exit_status === 4 ? 'verify found differences' : 'verify did not finish';

const FINDINGS: readonly Column<ChecksView['findings'][number]>[] = [
  { heading: 'Check', cell: ({ item }) => item },
  { heading: 'Differences', number: true, cell: ({ count }) => <Chip tone="bad">{String(count)}</Chip> },
];

const Outcome = ({ run: { exit_status } }: { run: Run }) => (
  <Chip tone={exit_status === 0 ? 'good' : exit_status === 4 ? 'warn' : 'bad'}>
    {exit_status === 0 ? 'done' : exit_status === 4 ? 'needs attention' : `exit ${exit_status}`}
  </Chip>
);

const RUNS: readonly Column<Run>[] = [
  { heading: 'Finished', cell: ({ finished_at }) => <Instant at={finished_at} /> },
  { heading: 'Outcome', cell: (run) => <Outcome run={run} /> },
];
const JOBS: readonly Column<Run>[] = [
  {
    heading: 'Job',
    cell: ({ job, finished_at }) => (
      <>
        {job}{' '}
        <span class="count">
          <Instant at={finished_at} />
        </span>
      </>
    ),
  },
  { heading: 'Outcome', cell: (run) => <Outcome run={run} /> },
];

// --- Changes of the settings ---

export const settingsLogScreen = (events: readonly ChangeEvent[]): Screen => ({
  ...AUDIT,
  tab: '/console/audit/settings',
  lead: 'changes of the settings',
  content: (
    <Card title={plural(events.length, 'change')} note="as read from settings.json">
      <ChangeLog events={events} nothing="No settings are recorded yet." />
    </Card>
  ),
});

// --- Packs ---

type PacksView = Readonly<{
  month: Month | null;
  months: readonly ClosedMonth[];
  tasks: readonly AuditTask[];
  now: number;
}>;

export async function readPacks(
  tx: Transaction,
  asked: Readonly<Partial<Record<'month', string>>>,
  visit: Pick<Visit, 'user' | 'period' | 'context'>,
): Promise<PacksView> {
  const { period, context } = visit;
  const months = (await readClosedMonths(tx)).filter(
    ({ month, books_closed }) => period === null || (books_closed && isInPeriod(period, month)),
  );
  const month = monthAsked('month', asked.month);
  if (month !== undefined && period !== null && !isInPeriod(period, month)) throw refuse('access_limited', period);
  return {
    month: month ?? months[0]?.month ?? null,
    months,
    tasks: (await readPackTasks(tx)).filter((task) => mayGet(task, visit)),
    now: context.environment.now().toMillis(),
  };
}

/** The latest year whose December is closed, or else the year of the latest closed month, as far as it is closed. */
function wholeYear(months: readonly ClosedMonth[]): readonly [from: Month, to: Month] | undefined {
  const closed = months.map(({ month }) => month);
  const to = closed.find((month) => month.endsWith('-12')) ?? closed[0];
  const from = closed.findLast((month) => month.slice(0, 4) === to?.slice(0, 4));
  return from && to && [from, to];
}

export function packsScreen(view: PacksView, { reader }: { reader: PageUser }): Screen {
  const { month } = view;
  return {
    ...AUDIT,
    tab: '/console/audit/packs',
    lead: month === null ? 'no packs yet' : `packs of ${monthName(month)}`,
    content: (
      <>
        {month === null ? (
          <p class="nothing">
            {reader.limits === null
              ? 'Packs contain closed months only.'
              : 'Packs can be made once the books of one of your months are closed.'}
          </p>
        ) : (
          <Packs month={month} view={view} reader={reader} />
        )}
      </>
    ),
  };
}

/** Every kind of pack of every month of a range, in one file. */
function Everything({ months, reader }: { months: readonly ClosedMonth[]; reader: PageUser }) {
  const year = wholeYear(months);
  if (year === undefined) return null;
  const closed = months.map(({ month }) => month);
  return (
    <Card title="Everything, for an audit">
      <p>
        Every pack of every month in one .zip file, a folder for each month; the documents and the journal of all these
        months, with the balances at their end; and SHA256SUMS over all manifests.
        {months.some((each) => !each.books_closed) && ' Months whose books are open are preliminary.'}
      </p>
      <Form action={`/console${PACKS_PATH}`} token={reader.formToken} hidden={{ kind: 'all' }} class="filters">
        <MonthInput months={closed} value={year[0]} label="From" />
        <MonthInput months={closed} value={year[1]} name="to" label="To" />
        <button type="submit" class="main">
          Make
        </button>
      </Form>
    </Card>
  );
}

function Packs({ month, view, reader }: { month: Month; view: PacksView; reader: PageUser }) {
  const { months, tasks, now } = view;
  const shown = months.find((each) => each.month === month);
  const columns: Column<(typeof EXPORT_KINDS)[number]>[] = [
    { heading: 'Pack', cell: (kind) => <strong>{kind}</strong> },
    { heading: 'Contains', cell: (kind) => EXPORT_CONTENTS[kind] },
    {
      heading: 'Make it',
      cell: (kind) => (
        <Form action={`/console${PACKS_PATH}`} token={reader.formToken} hidden={{ kind, month }} class="inline">
          <select name="format" aria-label={`Format of ${kind}`}>
            {exportFormats(kind).map((format) => (
              <option value={format}>{format}</option>
            ))}
          </select>
          <button type="submit">Make</button>
        </Form>
      ),
    },
  ];
  return (
    <>
      <form class="filters" action="/console/audit/packs">
        <MonthInput months={months.map((each) => each.month)} value={month} />
        <button type="submit">Show</button>
        <Chip tone={shown?.books_closed ? 'good' : 'warn'}>
          {shown?.books_closed ? 'books closed' : 'books open: preliminary'}
        </Chip>
      </form>
      <div class="stack">
        <MadePacks tasks={tasks} path={`${PACKS_PATH}/${month}`} now={now} />
        <Everything months={months} reader={reader} />
        <TableCard title="Packs" columns={columns} rows={EXPORT_KINDS} />
        <Card title="What every pack has besides its data">
          <ul class="ticks plain">
            <li>manifest.json with the SHA-256, size and number of rows of every file</li>
            <li>the checkpoints of the log, with their signatures and time stamps</li>
            <li>the log of all facts (log.tsv), the rules that must hold over it (checks.sql), and README.txt</li>
          </ul>
          <p class="soft">
            A pack is one snapshot of the ledger; verify.mjs or verify.py of a release checks it without Reckoner. Packs
            are made in the background, one at a time, with up to 2 GB for a month before compression. Each is recorded
            as an audit event.
          </p>
        </Card>
      </div>
    </>
  );
}
