/** The part of the fonts that all documents share: it sets text as the fonts do, whatever was rendered before. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { ownFont, WEIGHTS } from '../../src/documents/pdf/fonts.ts';
import { renderDocument } from '../../src/documents/pdf/render.ts';
import { LIGATURES, SHARED_CHARACTERS, SharedFont } from '../../src/documents/pdf/shared-font.ts';
import { readTemplate } from '../../src/documents/pdf/template.ts';
import { seeded } from '../support/random.ts';
import { snapshot } from '../support/snapshots.ts';
import { times } from '../support/sweep.ts';

const SYMBOLS = [...SHARED_CHARACTERS, ...LIGATURES];
const NAMES = ['office', 'affluent', 'waffle', 'fjord', 'AVATAR', 'Tomorrow', 'Ltd.,', '-1,234,567.89', 'fffi', 'ffff'];

/** What the operator TJ would show: a g for each glyph, and how much closer the next one stands. */
function shownBy(font: ReturnType<typeof ownFont>, word: string): string {
  const { glyphs, positions } = font.layout(word);
  const pieces = glyphs.map(({ advanceWidth }, index) => {
    const { xAdvance, xOffset, yOffset } = positions[index] as (typeof positions)[number];
    expect([xOffset, yOffset], `${word} moves a glyph`).toEqual([0, 0]);
    const kern = index === glyphs.length - 1 ? 0 : advanceWidth - xAdvance;
    return kern === 0 ? 'g' : `g>${kern}<`;
  });
  return `[<${pieces.join('')}>]TJ`;
}

test.each(WEIGHTS)('a word of shared characters is as wide, and kerned, as %s itself sets it', (weight) => {
  const { random, seed } = seeded();
  const [shared, font] = [new SharedFont(weight), ownFont(weight)];
  const letters = SYMBOLS.filter((symbol) => symbol !== ' ');
  const letter = () => letters[Math.floor(random() * letters.length)] as string;
  const words = Array.from({ length: times({ few: 300, short: 1000, long: 10_000 }) }, () =>
    Array.from({ length: 2 + Math.floor(random() * 6) }, letter).join(''),
  );
  for (const word of [...NAMES, ...SYMBOLS, ...words]) {
    const said = `${JSON.stringify(word)} of seed ${seed}`;
    const width = font.layout(word).positions.reduce((sum, { xAdvance }) => sum + xAdvance, 0);
    expect(shared.widthOf(word), said).toBe(width);
    const shown = shared.shown(word)?.replace(/[0-9a-f]{4}(?=[^>]*>)(?<=<[0-9a-f]*)/g, 'g');
    expect(shown, said).toBe(shownBy(font, word));
  }
  // The fonts do kern, and a ligature is one glyph.
  expect(shared.shown('AV')).toMatch(/^\[<\w{4}>\d+<\w{4}>\]TJ$/);
  expect(shared.shown('fi')).toMatch(/^\[<\w{4}>\]TJ$/);
});

test('every character of the labels is shared, and a text with another character is not laid out here', () => {
  const { labels } = readTemplate();
  const shared = new SharedFont('regular');
  expect(shared.shown(JSON.stringify(labels))).toBeDefined();
  expect(shared.shown('Žofie')).toBeUndefined();
  expect(shared.widthOf('株')).toBeUndefined();
});

test('a document has the same bytes whatever was rendered before it', async () => {
  const named = (name: string) => snapshot({ partner: { ...snapshot().partner, name } });
  const hash = async (name: string) =>
    createHash('sha256')
      .update(await renderDocument(named(name)))
      .digest('hex');
  const names = ['Office of Fine Affairs', 'O\u{fb03}ce of \u{fb01}ne Affairs', 'Nguyễn & Ελληνικά', '株式会社'];
  const first: string[] = [];
  for (const name of names) first.push(await hash(name));
  const again: string[] = [];
  for (const name of names.toReversed()) again.unshift(await hash(name));
  expect(again).toEqual(first);
  expect(new Set(first).size).toBe(names.length);
});
