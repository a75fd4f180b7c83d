/** A database that was restored to an earlier state does not sign a second history under the same name. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resumeLedger } from '../../src/documents/resume.ts';
import { linesOf } from '../../src/ledger/running-lines.sql.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { type Checkpoint, readLastCheckpoint } from '../../src/log/checkpoints.sql.ts';
import { deriveLog } from '../../src/log/derive.ts';
import { readHead } from '../../src/log/head.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { pauseLedger } from '../../src/people/pauses.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let kept: Checkpoint;
let lost: Checkpoint;
const take = () => takeCheckpoint(world.database, world) as Promise<Checkpoint>;

/** A first checkpoint is in the backup; a second one, of a further row, was seen outside. */
beforeEach(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote({ quote_id: 'q-1' })]);
  kept = await take();
  await world.rows([quote({ quote_id: 'q-lost' })]);
  lost = await take();
  await signCheckpoints(world);
});
afterEach(() => world.end());

/** The database as it was at the first checkpoint. */
async function restore(): Promise<void> {
  const facts = await world.sql<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'log_no'
     WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'published_marks'`,
  );
  const gone = facts.map(({ name }) => `DELETE FROM ${name} WHERE log_no > ${kept.last_no};`).join(' ');
  await world.sql(`BEGIN; ${GUARDS_OFF} ${gone}
    DELETE FROM ledger_rows WHERE entry_id > ${kept.last_no};
    DELETE FROM log_checkpoints WHERE size > ${kept.size};
    UPDATE partner_edges SET entries = 1, edge = (SELECT edge FROM partner_edges LIMIT 1);
    SELECT setval('log_numbers', ${kept.last_no}); ${GUARDS_ON} COMMIT`);
  await world.sql(`DELETE FROM partner_edges; DELETE FROM running_lines; INSERT INTO running_lines ${linesOf('true')}`);
}

const resume = (seen = readHead(world.environment)?.head) =>
  world.database.transaction(async (tx) => {
    await pauseLedger(tx, world, { reason: 'restored from backup-1', stateOf: '2026-08-01T09:00:00Z' });
    return resumeLedger(tx, world, { numbersAfter: [], seen });
  });

test('a log that goes on keeps its name', async () => {
  expect(readHead(world.environment)?.head).toMatchObject({ size: lost.size, root: lost.root });
  expect((await resume()).log).toBeUndefined();
  expect((await take()).origin).toBe(lost.origin);
});

test('a restored log takes no checkpoint until the loss is recorded', async () => {
  await restore();
  await world.rows([quote({ quote_id: 'q-2' })]);
  await expect(take()).rejects.toMatchObject({ code: 'log_forked', facts: { seen: lost.size, here: kept.size } });
  await expect(world.close()).rejects.toMatchObject({ code: 'log_forked' });
});

test('a restored log goes on under a new name, whose first new facts state what was lost', async () => {
  await restore();
  const { log } = await resume();
  expect(log).toEqual({
    origin: `${lost.origin}/2`,
    follows: lost.origin,
    lost_size: lost.size,
    kept_size: kept.size,
  });
  const next = await take();
  expect(next.origin).toBe(`${lost.origin}/2`);
  const [fact] = await world.sql('SELECT lost_root, reason FROM log_continues');
  expect(fact).toEqual({ lost_root: lost.root.toString('base64'), reason: 'restored from backup-1' });
  await signCheckpoints(world);
  expect(readHead(world.environment)?.head.origin).toBe(`${lost.origin}/2`);
  expect((await world.database.reading((tx) => readLastCheckpoint(tx)))?.size).toBe(next.size);
});

test('a checkpoint of another ledger is refused', async () => {
  const other = { ...lost, origin: 'sandbox.elsewhere.example/0123456789ab' };
  await expect(resume(other)).rejects.toMatchObject({ code: 'checkpoint_of_other_log' });
});

test('a recovery that lost nothing keeps the name of the log', async () => {
  await resume();
  expect((await world.database.reading((tx) => deriveLog(tx, 'all'))).differences).toEqual([]);
});
