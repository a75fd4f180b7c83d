/** What is deleted once nobody needs it, and that the database lets nothing else go, whoever asks. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordJobRun } from '../../src/reports/jobs.sql.ts';
import { countPurgeable, purge } from '../../src/reports/purge.ts';
import { type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote as quoteRow, type World } from '../support/world.ts';

let world: World;
let served: Served;
let caller: Caller;
const ids: Record<string, string> = {};

const quoted = async (headers = {}) => {
  const asked = { policy_id: 'ticket-protection', insured_amount: '250.00' };
  return (await caller.post('/api/v1/quote', asked, headers)).body['quote_id'] as string;
};
const requoted = async (quoteId: string, insured_amount: string) =>
  (await caller.post(`/api/v1/quote/${quoteId}/requote`, { insured_amount })).body['requote_id'] as string;
const accept = async (what: 'quote' | 'requote', id: string) =>
  expect((await caller.get(`/api/v1/${what}/${id}/accept`)).status).toBe(200);
const ran = (job: string, finishedAt: string, exitStatus: number) =>
  world.database.transaction((tx) => recordJobRun(tx, { job, startedAt: finishedAt, finishedAt, exitStatus }));
const kept = async (table: string, id: string) =>
  (await world.sql<{ id: string }>(`SELECT ${id} AS id FROM ${table} ORDER BY 1`)).map((row) => row.id);

beforeAll(async () => {
  world = await openWorld({ fresh: true });
  // Long ago by any clock: the database's own decides what may go.
  world.at('2024-01-15T12:00:00Z');
  await world.partners([partner(PRICED)]);
  served = await serveWorld(world);
  caller = await served.caller('p-1');
  ids['unaccepted'] = await quoted({ 'Idempotency-Key': 'first' });
  ids['accepted'] = await quoted();
  await accept('quote', ids['accepted']);
  ids['imported'] = await quoted();
  const amounts = { spotPrice: '21.25', partnerCut: '6.38', invoiceAmount: '14.87' };
  const row = { quote_id: ids['imported'], accepted_at: '2024-01-15T11:00:00Z', ...amounts };
  expect(await world.rows([quoteRow(row)])).toMatchObject({ accepted: 1, rejected: 0 });
  ids['unaccepted requote'] = await requoted(ids['accepted'], '300.00');
  ids['accepted requote'] = await requoted(ids['accepted'], '400.00');
  await accept('requote', ids['accepted requote']);
  world.at('2024-02-20T12:00:00Z');
  caller = await served.caller('p-1');
  ids['expired later'] = await quoted();
  await ran('verify', '2024-01-01T03:00:00Z', 4);
  await ran('verify', '2024-01-02T03:00:00Z', 0);
  await ran('verify', '2024-01-03T03:00:00Z', 0);
  await ran('verify', '2024-01-04T03:00:00Z', 1);
  await ran('remind', '2024-01-01T09:00:00Z', 0);
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});

/** What a statement is refused with, by its constraint or else its message; undefined if it was allowed. It is undone. */
async function refused(statement: string, role = 'none'): Promise<string | undefined> {
  const client = new pg.Client(world.databaseUrl);
  await client.connect();
  try {
    await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
    await client.query(statement);
    return undefined;
  } catch (error) {
    return error instanceof pg.DatabaseError ? (error.constraint ?? error.message) : String(error);
  } finally {
    await client.end();
  }
}

/** Makes an offer of ours as old as a statement says, with all else as it was. */
const another = (table: string, id: string, changes: string) =>
  `INSERT INTO ${table} SELECT (json_populate_record(t, '${changes}')).* FROM ${table} t WHERE ${table.slice(0, -1)}_id = '${id}'`;

describe.each([
  ['the owner of the tables', 'none'],
  ['the program', 'reckoner_app'],
])('%s', (_, role) => {
  test('may not delete an accepted quote or requote, however old', async () => {
    for (const name of ['accepted', 'imported'] as const) {
      expect(await refused(`DELETE FROM quotes WHERE quote_id = '${ids[name]}'`, role)).toBe('quotes_append_only');
    }
    const requote = `DELETE FROM requotes WHERE requote_id = '${ids['accepted requote']}'`;
    expect(await refused(requote, role)).toBe('requotes_append_only');
  });

  test('may not delete a quote that has not expired, has expired lately, or never expires', async () => {
    for (const [quote_id, expires_at] of [
      ['tomorrow', new Date(Date.now() + 86_400_000).toISOString()],
      ['lately', new Date(Date.now() - 29 * 86_400_000).toISOString()],
      ['never', null],
    ]) {
      const made = another('quotes', ids['unaccepted'] as string, JSON.stringify({ quote_id, expires_at }));
      expect(await refused(`${made}; DELETE FROM quotes WHERE quote_id = '${quote_id}'`, role)).toBe(
        'quotes_append_only',
      );
    }
  });

  test('may not make a quote look expired first, and empties no table', async () => {
    for (const table of ['quotes', 'requotes', 'idempotency_keys', 'job_runs']) {
      const column = { idempotency_keys: 'recorded_at', job_runs: 'finished_at' }[table] ?? 'expires_at';
      const change = `UPDATE ${table} SET ${column} = '2023-01-01'`;
      const whole = `TRUNCATE ${table} CASCADE`;
      const outcomes = [await refused(change, role), await refused(whole, role)];
      if (role === 'none') for (const outcome of outcomes) expect(outcome).toMatch(/_append_only$/);
      else expect(outcomes).toEqual([`permission denied for table ${table}`, `permission denied for table ${table}`]);
    }
  });

  test('may not delete an idempotency key of this month', async () => {
    const made = `INSERT INTO idempotency_keys SELECT partner_id, 'second', request_sha256, status, answer,
                  now() - interval '29 days' FROM idempotency_keys`;
    const deleted = `DELETE FROM idempotency_keys WHERE idempotency_key = 'second'`;
    expect(await refused(`${made}; ${deleted}`, role)).toBe('idempotency_keys_append_only');
  });

  test('may not delete the last run of a job, its last success, or a run of this year', async () => {
    for (const which of [`exit_status = 1`, `finished_at = '2024-01-03T03:00:00Z'`, `job = 'remind'`]) {
      expect(await refused(`DELETE FROM job_runs WHERE ${which}`, role)).toBe('job_runs_append_only');
    }
    const made = `INSERT INTO job_runs (job, started_at, finished_at, exit_status)
                  SELECT 'watch', now(), now() - make_interval(days => d), 0 FROM unnest(ARRAY[1, 399]) AS d`;
    expect(await refused(`${made}; DELETE FROM job_runs WHERE job = 'watch'`, role)).toBe('job_runs_append_only');
  });

  test('may delete nothing of any other table', async () => {
    for (const table of ['ledger_rows', 'quote_acceptances', 'requote_acceptances', 'audit_events', 'api_clients']) {
      const outcome = await refused(`DELETE FROM ${table}`, role);
      expect(outcome).toBe(role === 'none' ? `${table}_append_only` : `permission denied for table ${table}`);
    }
  });
});

test('a purge deletes what is over, says how much, and leaves the rest; a second one finds nothing', async () => {
  world.at('2024-05-20T00:00:00Z');
  const due = { idempotency_keys: 1, requotes: 1, quotes: 1, job_runs: 0, processor_events: 0 };
  expect(await world.database.reading((tx) => countPurgeable(tx, world))).toEqual(due);
  expect(await purge(world.database, world)).toEqual(due);
  expect(await kept('quotes', 'quote_id')).toEqual([ids['accepted'], ids['imported'], ids['expired later']].sort());
  expect(await kept('requotes', 'requote_id')).toEqual([ids['accepted requote']]);
  expect(await kept('idempotency_keys', 'idempotency_key')).toEqual([]);
  expect(Object.values(await purge(world.database, world))).toEqual([0, 0, 0, 0, 0]);
  const events = `SELECT subject, details FROM audit_events WHERE action = 'quote.purge' ORDER BY event_id`;
  expect(await world.sql(events)).toEqual([
    { subject: 'requotes', details: { deleted: 1, expired_before: '2024-02-20T00:00:00.000Z' } },
    { subject: 'quotes', details: { deleted: 1, expired_before: '2024-02-20T00:00:00.000Z' } },
  ]);
});

test('of the runs of a job, the last and the last success stay for ever', async () => {
  world.at('2025-06-01T00:00:00Z');
  const settings = { ...world.settings, retention: { ...world.settings.retention, quotes_days: null } };
  expect(await purge(world.database, { ...world, settings })).toMatchObject({ job_runs: 2, quotes: 0 });
  expect(await world.sql(`SELECT job, exit_status FROM job_runs ORDER BY job, finished_at`)).toEqual([
    { job: 'remind', exit_status: 0 },
    { job: 'verify', exit_status: 0 },
    { job: 'verify', exit_status: 1 },
  ]);
});

test('a partner that asks for a deleted quote is told that there is none, and may sell again under the same key', async () => {
  world.at('2024-05-20T01:00:00Z');
  caller = await served.caller('p-1');
  for (const path of ['', '/accept']) {
    const answer = await caller.get(`/api/v1/quote/${ids['unaccepted']}${path}`);
    expect([answer.status, answer.body['code']]).toEqual([404, 'quote_unknown']);
  }
  const again = await quoted({ 'Idempotency-Key': 'first' });
  expect(again).not.toBe(ids['unaccepted']);
});

test('a thousand quotes more than a batch holds are deleted in several transactions', async () => {
  await world.sql(
    `INSERT INTO quotes SELECT (json_populate_record(t, json_build_object('quote_id', 'many-' || n))).*
     FROM quotes t, generate_series(1, 6000) AS n WHERE t.quote_id = $1`,
    [ids['accepted']],
  );
  expect(await purge(world.database, world)).toMatchObject({ quotes: 6000 });
  const events = `SELECT (details->>'deleted')::integer AS deleted FROM audit_events
                  WHERE action = 'quote.purge' AND subject = 'quotes' ORDER BY event_id DESC LIMIT 2`;
  expect((await world.sql<{ deleted: number }>(events)).map(({ deleted }) => deleted)).toHaveLength(2);
  expect(await kept('quotes', 'quote_id')).toContain(ids['accepted']);
});

test('while the ledger is paused nothing is deleted', async () => {
  await world.sql(
    `WITH e AS (INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
                VALUES (now(), 'ledger.pause', 'ledger', '{}', 'test', 'test', 'command') RETURNING event_id)
     INSERT INTO pauses (cause, reason, paused_at, event_id) SELECT 'command', 'a test', now(), event_id FROM e`,
  );
  await expect(purge(world.database, world)).rejects.toMatchObject({ code: 'paused' });
});
