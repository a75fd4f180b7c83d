/** Types for the part of fontkit that the renderer uses; fontkit ships without types. */
declare module 'fontkit' {
  export interface Font {
    readonly postscriptName: string;
    readonly capHeight: number;
    readonly unitsPerEm: number;
    readonly 'OS/2'?: { readonly usWeightClass: number };
    hasGlyphForCodePoint(codePoint: number): boolean;
    layout(text: string): {
      readonly glyphs: readonly { readonly id: number; readonly codePoints: readonly number[] }[];
    };
    getGlyph(id: number): Glyph;
    /** What of the font goes into a file. It decodes its glyphs by `getGlyph`. */
    createSubset(): unknown;
    /** The decoded OpenType tables by tag, filled as they are needed. */
    _tables: Record<string, unknown>;
  }

  /** What of a glyph goes into a file. */
  export interface Glyph {
    readonly advanceWidth: number;
    _getMetrics(): { readonly leftBearing: number };
    /** Null where the glyph is blank, as a space is. */
    _decode(): { readonly numberOfContours: number; readonly components?: readonly object[] | undefined } | null;
  }

  /** The font of a file, or a collection, which has `fonts` and nothing else. */
  export function create(data: Uint8Array): Font & { readonly fonts?: readonly Font[] };
}
