import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [, , link, ...jobs] = process.argv;
const state = '/tmp/shots/state.json';
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext({
  viewport: { width: 1280, height: 900 },
  ...(existsSync(state) && { storageState: state }),
});
const page = await context.newPage();
const base = 'http://localhost:8093';
if (!existsSync(state)) {
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(/console\/(close|home|queue|$)/, { timeout: 15000 }).catch(() => console.log(page.url()));
  await context.storageState({ path: state });
}
for (const job of jobs) {
  const [kind, name, path] = job.split('|');
  await page.setViewportSize({ width: kind === 'phone' ? 390 : 1280, height: 900 });
  await page.goto(base + path, { waitUntil: 'networkidle' });
  if (kind === 'pdf') await page.pdf({ path: `/tmp/shots/${name}.pdf`, format: 'A4' });
  else await page.screenshot({ path: `/tmp/shots/${name}.png`, fullPage: true });
  console.log(name, page.url());
}
await browser.close();
