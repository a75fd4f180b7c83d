/** Production keeps its one ledger where it was told to, starts no other, and says how the way to it is protected. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { command } from '../support/program.ts';

const production = { RECKONER_ENVIRONMENT: 'production' };

test('production without DATABASE_URL starts no second ledger, unless the settings say that it is the embedded one', async () => {
  const home = mkdtempSync(join(tmpdir(), 'reckoner-production-'));
  const env = { ...production, RECKONER_HOME: home, RECKONER_NOW: '', DATABASE_URL: '' };
  const init = () => command(['--json', 'init'], { env });
  try {
    const refused = await init();
    expect(refused).toMatchObject({ status: 2 });
    expect(refused.stdout).toMatch(/DATABASE_URL is not set, and this is production: set it, or say .*embedded/);
    const file = join(home, 'settings.json');
    const written = JSON.parse(readFileSync(file, 'utf8')) as object;
    writeFileSync(file, JSON.stringify({ ...written, database: 'embedded' }));
    expect((await init()).json()).toMatchObject({ environment: 'production', settings: 'kept' });
  } finally {
    rmSync(home, { recursive: true });
  }
});

test('production says how the connection to a database on another machine is protected', () => {
  const read = (url: string, more = {}) => readEnvironment({ ...production, DATABASE_URL: url, ...more }).databaseUrl;
  for (const url of [
    'postgres://reckoner@db.internal/ledger?sslmode=verify-full',
    'postgres://reckoner@db.internal/ledger?sslmode=disable',
    'postgres://reckoner@localhost/ledger',
    'postgres://reckoner@127.0.0.1:5433/ledger',
    'postgres://reckoner@[::1]/ledger',
    'postgres://reckoner@/ledger?host=/var/run/postgresql',
    'postgres:///ledger',
  ]) {
    expect(read(url)).toBe(url);
  }
  const bare = 'postgres://reckoner:hunter-two@db.internal/ledger';
  const says = /DATABASE_URL does not say how the connection to db\.internal is protected: add \?sslmode=verify-full/;
  expect(() => read(bare)).toThrow(says);
  expect(() => read(bare)).not.toThrow(/hunter-two/);
  expect(() => read('postgres://r@/l?host=db.internal')).toThrow(says);
  expect(read(bare, { RECKONER_ENVIRONMENT: 'sandbox' })).toBe(bare);
});
