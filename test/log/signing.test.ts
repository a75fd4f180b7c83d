/** The key that signs checkpoints, its signatures, which OpenSSL checks, and the keys that follow it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import type { LogKey } from '../../src/config/log-key.ts';
import type { Refusal } from '../../src/errors/refusals.ts';
import { type Checkpoint, readCheckpoints, readOrigin } from '../../src/log/checkpoints.sql.ts';
import { bodyOf, isSigned, isSignedBy, noteOf, readKey, readNote, vkeyOf } from '../../src/log/note.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { noteKeyOf, readSignatureLines } from '../../src/log/signatures.sql.ts';
import { LOG_KEY, LOG_PEM, logKeyOf, newLogPem } from '../support/log-keys.ts';
import { readStatus } from '../support/status.ts';
import { tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-signatures-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the key', () => {
  const refusalOf = (variables: Record<string, string>): string => {
    try {
      readEnvironment({ RECKONER_HOME: folder, ...variables });
    } catch (error) {
      // A secret stays out of whatever a log could print.
      for (const secret of ['MC4CAQAwBQYDK2VwBCIEI', 'sesame'])
        expect(inspect(error, { depth: 9 })).not.toContain(secret);
      expect((error as Refusal).code).toBe('environment_invalid');
      return (error as Refusal).message;
    }
    return 'accepted';
  };
  const keyFile = (content: string, mode: number) => {
    const file = join(folder, 'log-key.pem');
    rmSync(file, { force: true });
    writeFileSync(file, content, { mode });
    chmodSync(file, mode);
    return { LOG_SIGNING_KEY_FILE: file };
  };
  const opened = (type: string, ...options: string[]) =>
    execFileSync(tool('openssl'), ['genpkey', '-algorithm', type, ...options], { encoding: 'utf8', stdio: 'pipe' });

  test('is read from the variable, with line ends or \\n, or from a file', () => {
    for (const variables of [
      { LOG_SIGNING_KEY: LOG_PEM },
      { LOG_SIGNING_KEY: LOG_PEM.replaceAll('\n', '\\n') },
      keyFile(LOG_PEM, 0o600),
      keyFile(LOG_PEM, 0o440),
    ]) {
      expect(readEnvironment(variables).logKey?.publicKey).toEqual(LOG_KEY.publicKey);
    }
    expect(readEnvironment({}).logKey).toBeUndefined();
  });

  test('that everybody on the machine can read is refused', () => {
    expect(refusalOf(keyFile(LOG_PEM, 0o644))).toMatch(/which every user of this machine can read .* 'chmod 600 /);
  });

  test.each([
    ['in the variable and in a file', () => ({ ...keyFile(LOG_PEM, 0o600), LOG_SIGNING_KEY: LOG_PEM }), /both set/],
    [
      'in a file that is not there',
      () => ({ LOG_SIGNING_KEY_FILE: join(folder, 'none') }),
      /none, which cannot be read/,
    ],
    ['in a folder', () => ({ LOG_SIGNING_KEY_FILE: folder }), /which is not a file/],
    ['in a device', () => ({ LOG_SIGNING_KEY_FILE: '/dev/zero' }), /which is not a file/],
    ['as long as a film', () => keyFile(`${LOG_PEM}${'x'.repeat(20_000)}`, 0o600), /too long for a key/],
    ['of another type', () => ({ LOG_SIGNING_KEY: opened('rsa') }), /of the type rsa, but must be an Ed25519 key/],
    ['of the other Edwards curve', () => ({ LOG_SIGNING_KEY: opened('ed448') }), /of the type ed448/],
    [
      'of another type of the same curve',
      () => ({ LOG_SIGNING_KEY: opened('x25519') }),
      /of the type x25519, but must be an Ed25519 key; 'openssl genpkey -algorithm ed25519/,
    ],
    [
      'that is encrypted',
      () => ({ LOG_SIGNING_KEY: opened('ed25519', '-aes256', '-pass', 'pass:sesame') }),
      /Reckoner cannot ask for its password/,
    ],
    ['that is damaged', () => ({ LOG_SIGNING_KEY: LOG_PEM.replace('JpGXA7', 'JpGX') }), /is damaged/],
    ['that is no key', () => ({ LOG_SIGNING_KEY: 'sesame' }), /must be a private key in PEM form/],
    [
      'that is a public key',
      () => {
        const input = LOG_PEM;
        return { LOG_SIGNING_KEY: execFileSync(tool('openssl'), ['pkey', '-pubout'], { input, encoding: 'utf8' }) };
      },
      /must be a private key in PEM form/,
    ],
  ])('%s is refused with a sentence', (_, variables, says) => {
    expect(refusalOf(variables())).toMatch(says);
  });
});

describe('checkpoints', () => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld({ logKey: LOG_KEY });
    await world.partners([partner()]);
    await world.rows([quote()]);
  });
  afterEach(() => world.end());

  const closeAt = async (instant: string) => {
    world.at(instant);
    await world.close();
  };
  const withKeys = async (logKey: LogKey | undefined, logKeyBefore?: LogKey) => {
    Object.assign(world.environment, { logKey, logKeyBefore });
    await signCheckpoints(world);
  };
  const keys = () =>
    world.sql<{
      key_name: string;
      public_key: string;
      previous: string | null;
      signature: string | null;
      reason: string;
    }>('SELECT key_name, public_key, previous, signature, reason FROM log_keys ORDER BY log_no');
  const signed = () =>
    world.database.reading(async (tx) => {
      const checkpoints = await readCheckpoints(tx);
      const lines = await readSignatureLines(
        tx,
        checkpoints.map(({ size }) => size),
      );
      return checkpoints.map((each): [Checkpoint, readonly string[]] => [each, lines.get(each.size) ?? []]);
    });
  const failing = async () => {
    const { checks } = await world.verify();
    return checks.filter(({ differences }) => differences.length > 0).map(({ check }) => check);
  };

  test('are signed once, after their transaction, and OpenSSL verifies the signature of the text', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    await world.closeBooks('2026-07');
    expect((await signed()).map(([{ closes }, lines]) => [closes, lines])).toEqual([
      ['month 2026-07', []],
      ['books 2026-07', []],
    ]);
    await withKeys(LOG_KEY);
    await withKeys(LOG_KEY);
    const [key] = await keys();
    expect(key).toEqual({
      key_name: await world.database.reading(readOrigin),
      public_key: LOG_KEY.publicKey.toString('base64'),
      ...{ previous: null, signature: null, reason: '' },
    });
    for (const [checkpoint, lines] of await signed()) {
      expect(lines).toHaveLength(1);
      const at = (name: string) => join(folder, name);
      writeFileSync(at('key.pem'), LOG_PEM);
      writeFileSync(at('body'), bodyOf(checkpoint));
      writeFileSync(at('signature'), Buffer.from(lines[0]?.split(' ')[2] ?? '', 'base64').subarray(4));
      execFileSync(tool('openssl'), ['pkey', '-in', at('key.pem'), '-pubout', '-out', at('public.pem')]);
      const args = ['pkeyutl', '-verify', '-pubin', '-inkey', at('public.pem'), '-rawin'];
      const { status } = spawnSync(tool('openssl'), [...args, '-in', at('body'), '-sigfile', at('signature')]);
      expect(status).toBe(0);
    }
    expect(await failing()).toEqual([]);
  });

  test('are read from their notes, and a signature is of one text, one name and one key', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    await withKeys(LOG_KEY);
    const [[checkpoint, lines] = [] as never] = await signed();
    const note = readNote(noteOf(checkpoint, lines));
    const { origin, size, root } = checkpoint;
    expect(note).toEqual({ head: { origin, size, root }, lines });
    const own = { name: origin, publicKey: LOG_KEY.publicKey };
    expect(readKey(vkeyOf(own))).toEqual({ ...own, isWitness: false });
    expect(isSignedBy(checkpoint, lines, own)).toBe(true);
    expect(isSignedBy({ ...checkpoint, size: checkpoint.size + 1 }, lines, own)).toBe(false);
    expect(isSignedBy(checkpoint, lines, { ...own, name: `${own.name}/2` })).toBe(false);
    expect(isSignedBy(checkpoint, lines, { ...own, publicKey: logKeyOf(newLogPem()).publicKey })).toBe(false);
    expect(isSignedBy(checkpoint, [], own)).toBe(false);
  });

  test('need no key: a month and its books close without one, and are signed when there is one', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    await withKeys(LOG_KEY);
    Object.assign(world.environment, { logKey: undefined });
    await closeAt('2026-09-01T10:00:00Z');
    await world.closeBooks('2026-07');
    await withKeys(undefined);
    expect((await signed()).map(([, lines]) => lines.length)).toEqual([1, 0, 0]);
    const attention = async () =>
      (await world.database.reading((tx) => readStatus(tx, world))).attention.filter((each) => /sign/.test(each));
    world.at('2026-09-02T10:01:00Z');
    expect(await attention()).toEqual([
      expect.stringMatching(/^Checkpoints are no longer signed: LOG_SIGNING_KEY_FILE/),
    ]);
    await withKeys(LOG_KEY);
    expect((await signed()).map(([, lines]) => lines.length)).toEqual([1, 1, 1]);
    expect(await keys()).toHaveLength(1);
    expect(await attention()).toEqual([]);
    expect(await failing()).toEqual([]);
  });

  test('by a new key follow a fact that the key before it signed', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    await withKeys(LOG_KEY);
    const next = logKeyOf(newLogPem());
    await closeAt('2026-09-01T10:00:00Z');
    await withKeys(next, LOG_KEY);
    const [first, second, ...more] = await keys();
    expect(more).toEqual([]);
    expect(second).toMatchObject({ previous: first?.public_key, reason: '', signature: expect.any(String) });
    const succession = Buffer.from(`${vkeyOf(noteKeyOf(second as never))}\n`);
    expect(isSigned(succession, Buffer.from(second?.signature ?? '', 'base64'), LOG_KEY.publicKey)).toBe(true);
    const [, [checkpoint, lines] = [] as never] = await signed();
    expect(isSignedBy(checkpoint, lines, { name: checkpoint.origin, publicKey: next.publicKey })).toBe(true);
    const events = await world.sql<{ details: object }>(
      `SELECT details FROM audit_events WHERE action = 'signing_key.change' ORDER BY event_id`,
    );
    const [before, after] = [first, second].map((key) => vkeyOf(noteKeyOf(key as never)));
    expect(events.map(({ details }) => details)).toEqual([
      { key: before, previous: null },
      { key: after, previous: before },
    ]);
    expect(await failing()).toEqual([]);
  });

  test('by a new key after a loss follow a fact that says so', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    await withKeys(LOG_KEY);
    await closeAt('2026-09-01T10:00:00Z');
    // Not the key that signed last.
    await withKeys(logKeyOf(newLogPem()), logKeyOf(newLogPem()));
    const [first, second] = await keys();
    expect(second).toMatchObject({
      ...{ previous: first?.public_key, signature: null, reason: 'the previous key is lost' },
    });
    expect(await failing()).toEqual([]);
  });

  test('of a month that is only previewed: there is none', async () => {
    world.at('2026-08-01T10:00:00Z');
    await world.preview();
    await withKeys(LOG_KEY);
    expect(await signed()).toEqual([]);
    expect(await keys()).toEqual([]);
  });
});
