/** What a partner's or a bank's file says is shown, but cannot act on the terminal that shows it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command } from '../support/program.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
});
afterAll(() => world.end());

const run = (...args: string[]) =>
  command(args, { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl } });
const RED = '\u001B[31m';
/** Escape as one character, which some terminals obey as well. */
const RED_C1 = '\u009B31m';
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it searches for
const ACTING = /[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/;

test('a refusal shows an identifier, a heading or an argument without its escapes', async () => {
  const rows = world.file('rows.csv', `partner_id,quote_id\np-1,q${RED}${RED_C1}\u202E\n`);
  const bank = world.file('bank.csv', `date${RED},amount\n2026-10-01,1.00\n`);
  for (const args of [
    ['invoice', 'show', `INV${RED}${RED_C1}`],
    ['ledger', 'import', rows],
    ['payment', 'import', bank],
    ['partner', 'show', `p\u202E${RED}`],
    [`no${RED}`],
  ]) {
    const ran = await run(...args);
    expect([args[0], ran.status]).not.toEqual([args[0], 0]);
    expect([args[0], ran.stdout + ran.stderr]).not.toEqual([args[0], expect.stringMatching(ACTING)]);
    const json = await run('--json', ...args);
    expect([args[0], json.stdout + json.stderr]).not.toEqual([args[0], expect.stringMatching(ACTING)]);
  }
  const shown = await run('--json', 'partner', 'show', `p${RED_C1}`);
  expect(shown.json()).toMatchObject({ error: { partner_id: `p${RED_C1}` } });
});
