/** Packs of a ledger that skipped numbers: both verifiers take the fact for the gap, and no gap without it. */
import { afterEach, expect, test } from 'vitest';
import { partsOf, resumeLedger } from '../../src/documents/resume.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { pauseLedger } from '../../src/people/pauses.ts';
import { exported, month, verifyTwice } from '../audit/books.ts';
import { failing } from '../audit/failing.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
afterEach(() => world.end());

/** July issues 1 and 2; then the ledger is set back, 3 to 6 are skipped, and August issues 7 and 8. */
async function skipNumbers(beforeAugust: string[] = []): Promise<void> {
  world = await openWorld({ logKey: LOG_KEY });
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  for (const each of ['07', '08']) {
    world.at(`2026-${each}-20T10:00:00Z`);
    await world.rows(
      ['p-1', 'p-2'].map((partner_id) => quote({ partner_id, accepted_at: `2026-${each}-10T12:00:00Z` })),
    );
  }
  world.at('2026-09-01T12:00:00Z');
  await world.close('2026-07');
  await world.database.transaction((tx) =>
    pauseLedger(tx, world, { reason: 'a snapshot was mounted', stateOf: '2026-08-02T00:00:00Z' }),
  );
  const numbersAfter = ['INV-2026-000006', 'CN-2026-000000', 'ST-2026-000000'].flatMap((each) => partsOf(each) ?? []);
  await world.database.transaction((tx) => resumeLedger(tx, world, { numbersAfter }));
  for (const statement of beforeAugust) await world.sql(statement);
  await world.close('2026-08');
  await signCheckpoints(world);
}

const pack = (from: string, to = from) =>
  exported(world, { kind: 'invoices', from: month(`2026-${from}`), to: month(`2026-${to}`) });

const failed = async () => {
  return failing(await world.verify());
};

test('a gap of skipped numbers holds in both verifiers, in a pack of all months and in one of the last alone', async () => {
  await skipNumbers();
  expect(verifyTwice([await pack('07', '08'), '--allow']).status).toBe(0);
  expect(verifyTwice([await pack('08'), '--allow']).status).toBe(0);
}, 240_000);

/** Whoever owns the database changes what was skipped, before a checkpoint covers it. */
test.each<[what: string, forged: string, rule: string]>([
  ['fewer numbers than the gap', 'UPDATE skipped_numbers SET first_sequence = 5', 'numbers_without_gaps'],
  ['a row deleted', 'DELETE FROM skipped_numbers', 'skipped_by_resumption'],
  ['a row changed', 'UPDATE skipped_numbers SET last_sequence = 5', 'skipped_by_resumption'],
  [
    'a row added, of a resumption that skipped others',
    `INSERT INTO skipped_numbers (series, first_sequence, last_sequence, pause_id, recorded_at, event_id)
     SELECT 'CN-2026', 1, 2, pause_id, recorded_at, event_id FROM skipped_numbers`,
    'skipped_by_resumption',
  ],
])(
  'a forgery of skipped numbers is found by verify and by both verifiers: %s',
  async (_, forged, rule) => {
    await skipNumbers([GUARDS_OFF, forged, GUARDS_ON]);
    expect(await failed()).toContain(rule);
    const { status, output } = verifyTwice([await pack('07', '08')]);
    expect(status).toBe(1);
    expect(output).toMatch(new RegExp(`^WRONG ${rule}: `, 'm'));
  },
  240_000,
);

test('skipped numbers that are forged after a checkpoint are no longer those of the log', async () => {
  await skipNumbers();
  for (const forged of [
    'UPDATE skipped_numbers SET pause_id = pause_id, recorded_at = now()',
    'DELETE FROM skipped_numbers',
  ]) {
    for (const statement of [GUARDS_OFF, forged, GUARDS_ON]) await world.sql(statement);
    expect(await failed()).toContain('log_derived_again');
  }
});

test('a recovery to a moment at which the ledger was paused is told by another pause, and resuming asks for the numbers', async () => {
  world = await openWorld();
  world.at('2026-09-01T12:00:00Z');
  const pause = (reason: string, stateOf: string | null) =>
    world.database.transaction((tx) => pauseLedger(tx, world, { reason, stateOf }));
  await pause('an upgrade', null);
  await expect(pause('another upgrade', null)).rejects.toMatchObject({ code: 'already_paused' });
  await pause('recovered', '2026-08-02T00:00:00Z');
  await expect(pause('recovered again', '2026-08-02T00:00:00Z')).rejects.toMatchObject({ code: 'already_paused' });
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-02T12:00:00Z' };
  expect((await command(['resume'], { env })).status).toBe(3);
  expect((await command(['resume', '--none-issued', '--no-checkpoint-seen'], { env })).status).toBe(0);
  await expect(world.sql('SELECT is_paused() AS paused')).resolves.toEqual([{ paused: false }]);
});
