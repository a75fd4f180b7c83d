/** The recipe of docs/finance.md for a month billed at a wrong rate, command by command. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const RECIPE = readFileSync(join(import.meta.dirname, '../../docs/finance.md'), 'utf8')
  .split('### A month billed at a wrong rate')[1]
  ?.split('\n## ')[0] as string;
const COMMANDS = [...RECIPE.matchAll(/^reckoner (.*)$/gm)].map(([, words = '']) =>
  [...words.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? ''),
);

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners(['p-1', 'p-2'].map((partner_id) => partner({ partner_id })));
  await world.rows(['p-1', 'p-2'].map((partner_id) => quote({ partner_id })));
  taxedAt('21');
  expect((await run(['close'])).status).toBe(0);
});
afterAll(() => world.end());

function taxedAt(rate: string) {
  const { logo: _, ...issuer } = world.settings.issuer;
  const tax = {
    ...{ from: '2026-07', countries: { US: { registration: 'US-1' } } },
    rules: [{ country: 'US', category: 'standard', rate }],
  };
  const settings = { ...world.settings, sections: undefined, issuer, tax };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
}
const run = (args: readonly string[]) =>
  command(
    args.map((each) => (each === 'reissued' ? join(world.home, each) : each)),
    { env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-03T10:00:00Z' } },
  );

test('each command of the recipe does what the text around it says', async () => {
  expect(COMMANDS).toHaveLength(4);
  taxedAt('6');
  const [preview, rerun, pdf, credit] = COMMANDS as [string[], string[], string[], string[]];
  expect((await run(preview)).stdout).toContain('2 replaced');
  expect(await world.documents()).toHaveLength(2);
  expect((await run(rerun)).status).toBe(0);
  const amounts = (await world.documents()).map(({ status, amount_due }) => [status, amount_due]);
  expect(amounts).toEqual([
    ['void', '8.47'],
    ['void', '8.47'],
    ['open', '7.42'],
    ['open', '7.42'],
  ]);
  const written = await run(pdf);
  expect([written.status, written.stderr]).toEqual([0, '']);
  for (const number of ['INV-2026-000003', 'INV-2026-000004']) {
    expect(existsSync(join(world.home, 'reissued', `${number}.pdf`))).toBe(true);
  }
  expect((await run(credit)).status).toBe(0);
  expect((await world.documents()).filter(({ balance }) => Number(balance) !== 0)).toEqual([]);
});
