/** The data of processor events is erased once nobody needs it; what the books and the auditor need of it stays. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { writeBackup } from '../../src/database/backup.ts';
import { openDatabase } from '../../src/database/database.ts';
import { checkBackup, restoreBackup } from '../../src/database/restore.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { closeException } from '../../src/payments/exceptions.ts';
import { countPurgeable, purge } from '../../src/reports/purge.ts';
import { foundBy } from '../audit/failing.ts';
import { makeDatabase } from '../support/databases.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { type Books, inv, openBooks } from './books.ts';
import { event, stripePayment } from './stripe-events.ts';

let books: Books;
const paid = stripePayment({ invoice: inv(1), amount: 125000, key: 'PAID' });
const open = stripePayment({ invoice: inv(2), amount: 84000, key: 'OPEN' });
const stray = stripePayment({ amount: 4242, key: 'STRAY', link: null });
const unread = event('charge.succeeded', { id: 'ch_1', amount: 'many', currency: 'usd', paid: true });

/** What is erased, by the ids of the processor. */
const erased = async () =>
  (
    await books.sql<{ id: string }>(`SELECT id FROM processor_events WHERE payload IS NULL ORDER BY processor_event_id`)
  ).map(({ id }) => id);
const idOf = (each: object) => (each as { id: string }).id;
const numberOf = async (each: object) =>
  (
    await books.sql<{ n: string }>(`SELECT processor_event_id AS n FROM processor_events WHERE id = $1`, [idOf(each)])
  )[0]?.n as string;
const purged = (days: number | null = 90) =>
  purge(books.database, { ...books.acting, settings: { ...books.settings, retention: retention(days) } });
const retention = (processor_events_days: number | null) => ({ quotes_days: null, processor_events_days });
/** As if everything had been received long ago by any clock. */
const age = () =>
  books.sql(`${GUARDS_OFF} UPDATE processor_events SET received_at = '2024-01-01T00:00:00Z'; ${GUARDS_ON}`);

/** The constraint or message that an attack ends with. What it did is undone. */
async function attacked(statement: string, role = 'none'): Promise<string> {
  const client = new pg.Client(books.databaseUrl);
  await client.connect();
  try {
    await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
    await client.query(statement);
    return 'allowed';
  } catch (error) {
    return error instanceof pg.DatabaseError ? (error.constraint ?? error.message) : String(error);
  } finally {
    await client.end();
  }
}
const erasureOf = (number: string) =>
  `INSERT INTO processor_event_erasures (processor_event_id, recorded_at, event_id)
   VALUES (${number}, now(), (SELECT max(event_id) FROM audit_events))`;

const events = {
  paid: paid.completed(),
  open: open.completed(),
  opened: open.disputed(),
  stray: stray.intentSucceeded(),
  waiting: stripePayment({ amount: 100, key: 'WAIT' }).disputed(),
};

beforeAll(async () => {
  books = await openBooks();
  await books.events(Object.values(events));
  await books.events([unread]);
});
afterAll(() => books.end());

test('without the setting, the data is kept for ever; with it, as long as it says', async () => {
  expect(await purged(null)).toMatchObject({ processor_events: 0 });
  expect(await purged(90)).toMatchObject({ processor_events: 0 });
  expect(await erased()).toEqual([]);
});

describe.each([
  ['the owner of the tables', 'none'],
  ['the program', 'reckoner_app'],
])('%s', (_, role) => {
  test('cannot erase what was received lately, whatever the setting says', async () => {
    await books.sql(`${GUARDS_OFF} UPDATE processor_events SET received_at = now() - interval '29 days'; ${GUARDS_ON}`);
    expect(await attacked(erasureOf(await numberOf(events.paid)), role)).toBe('erased_payload_is_not_needed');
  });

  test('cannot erase what waits, is disputed, is not applied or waits for finance', async () => {
    await age();
    const waits = await attacked(erasureOf(await numberOf(events.waiting)), role);
    expect(waits).toMatch(/erased_payload_is_not_needed|processor_event_erasures_processor_event_id_fkey/);
    for (const each of [events.open, events.opened, events.stray]) {
      expect(await attacked(erasureOf(await numberOf(each)), role)).toBe('erased_payload_is_not_needed');
    }
    expect(await attacked(erasureOf(await numberOf(events.paid)), role)).toBe('allowed');
  });

  test('cannot take the data away or change it, nor delete the event, without the record', async () => {
    const number = await numberOf(events.paid);
    for (const change of [
      `UPDATE processor_events SET payload = NULL WHERE processor_event_id = ${number}`,
      `UPDATE processor_events SET payload = '{}' WHERE processor_event_id = ${number}`,
      `UPDATE processor_events SET payload = NULL, type = 'x' WHERE processor_event_id = ${number}`,
      `DELETE FROM processor_events WHERE processor_event_id = ${number}`,
    ]) {
      const outcome = await attacked(change, role);
      expect(outcome).toBe(
        role === 'none' ? 'processor_events_append_only' : 'permission denied for table processor_events',
      );
    }
    expect(await attacked(`SELECT erase_payloads(ARRAY[${number}]::bigint[])`, role)).toBe(
      'processor_events_append_only',
    );
  });
});

test('an erasure leaves checkpoints, checks, payments and invoices as they were, and is an event', async () => {
  await age();
  await takeCheckpoint(books.database, books.acting);
  const before = await books.payments();
  const hashes = `SELECT processor_event_sha256(processor_event_id) FROM processor_events ORDER BY processor_event_id`;
  const hashed = await books.sql(hashes);
  const context = { ...books.acting, settings: { ...books.settings, retention: retention(90) } };
  expect(await books.database.reading((tx) => countPurgeable(tx, context))).toMatchObject({ processor_events: 1 });
  expect(await purged()).toMatchObject({ processor_events: 1 });
  expect(await erased()).toEqual([idOf(events.paid)]);
  expect(await books.sql(hashes)).toEqual(hashed);
  expect(await books.payments()).toEqual(before);
  expect(
    await books.sql(`SELECT subject, (details->>'erased')::integer AS erased, personal(claimed_by) AS claimed_by FROM processor_event_erasures
                     JOIN audit_events USING (event_id) WHERE action = 'processor_event.erase'`),
  ).toEqual([{ subject: 'inbox', erased: 1, claimed_by: 'a bookkeeper' }]);
  await books.verified();
  expect(await purged()).toMatchObject({ processor_events: 0 });
});

test('an event that was erased and is sent again is known, and its data is not stored again', async () => {
  expect(await books.events([events.paid])).toMatchObject({ stored: 0, known: 1, effects: 0 });
  expect(await erased()).toEqual([idOf(events.paid)]);
});

test('what comes later about an erased payment is processed: a refund, a dispute', async () => {
  expect(await books.events([paid.refunded(25000)])).toMatchObject({ effects: 1 });
  expect(await books.balance(inv(1))).toMatchObject({ balance: '250.00', amount_paid: '1000.00' });
  expect(await books.events([paid.disputed('needs_response', 5000)])).toMatchObject({ effects: 1 });
  await books.verified();
});

test('what finance has decided is erased afterwards', async () => {
  await books.events([open.closed('won')]);
  await books.database.transaction((tx) =>
    closeException(tx, books.acting, { exception: idOf(unread), reason: 'looked at' }),
  );
  await age();
  expect(await purged()).toMatchObject({ processor_events: 4 });
  expect(await erased()).not.toContain(idOf(events.stray));
  expect(await erased()).toEqual(expect.arrayContaining([idOf(events.open), idOf(events.opened), idOf(unread)]));
  await books.verified();
});

test('a backup is restored with its erasures, though a payment was disputed since', async () => {
  const file = join(books.home, 'erased.backup');
  await writeBackup(books.database, books.environment, file);
  const target = await makeDatabase('erased', { template: inject('template') });
  const database = await openDatabase({ ...books.environment, databaseUrl: target.url });
  try {
    const checked = await checkBackup(file, { name: 'sandbox' });
    const { proof } = await restoreBackup(database, checked, (tx) => verify(tx, undefined));
    expect(proof).toMatchObject({ differences: 0 });
  } finally {
    await database.close();
    await target.drop();
    rmSync(file);
  }
});

test('verify finds an erasure that was recorded later under the event of others', async () => {
  const number = await numberOf(events.stray);
  const forged = `processor_event_id = ${number}`;
  const [kept] = await books.sql<{ payload: unknown }>(`SELECT payload FROM processor_events WHERE ${forged}`);
  await books.sql(
    `${GUARDS_OFF} UPDATE processor_events SET payload = NULL WHERE ${forged};
     INSERT INTO processor_event_erasures (processor_event_id, recorded_at, event_id, log_no)
     SELECT ${number}, recorded_at, event_id, 1000000 FROM processor_event_erasures ORDER BY log_no LIMIT 1; ${GUARDS_ON}`,
  );
  expect(foundBy(await books.verify(), 'event_counts')).toMatchObject([
    { detail: expect.stringContaining('Found: action processor_event.erase, event_states 1, recorded 2') },
  ]);
  await books.sql(
    `${GUARDS_OFF} DELETE FROM processor_event_erasures WHERE ${forged};
     UPDATE processor_events SET payload = '${JSON.stringify(kept?.payload)}' WHERE ${forged}; ${GUARDS_ON}`,
  );
});

const damages: [what: string, check: string, statement: string][] = [
  [
    'data taken away without a record',
    'its data is missing, and no erasure is recorded',
    `UPDATE processor_events SET payload = NULL WHERE id = $1`,
  ],
  [
    'data changed',
    'its data is not what was received',
    `UPDATE processor_events SET payload = jsonb_set(payload, '{livemode}', 'true') WHERE id = $1`,
  ],
];
test.each(damages)('verify finds %s', async (_, detail, statement) => {
  const id = idOf(events.stray);
  const [before] = await books.sql<{ payload: unknown }>(`SELECT payload FROM processor_events WHERE id = $1`, [id]);
  await books.sql(`${GUARDS_OFF} ALTER TABLE processor_events DROP CONSTRAINT processor_event_payload_is_hashed`);
  await books.sql(statement, [id]);
  const { checks } = await books.verify();
  const found = checks.find(({ check }) => check === 'processor_events_recorded')?.differences;
  expect(found).toEqual([{ subject: `event ${id}`, detail }]);
  await books.sql(`UPDATE processor_events SET payload = $2 WHERE id = $1`, [id, JSON.stringify(before?.payload)]);
  await books.sql(
    `ALTER TABLE processor_events ADD CONSTRAINT processor_event_payload_is_hashed
     CHECK (payload_sha256 = payload_hash(payload) OR payload IS NULL); ${GUARDS_ON}`,
  );
});
