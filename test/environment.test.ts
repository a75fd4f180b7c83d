/** The environment variables of production: what a lost or careless one must not do. */
import { expect, test } from 'vitest';
import { readEnvironment } from '../src/config/environment.ts';

const production = { RECKONER_ENVIRONMENT: 'production' };

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
