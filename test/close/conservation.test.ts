/** Whatever arrives, in whatever order: no row is lost, none is billed twice, and the books balance after every step. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { documentJson } from '../../src/documents/document.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import fc from '../support/property.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { CHECKS_OF_CORRECTIONS, inspect } from './invariants.ts';
import { type Intent, ledgerTotals, Model, PARTNERS } from './model.ts';
import { startOver } from './start-over.ts';

const SEQUENCES = times({ few: 30, short: 60, long: 3_000 }, 'RECKONER_SEQUENCES');
const { seed: SEED } = seeded();

const intent: fc.Arbitrary<Intent> = fc.record({
  kind: fc.constantFrom('quote_accepted', 'quote_accepted', 'requote_accepted', 'reversal', 'reversal'),
  partner: fc.nat(2),
  currency: fc.constantFrom('USD', 'USD', 'JPY', 'KWD'),
  policy: fc.constantFrom('ticket-protection', 'parking'),
  late: fc.constantFrom(0, 0, 0, 1, 2),
  cut: fc.integer({ min: 0, max: 500 }),
  rest: fc.integer({ min: 0, max: 2000 }),
  of: fc.nat(1000),
  part: fc.constantFrom('half', 'all', 'all'),
});

/** What happens in one month: imports, and usually a close at its end. */
const month = fc.record({
  imports: fc.array(fc.array(intent, { minLength: 1, maxLength: 8 }), { maxLength: 2 }),
  close: fc.constantFrom('as previewed', 'at once', 'at once', 'forgotten'),
});

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

const connected = {
  arrangement: 'connected_account',
  connected_account_id: 'acct_1',
  merchant_of_record: 'platform',
  split: 'real_time',
  // p-3's quotes of January are invoiced, those from February on are routed by the processor.
  arrangement_from: '2026-02',
};

async function closeAsPreviewed(): Promise<void> {
  const preview = await world.preview();
  const months = await world.close();
  expect(preview.months).toEqual(await world.months(...months));
  expect(preview.documents.map(documentJson)).toEqual(months.length > 0 ? await world.documents({ months }) : []);
}

test(`${SEQUENCES} random histories (seed ${SEED}): the books balance after every step`, {
  timeout: 180_000 + SEQUENCES * 6_000,
}, async () => {
  const looked: Record<string, number> = {};
  let verified = 0;
  const inspectBooks = async () => {
    const inspection = await inspect(world);
    for (const [name, count] of Object.entries(inspection.looked)) looked[name] = (looked[name] ?? 0) + count;
    expect(inspection.broken).toEqual({});
    if ((inspection.looked['every row is billed by exactly one closed month or is open'] ?? 0) === 0) return;
    // The program's own checks, beside those that this test makes of the tables by itself.
    const { checks, differences } = await world.verify();
    if (differences > 0) expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
    verified += 1;
  };
  await fc.assert(
    fc.asyncProperty(fc.array(month, { minLength: 1, maxLength: 3 }), async (months) => {
      await startOver(world);
      await world.partners(PARTNERS.map((partner_id) => partner({ partner_id })));
      const model = new Model();
      for (const [now, { imports, close }] of months.entries()) {
        if (now === 1) await world.partners([partner({ partner_id: 'p-3', ...connected })]);
        world.at(new Date(Date.UTC(2026, now, 20)).toISOString());
        for (const intents of imports) {
          const rows = intents.map((each) => model.row(each, now)).filter((row) => row !== undefined);
          if (rows.length === 0) continue;
          expect(await world.rows(rows)).toMatchObject({ accepted: rows.length, rejected: 0 });
          expect(await ledgerTotals(world)).toEqual({ rows: model.rows, totals: model.totals });
        }
        world.at(new Date(Date.UTC(2026, now + 1, 1, 12)).toISOString());
        if (close === 'as previewed') await closeAsPreviewed();
        if (close === 'at once') await world.close();
        await inspectBooks();
      }
      await closeAsPreviewed();
      await inspectBooks();
    }),
    { numRuns: SEQUENCES, seed: SEED, endOnFailure: true },
  );
  tally('sequences run', 'random histories', SEQUENCES);
  tally('states verified', 'in random histories', verified);
  // Checks that found nothing to look at in sixty histories would prove nothing.
  if (SEQUENCES < 60) return;
  for (const [name, count] of Object.entries(looked)) {
    if (!CHECKS_OF_CORRECTIONS.includes(name)) expect(count, name).toBeGreaterThan(0);
  }
});

const DAMAGES: readonly [what: string, statement: string, broken: string][] = [
  [
    'a row that is lost',
    `DELETE FROM ledger_rows WHERE entry_id = (SELECT min(entry_id) FROM ledger_rows)`,
    'documents are their rows, by partner, month, currency and arrangement',
  ],
  [
    'a cent on a line',
    `UPDATE document_lines SET spot_price = spot_price + 0.01, invoice_amount = invoice_amount + 0.01`,
    'lines add up to their document',
  ],
  [
    'a number that was skipped',
    `UPDATE documents SET sequence = sequence + 1`,
    'numbers begin at one and have no gap in their series',
  ],
  [
    'a delivery that nobody queued',
    `DELETE FROM emails`,
    'every document was to be sent once by its issue, and while it waits somebody is to look at it',
  ],
];

for (const [what, statement, broken] of DAMAGES) {
  test(`the inspection sees ${what}`, async () => {
    await startOver(world);
    await world.partners([partner()]);
    const model = new Model();
    const sale: Intent = {
      kind: 'quote_accepted',
      partner: 0,
      currency: 'USD',
      policy: 'parking',
      late: 0,
      cut: 1,
      rest: 2,
      of: 0,
      part: 'all',
    };
    await world.rows([model.row(sale, 6) ?? {}, model.row(sale, 6) ?? {}]);
    await world.close();
    expect((await inspect(world)).broken).toEqual({});
    await world.sql(GUARDS_OFF);
    await world.sql(statement);
    await world.sql(GUARDS_ON);
    expect(Object.keys((await inspect(world)).broken)).toContain(broken);
  });
}
