/** Settlement files by call: judged as the command judges them, recorded once, and only as the caller's own. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importBalanceTransactions, importSettlement } from '../../src/splits/import.ts';
import { ndjson, share } from '../splits/balance-transactions.ts';
import { type Answer, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
let callers: Record<'p-csv' | 'p-read' | 'p-inv', Caller>;
const MONTH = '2026-07';
const AT = '2026-07-15T11:00:00Z';
const HEADER = 'quote_id,transfer,payment,amount,occurred_at';

beforeAll(async () => {
  world = await openWorld({ fresh: true });
  world.at('2026-07-15T12:00:00Z');
  const connected = (partner_id: string, account: string, from: string) =>
    partner({
      ...{ ...PRICED, partner_id, arrangement: 'connected_account', connected_account_id: account },
      ...{ merchant_of_record: 'third_party', split: 'sequential', balance_transactions_from: from },
    });
  await world.partners([
    connected('p-csv', 'acct_csv', 'settlement_file'),
    connected('p-read', 'acct_read', 'processor'),
    partner({ ...PRICED, partner_id: 'p-inv' }),
  ]);
  served = await serveWorld(world, { patience: 1 });
  const ids = ['p-csv', 'p-read', 'p-inv'] as const;
  const opened = await Promise.all(ids.map(async (id) => [id, await served.caller(id)] as const));
  callers = Object.fromEntries(opened) as typeof callers;
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});

/** A quote of 21.25 = 6.38 + 14.87 that the partner has accepted. */
async function sold(by: Caller): Promise<string> {
  const body = { policy_id: 'ticket-protection', insured_amount: '250' };
  const id = (await by.post('/api/v1/quote', body)).body['quote_id'] as string;
  expect((await by.get(`/api/v1/quote/${id}/accept`)).status).toBe(200);
  return id;
}
let made = 0;
/** A line of its own transfer and payment. */
function lineOf(quoteId: string, amount = '14.87'): string {
  made += 1;
  return `${quoteId},tr_${made},py_${made},${amount},${AT}`;
}
const fileOf = (...lines: string[]) => `${[HEADER, ...lines].join('\n')}\n`;
const send = (by: Caller, text: string, headers: Record<string, string> = {}): Promise<Answer> =>
  by.post('/api/v1/settlement-files', text, { 'content-type': 'text/csv', ...headers });
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');
const recorded = async () =>
  (
    await world.sql<Record<string, number>>(
      `SELECT (SELECT count(*)::int FROM settlement_files) AS files, (SELECT count(*)::int FROM settlement_lines) AS lines,
              (SELECT count(*)::int FROM balance_transactions) AS moved, (SELECT count(*)::int FROM share_allocations) AS shares,
              (SELECT count(*)::int FROM audit_events WHERE action = 'processor.import') AS events`,
    )
  )[0] as Record<string, number>;
const problemsOf = ({ body }: Answer) => body['problems'] as Record<string, unknown>[];

test('a file is recorded with its lines, matched to its quotes, and its event names the client', async () => {
  const caller = callers['p-csv'];
  const text = fileOf(lineOf(await sold(caller)), lineOf(await sold(caller)), lineOf('q-nobody'));
  const { status, body } = await send(caller, text);
  expect(status).toBe(201);
  expect(body).toMatchObject({
    ...{ sha256: hashOf(text), received_at: '2026-07-15T12:00:00.000Z' },
    ...{ lines: 3, duplicates: 0, matched: 2, awaited: 0, unknown_quotes: 1 },
    unmatched: [{ line: 4, status: 'unknown_quote', quote_id: 'q-nobody', kind: 'share', amount: '14.87' }],
  });
  expect((await caller.get(`/api/v1/settlement-files/${hashOf(text)}`)).body).toEqual(body);
  const events = await world.sql(
    `SELECT subject, via, details FROM audit_events WHERE action = 'processor.import' ORDER BY event_id DESC LIMIT 1`,
  );
  expect(events).toEqual([
    {
      ...{ subject: `settlement-${hashOf(text).slice(0, 12)}.csv`, via: 'http' },
      details: { partner_id: 'p-csv', lines: 3, client_id: caller.credentials.client_id },
    },
  ]);
});

test('the same file again, also six at once, has the same answer with 200 and records nothing', async () => {
  const caller = callers['p-csv'];
  const text = fileOf(lineOf(await sold(caller)));
  const before = await recorded();
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => send(caller, text)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
  expect(new Set(answers.map((each) => each.text)).size).toBe(1);
  const after = await recorded();
  expect(after).toEqual(Object.fromEntries(Object.entries(before).map(([name, count]) => [name, count + 1])));
  expect((await send(caller, text)).status).toBe(200);
  expect(await recorded()).toEqual(after);
});

test('a file that the operator has imported is known, and a byte order mark is part of it', async () => {
  const caller = callers['p-csv'];
  const text = `\ufeff${fileOf(lineOf(await sold(caller)))}`;
  await world.database.transaction((tx) => importSettlement(tx, world, { name: 'by-mail.csv', text }, 'p-csv'));
  expect(await send(caller, text)).toMatchObject({ status: 200, body: { sha256: hashOf(text), matched: 1 } });
});

test('a line counts once in however many files it is', async () => {
  const caller = callers['p-csv'];
  const [line, other] = [lineOf(await sold(caller)), lineOf(await sold(caller))];
  await send(caller, fileOf(line));
  expect((await send(caller, fileOf(line, other, other))).body).toMatchObject({
    ...{ lines: 3, duplicates: 2, matched: 1, awaited: 0, unknown_quotes: 0, unmatched: [] },
  });
});

test('a line without a transfer, and one with the transfer "-", are two lines', async () => {
  const caller = callers['p-csv'];
  const id = await sold(caller);
  await send(caller, fileOf(`${id},,py_dash,14.87,${AT}`));
  const before = await recorded();
  await send(caller, fileOf(`${id},-,py_dash,14.87,${AT}`));
  expect(await recorded()).toMatchObject({ lines: (before?.['lines'] ?? 0) + 1 });
});

test('of an account that we read, the money of a line is awaited until the processor reports it', async () => {
  const caller = callers['p-read'];
  const moved = share(1487, AT);
  const id = await sold(caller);
  const text = `quote_id,transfer,payment,amount\n${id},${moved.source['source_transfer']},${moved.source.id},14.87\n`;
  expect(await send(caller, text)).toMatchObject({
    status: 201,
    body: { matched: 0, awaited: 1, unmatched: [{ line: 2, status: 'awaited', quote_id: id }] },
  });
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved', text: ndjson([moved]) }, 'acct_read'),
  );
  expect(await send(caller, text)).toMatchObject({ status: 200, body: { matched: 1, awaited: 0, unmatched: [] } });
});

test("a partner's file says nothing of another partner's quotes, and another's file is unknown", async () => {
  const id = await sold(callers['p-read']);
  const text = fileOf(lineOf(id));
  expect((await send(callers['p-csv'], text)).body).toMatchObject({ matched: 0, unknown_quotes: 1 });
  const answer = await callers['p-read'].get(`/api/v1/settlement-files/${hashOf(text)}`);
  expect(answer).toMatchObject({ status: 404, body: { code: 'settlement_file_unknown' } });
  expect(await world.sql(`SELECT DISTINCT account FROM balance_transactions WHERE quote_id = $1`, [id])).toEqual([
    { account: 'acct_csv' },
  ]);
  // The same bytes are another file of another partner.
  expect((await send(callers['p-read'], text)).status).toBe(201);
});

test('an invoiced partner is told that it has no connected account', async () => {
  expect(await send(callers['p-inv'], fileOf(lineOf('q-1')))).toMatchObject({
    status: 422,
    body: { code: 'partner_not_connected', detail: expect.stringContaining('it is invoiced') as string },
  });
});

test.each([
  ['a missing amount', `q-1,tr_x,py_x,,${AT}`, 'field_missing', 'amount'],
  ['a broken quote id', `q 1,tr_x,py_x,1.00,${AT}`, 'identifier_malformed', 'quote_id'],
  ['half a cent', `q-1,tr_x,py_x,1.005,${AT}`, 'amount_too_precise', 'amount'],
  ['words for an amount', `q-1,tr_x,py_x,one1,${AT}`, 'amount_malformed', 'amount'],
  ['an amount of 16 digits', `q-1,tr_x,py_x,1000000000000000,${AT}`, 'amount_too_large', 'amount'],
  ['neither transfer nor payment', `q-1,,,1.00,${AT}`, 'transfer_missing', undefined],
  ['a cell too many', `q-1,tr_x,py_x,1.00,${AT},`, 'column_count', undefined],
  ['a day that does not exist', 'q-1,tr_x,py_x,1.00,2026-02-31T00:00:00Z', 'time_malformed', 'occurred_at'],
  ['an impossible offset', 'q-1,tr_x,py_x,1.00,2026-02-01T00:00:00+99:99', 'time_malformed', 'occurred_at'],
  ['a transfer of tomorrow', 'q-1,tr_x,py_x,1.00,2026-07-16T12:00:00Z', 'time_in_future', 'occurred_at'],
])('a file with %s is refused whole, with the line and a code', async (_what, line, code, field) => {
  const caller = callers['p-csv'];
  const before = await recorded();
  const answer = await send(caller, fileOf(lineOf(await sold(caller)), line));
  expect(answer).toMatchObject({ status: 422, body: { code: 'settlement_invalid', problem_count: 1 } });
  expect(problemsOf(answer)[0]).toMatchObject({ path: 'line 3', line: 3, code, ...(field !== undefined && { field }) });
  expect(await recorded()).toEqual(before);
});

test.each([
  ['no header', '', 'header_invalid', 1],
  ['an unknown column', 'quote_id,transfer,payment,amount,colour\n', 'header_invalid', 1],
  ['more lines than are read', `${HEADER}\r${'x\r'.repeat(400_000)}`, 'lines_too_many', null],
  ['an open quote mark', `${HEADER}\n"q-1,tr_1\n`, 'csv_malformed', 2],
])('a file with %s is refused', async (_what, text, code, line) => {
  const answer = await send(callers['p-csv'], text);
  expect(answer).toMatchObject({ status: 422, body: { code: 'settlement_invalid' } });
  expect(problemsOf(answer)).toMatchObject([{ line, code }]);
});

test('twenty problems are named, and how many there are', async () => {
  const answer = await send(callers['p-csv'], fileOf(...Array.from({ length: 33 }, () => 'q-1,,,1.00,')));
  expect(problemsOf(answer)).toHaveLength(20);
  expect(answer.body).toMatchObject({ problem_count: 33, detail: expect.stringContaining('and 13 more') as string });
});

test('a line that a recorded line contradicts is refused, and the file with it', async () => {
  const caller = callers['p-csv'];
  const line = lineOf(await sold(caller));
  await send(caller, fileOf(line));
  const before = await recorded();
  const answer = await send(caller, fileOf(lineOf(await sold(caller)), line.replace('14.87', '14.86')));
  expect(answer).toMatchObject({ status: 422, body: { code: 'settlement_invalid' } });
  expect(problemsOf(answer)).toMatchObject([{ line: 3, code: 'conflict' }]);
  expect(await recorded()).toEqual(before);
});

test('other types, other encodings and more than 1 MiB are refused', async () => {
  const caller = callers['p-csv'];
  const text = fileOf(lineOf('q-1'));
  const unsupported = { status: 415, body: { code: 'media_type_unsupported' } };
  expect(await send(caller, text, { 'content-type': 'application/json' })).toMatchObject(unsupported);
  expect(await send(caller, text, { 'content-type': 'text/csv; charset=latin1' })).toMatchObject(unsupported);
  const other = await send(caller, text, { 'content-type': 'application/vnd.ms-excel' });
  expect(other).toMatchObject(unsupported);
  expect(other.body['detail']).toContain('Send text/csv in UTF-8');
  expect((await send(caller, text, { 'content-type': 'text/csv; charset=utf-8; header=present' })).status).toBe(201);
  expect(await send(caller, 'x'.repeat(1024 * 1024 + 1))).toMatchObject({
    status: 413,
    body: { code: 'body_too_large', limit: 1024 * 1024 },
  });
});

test('the same key has the same answer, and is refused for another file', async () => {
  const caller = callers['p-csv'];
  const text = fileOf(lineOf(await sold(caller)));
  const key = { 'idempotency-key': 'october' };
  const [first, again] = [await send(caller, text, key), await send(caller, text, key)];
  expect([first.status, again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 201, 'true']);
  expect(await send(caller, fileOf(), key)).toMatchObject({ status: 409, body: { code: 'idempotency_key_reused' } });
});

test('while the processor is read, a file waits no longer than the server has patience', async () => {
  const caller = callers['p-csv'];
  const text = fileOf(lineOf(await sold(caller)));
  const busy = await world.database.transaction(async (tx) => {
    await tx.knex.raw('SELECT pg_advisory_xact_lock(7310, 81)');
    return send(caller, text);
  });
  expect(busy).toMatchObject({ status: 503, body: { code: 'ledger_busy' } });
  expect((await send(caller, text)).status).toBe(201);
});

test('what it brought is what the reconciliation compares', async () => {
  const rows = await world.sql(
    `SELECT count(*)::int AS allocated FROM share_allocations WHERE partner_id = 'p-csv' AND posted_month = $1`,
    [MONTH],
  );
  expect(rows[0]?.['allocated']).toBeGreaterThan(5);
});

test('a file of five thousand lines of a few quotes is recorded before any statement times out', async () => {
  const caller = callers['p-csv'];
  const ids = await Promise.all(Array.from({ length: 20 }, () => sold(caller)));
  const lines = Array.from({ length: 5_000 }, (_, nth) => `${ids[nth % 20]},tr_many_${nth},py_many_${nth},0.01,${AT}`);
  const started = performance.now();
  const { status, body } = await send(caller, fileOf(...lines));
  const seconds = (performance.now() - started) / 1000;
  process.stdout.write(`a settlement file of 5,000 lines: ${seconds.toFixed(1)} s\n`);
  expect({ status, matched: body['matched'] }).toEqual({ status: 201, matched: 5_000 });
}, 60_000);
