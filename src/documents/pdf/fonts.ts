/**
 * The two fonts that are part of the program: parsed once per process, with fresh state for every document. For other
 * scripts see added-fonts.ts.
 */
import { create, type Font } from 'fontkit';
import { readTemplateFile } from './template.ts';

export const WEIGHTS = ['regular', 'bold'] as const;
export type Weight = (typeof WEIGHTS)[number];

interface ParsedFont {
  readonly data: Uint8Array;
  readonly font: Font;
}

const FILES: Readonly<Record<Weight, string>> = { regular: 'NotoSans-Regular.ttf', bold: 'NotoSans-Bold.ttf' };

const parsed: Partial<Record<Weight, ParsedFont>> = {};

function parsedFont(weight: Weight): ParsedFont {
  const known = parsed[weight];
  if (known !== undefined) return known;
  const data = readTemplateFile('fonts', FILES[weight]);
  const made = { data, font: create(data) };
  parsed[weight] = made;
  return made;
}

/**
 * A font object for one document, with tables that are decoded once. Decoding them takes 30 ms a font; this takes 0.2
 * ms. (fontkit itself shares `_tables` like this between the variations of a font.) The object itself must not be
 * shared: it keeps each glyph with the characters that first used it, and writes those to the file. So a document's
 * bytes would depend on the documents rendered before it. See shared-font.ts for what may be shared.
 */
export function ownFont(weight: Weight): Font {
  const { data, font } = parsedFont(weight);
  const own = create(data);
  own._tables = font._tables;
  return own;
}

/** Characters whose glyphs are empty boxes. */
export const STAND_INS: ReadonlySet<number> = new Set([0xfffc, 0xfffd]);

const covered = new Map<number, boolean>();

/** Whether both weights have a glyph for a character. */
export function hasGlyph(codePoint: number): boolean {
  let has = covered.get(codePoint);
  if (has === undefined) {
    has =
      !STAND_INS.has(codePoint) && WEIGHTS.every((weight) => parsedFont(weight).font.hasGlyphForCodePoint(codePoint));
    covered.set(codePoint, has);
  }
  return has;
}
