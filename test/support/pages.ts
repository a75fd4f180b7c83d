/** Checks pages for faults in a real browser: at every size, in both themes, with and without JavaScript. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { tool } from './tools.ts';

/** The script of axe, after which `axe.run()` reports faults. */
export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Small targets are looked for too (WCAG 2.2, 2.5.8), which axe does not do by default. */
export const AXE_RULES = { rules: { 'target-size': { enabled: true } } };

/** The elements that make the page wider than the window, except those that scroll. */
export const TOO_WIDE = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (each) => each !== document.body && (getComputedStyle(each).overflowX !== 'visible' || scrolls(each.parentElement));
  return [...document.querySelectorAll('body *')]
    .filter((each) => each.getBoundingClientRect().right > width + 0.5 && !scrolls(each.parentElement))
    .map((each) => each.outerHTML.slice(0, 120));
})()`;

/** A phone, a laptop and a large display. */
export const SIZES = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
] as const;
const LAPTOP = SIZES[1];

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: tool('chromium'), args: ['--no-sandbox'] });

export interface Opened {
  readonly page: Page;
  /** The browser's complaints: errors, and violations of the policy. */
  readonly complaints: string[];
}

/** A page in a separate context, by default on a laptop. */
export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: LAPTOP, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`));
  return { page, complaints };
}

/** Signs in with a one-time link. */
export async function signIn(page: Page, link: string, to: RegExp): Promise<void> {
  await page.goto(link);
  const code = page.getByLabel('Code, or the whole sign-in link');
  // Without scripts, a person pastes the link.
  if ((await code.inputValue()) === '') await code.fill(link);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(to);
}

type Fault = [rule: string, elements: unknown[]];

/**
 * Loads each address once and looks at it at every size, light and dark: it is no wider than the window, axe finds
 * nothing, and the browser complains about nothing. Axe needs JavaScript, but a page has the same elements without it.
 */
export async function expectNoFaults(
  { page, complaints }: Opened,
  addresses: readonly string[],
  { withAxe = true } = {},
): Promise<void> {
  const faults: unknown[] = [];
  for (const address of addresses) {
    const answer = await page.goto(address);
    expect([address, answer?.status()]).toEqual([address, 200]);
    if (withAxe) await page.evaluate(AXE);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      for (const size of SIZES) {
        await page.setViewportSize(size);
        const wide = (await page.evaluate(TOO_WIDE)) as string[];
        const found: Fault[] = wide.length === 0 ? [] : [['too wide', wide.slice(0, 3)]];
        if (withAxe) found.push(...(await axe(page, colorScheme)));
        faults.push(...found.map((fault) => [address, colorScheme, size.width, ...fault]));
      }
    }
  }
  expect(faults).toEqual([]);
  expect(complaints).toEqual([]);
}

/** What axe finds: each rule with two of the elements that break it. The dark theme differs only in its colors. */
async function axe(page: Page, colorScheme: 'light' | 'dark'): Promise<Fault[]> {
  const rules = colorScheme === 'light' ? AXE_RULES : { runOnly: ['color-contrast', 'link-in-text-block'] };
  const { violations, passes } = (await page.evaluate(`axe.run(${JSON.stringify(rules)})`)) as {
    violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
    passes: unknown[];
  };
  expect(passes.length).toBeGreaterThan(colorScheme === 'light' ? 10 : 0);
  return violations.map(({ id, nodes }) => [id, nodes.slice(0, 2).map((each) => [each.html, each.failureSummary])]);
}
