/** The two fonts of a drawing: parsed once per process, with a fresh state for every document. */
import { create, type Font } from 'fontkit';
import { readTemplateFile } from './template.ts';

export type Weight = 'regular' | 'bold';
export type Fonts = Readonly<Record<Weight, Font>>;

interface ParsedFont {
  readonly data: Uint8Array;
  readonly font: Font;
}

const FILES: Readonly<Record<Weight, string>> = { regular: 'NotoSans-Regular.ttf', bold: 'NotoSans-Bold.ttf' };

let parsed: Readonly<Record<Weight, ParsedFont>> | undefined;

function parse(file: string): ParsedFont {
  const data = readTemplateFile('fonts', file);
  return { data, font: create(data) };
}

function parsedFonts(): Readonly<Record<Weight, ParsedFont>> {
  parsed ??= { regular: parse(FILES.regular), bold: parse(FILES.bold) };
  return parsed;
}

/**
 * A font object of one document's own over tables decoded once: decoding them costs 30 ms a font, this half of one.
 * (fontkit itself shares `_tables` so between the variations of a font.) The object itself must not be shared: it
 * remembers each glyph with the characters that asked for it first, and those reach the file, so that a document's
 * bytes would depend on the documents drawn before it.
 */
function ownFont({ data, font }: ParsedFont): Font {
  const own = create(data);
  own._tables = font._tables;
  return own;
}

export function ownFonts(): Fonts {
  const { regular, bold } = parsedFonts();
  return { regular: ownFont(regular), bold: ownFont(bold) };
}

/** Their glyphs are the very boxes that a reader should not be left with. */
const STAND_INS: ReadonlySet<number> = new Set([0xfffc, 0xfffd]);

/** Whether both weights have a glyph for a character. */
export function isDrawable(codePoint: number): boolean {
  if (STAND_INS.has(codePoint)) return false;
  const { regular, bold } = parsedFonts();
  return regular.font.hasGlyphForCodePoint(codePoint) && bold.font.hasGlyphForCodePoint(codePoint);
}
