/** What drawing uses of fontkit, which ships without types of its own. */
declare module 'fontkit' {
  export interface Font {
    readonly postscriptName: string;
    readonly capHeight: number;
    readonly unitsPerEm: number;
    hasGlyphForCodePoint(codePoint: number): boolean;
    layout(text: string): unknown;
    /** The decoded OpenType tables by tag, filled as they are needed. */
    _tables: Record<string, unknown>;
  }

  export function create(data: Uint8Array): Font;
}
