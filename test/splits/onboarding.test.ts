/** The set-up of a connected account (service.md 7.1): checked on import, stored, and shown as given. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readPartnerChanges } from '../../src/partners/changes.ts';
import { parsePartners } from '../../src/partners/file.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { openWorld, partner, type World } from '../support/world.ts';

const ACCOUNT = {
  ...{ arrangement: 'connected_account', connected_account_id: 'acct_1' },
  ...{ merchant_of_record: 'platform', split: 'real_time' },
};

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

test('type and state are stored and updated', async () => {
  const shown = async () => (await world.database.reading((tx) => readPartners(tx, 'p-1')))[0];
  const record = { ...ACCOUNT, connected_account_type: 'express', connected_account_state: 'onboarding' };
  await world.partners([partner(record)]);
  expect(await shown()).toMatchObject(record);
  expect(await world.partners([partner(record)])).toMatchObject({ unchanged: 1 });
  const active = { ...record, connected_account_state: 'active', balance_transactions_from: 'settlement_file' };
  expect(await world.partners([partner(active)])).toMatchObject({ updated: 1 });
  expect(await shown()).toMatchObject(active);
  const stated = (...settlement_currencies: string[]) =>
    world.partners([partner({ ...active, settlement_currencies })]);
  expect(await stated('USD', 'EUR')).toMatchObject({ updated: 1 });
  expect(await stated('EUR', 'USD', 'EUR')).toMatchObject({ unchanged: 1 });
  expect(await shown()).toMatchObject({ ...active, settlement_currencies: ['EUR', 'USD'] });
  const changes = (await world.database.reading((tx) => readPartnerChanges(tx, 'p-1'))).at(-1)?.changes;
  expect(changes).toEqual([{ field: 'settlement_currencies', old: null, new: ['EUR', 'USD'] }]);
});

describe('is refused', () => {
  test.each<[string, object, string]>([
    [
      'a type that the processor does not have',
      { ...ACCOUNT, connected_account_type: 'basic' },
      'connected_account_type',
    ],
    ['a state that nobody knows', { ...ACCOUNT, connected_account_state: 'fine' }, 'connected_account_state'],
    ['a type without an account', { connected_account_type: 'standard' }, 'connected_account_type'],
    [
      'a settlement file in the place of an account that we can read',
      { ...ACCOUNT, connected_account_type: 'standard', balance_transactions_from: 'settlement_file' },
      'balance_transactions_from',
    ],
    ['a platform without any currency', { ...ACCOUNT, settlement_currencies: [] }, 'settlement_currencies'],
    [
      'a sequential share in a currency that the platform does not hold',
      { ...ACCOUNT, split: 'sequential', settlement_currencies: ['EUR', 'GBP'] },
      'settlement_currencies',
    ],
    ['settlement currencies without an account', { settlement_currencies: ['USD'] }, 'settlement_currencies'],
    ['a third party in real time (7.3.1)', { ...ACCOUNT, merchant_of_record: 'third_party' }, 'split'],
  ])('%s', (_, record, field) => {
    const problems = (() => {
      try {
        return parsePartners(JSON.stringify([partner({ ...record })]), 'partners.json');
      } catch (error) {
        return (error as { facts: { problems: { path: string }[] } }).facts.problems.map(({ path }) => path);
      }
    })();
    expect(problems).toEqual([`0.${field}`]);
  });
});
