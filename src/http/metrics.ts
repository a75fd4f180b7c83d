/** Metrics in the Prometheus format. Requests are counted as they happen; the backlog is measured on each read. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Environment } from '../config/environment.ts';
import type { Database } from '../database/database.ts';
import { droppedLogLines } from '../log.ts';
import { countDeliveries } from '../mail/queries.ts';
import { readWebhookHealth } from '../partner-events/health.ts';
import { readBacklog, readJobHealth } from './queries.ts';

export interface Metrics {
  readonly requests: Histogram<'method' | 'route' | 'status'>;
  readonly acceptances: Counter<'kind'>;
  readonly exchanges: Counter<'result'>;
  readonly contentType: string;
  /** The text of /metrics. */
  readonly read: () => Promise<string>;
}

export function openMetrics({ environment, database }: { environment: Environment; database: Database }): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name: `reckoner_${name}`, help, labelNames, registers });
  const deliveries = gauge('deliveries', 'Documents by the state of their delivery', ['status']);
  const depth = gauge('delivery_queue_depth', 'Documents that wait to be sent');
  const age = gauge('delivery_queue_oldest_seconds', 'How long the oldest of them has waited');
  const openRows = gauge('open_entries', 'Ledger rows that no document bills yet');
  const lastClose = gauge('last_close_timestamp_seconds', 'When the last month was closed');
  const webhooks = gauge('webhooks', 'Webhooks of partners by their state', ['state']);
  const webhookEvents = gauge('webhook_events_waiting', 'Published events that webhooks have still to send');
  const jobExit = gauge('job_last_exit_status', 'How each job last ended: 0 well, 4 something needs attention', [
    'job',
  ]);
  const jobSuccess = gauge('job_last_success_timestamp_seconds', 'When each job last ended with 0', ['job']);
  new Gauge({
    name: 'reckoner_log_lines_dropped',
    help: 'Lines of the log that could not be written since the server started',
    registers,
    collect() {
      this.set(droppedLogLines());
    },
  });
  const jobDays = gauge('job_days_since_run', 'Days since each job last ran', ['job']);

  async function measure(): Promise<void> {
    const now = environment.now().toISO();
    await database.reading(async (tx) => {
      for (const [status, count] of Object.entries(await countDeliveries(tx))) deliveries.set({ status }, count);
      const facts = await readBacklog(tx, now);
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
      for (const { job, days, exit, succeeded } of await readJobHealth(tx, now)) {
        jobDays.set({ job }, days);
        jobExit.set({ job }, exit);
        if (succeeded !== null) jobSuccess.set({ job }, succeeded);
      }
    });
  }

  return {
    requests: new Histogram({
      name: 'reckoner_http_request_duration_seconds',
      help: 'Requests by route and status',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    acceptances: new Counter({
      name: 'reckoner_acceptances_total',
      help: 'Acceptances answered, repeated ones included',
      labelNames: ['kind'],
      registers,
    }),
    exchanges: new Counter({
      name: 'reckoner_token_exchanges_total',
      help: 'Token exchanges by their result',
      labelNames: ['result'],
      registers,
    }),
    contentType: registry.contentType,
    async read() {
      await measure();
      return registry.metrics();
    },
  };
}
