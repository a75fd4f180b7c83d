/**
 * The part of the program's two fonts that all documents share: the glyphs of the usual characters. This part is always
 * embedded whole, so its font file is made once per process and not once per document. Because the part is always the
 * same, a document's bytes do not depend on earlier documents.
 *
 * Text is laid out without fontkit, which takes a third of a millisecond per word. The fonts kern each pair of shared
 * characters separately, so fontkit is called only once per pair. (The test test/documents/shared-font.test.ts compares
 * whole words.) A word with any other character is laid out by fontkit, in a font of the document's own (canvas.ts).
 */
import { deflateSync } from 'node:zlib';
import { Font } from 'fontkit';
import { ownFont, Weight } from './fonts.ts';

/** The ASCII characters, and the other characters of documents' labels and usual typography. */
export const SHARED_CHARACTERS: readonly string[] = [
  ...Array.from({ length: 0x7f - 0x20 }, (_, index) => String.fromCharCode(0x20 + index)),
  ...'§«°·»×–—‘’“”•…€',
];

/** Characters that the fonts print as one glyph, the longest first. */
export const LIGATURES = ['ffi', 'ffl', 'ff', 'fi', 'fl'] as const;

const SYMBOLS: readonly string[] = [...SHARED_CHARACTERS, ...LIGATURES];

/** Places in SYMBOLS by UTF-16 code; -1 for characters that are not shared. */
const places = new Int16Array(0x10000).fill(-1);
for (const [place, character] of SHARED_CHARACTERS.entries()) places[character.charCodeAt(0)] = place;

const SPACE = places[0x20] as number;
const F = 0x66;

/** Calls `take` for each glyph of a text, with its place in SYMBOLS. Returns false if a character is not shared. */
function eachGlyph(text: string, take: (place: number) => void) {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const ligature = code === F ? LIGATURES.findIndex((each) => text.startsWith(each, at)) : -1;
    const place = ligature < 0 ? (places[code] as number) : SHARED_CHARACTERS.length + ligature;
    if (place < 0) return false;
    take(place);
    if (ligature >= 0) at += (LIGATURES[ligature] as string).length - 1;
  }
  return true;
}

/** The same in every document. */
type EmbeddedFont = Readonly<{
  file: Buffer;
  toUnicode: Buffer;
  /** The width of each glyph, in thousandths of the size. */
  widths: readonly number[];
  descriptor: Readonly<Record<string, unknown>>;
  name: string;
}>;

export class SharedFont {
  private readonly font: Font;
  private readonly advances: readonly number[];
  /** The glyphs' codes in a PDF's text, in hexadecimal. */
  private readonly codes: readonly string[];
  private readonly embedded: EmbeddedFont;
  /** Kerning values, indexed by the places of both glyphs. A value is read from the font when the pair first occurs. */
  private readonly kerns = new Float64Array(SYMBOLS.length ** 2).fill(Number.NaN);

  constructor(weight: Weight) {
    this.font = ownFont(weight);
    const subset = this.font.createSubset();
    const scale = 1000 / this.font.unitsPerEm;
    const glyphs = SYMBOLS.map((symbol) => onlyGlyph(this.font, symbol));
    const ids = glyphs.map(({ id }) => subset.includeGlyph(id));
    this.codes = ids.map((id) => id.toString(16).padStart(4, '0'));
    this.advances = glyphs.map(({ advanceWidth }) => advanceWidth * scale);
    const widths: number[] = [this.font.getGlyph(0).advanceWidth * scale];
    const texts: string[] = ['\0'];
    for (const [index, id] of ids.entries()) {
      widths[id] = this.advances[index] as number;
      texts[id] = SYMBOLS[index] as string;
    }
    this.embedded = {
      file: deflateSync(subset.encode(), { level: 9 }),
      toUnicode: deflateSync(toUnicode(texts), { level: 9 }),
      widths,
      // Six capitals before the name mark a part of a font.
      name: `SHARED+${this.font.postscriptName}`,
      descriptor: descriptorOf(this.font, scale),
    };
  }

  /** The width of a text in thousandths of the size; undefined if a character is not shared. */
  widthOf(text: string) {
    let width = 0;
    let last = SPACE;
    const all = eachGlyph(text, (place) => {
      width += (this.advances[place] as number) - this.kern(last, place);
      last = place;
    });
    return all ? width : undefined;
  }

  /** The text as operand of the operator TJ; undefined if a character is not shared. */
  shown(text: string) {
    let shown = '[<';
    let last = SPACE;
    const all = eachGlyph(text, (place) => {
      const kern = this.kern(last, place);
      shown += kern === 0 ? this.codes[place] : `>${kern}<${this.codes[place]}`;
      last = place;
    });
    return all ? `${shown}>]TJ` : undefined;
  }

  /** How much closer a glyph is to the previous one, in thousandths of the size. A space is not kerned. */
  private kern(before: number, place: number) {
    if (before === SPACE) return 0;
    const pair = before * SYMBOLS.length + place;
    const known = this.kerns[pair] as number;
    if (!Number.isNaN(known)) return known;
    const kern = this.kernOf(before, place);
    this.kerns[pair] = kern;
    return kern;
  }

  private kernOf(before: number, place: number) {
    const { positions } = this.font.layout(`${SYMBOLS[before]}${SYMBOLS[place]}`);
    const advance = (positions[0]?.xAdvance ?? 0) * (1000 / this.font.unitsPerEm);
    return (this.advances[before] as number) - advance;
  }

  embed(document: PDFKit.PDFDocument, reference: PDFKit.PDFKitReference) {
    const { file, toUnicode, widths, name, descriptor } = this.embedded;
    const made = (data: object, content?: Buffer) => {
      const reference = document.ref(data);
      reference.end(content);
      return reference;
    };
    const fontDescriptor = made({
      Type: 'FontDescriptor',
      FontName: name,
      ...descriptor,
      FontFile2: made({ Filter: 'FlateDecode' }, file),
    });
    const descendant = made({
      Type: 'Font',
      Subtype: 'CIDFontType2',
      BaseFont: name,
      CIDSystemInfo: { Registry: pdfString('Adobe'), Ordering: pdfString('Identity'), Supplement: 0 },
      FontDescriptor: fontDescriptor,
      W: [0, widths],
      CIDToGIDMap: 'Identity',
    });
    Object.assign(reference.data, {
      Type: 'Font',
      Subtype: 'Type0',
      BaseFont: name,
      Encoding: 'Identity-H',
      DescendantFonts: [descendant],
      ToUnicode: made({ Filter: 'FlateDecode' }, toUnicode),
    });
    reference.end(undefined);
  }
}

/** pdfkit writes a String object as a PDF string, and a primitive one as a PDF name. */
export const pdfString = (text: string) => Object(text) as string;

function onlyGlyph(font: Font, symbol: string) {
  const { glyphs } = font.layout(symbol);
  const [glyph] = glyphs;
  if (glyph === undefined || glyphs.length > 1)
    throw new Error(`${font.postscriptName} has no separate glyph for ${symbol}`);
  return glyph;
}

/** The flag for a symbolic font, which has its own codes (ISO 32000-1, 9.8.2). */
const SYMBOLIC = 4;

function descriptorOf(font: Font, scale: number) {
  const { bbox } = font;
  return {
    Flags: SYMBOLIC,
    FontBBox: [bbox.minX, bbox.minY, bbox.maxX, bbox.maxY].map((each) => each * scale),
    ItalicAngle: font.italicAngle,
    Ascent: font.ascent * scale,
    Descent: font.descent * scale,
    CapHeight: font.capHeight * scale,
    XHeight: font.xHeight * scale,
    StemV: 0,
  };
}

/** The characters of glyph codes, for copying and for screen readers (ISO 32000-1, 9.10.3). */
function toUnicode(texts: readonly string[]) {
  const hex = (text: string) =>
    [...text].map((character) => (character.codePointAt(0) as number).toString(16).padStart(4, '0')).join('');
  return `/CIDInit /ProcSet findresource begin
12 dict begin
begincmap
/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
/CMapName /Adobe-Identity-UCS def
/CMapType 2 def
1 begincodespacerange
<0000><ffff>
endcodespacerange
1 beginbfrange
<0000> <${(texts.length - 1).toString(16).padStart(4, '0')}> [${texts.map((text) => `<${hex(text)}>`).join(' ')}]
endbfrange
endcmap
CMapName currentdict /CMap defineresource pop
end
end`;
}

const opened: Partial<Record<Weight, SharedFont>> = {};

export function sharedFont(weight: Weight) {
  opened[weight] ??= new SharedFont(weight);
  return opened[weight];
}
