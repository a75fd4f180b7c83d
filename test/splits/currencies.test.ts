/** Partners whose shares the processor cannot split, or hardly, when they are imported. */
import { expect, test } from 'vitest';
import { MINOR_DIGITS } from '../../src/money.ts';
import { parsePartners } from '../../src/partners/file.ts';
import { PROCESSOR } from '../../src/processors/processors.ts';
import { smallestUnit } from '../../src/processors/stripe/splits/smallest-unit.ts';
import { refuseUnsplittable, remarksOnSplits } from '../../src/splits/currencies.ts';
import { refusalOf } from '../close/refusal.ts';
import { partner } from '../support/world.ts';

const CONNECTED = {
  ...{ arrangement: 'connected_account', connected_account_id: 'acct_1' },
  ...{ merchant_of_record: 'platform', split: 'real_time' },
};
const imported = (currency: string, more: object = CONNECTED) =>
  parsePartners(JSON.stringify([partner({ currency, ...more })]), 'partners.json');
const refused = (partners: ReturnType<typeof imported>) =>
  refusalOf(Promise.resolve().then(() => refuseUnsplittable(partners, 'partners.json')));

test('a connected partner in a currency without payments is refused, and an invoiced one is not', async () => {
  expect(await refused(imported('CLF'))).toMatchObject({
    code: 'partners_invalid',
    facts: {
      problems: [{ path: '0.currency', reason: expect.stringMatching(/does not accept payments in it.*invoicing/) }],
    },
  });
  expect(() => refuseUnsplittable([...imported('CLF', {}), ...imported('USD')], 'partners.json')).not.toThrow();
});

test.each([
  ['KWD', '0.010'],
  ['TND', '0.010'],
  ['MGA', '1'],
])('a connected partner in %s is told that only multiples of %s can be split', (currency, step) => {
  expect(remarksOnSplits(imported(currency))).toEqual([
    expect.stringContaining(`accepts ${currency} only in steps of ${step},`),
  ]);
  expect(remarksOnSplits(imported(currency, {}))).toEqual([]);
});

test('a partner who splits in sequence is asked for the currencies of its platform', () => {
  const sequential = { ...CONNECTED, split: 'sequential' };
  expect(remarksOnSplits(imported('USD', sequential))).toEqual([
    expect.stringMatching(/^Partner p-1: state "settlement_currencies"/),
  ]);
  expect(remarksOnSplits(imported('USD', { ...sequential, settlement_currencies: ['USD'] }))).toEqual([]);
});

test('no other currency has a remark, and the step of each is a price that can be split', () => {
  const currencies = [...MINOR_DIGITS.keys()];
  const remarked = currencies.filter((each) => remarksOnSplits(imported(each)).length > 0);
  expect(remarked.sort()).toEqual(['BHD', 'JOD', 'KWD', 'MGA', 'OMR', 'TND']);
  const steps = currencies
    .map((each) => [PROCESSOR.stepOf(each), each] as const)
    .filter(([step]) => step !== undefined);
  expect(steps.length).toBeGreaterThan(120);
  for (const [step, currency] of steps) expect(smallestUnit(step as string, currency)).toHaveProperty('units');
});
