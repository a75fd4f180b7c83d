/** The URL of a database: its password from the password file, its TLS without warnings, one host. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { connectionUrl } from '../../src/database/address.ts';

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-pgpass-'));
  file = join(folder, '.pgpass');
  writeFileSync(
    file,
    [
      '# of the ledger',
      'other:5432:reckoner:app:wrong',
      'db.example:5432:reckoner:app:right\\:\\\\ one',
      'db.example:*:*:owner:of the owner',
      'localhost:5432:*:*:behind the socket',
      'db.example:5432:reckoner:plain:a:b',
    ].join('\n'),
    { mode: 0o600 },
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const passwordIn = (url: string, variables: NodeJS.ProcessEnv = { HOME: folder }) =>
  decodeURIComponent(new URL(connectionUrl(url, variables)).password);

describe('the password file', () => {
  test.each([
    ['the line of this host, database and user', 'postgres://app@db.example/reckoner', 'right:\\ one'],
    ['an asterisk for any port and database', 'postgres://owner@db.example:6000/another', 'of the owner'],
    ['localhost for a Unix socket', 'postgres://app@%2Frun%2Fpostgresql/reckoner', 'behind the socket'],
    ['a password with a colon that is not escaped', 'postgres://plain@db.example/reckoner', 'a:b'],
    ['no line for another host', 'postgres://app@elsewhere/reckoner', ''],
    ['nothing where the URL has a password', 'postgres://app:mine@db.example/reckoner', 'mine'],
  ])('gives %s', (_, url, password) => {
    expect(passwordIn(url)).toBe(password);
  });

  test('is named by PGPASSFILE, gives way to PGPASSWORD, and is ignored where others may read it', () => {
    const url = 'postgres://app@db.example/reckoner';
    expect(passwordIn(url, { PGPASSFILE: file })).toBe('right:\\ one');
    expect(passwordIn(url, { PGPASSFILE: file, PGPASSWORD: 'x' })).toBe('');
    expect(passwordIn(url, {})).toBe('');
    chmodSync(file, 0o644);
    expect(passwordIn(url)).toBe('');
    chmodSync(file, 0o600);
  });
});

test.each(['prefer', 'require', 'verify-ca', 'verify-full'])('sslmode=%s checks certificate and name', (mode) => {
  expect(connectionUrl(`postgres://app:x@db.example/reckoner?sslmode=${mode}&a=b`, {})).toBe(
    'postgres://app:x@db.example/reckoner?sslmode=verify-full&a=b',
  );
});

test.each(['disable', 'no-verify'])('sslmode=%s stays as it is', (mode) => {
  const url = `postgres://app:x@db.example/reckoner?sslmode=${mode}`;
  expect(connectionUrl(url, {})).toBe(url);
});

test.each(['postgres://app@one:5432,two:5432/reckoner', 'postgresql://app@one,two/reckoner?sslmode=verify-full'])(
  'several hosts are refused with a sentence: %s',
  (url) => {
    for (const name of ['sandbox', 'production']) {
      expect(() => readEnvironment({ DATABASE_URL: url, RECKONER_ENVIRONMENT: name })).toThrow(/names several hosts/);
    }
  },
);
