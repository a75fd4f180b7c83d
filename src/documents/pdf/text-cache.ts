/**
 * A cache of laid-out words, for the whole process: labels are the same on every document, and laying out words took 60 %
 * of the time of rendering.
 *
 * A font cannot simply be shared, because a glyph remembers the characters that first asked for it (fonts.ts). For the
 * characters of PLAIN this makes no difference: no two of them, nor their ligatures, share a glyph
 * (test/documents/text-cache.test.ts tries all pairs). A document with any other character gets fonts of its own, which
 * lay out everything again from the start: the bytes are the same either way.
 */
import type { Font } from 'fontkit';
import PDFDocument from 'pdfkit';
import { ownFont, type Weight } from './fonts.ts';

/** ASCII, Latin-1 and Latin Extended-A, and the usual typography. */
export const PLAIN =
  /^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u017f\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026\u20ac]*$/;

/** The cache is emptied when it has this many texts: about 10 MB. */
const MOST_TEXTS = 20_000;

interface Laid {
  readonly glyphs: readonly unknown[] | null;
  readonly positions: readonly unknown[] | null;
  /** In thousandths of the size. */
  readonly advanceWidth: number;
}

/** pdfkit's font of one document, which its types do not declare. */
interface EmbeddedFont {
  font: Font;
  layout(text: string, features: unknown, onlyWidth?: boolean): Laid;
  layoutCached(word: string): Laid;
}

const embedded = (document: PDFKit.PDFDocument): EmbeddedFont =>
  (document as unknown as { readonly _font: EmbeddedFont })._font;

interface Shelf {
  readonly font: Font;
  /** Of a document that is never written. */
  readonly words: EmbeddedFont;
  /** Widths of whole texts. */
  readonly texts: Map<string, Laid>;
}

const shelves = new Map<Weight, Shelf>();

function shelfOf(weight: Weight): Shelf {
  const known = shelves.get(weight);
  if (known !== undefined && known.texts.size < MOST_TEXTS) return known;
  const document = new PDFDocument({ autoFirstPage: false, font: '' });
  const font = ownFont(weight);
  document.registerFont(weight, font as unknown as Uint8Array);
  const shelf = { font, words: embedded(document.font(weight)), texts: new Map() };
  shelves.set(weight, shelf);
  return shelf;
}

/** Opens a font in a document and makes it current. Call once per document, before anything is measured or drawn. */
export function openFont(document: PDFKit.PDFDocument, weight: Weight): void {
  const shelf = shelfOf(weight);
  // pdfkit accepts parsed fonts since 0.20; its types do not declare it yet.
  document.registerFont(weight, shelf.font as unknown as Uint8Array);
  const font = embedded(document.font(weight));
  const { layout, layoutCached } = font;
  const seen = new Set<string>();
  const giveUp = () => {
    Object.assign(font, { font: ownFont(weight), layout, layoutCached });
    // Its glyphs must remember the same characters as if it had laid out all of these itself.
    for (const text of seen) font.layout(text, undefined, true);
  };
  font.layoutCached = (word) => shelf.words.layoutCached(word);
  font.layout = (text, features, onlyWidth) => {
    if (features !== undefined || !PLAIN.test(text)) {
      giveUp();
      return font.layout(text, features, onlyWidth);
    }
    seen.add(text);
    if (onlyWidth !== true) return layout.call(font, text, features);
    const known = shelf.texts.get(text) ?? layout.call(font, text, features, true);
    shelf.texts.set(text, known);
    return known;
  };
}
