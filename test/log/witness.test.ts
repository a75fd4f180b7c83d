/** A witness cosigns checkpoints that continue what it saw, and no others. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { cosignHead, type NoteKey, readKey, readNote, vkeyOf, witnessKeyOf } from '../../src/log/note.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { acceptCheckpoint, readProver, recordCosignatures } from '../../src/log/witness.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let log: NoteKey;
/** What a log says to a witness that has seen none, and to one that saw its first checkpoint. */
let first: string;
let second: string;
const pair = generateKeyPairSync('ed25519');
const witness = {
  name: 'audit.example.org/witness',
  publicKey: pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32),
};
const proofFrom = (old: number) => world.database.reading(async (tx) => (await readProver(tx)).proofFrom(old));

beforeAll(async () => {
  world = await openWorld({ logKey: LOG_KEY });
  await world.partners([partner()]);
  await world.rows([quote({ quote_id: 'q-1' })]);
  const taken = await takeCheckpoint(world.database, world);
  await signCheckpoints(world);
  log = { name: taken?.origin ?? '', publicKey: LOG_KEY.publicKey };
  first = await proofFrom(0);
  await world.rows([quote({ quote_id: 'q-2' }), quote({ quote_id: 'q-3' })]);
  await world.close();
  await signCheckpoints(world);
  second = await proofFrom(taken?.size ?? 0);
});
afterAll(() => world.end());

test('a log that continues what was seen is accepted', () => {
  const seen = acceptCheckpoint(first, { head: undefined, key: log });
  const now = acceptCheckpoint(second, { head: seen, key: log });
  expect(now.size).toBeGreaterThan(seen.size);
  expect(
    acceptCheckpoint(`old ${now.size}\n\n${second.split('\n\n').slice(1).join('\n\n')}`, { head: now, key: log }),
  ).toEqual(now);
});

test('another history is refused, whether it is shorter, longer or of the same size', () => {
  const seen = acceptCheckpoint(first, { head: undefined, key: log });
  const now = acceptCheckpoint(second, { head: seen, key: log });
  const refused = (text: string, head: typeof seen) => () => acceptCheckpoint(text, { head, key: log });
  const other = { ...seen, root: Buffer.alloc(32, 7) };
  expect(refused(second, other)).toThrow(expect.objectContaining({ code: 'log_inconsistent' }));
  expect(refused(first, now)).toThrow(expect.objectContaining({ code: 'log_inconsistent' }));
  expect(refused(second.replace(/^old \d+\n.*\n/, `old ${seen.size}\n`), seen)).toThrow(
    expect.objectContaining({ code: 'log_inconsistent' }),
  );
  const note = second.split('\n\n').slice(1).join('\n\n');
  expect(refused(`old ${now.size}\n\n${note}`, { ...now, root: other.root })).toThrow(
    expect.objectContaining({ code: 'log_inconsistent' }),
  );
});

test('a checkpoint that the log did not sign is refused', () => {
  const unsigned = second.replace(/\n— .*\n$/, '\n');
  for (const text of [
    unsigned,
    second.replace(/(— \S+ .{10})./, '$1A'),
    second.replace(log.name, 'elsewhere.example/x'),
  ]) {
    expect(() => acceptCheckpoint(text, { head: undefined, key: log })).toThrow(
      expect.objectContaining({ code: 'checkpoint_not_signed' }),
    );
  }
  expect(() => acceptCheckpoint('nothing', { head: undefined, key: log })).toThrow(
    expect.objectContaining({ code: 'checkpoint_unreadable' }),
  );
});

test('a cosignature is recorded for the checkpoint that it is for, if the settings name its witness', async () => {
  const seen = acceptCheckpoint(first, { head: undefined, key: log });
  const now = acceptCheckpoint(second, { head: seen, key: log });
  const line = cosignHead(now, witness, pair.privateKey, 1_790_000_000);
  const record = (size: number, witnesses: readonly string[]) =>
    world.database.transaction((tx) =>
      recordCosignatures(tx, { size, lines: [line], witnesses, now: world.environment.now().toISO() }),
    );
  await expect(record(now.size, [])).rejects.toMatchObject({ code: 'witness_unknown' });
  await expect(record(seen.size, [witnessKeyOf(witness)])).rejects.toMatchObject({ code: 'witness_unknown' });
  expect(await record(now.size, [witnessKeyOf(witness)])).toBe(1);
  const note = (await proofFrom(0)).split('\n\n').slice(1).join('\n\n');
  expect(readNote(note)?.lines).toEqual([expect.stringContaining(log.name), line]);
});

test('verifier keys are read only as they were written', () => {
  expect(readKey(vkeyOf(log))).toEqual({ ...log, isWitness: false });
  expect(readKey(witnessKeyOf(witness))).toEqual({ ...witness, isWitness: true });
  expect(readKey(vkeyOf(log).replace(/.$/, 'x'))).toBeUndefined();
});
