/** The cache of laid-out words: documents share it only if their bytes stay the same. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { ownFont, WEIGHTS } from '../../src/documents/pdf/fonts.ts';
import { renderDocument } from '../../src/documents/pdf/render.ts';
import { PLAIN } from '../../src/documents/pdf/text-cache.ts';
import { snapshot } from '../support/snapshots.ts';
import { someOf, times } from '../support/sweep.ts';

const plainCharacters = Array.from({ length: 0x3000 }, (_, code) => String.fromCodePoint(code)).filter((each) =>
  PLAIN.test(each),
);

/** Characters that begin a ligature of the font. */
const LIGATED = ['f'];

test('no two plain characters, nor the ligatures that two of them form, share a glyph', () => {
  expect(plainCharacters.length).toBeGreaterThan(300);
  const ligatures = ['ffi', 'ffl'];
  for (const weight of WEIGHTS) {
    const font = ownFont(weight);
    const shared: string[] = [];
    // A glyph remembers who asked for it first: where two texts share one, the second reads as the first.
    const look = (text: string) => {
      const codes = font.layout(text).glyphs.flatMap((glyph) => glyph.codePoints);
      if (String.fromCodePoint(...codes) !== text) shared.push(text);
    };
    for (const one of plainCharacters) look(one);
    const firsts = someOf(plainCharacters, times({ few: 40, short: 400, long: plainCharacters.length }));
    for (const one of new Set([...firsts, ...LIGATED])) for (const other of plainCharacters) look(one + other);
    ligatures.forEach(look);
    expect(shared).toEqual([]);
    // The font does form them, and a character with the same glyph as two others would be found.
    expect(font.layout('fi').glyphs).toHaveLength(1);
    look('\u{fb01}');
    expect(shared).toEqual(['\u{fb01}']);
  }
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
