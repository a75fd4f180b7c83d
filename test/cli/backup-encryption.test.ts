/** Encrypted backups: only the holder of a private key reads them, and what was changed or cut off is refused. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeDatabase } from '../support/databases.ts';
import { LOG_PEM } from '../support/log-keys.ts';
import { command } from '../support/program.ts';
import { needs, tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let file: string;
const operations = { secret: '', recipient: '', keyFile: '' };
const safe = { secret: '', recipient: '', keyFile: '' };
const stranger = { secret: '', recipient: '', keyFile: '' };

beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner({ name: 'Copperleaf Parking' })]);
  // More than one chunk of 64 KiB, also when zipped.
  await world.rows(Array.from({ length: 2500 }, () => quote({ quote_id: randomBytes(30).toString('hex') })));
  for (const [name, key] of Object.entries({ operations, safe, stranger })) {
    key.secret = await generateX25519Identity();
    key.recipient = await identityToRecipient(key.secret);
    key.keyFile = written(`${name}.txt`, `# created by a test\n# public key: ${key.recipient}\n${key.secret}\n`);
  }
  file = join(world.home, 'encrypted.backup');
  const made = await run(['--json', 'backup', file, ...to(operations), ...to(safe)], { LOG_SIGNING_KEY: LOG_PEM });
  expect(made.json()).toMatchObject({ file, encrypted_to: [operations.recipient, safe.recipient] });
});
afterAll(() => world.end());

function written(name: string, content: string | Uint8Array, mode = 0o600): string {
  const path = join(world.home, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}
const to = ({ recipient }: { recipient: string }) => ['--recipient', recipient];
const run = (args: readonly string[], more: Record<string, string> = {}) =>
  command(args, { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, ...more } });
/** Into a ledger that has rows: what passes every check of the file is refused for that alone. */
const restored = (path: string, keyFile: string) => run(['restore', path, '--identity', keyFile]);

test('either of two private keys restores an encrypted backup, and its signature is checked', async () => {
  for (const { keyFile } of [operations, safe]) {
    const target = await makeDatabase('encrypted');
    try {
      const env = { DATABASE_URL: target.url, LOG_SIGNING_KEY: LOG_PEM };
      const ran = await run(['restore', file, '--identity', keyFile], env);
      expect([ran.status, ran.stdout]).toEqual([0, expect.stringContaining('It is signed with the key')]);
    } finally {
      await target.drop();
    }
  }
  const content = readFileSync(file);
  expect(content.includes('Copperleaf')).toBe(false);
  expect(content.subarray(0, 22).toString()).toBe('age-encryption.org/v1\n');
  const [event] = await world.sql<{ details: object }>(`SELECT details FROM audit_events WHERE action = 'backup.take'`);
  expect(event?.details).toMatchObject({ signed: true, encrypted_to: [operations.recipient, safe.recipient] });
});

test('without its key an encrypted backup is named as such, and no other key opens it', async () => {
  const none = await run(['restore', file]);
  expect([none.status, none.stderr]).toEqual([2, expect.stringContaining('it is encrypted, and the file of its')]);
  const other = await restored(file, stranger.keyFile);
  expect([other.status, other.stderr]).toEqual([2, expect.stringContaining('none of the keys in the file')]);
});

test('an encrypted backup that was changed, cut off or continued is refused at every place', async () => {
  const whole = readFileSync(file);
  const header = whole.indexOf('\n--- ') + 5;
  const chunk = 64 * 1024 + 16;
  const payload = whole.indexOf('\n', header) + 1 + 16;
  expect(whole.length).toBeGreaterThan(payload + chunk + 100);
  const flipped = (at: number) => {
    const changed = Buffer.from(whole);
    changed[at] = (changed[at] ?? 0) ^ 1;
    return changed;
  };
  const broken: Record<string, Uint8Array> = {
    'the code of its header is changed': flipped(header + 3),
    'its nonce is changed': flipped(payload - 1),
    'a byte of its first chunk is changed': flipped(payload + 10),
    'its last byte is changed': flipped(whole.length - 1),
    'it ends within its header': whole.subarray(0, header - 10),
    'it ends after its header': whole.subarray(0, payload - 16),
    'it ends within its nonce': whole.subarray(0, payload - 3),
    'it ends after its nonce': whole.subarray(0, payload),
    'it ends between two chunks': whole.subarray(0, payload + chunk),
    'it ends one byte early': whole.subarray(0, -1),
    'one byte follows': Buffer.concat([whole, Buffer.from([0])]),
    'it follows itself': Buffer.concat([whole, whole]),
  };
  for (const [how, content] of Object.entries(broken)) {
    const ran = await restored(written('broken.backup', content), operations.keyFile);
    expect([how, ran.status, ran.stderr]).toEqual([
      how,
      2,
      expect.stringMatching(/it is encrypted, and (was|its header)/),
    ]);
  }
  expect((await restored(file, operations.keyFile)).stderr).toContain('not empty');
});

test('a key file that others may read, a key on the command line and a wrong kind of key are refused, and repeated nowhere', async () => {
  const open = written('open.txt', operations.secret, 0o644);
  const half = written('half.txt', operations.secret.slice(0, -1));
  const attempts: [readonly string[], RegExp][] = [
    [['restore', file, '--identity', open], /every user of this machine can read or change/],
    [['restore', file, '--identity', half], /is not a file of private keys of age/],
    [['restore', file, '--identity', written('empty.txt', '# nothing\n')], /is not a file of private keys of age/],
    [['restore', file, '--identity', operations.secret], /AGE-SECRET-KEY-…' is a key: write it to a file/],
    [['restore', file, '--identity', join(world.home, 'missing.txt')], /cannot be read/],
    [['backup', `${file}.2`, '--recipient', operations.secret], /AGE-SECRET-KEY-…' is not a public key of age/],
    [['backup', `${file}.2`, '--recipient', operations.recipient.slice(0, -1)], /is not a public key of age/],
    [['backup', `${file}.2`, '--recipient', ''], /is not a public key of age/],
  ];
  for (const [args, says] of attempts) {
    const { status, stdout, stderr } = await run(args);
    expect([status, stderr]).toEqual([2, expect.stringMatching(says)]);
    expect(stdout + stderr).not.toContain(operations.secret.slice(16, 40));
  }
  expect(readdirSync(world.home)).not.toContain('encrypted.backup.2');
});

test('the variable encrypts every backup, and an option replaces it', async () => {
  const env = { BACKUP_RECIPIENT: `${operations.recipient}, ${safe.recipient}` };
  const night = await run(['--json', 'backup', world.home, '--keep', '3'], env);
  expect(night.json()).toMatchObject({ encrypted_to: [operations.recipient, safe.recipient] });
  const own = await run(['--json', 'backup', join(world.home, 'own'), ...to(stranger)], env);
  expect(own.json()).toMatchObject({ encrypted_to: [stranger.recipient] });
  const wrong = await run(['backup', join(world.home, 'wrong')], { BACKUP_RECIPIENT: 'age1nobody' });
  expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining("BACKUP_RECIPIENT 'age1nobody' is not")]);
});

test('age itself reads an encrypted backup, and what age encrypted is restored', async (context) => {
  needs('age', context);
  const most = { maxBuffer: 1e9 };
  const plain = execFileSync(tool('age'), ['-d', '-i', safe.keyFile, file], most);
  expect(gunzipSync(plain).toString()).toContain('Copperleaf Parking');
  const again = execFileSync(tool('age'), ['-r', operations.recipient], { ...most, input: plain });
  expect((await restored(written('of-age.backup', again), operations.keyFile)).stderr).toContain('not empty');
  const asText = execFileSync(tool('age'), ['-a', '-r', operations.recipient], { ...most, input: plain });
  expect((await restored(written('text.backup', asText), operations.keyFile)).stderr).toContain("age's text form");
  const foreign = execFileSync(tool('age'), ['-r', operations.recipient], { input: gzipSync('a letter\n') });
  const letter = await restored(written('letter.backup', foreign), operations.keyFile);
  expect(letter.stderr).toContain('it is not a backup of this program');
});
