/** kill -9 of PostgreSQL itself under a running close: the command fails clearly, and the next one ends the same. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Verification } from '../../src/audit/verify.ts';
import type { DocumentJson } from '../../src/documents/document.ts';
import { type Ran, reckoner } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { partner, quote } from '../support/world.ts';

const MONTHS = ['2026-05', '2026-06', '2026-07', '2026-08'].slice(0, times({ few: 2, short: 4, long: 4 }));
const { random, seed } = seeded();

let home: string;
const run = (args: readonly string[], now = '2026-09-02T10:00:00Z'): Promise<Ran> =>
  reckoner(args, { env: { RECKONER_HOME: home, RECKONER_NOW: now } });

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'reckoner-killed-server-'));
  const rows = MONTHS.flatMap((month) =>
    ['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id, accepted_at: `${month}-10T12:00:00Z` })),
  );
  const partners = ['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id }));
  expect((await run(['init'])).status).toBe(0);
  writeFileSync(join(home, 'partners.json'), JSON.stringify(partners));
  writeFileSync(join(home, 'rows.ndjson'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  expect((await run(['partner', 'import', join(home, 'partners.json')])).status).toBe(0);
  expect((await run(['ledger', 'import', join(home, 'rows.ndjson')])).status).toBe(0);
}, 60_000);
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Kills the server's first process as soon as there is one and the given time has passed; says whether it could. */
async function killServer(afterMilliseconds: number): Promise<boolean> {
  const lockFile = join(home, 'postgres', 'data', 'postmaster.pid');
  const begun = performance.now();
  for (;;) {
    const pid = Number.parseInt(readLine(lockFile), 10);
    if (pid > 0 && performance.now() - begun > afterMilliseconds) {
      try {
        process.kill(pid, 'SIGKILL');
        return true;
      } catch {
        return false; // It had shut down by itself a moment before.
      }
    }
    if (performance.now() - begun > 15_000) return false;
    await sleep(2);
  }
}

function readLine(file: string): string {
  try {
    return readFileSync(file, 'utf8').split('\n')[0] ?? '';
  } catch {
    return '';
  }
}

for (const [index, month] of MONTHS.entries()) {
  test(`a close of ${month} during which PostgreSQL is killed ends correctly when repeated (seed ${seed})`, async () => {
    const [closing, killed] = await Promise.all([run(['close', month]), killServer(300 + random() * 900)]);
    // Finished before the blow, or failed with a sentence: never a stack trace, never half a month.
    expect([0, 1]).toContain(closing.status);
    if (closing.status === 1) expect(closing.stderr).not.toMatch(/\n\s+at /);
    const again = await run(['close', month]);
    expect({ seed, status: again.status, stderr: again.stderr }).toMatchObject({ seed, status: 0 });
    const documents = (await run(['--json', 'invoice', 'list'])).json() as DocumentJson[];
    expect(documents.map((document) => document.sequence)).toEqual(
      Array.from({ length: (index + 1) * 3 }, (_, position) => position + 1),
    );
    expect(documents.every((document) => document.email?.status === 'sent')).toBe(true);
    const letters = readdirSync(join(home, 'outbox')).filter((name) => /^(INV|CN|ST)-/.test(name));
    expect(letters).toHaveLength((index + 1) * 3);
    if (killed) tally('kills survived', 'of PostgreSQL', 1);
  }, 60_000);
}

test('every check of verify passes afterwards', async () => {
  const ran = await run(['--json', 'verify']);
  const { differences, inspected } = ran.json() as Verification;
  expect({ status: ran.status, differences, some: inspected > 0 }).toEqual({ status: 0, differences: 0, some: true });
});

test('status reports an unreachable database and exits 1', async () => {
  const ran = await reckoner(['status'], {
    env: { RECKONER_HOME: home, DATABASE_URL: 'postgres://reckoner@127.0.0.1:1/reckoner' },
  });
  expect(ran.status).toBe(1);
  expect(ran.stderr).toMatch(/Cannot connect to the database.*Check that it is running/);
});
