/** The key that signs seals, and the signatures that it makes: the format of docs/pack-format.md, checked by OpenSSL. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import type { Refusal } from '../../src/errors/refusals.ts';
import { packageRoot } from '../../src/package.ts';
import { isValid, noteOf, signatureLine, signRecord, vkeyOf } from '../../src/seals/signature.ts';
import { newSealPem, SEAL_KEY, SEAL_PEM, sealKeyOf } from '../support/seal-keys.ts';
import { tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-signatures-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the format', () => {
  const text = 'reckoner checkpoint 1\ninstallation 0123456789ab sandbox\n';
  const signature = signRecord(text, SEAL_KEY, '0123456789ab');

  test('is that of the test vector in the documentation', () => {
    const page = readFileSync(join(packageRoot, 'docs/pack-format.md'), 'utf8');
    expect(page).toContain(`\n${vkeyOf(signature)}\n`);
    expect(page).toContain(`\n${noteOf(text, signature)}`);
    expect(page).toContain(`\`${signature.signature}\``);
  });

  test('is read by OpenSSL: the signature is of the record, by the key', () => {
    const at = (name: string) => join(folder, name);
    writeFileSync(at('key.pem'), SEAL_PEM);
    writeFileSync(at('record'), text);
    const line = Buffer.from(signatureLine(signature).split(' ')[2] ?? '', 'base64');
    writeFileSync(at('signature'), line.subarray(4));
    execFileSync(tool('openssl'), ['pkey', '-in', at('key.pem'), '-pubout', '-out', at('public.pem')]);
    const args = ['pkeyutl', '-verify', '-pubin', '-inkey', at('public.pem'), '-rawin'];
    const { status } = spawnSync(tool('openssl'), [...args, '-in', at('record'), '-sigfile', at('signature')]);
    expect(status).toBe(0);
  });

  test('of another record, by another key or damaged, a signature is not valid', () => {
    expect(isValid(text, signature)).toBe(true);
    expect(isValid(`${text}x\n`, signature)).toBe(false);
    const other = signRecord(text, sealKeyOf(newSealPem()), '0123456789ab');
    expect(isValid(text, { ...signature, public_key: other.public_key })).toBe(false);
    expect(isValid(text, { ...signature, public_key: '' })).toBe(false);
    expect(isValid(text, { ...signature, signature: '' })).toBe(false);
  });
});

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
    const file = join(folder, 'seal-key.pem');
    rmSync(file, { force: true });
    writeFileSync(file, content, { mode });
    chmodSync(file, mode);
    return { SEAL_SIGNING_KEY_FILE: file };
  };
  const opened = (type: string, ...options: string[]) =>
    execFileSync(tool('openssl'), ['genpkey', '-algorithm', type, ...options], { encoding: 'utf8', stdio: 'pipe' });

  test('is read from the variable, with line ends or \\n, or from a file', () => {
    for (const variables of [
      { SEAL_SIGNING_KEY: SEAL_PEM },
      { SEAL_SIGNING_KEY: SEAL_PEM.replaceAll('\n', '\\n') },
      keyFile(SEAL_PEM, 0o600),
      keyFile(SEAL_PEM, 0o440),
    ]) {
      expect(readEnvironment(variables).sealKey?.publicKey).toEqual(SEAL_KEY.publicKey);
    }
    expect(readEnvironment({}).sealKey).toBeUndefined();
  });

  test('that everybody on the machine can read is refused', () => {
    expect(refusalOf(keyFile(SEAL_PEM, 0o644))).toMatch(/which every user of this machine can read .* 'chmod 600 /);
  });

  test.each([
    ['in the variable and in a file', () => ({ ...keyFile(SEAL_PEM, 0o600), SEAL_SIGNING_KEY: SEAL_PEM }), /both set/],
    [
      'in a file that is not there',
      () => ({ SEAL_SIGNING_KEY_FILE: join(folder, 'none') }),
      /none, which cannot be read/,
    ],
    ['in a folder', () => ({ SEAL_SIGNING_KEY_FILE: folder }), /which is not a file/],
    ['in a device', () => ({ SEAL_SIGNING_KEY_FILE: '/dev/zero' }), /which is not a file/],
    ['as long as a film', () => keyFile(`${SEAL_PEM}${'x'.repeat(20_000)}`, 0o600), /too long for a key/],
    ['of another type', () => ({ SEAL_SIGNING_KEY: opened('rsa') }), /of the type rsa, but must be an Ed25519 key/],
    ['of the other Edwards curve', () => ({ SEAL_SIGNING_KEY: opened('ed448') }), /of the type ed448/],
    [
      'of another type of the same curve',
      () => ({ SEAL_SIGNING_KEY: opened('x25519') }),
      /of the type x25519, but must be an Ed25519 key; 'openssl genpkey -algorithm ed25519/,
    ],
    [
      'that is encrypted',
      () => ({ SEAL_SIGNING_KEY: opened('ed25519', '-aes256', '-pass', 'pass:sesame') }),
      /Reckoner cannot ask for its password/,
    ],
    ['that is damaged', () => ({ SEAL_SIGNING_KEY: SEAL_PEM.replace('JpGXA7', 'JpGX') }), /is damaged/],
    ['that is no key', () => ({ SEAL_SIGNING_KEY: 'sesame' }), /must be a private key in PEM form/],
    [
      'that is a public key',
      () => {
        const input = SEAL_PEM;
        return { SEAL_SIGNING_KEY: execFileSync(tool('openssl'), ['pkey', '-pubout'], { input, encoding: 'utf8' }) };
      },
      /must be a private key in PEM form/,
    ],
  ])('%s is refused with a sentence', (_, variables, says) => {
    expect(refusalOf(variables())).toMatch(says);
  });
});

describe('seals that are signed', () => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld({ sealKey: SEAL_KEY });
    await world.partners([partner()]);
    await world.rows([quote()]);
  });
  afterEach(() => world.end());

  const closeAt = async (instant: string, sealKey = world.environment.sealKey) => {
    world.at(instant);
    Object.assign(world.environment, { sealKey });
    await world.close();
  };
  const keyEvents = () =>
    world.sql<{ subject: string; details: { key: string; previous: string | null } }>(
      `SELECT subject, details FROM audit_events WHERE action = 'signing_key.change' ORDER BY event_id`,
    );
  const failing = async () => {
    const { checks } = await world.verify();
    return checks.filter(({ differences }) => differences.length > 0).map(({ check }) => check);
  };

  test('have the signature of the month and that of its books, made with them', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    await world.closeBooks('2026-07');
    const signed = await world.sql<{
      kind: string;
      record: string;
      key_name: string;
      public_key: string;
      signature: string;
    }>(
      `SELECT s.kind, coalesce(m.record, b.record) AS record, key_name, public_key, signature FROM seal_signatures s
       LEFT JOIN seals m ON s.kind = 'month' AND m.month = s.name AND m.seal = s.seal
       LEFT JOIN book_closes b ON s.kind = 'books' AND b.month = s.name AND b.seal = s.seal ORDER BY s.fact_id`,
    );
    expect(signed.map(({ kind, record, ...signature }) => [kind, isValid(record, signature)])).toEqual([
      ['month', true],
      ['books', true],
    ]);
    expect(await failing()).toEqual([]);
  });

  test('of a month that is only previewed: there is none, and its key leaves no event', async () => {
    world.at('2026-08-01T10:00:00Z');
    await world.preview();
    expect(await world.sql(`SELECT FROM seal_signatures`)).toEqual([]);
    expect(await keyEvents()).toEqual([]);
  });

  test('with a key for the first time leave an event, with another key another one, and with the same none', async () => {
    const other = sealKeyOf(newSealPem());
    await closeAt('2026-08-01T10:00:00Z');
    await closeAt('2026-09-01T10:00:00Z');
    await closeAt('2026-10-01T10:00:00Z', other);
    const [first, second, ...more] = await keyEvents();
    expect(more).toEqual([]);
    expect(first?.details).toEqual({ key: expect.stringContaining(`${first?.subject}+`), previous: null });
    expect(second?.details).toEqual({ key: expect.any(String), previous: first?.details.key });
    expect(second?.details.key).not.toBe(first?.details.key);
    expect(await failing()).toEqual([]);
  });

  test('are followed by none without a signature: such a close is refused, and records nothing', async () => {
    await closeAt('2026-08-01T10:00:00Z');
    const counted = () => world.sql(`SELECT (SELECT max(fact_id) FROM audit_events), (SELECT count(*) FROM seals)`);
    const before = await counted();
    Object.assign(world.environment, { sealKey: undefined });
    world.at('2026-09-01T10:00:00Z');
    await expect(world.close()).rejects.toMatchObject({ code: 'signing_key_missing' });
    await expect(world.closeBooks('2026-07')).rejects.toMatchObject({ code: 'signing_key_missing' });
    expect(await counted()).toEqual(before);
  });

  test('may follow seals that were made before there was a key', async () => {
    Object.assign(world.environment, { sealKey: undefined });
    await closeAt('2026-08-01T10:00:00Z');
    await closeAt('2026-09-01T10:00:00Z', SEAL_KEY);
    expect(await world.sql(`SELECT kind, name FROM seal_signatures`)).toEqual([{ kind: 'month', name: '2026-08' }]);
    expect(await failing()).toEqual([]);
  });
});
