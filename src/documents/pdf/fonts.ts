/**
 * The two fonts that are part of the program: parsed once per process, with fresh state for every document. For other
 * scripts see added-fonts.ts.
 */
import { create, type Font, type Glyph } from 'fontkit';
import { readTemplateFile } from './template.ts';

export const WEIGHTS = ['regular', 'bold'] as const;
export type Weight = (typeof WEIGHTS)[number];

interface ParsedFont {
  readonly data: Uint8Array;
  readonly font: Font;
  readonly outlines: Font;
}

const FILES: Readonly<Record<Weight, string>> = { regular: 'NotoSans-Regular.ttf', bold: 'NotoSans-Bold.ttf' };

const parsed: Partial<Record<Weight, ParsedFont>> = {};

function parsedFont(weight: Weight): ParsedFont {
  const known = parsed[weight];
  if (known !== undefined) return known;
  const data = readTemplateFile('fonts', FILES[weight]);
  const font = create(data);
  const made = { data, font, outlines: outlinesOf(sharingTables(data, font)) };
  parsed[weight] = made;
  return made;
}

function sharingTables(data: Uint8Array, { _tables }: Font): Font {
  const font = create(data);
  font._tables = _tables;
  return font;
}

/**
 * For the embedded part of a font, in which a glyph is bytes and widths: they are decoded once per process, not once
 * per document. Apart from the fonts that lay text out: a glyph that is asked for here, such as the accent of a letter,
 * must not be known there without the characters that it stands for.
 */
function outlinesOf(font: Font): Font {
  const decoded = new Map<number, Glyph>();
  const decode = (glyph: Glyph): Glyph => {
    const { advanceWidth } = glyph;
    const metrics = glyph._getMetrics();
    const outline = glyph._decode();
    const kept = outline && { numberOfContours: outline.numberOfContours, components: outline.components };
    return { advanceWidth, _getMetrics: () => metrics, _decode: () => kept };
  };
  const { getGlyph } = font;
  font.getGlyph = (id) => {
    const known = decoded.get(id) ?? decode(getGlyph.call(font, id));
    decoded.set(id, known);
    return known;
  };
  return font;
}

/**
 * A font object of one document's own over tables decoded once: decoding them costs 30 ms a font, this half of one.
 * (fontkit itself shares `_tables` so between the variations of a font.) The object itself must not be shared: it
 * remembers each glyph with the characters that asked for it first, and those reach the file, so that a document's
 * bytes would depend on the documents rendered before it. See text-cache.ts for what may be shared.
 */
export function ownFont(weight: Weight): Font {
  const { data, font, outlines } = parsedFont(weight);
  const own = sharingTables(data, font);
  own.createSubset = () => outlines.createSubset();
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
