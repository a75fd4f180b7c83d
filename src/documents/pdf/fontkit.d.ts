/** Types for the part of fontkit that the renderer uses. fontkit has no types of its own. */
declare module 'fontkit' {
  export interface Font {
    readonly postscriptName: string;
    readonly ascent: number;
    readonly descent: number;
    readonly capHeight: number;
    readonly xHeight: number;
    readonly italicAngle: number;
    readonly bbox: Readonly<{ minX: number; minY: number; maxX: number; maxY: number }>;
    readonly unitsPerEm: number;
    readonly 'OS/2'?: { readonly usWeightClass: number };
    hasGlyphForCodePoint(codePoint: number): boolean;
    layout(text: string): Readonly<{
      glyphs: readonly Glyph[];
      /** Advances and offsets are in units of the font. */
      positions: readonly Readonly<{ xAdvance: number; xOffset: number; yOffset: number }>[];
    }>;
    getGlyph(id: number): Glyph;
    /** A subset of the font, to be embedded in a file. */
    createSubset(): Subset;
    /** The decoded OpenType tables by tag, filled as they are needed. */
    _tables: Record<string, unknown>;
  }

  export type Glyph = Readonly<{
    id: number;
    advanceWidth: number;
    codePoints: readonly number[];
  }>;

  export interface Subset {
    /** Returns the glyph's number in the subset. */
    includeGlyph(id: number): number;
    encode(): Uint8Array;
  }

  /** The font of a file. A collection has `fonts` and nothing else. */
  export function create(data: Uint8Array): Font & { readonly fonts?: readonly Font[] };
}
