/** What tests look for on a page in a real browser. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** The script of axe: after it, `axe.run()` says what is wrong. */
export const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The elements that make the page wider than the window: not those that scroll by themselves. */
export const TOO_WIDE = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (each) => each !== document.body && (getComputedStyle(each).overflowX !== 'visible' || scrolls(each.parentElement));
  return [...document.querySelectorAll('body *')]
    .filter((each) => each.getBoundingClientRect().right > width + 0.5 && !scrolls(each.parentElement))
    .map((each) => each.outerHTML.slice(0, 120));
})()`;
