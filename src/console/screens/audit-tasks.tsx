import { EXPORT_KINDS } from '#audit/export';
import { CHECKS_IN_ALL, ExportInput, ExportResult, PACK_HOURS, PACKS_KEPT, VerifyResult } from '#audit/tasks';
import { AuditTask, readTasks } from '#audit/tasks.sql';
import { Card, Chip, Column, Form, Instant, liveAt, Meter, None, PageUser, TableCard } from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { isInPeriod } from '#people/scope';
import { groupThousands, plural } from '#values';

export const CHECKS_PATH = '/audit/checks';
export const PACKS_PATH = '/audit/packs';

const PACKS_SHOWN = 8;

export const readVerifyTask = async (tx: Transaction): Promise<AuditTask | undefined> =>
  (await readTasks(tx, { kind: 'verify', limit: 1 }))[0];

export const readPackTasks = (tx: Transaction): Promise<AuditTask[]> =>
  readTasks(tx, { kind: 'export', limit: PACKS_SHOWN });

const isUnderWay = (task: AuditTask | undefined) => task !== undefined && task.finished_at === null && !task.is_lost;

// --- Verify ---

type CheckResult = VerifyResult['checks'][number];

const checkColumns: readonly Column<CheckResult>[] = [
  {
    heading: 'Check',
    cell: ({ check, first, differences }) =>
      differences === 0 ? (
        check
      ) : (
        <details>
          <summary>{check}</summary>
          <ul class="plain">
            {first.map(({ subject, detail }) => (
              <li class="soft">{`${subject} ${detail}`}</li>
            ))}
            {differences > first.length && (
              <li class="soft">{`and ${differences - first.length} more: reckoner verify --json lists them all`}</li>
            )}
          </ul>
        </details>
      ),
  },
  { heading: 'Inspected', number: true, cell: ({ inspected }) => groupThousands(String(inspected)) },
  {
    heading: 'Differences',
    number: true,
    cell: ({ differences }) =>
      differences === 0 ? <None /> : <Chip tone="bad">{groupThousands(String(differences))}</Chip>,
  },
];

const checksOf = ({ result }: AuditTask): readonly CheckResult[] =>
  [...((result as VerifyResult | null)?.checks ?? [])].sort(
    (one, other) => Number(other.differences > 0) - Number(one.differences > 0),
  );

export function Verify({ task, reader }: { task: AuditTask | undefined; reader: PageUser }) {
  const underWay = isUnderWay(task);
  const checks = task === undefined ? [] : checksOf(task);
  const progress = task?.progress ?? 0;
  const failed = checks.filter(({ differences }) => differences > 0).length;
  return (
    <div id="verify" class="stack" {...(underWay ? liveAt(`/console${CHECKS_PATH}`, 'verify') : {})}>
      <Card
        title={underWay ? 'Verify is under way' : 'Verify'}
        note={underWay && `${progress} of ${CHECKS_IN_ALL} checks, started by ${task?.login ?? 'the nightly job'}`}
        actions={
          underWay ? (
            <a class="button" href={`/console${CHECKS_PATH}`}>
              Reload
            </a>
          ) : (
            <Form action={`/console${CHECKS_PATH}`} token={reader.formToken}>
              <button type="submit" class="main" name="start" value="verify">
                Verify now
              </button>
            </Form>
          )
        }
      >
        {underWay ? (
          <Meter
            label={`${progress} of ${CHECKS_IN_ALL} checks`}
            parts={[
              { tone: 'good', count: progress - failed },
              { tone: 'bad', count: failed },
              { tone: 'plain', count: Math.max(0, CHECKS_IN_ALL - progress) },
            ]}
          />
        ) : (
          <p>
            Recomputes the log, every balance, document and PDF, and reports each difference. On a large ledger it takes
            minutes; you may leave this page in the meantime.
          </p>
        )}
        {task?.is_lost && <p class="problem">The server stopped during the last run. Start verify again.</p>}
        {task?.problem && <p class="problem">{`The last run has no result: ${task.problem}`}</p>}
      </Card>
      {checks.length > 0 && task !== undefined && (
        <TableCard
          title={
            failed === 0 ? `${plural(checks.length, 'check')} passed` : `${plural(failed, 'check')} found differences`
          }
          note={task.finished_at !== null && <Instant at={task.finished_at} />}
          columns={checkColumns}
          rows={checks}
        />
      )}
    </div>
  );
}

// --- Packs ---

const inputOf = ({ input }: AuditTask) => input as ExportInput;
const resultOf = ({ result }: AuditTask) => result as ExportResult | null;

const packColumns: readonly Column<AuditTask>[] = [
  {
    heading: 'Pack',
    cell: (task) => {
      const { kind, from, to, format } = inputOf(task);
      return (
        <>
          <strong>{kind === 'all' ? 'everything' : kind}</strong>
          <span class="count">{` ${from === to ? from : `${from} to ${to}`}, ${format}`}</span>
        </>
      );
    },
  },
  { heading: 'Made for', cell: ({ login }) => <span class="soft">{login}</span> },
  { heading: 'Since', cell: ({ asked_at }) => <Instant at={asked_at} /> },
  {
    heading: 'State',
    cell: (task) =>
      isUnderWay(task) ? (
        <Chip tone="warn">{`under way, ${progressOf(task)}`}</Chip>
      ) : task.problem !== null ? (
        <Chip tone="bad">{task.problem}</Chip>
      ) : task.is_lost ? (
        <Chip tone="bad">the server has stopped: make it again</Chip>
      ) : (
        <code class="hash">
          {`${inputOf(task).kind === 'all' ? 'SHA256SUMS' : 'manifest'} ${resultOf(task)?.manifest_sha256}`}
        </code>
      ),
  },
  {
    heading: 'Kept until',
    cell: ({ finished_at, result }) =>
      finished_at === null || result === null ? (
        <None />
      ) : (
        <Instant at={new Date(Date.parse(finished_at) + PACK_HOURS * 3_600_000).toISOString()} />
      ),
  },
  {
    heading: '',
    cell: (task) => {
      const result = resultOf(task);
      return (
        result !== null && (
          <a
            class="button small"
            href={`/console${PACKS_PATH}/files/${task.task_id}/pack.zip`}
            hx-boost="false"
            download
          >
            {`Download (${groupThousands(String(result.bytes))} bytes)`}
          </a>
        )
      );
    },
  },
];

/** Of all packs, the progress counts those that are complete. */
function progressOf(task: AuditTask) {
  const input = inputOf(task);
  if (input.kind !== 'all') return `${groupThousands(String(task.progress))} bytes`;
  const at = Math.floor(task.progress / EXPORT_KINDS.length);
  if (at >= input.months.length) return 'all months together';
  return `month ${at + 1} of ${input.months.length} (${input.months[at]})`;
}

/** A user who may see some months only gets the packs that this user made of them. */
export function mayGet(task: AuditTask, { user, period }: Pick<Visit, 'user' | 'period'>): boolean {
  const { from, to } = inputOf(task);
  return period === null || (task.login === user.login && isInPeriod(period, from) && isInPeriod(period, to));
}

/** Lists only packs whose files still exist. */
export function MadePacks({ tasks, path, now }: { tasks: readonly AuditTask[]; path: string; now: number }) {
  let made = 0;
  const shown = tasks.filter(
    ({ finished_at, result }) =>
      finished_at === null ||
      (now - Date.parse(finished_at) < PACK_HOURS * 3_600_000 && (result === null || ++made <= PACKS_KEPT)),
  );
  const live = shown.some(isUnderWay) ? liveAt(`/console${path}`, 'packs') : {};
  return (
    <div id="packs" {...live}>
      {shown.length > 0 && (
        <TableCard
          title="Recent packs"
          note={`the latest ${PACKS_KEPT} are kept, each for ${PACK_HOURS} hours, by the server that made them`}
          columns={packColumns}
          rows={shown}
        />
      )}
    </div>
  );
}
