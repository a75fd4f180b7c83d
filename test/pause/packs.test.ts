/** Packs of a ledger that skipped numbers: both verifiers take the sealed fact for the gap, and no gap without it. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { partsOf, resumeLedger } from '../../src/documents/resume.ts';
import { packageRoot } from '../../src/package.ts';
import { pauseLedger } from '../../src/people/pauses.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { command } from '../support/program.ts';
import { tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
afterEach(() => world.end());

/** July issues 1 and 2; then the ledger is set back, 3 to 6 are skipped, and August issues 7 and 8. */
async function skipNumbers(beforeAugust: string[] = []): Promise<void> {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  for (const month of ['07', '08']) {
    world.at(`2026-${month}-20T10:00:00Z`);
    await world.rows(
      ['p-1', 'p-2'].map((partner_id) => quote({ partner_id, accepted_at: `2026-${month}-10T12:00:00Z` })),
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
}

async function pack(name: string, ...months: string[]): Promise<string> {
  const out = join(world.home, name);
  const ran = await command(['export', 'invoices', ...months, '--format', 'csv', '--out', out], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-02T12:00:00Z' },
  });
  expect({ status: ran.status, stderr: ran.stderr }).toMatchObject({ status: 0 });
  return out;
}

const verdicts = (...args: string[]) =>
  ['verify.mjs', 'verify.py'].map((file) => {
    const program = file === 'verify.mjs' ? process.execPath : tool('python3');
    const { status, stdout } = spawnSync(program, [join(packageRoot, 'templates/export', file), ...args], {
      encoding: 'utf8',
    });
    return { status, stdout };
  });

test('a gap of skipped numbers holds in both verifiers, and a note names it', async () => {
  await skipNumbers();
  const [first, second, whole] = [
    await pack('first', '--month', '2026-07'),
    await pack('second', '--month', '2026-08'),
    await pack('whole', '--month', '2026-07', '--to', '2026-08'),
  ];
  for (const { status, stdout } of [...verdicts(whole), ...verdicts(second, '--previous', first)]) {
    expect({ status, stdout }).toMatchObject({ status: 0 });
    expect(stdout).toMatch(/INV-2026: 3 to 6 (were )?skipped/);
  }
  expect(verdicts(first).map(({ stdout }) => /documents .*/.exec(stdout)?.[0]?.trim())).toEqual([
    expect.stringMatching(/2 documents, 1 series/),
    expect.stringMatching(/2 documents, 1 series/),
  ]);
});

test('a gap that the skipped numbers do not reach is found by both', async () => {
  await skipNumbers([GUARDS_OFF, 'UPDATE skipped_numbers SET first_sequence = 5', GUARDS_ON]);
  const whole = await pack('whole', '--month', '2026-07', '--to', '2026-08');
  for (const { status, stdout } of verdicts(whole)) {
    expect(status).toBe(1);
    expect(stdout).toMatch(/INV-2026: (3 to 4 are missing|its numbers have a gap)/);
  }
});

/** Whoever owns the database changes what was skipped, before the seal and after it. */
test.each<[what: string, forged: string, said: RegExp]>([
  [
    'a row deleted',
    'DELETE FROM skipped_numbers',
    /event \d+ skipped INV-2026-000003 to INV-2026-000006, but they are not skipped/,
  ],
  [
    'a row changed',
    'UPDATE skipped_numbers SET last_sequence = 5',
    /INV-2026-000003 to INV-2026-000005 are skipped, but not in event \d+/,
  ],
  [
    'a row added, of a resumption that skipped others',
    `INSERT INTO skipped_numbers (series, first_sequence, last_sequence, pause_id, recorded_at, event_id)
     SELECT 'CN-2026', 1, 2, pause_id, recorded_at, event_id FROM skipped_numbers`,
    /CN-2026-000001 to CN-2026-000002 are skipped, but not in event \d+/,
  ],
])('a forgery of skipped numbers is found by verify and by both verifiers: %s', async (_, forged, said) => {
  await skipNumbers([GUARDS_OFF, forged, GUARDS_ON]);
  const failed = async () => {
    const { checks } = await world.verify();
    return checks.filter(({ differences }) => differences.length > 0).map(({ check }) => check);
  };
  expect(await failed()).toEqual(['numbers_without_gaps']);
  const whole = await pack('whole', '--month', '2026-07', '--to', '2026-08');
  for (const { status, stdout } of verdicts(whole)) {
    expect({ status, stdout }).toMatchObject({ status: 1 });
    expect(stdout).toMatch(said);
  }
});

test('skipped numbers that are forged after the seal break the seal', async () => {
  await skipNumbers();
  for (const forged of [
    'UPDATE skipped_numbers SET pause_id = pause_id, recorded_at = now()',
    'DELETE FROM skipped_numbers',
  ]) {
    for (const statement of [GUARDS_OFF, forged, GUARDS_ON]) await world.sql(statement);
    const { checks } = await world.verify();
    const failed = checks.filter(({ differences }) => differences.length > 0).map(({ check }) => check);
    expect(failed).toContain('seals_recomputed');
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
  expect((await command(['resume', '--none-issued'], { env })).status).toBe(0);
  await expect(world.sql('SELECT is_paused() AS paused')).resolves.toEqual([{ paused: false }]);
});
