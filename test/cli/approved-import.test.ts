/** `ledger import` under a rule of approval, as scripts and people run it: exit statuses, and files of any kind. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LEE, MARA, openApproving } from '../support/approving.ts';
import { command, type Ran, reckoner } from '../support/program.ts';
import { quote, reversal, type World } from '../support/world.ts';

let world: World;
const SALE = quote({ accepted_at: '2026-07-31T12:00:00Z' });
const BACK = reversal(SALE, { accepted_at: '2026-08-01T09:00:00Z' });
beforeAll(async () => {
  world = await openApproving();
  await world.rows([SALE]);
  const { logo: _, ...issuer } = world.settings.issuer;
  const approvals = { 'ledger.import': { above: { USD: '5.00' } } };
  writeFileSync(
    join(world.home, 'settings.json'),
    JSON.stringify({ ...world.settings, sections: undefined, issuer, approvals }),
  );
});
afterAll(() => world.end());

const env = () => ({
  RECKONER_HOME: world.home,
  DATABASE_URL: world.databaseUrl,
  RECKONER_NOW: '2026-08-01T14:00:00Z',
});
const run = (by: string, args: readonly string[]): Promise<Ran> => command(['--by', by, ...args], { env: env() });
const file = (name: string, ...rows: readonly object[]) =>
  world.file(name, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
const reversals = async () => (await world.sql(`SELECT FROM ledger_rows WHERE kind = 'reversal'`)).length;

test('an import that takes too much back exits 3, and after its approval the same command imports', async () => {
  const path = file('july.ndjson', quote(), BACK);
  const first = await run(MARA, ['ledger', 'import', path]);
  expect([first.status, await reversals()]).toEqual([3, 0]);
  expect(first.stderr.replaceAll(/\s+/g, ' ')).toContain(
    "'Import ledger rows' (july.ndjson) needs approval. 7.00 USD is above the limit of 5.00 USD. Request 1 was made. " +
      `${LEE} may approve it until 2026-08-15 14:00 UTC. Once it is approved, repeat it with the same files.`,
  );
  const preview = await run(MARA, ['--json', 'ledger', 'import', path, '--dry-run']);
  expect([preview.status, preview.json()]).toMatchObject([0, { accepted: 2 }]);
  const shown = await run(LEE, ['approval', 'show', '1']);
  expect(shown.stdout).toContain('After the approval, the requester repeats this with the same files.');
  expect(shown.stdout).toMatch(/july\.ndjson +sha256 +none +[0-9a-f]{64}/);
  const approved = await run(LEE, ['approval', 'approve', '1']);
  expect([approved.status, approved.stdout]).toEqual([
    0,
    `Request 1 is approved.\n\nIt is done when ${MARA} repeats it with the same files, until 2026-08-15 14:00 UTC.\n`,
  ]);
  expect(await reversals()).toBe(0);
  const second = await run(MARA, ['--json', 'ledger', 'import', path]);
  expect([second.status, second.json()]).toMatchObject([0, { accepted: 2, duplicates: 0 }]);
  const third = await run(MARA, ['--json', 'ledger', 'import', path]);
  expect([third.status, third.json()]).toMatchObject([0, { accepted: 0, duplicates: 2 }]);
});

test('standard input is asked for and imported in the same way, as the same bytes', async () => {
  const sale = quote({ accepted_at: '2026-07-31T12:00:00Z' });
  const input = `${JSON.stringify(sale)}\n${JSON.stringify(reversal(sale, { accepted_at: '2026-08-01T09:00:00Z' }))}\n`;
  const args = ['--by', MARA, '--json', 'ledger', 'import', '-', '--format', 'ndjson'];
  const piped = () => reckoner(args, { env: env(), input });
  const first = await piped();
  expect([first.status, first.json()]).toMatchObject([3, { error: { code: 'approval_needed', request_id: 2 } }]);
  expect((await run(LEE, ['approval', 'approve', '2'])).status).toBe(0);
  expect((await piped()).json()).toMatchObject({ accepted: 2 });
});

test('bad rows are reported with exit 2, and ask for nothing', async () => {
  const bad = file('bad.ndjson', { ...BACK, reversal_id: 'rv-bad', invoiceAmount: '-1.00' });
  const ran = await run(MARA, ['--json', 'ledger', 'import', bad]);
  expect([ran.status, ran.json()]).toMatchObject([2, { accepted: 0, rejected: 1 }]);
  expect(await world.sql('SELECT FROM approval_requests')).toHaveLength(2);
});
