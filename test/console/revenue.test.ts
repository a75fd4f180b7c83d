/** The pages of tax and of unearned sales: what the commands report, with the files of both. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { settingsSchema } from '../../src/config/settings.ts';
import { sale } from '../documents/correcting.ts';
import { ADMINISTRATOR, type Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import { reckoner } from '../support/program.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
let served: Served;
let finance: Browser;
beforeAll(async () => {
  world = await openWorld();
  const tax = settingsSchema.shape.tax.parse({ from: '2026-07', rules: [{ category: 'standard', rate: '7.75' }] });
  world.settings = { ...world.settings, tax, recognition: 'over_cover' };
  await world.partners([partner()]);
  await world.rows([sale('2026-07', '1200', { cover_from: '2026-07-01', cover_to: '2026-10-31' })]);
  await world.close();
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world);
  finance = await signedIn(served, await invite(world, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served?.end();
  await world?.end();
});

test.each([
  ['tax?from=2026-07-01&to=2026-07-31', ['tax', '--month', '2026-07'], ['7.75%', '1,200.00', '93.00']],
  ['tax?from=2026-08-01&to=2026-08-31&basis=issued', ['tax', '--month', '2026-08', '--basis', 'issued'], ['93.00']],
  // 92 of 123 days are after July.
  ['unearned?as_of=2026-07-31', ['unearned', '--as-of', '2026-07-31'], ['ticket-protection', '897.56', '2026-10']],
])('reports/%s', async (address, command, figures) => {
  const page = await finance.get(`/console/reports/${address}`);
  expect(page.status).toBe(200);
  for (const each of [...figures, 'ties to the journal']) expect(page.text).toContain(each);
  const [, href = ''] = /href="(\/console\/[^"]+\.csv[^"]*)"/.exec(page.text) ?? [];
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-01T10:00:00Z' };
  const { status, stdout } = await reckoner(['report', ...command, '--format', 'csv'], { env });
  expect([status, stdout]).toEqual([0, `\uFEFF${(await finance.get(href.replaceAll('&amp;', '&'))).text}`]);
});
