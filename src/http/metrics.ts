/**
 * Metrics in the Prometheus format. Requests are counted as they happen. The database is measured on demand, for at
 * most a fiftieth of the time.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { execute } from '#database/transaction';
import { droppedLogLines } from '#log';
import { countDeliveries, countOnHold } from '#mail/outbox.sql';
import { commit, packageVersion } from '#package';
import { readWebhookHealth } from '#partner-events/health';
import { isPaused } from '#people/pauses.sql';
import { readMonths } from '#reports/status';
import { JobHealth, readBacklog, readJobHealth } from './server.sql.ts';

export type Metrics = Readonly<{
  requests: Histogram<'method' | 'route' | 'status'>;
  acceptances: Counter<'kind'>;
  exchanges: Counter<'result'>;
  limited: Counter<'kind'>;
  badSignatures: Counter;
  droppedConnections: Counter;
  connections: Gauge;
  busy: Gauge<'bound'>;
  contentType: string;
  onRead: (set: () => void) => void;
  read: () => Promise<string>;
}>;

/** Counting the open rows of a month with ten million rows takes 3 seconds. */
const SHARE_OF_TIME = 50;

export function openMetrics({ environment, database }: { environment: Environment; database: Database }): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // Gauges whose names end like those of counters. The same numbers by type remain.
  for (const each of ['resources', 'handles', 'requests']) registry.removeSingleMetric(`nodejs_active_${each}_total`);
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name: `reckoner_${name}`, help, labelNames, registers });
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `reckoner_${name}`, help, labelNames, registers });
  gauge('build_info', 'The running version', ['version', 'commit']).set({ version: packageVersion, commit }, 1);
  const measure = measureBacklog(gauge, { environment, database });
  const pool = gauge('database_connections', 'Connections of each pool by state; waiting: requests for a connection', [
    ...['pool', 'state'],
  ]);
  const droppedLines = counter('log_lines_dropped_total', 'Lines of the log that could not be written');
  const countDropped = () => {
    droppedLines.reset();
    droppedLines.inc(droppedLogLines());
  };
  const setters: (() => void)[] = [countDropped];
  return {
    onRead: (set) => void setters.push(set),
    requests: new Histogram({
      name: 'reckoner_http_request_duration_seconds',
      help: 'Requests by route and status',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    acceptances: counter('acceptances_total', 'Acceptances answered, including repeated ones', ['kind']),
    exchanges: counter('token_exchanges_total', 'Token exchanges by their result', ['result']),
    limited: counter('rate_limits_reached_total', 'Callers that reached a limit in a minute, by kind', ['kind']),
    badSignatures: counter('webhook_signatures_refused_total', 'Processor webhooks with a bad signature'),
    droppedConnections: counter('connections_dropped_total', 'Connections refused because there were too many'),
    connections: gauge('http_connections', 'Open connections'),
    busy: gauge('http_requests_running', 'Requests that use the database, by their bound', ['bound']),
    contentType: registry.contentType,
    async read() {
      await measure();
      for (const set of setters) set();
      for (const [name, states] of Object.entries(database.pools())) {
        for (const [state, count] of Object.entries(states)) pool.set({ pool: name, state }, count);
      }
      return registry.metrics();
    },
  };
}

type OpenGauge = (name: string, help: string, labelNames?: string[]) => Gauge;

/** Measures the backlog, or keeps the previous values if they are recent relative to their cost. */
function measureBacklog(gauge: OpenGauge, { environment, database }: { environment: Environment; database: Database }) {
  const deliveries = gauge('deliveries', 'Documents by delivery state', ['status']);
  const depth = gauge('delivery_queue_depth', 'Documents waiting to be sent');
  const age = gauge('delivery_queue_oldest_seconds', 'How long the oldest waiting document has waited');
  const openRows = gauge('open_entries', 'Ledger rows that no document bills yet');
  const lastClose = gauge('last_close_timestamp_seconds', 'When the last month was closed');
  const webhooks = gauge('webhooks', 'Webhooks of partners by their state', ['state']);
  const webhookEvents = gauge('webhook_events_waiting', 'Published events that webhooks have not sent yet');
  const jobs = gaugeJobs(gauge);
  const overdue = gauge('months_overdue', 'Months that are open a day after they ended in every time zone');
  const paused = gauge('paused', '1 while the ledger is paused, 0 otherwise');
  return sparingly(async () => {
    const now = environment.now().toISO();
    await database.reading(async (tx) => {
      // A scrape must not take the CPU cores that acceptances need.
      await execute(tx, 'SET LOCAL max_parallel_workers_per_gather = 0');
      const counts = await countDeliveries(tx);
      const onHold = await countOnHold(tx);
      // Separately, because documents that a person put on hold raise no alarm.
      const told = { ...counts, held: counts.held - onHold, on_hold: onHold };
      for (const [status, count] of Object.entries(told)) deliveries.set({ status }, count);
      const facts = await readBacklog(tx, { now });
      depth.set(facts.depth);
      age.set(Math.max(0, facts.age));
      openRows.set(facts.open);
      if (facts.closed !== null) lastClose.set(facts.closed);
      const { active, waiting, troubled } = await readWebhookHealth(tx, environment);
      webhooks.set({ state: 'active' }, active);
      for (const state of ['failing', 'paused'] as const) {
        webhooks.set({ state }, troubled.filter((each) => each.state === state).length);
      }
      webhookEvents.set(waiting);
      overdue.set((await readMonths(tx, environment.now())).overdue.length);
      paused.set((await isPaused(tx)) ? 1 : 0);
      for (const each of await readJobHealth(tx)) jobs(each);
    });
  });
}

function gaugeJobs(gauge: OpenGauge): (health: JobHealth) => void {
  const ofJob = (name: string, help: string) => gauge(`job_${name}`, help, ['name']);
  const lastExit = ofJob(
    'last_exit_status',
    'Last exit status of each job: 0 success, 4 something new needs attention',
  );
  const success = ofJob('last_success_timestamp_seconds', 'When each job last ended with 0');
  const ran = ofJob('last_run_timestamp_seconds', 'When each job last ended');
  const lasted = ofJob('last_duration_seconds', 'How long the last run of each job took');
  const needing = ofJob('attention', 'Items needing attention when each job last ran');
  const differences = gauge('verify_differences', 'Differences that the last verify found');
  return ({ name, ended, seconds, exit, succeeded, attention }) => {
    ran.set({ name }, ended);
    lasted.set({ name }, seconds);
    lastExit.set({ name }, exit);
    needing.set({ name }, attention);
    if (name === 'verify') differences.set(attention);
    if (succeeded !== null) success.set({ name }, succeeded);
  };
}

/** Runs the work once for concurrent callers, and again after SHARE_OF_TIME times its duration. */
function sparingly(work: () => Promise<void>) {
  let running: Promise<void> | undefined;
  let notBefore = 0;
  return () => {
    if (running !== undefined) return running;
    const began = performance.now();
    if (began < notBefore) return Promise.resolve();
    running = work()
      .then(() => {
        notBefore = performance.now() + SHARE_OF_TIME * (performance.now() - began);
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };
}
