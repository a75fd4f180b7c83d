/** Checkpoints of the open month: taken once a day, mailed, and named by `verify` as soon as something under one is changed. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { sendOtherEmails } from '../../src/mail/outbox.ts';
import type { Month } from '../../src/month.ts';
import { COMPOSERS } from '../../src/month-end/emails/composers.ts';
import { readSealLetters } from '../../src/reports/seal-letters.sql.ts';
import { takeCheckpoint, takeDueCheckpoint } from '../../src/seals/checkpoint.ts';
import { type Owner, openOwner } from '../audit/owner.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
async function open(): Promise<void> {
  world = await openWorld();
  world.settings = { ...world.settings, checkpoints: 'daily' };
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([quote({ quote_id: 'q-1' }), quote({ quote_id: 'q-2' })]);
}
const due = () => takeDueCheckpoint(world.database, world);
const byHand = () => world.database.transaction((tx) => takeCheckpoint(tx, world));
const differences = async (month?: string) => {
  const found = await world.verify(month);
  return found.checks.filter((each) => each.differences.length > 0).map(({ check }) => check);
};

describe('a checkpoint', () => {
  beforeEach(open);
  afterEach(() => world.end());

  test('is taken once a day of the issuer, also when nothing happened', async () => {
    const first = await due();
    expect(first).toMatchObject({ checkpoint_number: 1, previous: null, entries_to: 2 });
    expect(first?.seal).toBe(
      createHash('sha256')
        .update(first?.record ?? '')
        .digest('hex'),
    );
    expect(await due()).toBeUndefined();
    // 23:59 in New York.
    world.at('2026-08-02T03:59:00Z');
    expect(await due()).toBeUndefined();
    world.at('2026-08-02T04:00:00Z');
    const second = await due();
    expect(second?.record).toContain(`previous 1 ${first?.seal}\nsealed_after none\n`);
    expect(second?.record).toContain('\nentries 3 to 2\n');
    expect(second?.record).not.toMatch(/^rows 2026/m);
    expect(await differences()).toEqual([]);
  });

  test('is not taken by the jobs where the settings say so, and then overdue on no day', async () => {
    world.settings = { ...world.settings, checkpoints: 'off' };
    expect(await due()).toBeUndefined();
    expect(await byHand()).toMatchObject({ checkpoint_number: 1 });
    world.at('2026-08-20T10:00:00Z');
    const { checkpoints } = await world.database.reading((tx) => readStatus(tx, world));
    expect(checkpoints).toEqual({ last: '2026-08-01', overdue_days: 0 });
  });

  test('is taken once by several runs at the same time', async () => {
    const taken = await Promise.all([due(), due(), due()]);
    expect(taken.filter((each) => each !== undefined)).toHaveLength(1);
    expect(await world.sql('SELECT checkpoint_number FROM checkpoints')).toEqual([{ checkpoint_number: '1' }]);
  });

  test('is refused by a clock behind what happened', async () => {
    await byHand();
    world.at('2026-08-01T09:59:59Z');
    await expect(byHand()).rejects.toMatchObject({ code: 'clock_behind', facts: { number: 'checkpoint 1' } });
    world.at('2026-08-05T10:00:00Z');
    await world.close();
    world.at('2026-08-03T10:00:00Z');
    await expect(due()).rejects.toMatchObject({ code: 'clock_behind', facts: { latest: '2026-08-05' } });
    expect(await world.sql('SELECT FROM checkpoints')).toHaveLength(1);
  });

  test('goes on after a close: its facts begin after the seal, and its rows after the checkpoint before', async () => {
    await byHand();
    await world.rows([quote({ quote_id: 'q-3' })]);
    await world.close();
    await world.rows([quote({ accepted_at: '2026-08-01T09:00:00Z' })]);
    const second = await byHand();
    const [seal] = await world.sql<{ seal: string; facts_to: string }>('SELECT seal, facts_to FROM seals');
    expect(second.record).toContain(`\nsealed_after 2026-07 ${seal?.seal}\n`);
    expect(second.record).toContain('\nentries 3 to 4\n');
    expect(second.record).toMatch(/^rows 2026-07 1 \S+\nrows 2026-08 1 \S+\n/m);
    expect(second.record).toContain(`\nfacts ${Number(seal?.facts_to) + 1} to ${second.facts_to}\n`);
    expect(await differences()).toEqual([]);
    expect(await differences('2026-07')).toEqual([]);
  });

  test('keeps the tree of each open month so far, and the close continues it: its seal is that of all rows', async () => {
    const trees = async () =>
      (
        await world.sql<{ trees: Record<string, { leaves: number }> }>(
          'SELECT trees FROM checkpoints ORDER BY checkpoint_number DESC',
        )
      )[0]?.trees;
    const both = ['2026-07-31T12:00:00Z', '2026-08-01T09:00:00Z'];
    for (const accepted_at of both) await world.rows([quote({ accepted_at })]);
    await byHand();
    expect(await trees()).toMatchObject({ '2026-07': { leaves: 3 }, '2026-08': { leaves: 1 } });
    for (const accepted_at of both.toReversed()) await world.rows([quote({ accepted_at })]);
    await byHand();
    await byHand();
    for (const accepted_at of both) await world.rows([quote({ accepted_at })]);
    await world.close();
    await world.rows([quote({ accepted_at: both[1] as string })]);
    await byHand();
    expect(await trees()).toEqual({ '2026-08': { leaves: 4, roots: [expect.stringMatching(/^[0-9a-f]{64}$/)] } });
    expect(await differences()).toEqual([]);
    expect(await differences('2026-07')).toEqual([]);
    world.at('2026-09-01T10:00:00Z');
    await world.close('2026-08');
    expect(await differences()).toEqual([]);
    expect(await differences('2026-08')).toEqual([]);
  });

  test('of several months that the first close gathers: the rows are sealed in the order in which they came', async () => {
    for (const accepted_at of ['2026-06-30T12:00:00Z', '2026-07-30T12:00:00Z', '2026-06-29T12:00:00Z'])
      await world.rows([quote({ accepted_at })]);
    await byHand();
    await world.rows([quote({ accepted_at: '2026-06-28T12:00:00Z' })]);
    await world.close('2026-07', { firstMonth: '2026-07' as Month });
    expect(await world.sql('SELECT entries FROM closed_months')).toEqual([{ entries: '6' }]);
    expect(await differences()).toEqual([]);
    expect(await differences('2026-07')).toEqual([]);
  });

  test('that is overdue by two days needs attention', async () => {
    await due();
    const attention = async (at: string) => {
      world.at(at);
      const status = await world.database.reading((tx) => readStatus(tx, world));
      return status.attention.filter((each) => each.includes('checkpoint'));
    };
    expect(await attention('2026-08-03T10:00:00Z')).toEqual([]);
    expect(await attention('2026-08-04T10:00:00Z')).toMatchObject([/since 2026-08-01/]);
  });

  test('is told to the auditor by a letter that says which came before and which come next', async () => {
    const send = () => sendOtherEmails({ ...world, composers: COMPOSERS });
    const first = await due();
    await send();
    world.at('2026-08-02T10:00:00Z');
    await world.close();
    await due();
    await send();
    await send();
    const letters = await world.database.reading(readSealLetters);
    expect(letters.map(({ kind, name, letter }) => [kind, name, letter])).toEqual([
      ['checkpoint', '1', 'sent'],
      ['month', '2026-07', 'sent'],
      ['checkpoint', '2', 'sent'],
    ]);
    expect(letters[0]).toMatchObject({ to: ['auditor@protection.example'], seal: first?.seal });
    const outbox = join(world.home, 'outbox');
    const names = readdirSync(outbox);
    const mailed = async (name: string) =>
      simpleParser(readFileSync(join(outbox, names.find((each) => each.startsWith(name)) ?? '')));
    const one = await mailed('checkpoint.1');
    expect(one.subject).toBe(`[SANDBOX] Checkpoint 1: ${first?.seal.slice(0, 16)}`);
    expect(one.text).toContain('This is the first letter.');
    expect(one.text).toContain(`\n${first?.record}`);
    expect((await mailed('seal.2026-07')).text).toContain(`The previous letter is: checkpoint 1,\n  ${first?.seal}\n`);
    const two = (await mailed('checkpoint.2')).text ?? '';
    expect(two).toContain(`The previous letter is: seal of 2026-07,\n  ${letters[1]?.seal}\n`);
    expect(two).toContain('2026-08-03  a checkpoint\n');
    expect(two).toContain('the seal of August 2026\n');
    for (const line of two.split('\n').slice(0, 24)) expect(line.length).toBeLessThan(79);
  });
});

describe('what the owner of the database changes in the open month', () => {
  let owner: Owner;
  beforeAll(async () => {
    await open();
    await world.close();
    world.at('2026-08-10T10:00:00Z');
    await world.partners([partner({ name: 'Harbour Lights Ticketing, Inc.' }), partner({ partner_id: 'p-2' })]);
    await world.rows(['q-4', 'q-5'].map((quote_id) => quote({ quote_id, accepted_at: '2026-08-09T12:00:00Z' })));
    await byHand();
    owner = openOwner(world);
  });
  afterAll(async () => {
    await owner.close();
    await world.end();
  });

  const ROW = '(SELECT max(entry_id) FROM ledger_rows)';
  const COLUMNS = `partner_id, posted_month, entry_id, kind, quote_id, policy_id, currency, accepted_at, spot_price,
    partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id`;

  test.each([
    ['an amount', `UPDATE ledger_rows SET spot_price = 11, invoice_amount = 8 WHERE entry_id = ${ROW}`],
    ['the partner', `UPDATE ledger_rows SET partner_id = 'p-2' WHERE entry_id = ${ROW}`],
    ['a row that is deleted', `DELETE FROM ledger_rows WHERE entry_id = ${ROW}`],
    ['a quote id', `UPDATE ledger_rows SET quote_id = quote_id || 'x' WHERE entry_id = ${ROW}`],
    [
      'a row that is added with an older entry_id',
      `INSERT INTO ledger_rows (${COLUMNS}) OVERRIDING SYSTEM VALUE
       SELECT ${COLUMNS.replace('entry_id,', '1,').replace('quote_id,', "'q-invented',")} FROM ledger_rows
       WHERE entry_id = ${ROW}`,
    ],
    ['the month that rows post to', `UPDATE ledger_rows SET posted_month = '2099-12' WHERE posted_month = '2026-08'`],
    [
      'who did it',
      `UPDATE audit_events SET claimed_by = 'Grace' WHERE event_id = (SELECT max(event_id) - 1 FROM audit_events)`,
    ],
    [
      'an event that is deleted',
      `DELETE FROM audit_events WHERE event_id = (SELECT max(event_id) - 1 FROM audit_events)`,
    ],
    ['the record of the checkpoint', `UPDATE checkpoints SET record = record || ' '`],
    [
      'the hashes that the close would continue',
      `UPDATE checkpoints SET trees = jsonb_set(trees, '{2026-08,roots,0}', to_jsonb(repeat('0', 64)))`,
    ],
    ['the number of rows that the close would continue', `UPDATE checkpoints SET trees = '{}'`],
  ])('%s is named at once', async (_, statement) => {
    const found = await owner.undone(async (tx) => {
      await tx.knex.raw('ALTER TABLE checkpoints DROP CONSTRAINT checkpoint_seal_is_the_hash_of_its_record');
      await tx.knex.raw(GUARDS_OFF);
      await tx.knex.raw(statement.replaceAll('?', '\\?'));
      await tx.knex.raw(GUARDS_ON);
      return verify(tx, undefined);
    });
    const failing = found.checks.filter((each) => each.differences.length > 0).map(({ check }) => check);
    expect(failing).toContain('checkpoints_recomputed');
  });
});

test('a row that is changed after its checkpoint shows by the seal of its month too, which is of the row as it was', async () => {
  await open();
  await byHand();
  await world.rows([quote({ quote_id: 'q-3' })]);
  await world.sql(GUARDS_OFF);
  await world.sql(`UPDATE ledger_rows SET enrollment_id = 'e-other' WHERE quote_id = 'q-1'`);
  await world.sql(GUARDS_ON);
  expect(await differences()).toEqual(['checkpoints_recomputed']);
  await world.close();
  expect(await differences()).toEqual(['seals_recomputed', 'checkpoints_recomputed']);
  await world.end();
});

test('rows of an open month that are pushed to the next one are named without a checkpoint, before its close and after', async () => {
  await open();
  // Times are compared in production only.
  await world.sql(`ALTER TABLE installation DISABLE TRIGGER ALL`);
  await world.sql(`UPDATE installation SET environment = 'production'`);
  await world.rows([quote({ quote_id: 'q-9', accepted_at: '2026-08-01T09:00:00Z' })]);
  await world.close('2026-07');
  expect(await differences()).not.toContain('rows_in_their_months');
  await world.sql(`ALTER TABLE ledger_rows DISABLE TRIGGER ALL`);
  await world.sql(`UPDATE ledger_rows SET posted_month = '2026-09' WHERE quote_id = 'q-9'`);
  await world.sql(`ALTER TABLE ledger_rows ENABLE TRIGGER ALL`);
  expect(await differences()).toContain('rows_in_their_months');
  world.at('2026-09-01T10:00:00Z');
  await world.close('2026-08');
  expect(await differences()).toContain('rows_in_their_months');
  await world.end();
});
