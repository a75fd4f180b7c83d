/** The program's own two fonts, parsed once per process. added-fonts.ts has the fonts for other scripts. */
import { create, Font } from 'fontkit';
import { readTemplateFile } from './template.ts';

export const WEIGHTS = ['regular', 'bold'] as const;
export type Weight = (typeof WEIGHTS)[number];

type ParsedFont = Readonly<{
  data: Uint8Array;
  font: Font;
}>;

const FILES: Readonly<Record<Weight, string>> = { regular: 'NotoSans-Regular.ttf', bold: 'NotoSans-Bold.ttf' };

const parsed: Partial<Record<Weight, ParsedFont>> = {};

function parsedFont(weight: Weight) {
  const known = parsed[weight];
  if (known !== undefined) return known;
  const data = readTemplateFile('fonts', FILES[weight]);
  const made = { data, font: create(data) };
  parsed[weight] = made;
  return made;
}

/**
 * A font object for one document, with shared decoded tables: decoding takes 30 ms a font, sharing 0.2 ms. (fontkit
 * itself shares `_tables` between variations.) The object itself records the characters that first used each glyph and
 * writes them to the file, so a shared one would make a document's bytes depend on earlier documents. shared-font.ts
 * has the part that may be shared.
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

export function hasGlyph(codePoint: number) {
  let has = covered.get(codePoint);
  if (has === undefined) {
    has =
      !STAND_INS.has(codePoint) && WEIGHTS.every((weight) => parsedFont(weight).font.hasGlyphForCodePoint(codePoint));
    covered.set(codePoint, has);
  }
  return has;
}
