/** Acceptances in one batch: each gets its own answer, and none fails or waits because of another. */
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { revokeClient } from '../../src/partners/clients.ts';
import { LEDGER_LOCK } from '../support/locks.ts';
import { seeded } from '../support/random.ts';
import { type Answer, type Caller, PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';

let world: World;
let served: Served;
let other: Served;
let harbour: Caller;
let lantern: Caller;
/** The same partner's client, at another server of the same database. */
let elsewhere: Caller;

beforeAll(async () => {
  world = await openWorld();
  await world.partners([
    partner(PRICED),
    partner({ ...PRICED, partner_id: 'p-2', name: 'Lantern', time_zone: 'Asia/Tokyo' }),
  ]);
  served = await serveWorld(world);
  other = await serveWorld(world);
  harbour = await served.caller('p-1');
  lantern = await served.caller('p-2');
  elsewhere = await other.caller('p-1');
});
afterAll(async () => {
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await other.end();
  await world.end();
});

const quotesOf = async (caller: Caller, count: number, insured_amount = '250'): Promise<string[]> => {
  const made = await Promise.all(
    Array.from({ length: count }, () =>
      caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount }),
    ),
  );
  return made.map(({ body }) => body['quote_id'] as string);
};
const accepting = (caller: Caller, id: string) => caller.get(`/api/v1/quote/${id}/accept`);
const requoted = async (caller: Caller, id: string, insured_amount: string) =>
  (await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount })).body['requote_id'] as string;
const acceptingRequote = (caller: Caller, id: string) => caller.get(`/api/v1/requote/${id}/accept`);
const rowsOf = async (ids: readonly string[]) =>
  (await world.sql<{ id: string }>(`SELECT quote_id AS id FROM ledger_rows WHERE quote_id = ANY ($1)`, [ids])).map(
    ({ id }) => id,
  );
const outcome = ({ status, body }: Answer) => [status, body['code'] ?? 'accepted'];

/** Another session of the same database, with a transaction of its own. */
async function holding(...statements: string[]) {
  const client = new pg.Client(world.databaseUrl);
  await client.connect();
  await client.query('BEGIN');
  for (const statement of statements) await client.query(statement);
  return async () => {
    await client.query('ROLLBACK');
    await client.end();
  };
}

test('valid, repeated, refused and foreign acceptances in one batch each get their own answer and at most one row', async () => {
  const { random, seed } = seeded();
  const [fresh, theirs, done] = await Promise.all([
    quotesOf(harbour, 30),
    quotesOf(lantern, 10),
    quotesOf(harbour, 5, '100'),
  ]);
  const before = await Promise.all(done.map((id) => accepting(harbour, id)));
  const [overtaken, lost] = [
    await requoted(harbour, done[0] ?? '', '200'),
    await requoted(harbour, done[1] ?? '', '200'),
  ];
  const rivals = await Promise.all([1, 2, 3].map(() => requoted(harbour, done[2] ?? '', '300')));
  expect(await acceptingRequote(harbour, await requoted(harbour, done[0] ?? '', '150'))).toMatchObject({ status: 200 });
  // What finance imports meanwhile takes one quote for itself and one back.
  const [imported = '', reversed = ''] = [fresh[0], done[1]];
  const sold = { policy_id: 'ticket-protection', currency: 'USD' };
  const amounts = { spotPrice: '21.25', partnerCut: '6.38', invoiceAmount: '14.87' };
  await world.rows([quote({ ...sold, ...amounts, quote_id: imported, accepted_at: '2026-07-31T12:00:00Z' })]);
  await world.rows([
    reversal(
      { ...sold, partner_id: 'p-1', quote_id: reversed },
      { accepted_at: '2026-07-31T12:00:00Z', spotPrice: '-8.50', partnerCut: '-2.55', invoiceAmount: '-5.95' },
    ),
  ]);
  const good = fresh.slice(1);
  const wanted = [
    ...good.flatMap((id) =>
      [1, 2, 3].map(() => ({ id, ask: () => accepting(harbour, id), expected: [200, 'accepted'] })),
    ),
    ...good.map((id) => ({ id, ask: () => accepting(elsewhere, id), expected: [200, 'accepted'] })),
    ...theirs.map((id) => ({ id, ask: () => accepting(lantern, id), expected: [200, 'accepted'] })),
    ...theirs.map((id) => ({ id, ask: () => accepting(harbour, id), expected: [404, 'quote_unknown'] })),
    ...done.map((id) => ({ id, ask: () => accepting(harbour, id), expected: [200, 'accepted'] })),
    { id: imported, ask: () => accepting(harbour, imported), expected: [409, 'recorded_otherwise'] },
    { id: 'q-nobody', ask: () => accepting(harbour, 'q-nobody'), expected: [404, 'quote_unknown'] },
    { id: 'rq-nobody', ask: () => acceptingRequote(harbour, 'rq-nobody'), expected: [404, 'requote_unknown'] },
    { id: overtaken, ask: () => acceptingRequote(harbour, overtaken), expected: [409, 'requote_stale'] },
    { id: lost, ask: () => acceptingRequote(harbour, lost), expected: [422, 'quote_reversed'] },
    { id: lost, ask: () => acceptingRequote(lantern, lost), expected: [404, 'requote_unknown'] },
  ];
  const shuffled = wanted.map((each) => ({ each, at: random() })).sort((one, two) => one.at - two.at);
  const [answers, ofRivals] = await Promise.all([
    Promise.all(shuffled.map(async ({ each }) => ({ ...each, answer: await each.ask() }))),
    Promise.all(rivals.flatMap((id) => [acceptingRequote(harbour, id), acceptingRequote(elsewhere, id)])),
  ]);
  for (const { id, answer, expected } of answers)
    expect({ seed, id, is: outcome(answer) }).toEqual({ seed, id, is: expected });
  // Everybody who asked for the same was told the same, to the byte.
  for (const id of [...good, ...theirs]) {
    const texts = answers
      .filter((each) => each.id === id && each.answer.status === 200)
      .map(({ answer }) => answer.text);
    expect(new Set(texts).size).toBe(1);
  }
  done.forEach((id, index) => {
    expect(answers.find((each) => each.id === id)?.answer.text).toBe(before[index]?.text);
  });
  expect((await rowsOf([...good, ...theirs])).sort()).toEqual([...good, ...theirs].sort());
  // Of the rivals one is accepted, and whoever asked for it is told so.
  expect(ofRivals.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409, 409, 409]);
  expect(await rowsOf([done[2] ?? ''])).toHaveLength(2);
});

test('two servers that accept the same hundred quotes in opposite order do not deadlock', async () => {
  const ids = await quotesOf(harbour, 100);
  const [here, there] = await Promise.all([
    Promise.all(ids.map((id) => accepting(harbour, id))),
    Promise.all([...ids].reverse().map((id) => accepting(elsewhere, id))),
  ]);
  expect(here.map(({ status }) => status)).toEqual(ids.map(() => 200));
  expect(there.reverse().map(({ text }) => text)).toEqual(here.map(({ text }) => text));
  expect((await rowsOf(ids)).sort()).toEqual([...ids].sort());
});

test('an acceptance that the database refuses fails alone, and succeeds once the reason is gone', async () => {
  const ids = await quotesOf(harbour, 20);
  const poison = ids[7] ?? '';
  await world.sql(`CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF NEW.quote_id = '${poison}' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$`);
  await world.sql(`CREATE TRIGGER refuse_one BEFORE INSERT ON ledger_rows FOR EACH ROW EXECUTE FUNCTION refuse_one()`);
  const answers = await Promise.all(ids.map((id) => accepting(harbour, id)));
  await world.sql(`DROP TRIGGER refuse_one ON ledger_rows`);
  await world.sql(`DROP FUNCTION refuse_one`);
  expect(answers.map(outcome)).toEqual(ids.map((id) => (id === poison ? [500, 'internal'] : [200, 'accepted'])));
  expect(await rowsOf([poison])).toEqual([]);
  expect(outcome(await accepting(harbour, poison))).toEqual([200, 'accepted']);
  expect((await rowsOf(ids)).sort()).toEqual([...ids].sort());
});

test('if the database is lost, all get 503 and are accepted when they retry', async () => {
  const ids = await quotesOf(harbour, 20);
  const release = await holding(LEDGER_LOCK);
  const answers = Promise.all(ids.map((id) => accepting(harbour, id)));
  await expect.poll(() => waitingForLedger()).toBeGreaterThan(0);
  // As when PostgreSQL restarts: those who wait are sent away.
  await expect
    .poll(async () => {
      await world.sql(
        `SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
         WHERE d.datname = current_database() AND l.relation = 'ledger_gate'::regclass AND NOT l.granted`,
      );
      return Promise.race([answers.then(() => true), new Promise((resolve) => setTimeout(resolve, 50, false))]);
    })
    .toBe(true);
  expect((await answers).map(outcome)).toEqual(ids.map(() => [503, 'unavailable']));
  await release();
  expect(await rowsOf(ids)).toEqual([]);
  expect((await Promise.all(ids.map((id) => accepting(harbour, id)))).map(outcome)).toEqual(
    ids.map(() => [200, 'accepted']),
  );
  expect((await rowsOf(ids)).sort()).toEqual([...ids].sort());
});

test('while a close holds the ledger, repeated acceptances are answered at once, and each new one waits for its own time', async () => {
  const patient = await serveWorld(world, { patience: 3 });
  const caller = await patient.caller('p-1');
  const [fresh, [done = '', late = '']] = [await quotesOf(caller, 10), await quotesOf(caller, 2)];
  const first = await accepting(caller, done);
  const release = await holding(LEDGER_LOCK);
  let told = 0;
  const waiting = Promise.all(
    fresh.map(async (id) => {
      const answer = await accepting(caller, id);
      told += 1;
      return answer;
    }),
  );
  await expect.poll(waitingForLedger).toBeGreaterThan(0);
  const [again, unknown] = await Promise.all([accepting(caller, done), accepting(caller, 'q-nobody')]);
  expect([again.text, unknown.status, told]).toEqual([first.text, 404, 0]);
  // It comes a second later, and so waits a second longer: the ledger is free again by then.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(told).toBe(0);
  const lateOne = accepting(caller, late);
  expect((await waiting).map(outcome)).toEqual(fresh.map(() => [503, 'ledger_busy']));
  await release();
  expect(outcome(await lateOne)).toEqual([200, 'accepted']);
  expect(await rowsOf(fresh)).toEqual([]);
  await patient.end();
});

test('an acceptance whose row another transaction is recording waits alone; the others do not', async () => {
  const patient = await serveWorld(world, { patience: 2 });
  const caller = await patient.caller('p-1');
  const ids = await quotesOf(caller, 20);
  const held = ids[3] ?? '';
  const release = await holding(
    `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price,
       partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
     VALUES ('p-1', '2026-08', 'quote_accepted', '${held}', 'ticket-protection', 'USD', '2026-08-01T10:00:00Z', 21.25, 6.38,
       14.87, 'America/New_York', '2026-08', 'invoicing', now(), (SELECT max(event_id) FROM audit_events))`,
  );
  const answered: string[] = [];
  const answers = await Promise.all(
    ids.map(async (id) => {
      const answer = await accepting(caller, id);
      answered.push(id);
      return answer;
    }),
  );
  expect(answers.map(outcome)).toEqual(ids.map((id) => (id === held ? [503, 'ledger_busy'] : [200, 'accepted'])));
  expect(answered.at(-1)).toBe(held);
  await release();
  expect(outcome(await accepting(caller, held))).toEqual([200, 'accepted']);
  expect((await rowsOf(ids)).sort()).toEqual([...ids].sort());
  await patient.end();
});

test('a revoked client is refused at once; other clients of the same partner are not', async () => {
  const [leaving, ids] = [await served.caller('p-1'), await quotesOf(harbour, 10)];
  expect(outcome(await accepting(leaving, ids[0] ?? ''))).toEqual([200, 'accepted']);
  const keyed = () =>
    leaving.post(`/api/v1/quote/${ids[0]}/accept`, undefined, { 'idempotency-key': `leaving-${ids[0]}` });
  expect(outcome(await keyed())).toEqual([200, 'accepted']);
  const action = { actor: world.actor, environment: world.environment.name, now: world.environment.now() };
  await served.database.transaction((tx) => revokeClient(tx, leaving.credentials.client_id, action));
  expect(outcome(await keyed())).toEqual([401, 'token_invalid']);
  const answers = await Promise.all(ids.flatMap((id) => [accepting(leaving, id), accepting(harbour, id)]));
  expect(answers.map(outcome)).toEqual(
    ids.flatMap(() => [
      [401, 'token_invalid'],
      [200, 'accepted'],
    ]),
  );
});

test('a token is refused once it has expired, even if it was just valid', async () => {
  const [caller, [id = '']] = [await served.caller('p-1'), await quotesOf(harbour, 1)];
  expect(outcome(await accepting(caller, id))).toEqual([200, 'accepted']);
  world.at('2026-08-01T11:00:01Z');
  const { status, body } = await accepting(caller, id);
  world.at('2026-08-01T10:00:00Z');
  expect([status, body['code'], body['reason']]).toEqual([401, 'token_invalid', 'it has expired']);
});

test('each is accepted once, with an idempotency key and without one at the same time', async () => {
  const ids = await quotesOf(harbour, 6);
  const answers = await Promise.all(
    ids.flatMap((id) => [
      ...[1, 2].map(() => harbour.post(`/api/v1/quote/${id}/accept`, undefined, { 'idempotency-key': `accept-${id}` })),
      accepting(harbour, id),
    ]),
  );
  expect(answers.map(outcome)).toEqual(answers.map(() => [200, 'accepted']));
  expect(new Set(answers.map(({ text }) => text)).size).toBe(ids.length);
  expect((await rowsOf(ids)).sort()).toEqual([...ids].sort());
});

const waitingForLedger = async () =>
  (
    await world.sql(
      `SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
       WHERE d.datname = current_database() AND l.relation = 'ledger_gate'::regclass AND NOT l.granted`,
    )
  ).length;
