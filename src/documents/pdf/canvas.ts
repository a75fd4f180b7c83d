/** The surface that a document is drawn on: a PDF made by pdfkit, or a canvas that only measures a layout. */
import { AddedFont, openAddedFont, stretchesOf } from './added-fonts.ts';
import { embedFacturX } from './factur-x.ts';
import { PdfFile } from './file.ts';
import { ownFont, Weight } from './fonts.ts';
import { pdfString, sharedFont } from './shared-font.ts';
import { Color, Style, Theme } from './template.ts';
import { Run } from './text.ts';

/** A structure element. The measuring canvas has no structure elements. */
export type Element = PDFKit.PDFStructureElement | undefined;

/** Structure types of ISO 32000-1, 14.8.4. */
export type Tag =
  | 'Document'
  | 'H1'
  | 'H2'
  | 'H3'
  | 'P'
  | 'L'
  | 'LI'
  | 'Lbl'
  | 'LBody'
  | 'Link'
  | 'Figure'
  | 'Table'
  | 'THead'
  | 'TBody'
  | 'TFoot'
  | 'TR'
  | 'TH'
  | 'TD';

export type ElementOptions = Readonly<{
  scope?: 'Row' | 'Column';
}>;

/** Decoration of the page or its content. Screen readers skip decoration. */
export type ArtifactType = 'Pagination' | 'Layout';

export type Box = Readonly<{
  x: number;
  y: number;
  width: number;
  height: number;
}>;

/** The corner of a drawing, and the length of its unit. */
export type Placing = Readonly<{
  x: number;
  y: number;
  unit: number;
}>;

export type Picture = Readonly<{
  /** The text for screen readers. */
  says: string;
  draw: () => void;
}>;

export type Link = Readonly<{
  url: string;
  says: string;
  draw: () => void;
}>;

export interface Canvas {
  readonly root: Element;
  measure(run: Run): number;
  addPage(): void;
  open(parent: Element, tag: Tag, options?: ElementOptions): Element;
  /** Draws at once, as content of the element on the current page. */
  content(element: Element, draw: () => void): void;
  artifact(draw: () => void, type: ArtifactType): void;
  text(run: Run, x: number, baseline: number): void;
  rule(x: number, y: number, width: number, color: Color, thickness: number): void;
  fill(box: Box, color: Color, radius: number): void;
  /** Fills many boxes as one shape, so that no seam shows between adjacent ones. `at` gives their corner and unit. */
  fillAll(boxes: readonly Box[], at: Placing, color: Color): void;
  /** A PNG or JPEG file. */
  image(bytes: Buffer, box: Box): void;
  frame(box: Box, color: Color, thickness: number, radius: number): void;
  /** Draws something rotated counterclockwise around a point. */
  turned(degrees: number, x: number, y: number, draw: () => void): void;
  link(parent: Element, box: Box, link: Link): void;
  /** Draws at once, as a figure on the current page. */
  figure(parent: Element, box: Box, picture: Picture): void;
}

/** Draws nothing, to find out how many pages a layout needs. */
export class MeasuringCanvas implements Canvas {
  readonly root = undefined;
  private readonly measuredBy: Canvas;

  constructor(measuredBy: Canvas) {
    this.measuredBy = measuredBy;
  }

  measure(run: Run) {
    return this.measuredBy.measure(run);
  }

  content(_element: Element, draw: () => void) {
    draw();
  }

  artifact(draw: () => void) {
    draw();
  }

  turned(_degrees: number, _x: number, _y: number, draw: () => void) {
    draw();
  }

  link(_parent: Element, _box: Box, link: Link) {
    link.draw();
  }

  open(): Element {
    return undefined;
  }

  addPage() {}
  figure() {}
  text() {}
  rule() {}
  fill() {}
  fillAll() {}
  image() {}
  frame() {}
}

type PdfOptions = Readonly<{
  size: readonly [width: number, height: number];
  title: string;
  author: string;
  issuedOn: string;
  colors: Theme['colors'];
  eInvoice?: Uint8Array | undefined;
}>;

/** Text in one font: the shared font part, an added font, or the document's own font for all other characters. */
type Piece = Readonly<{
  text: string;
  font: AddedFont | 'shared' | 'own';
}>;

export class PdfCanvas implements Canvas {
  readonly root: PDFKit.PDFStructureElement;
  private readonly document: PdfFile;
  private readonly colors: Readonly<Record<Color, string>>;
  /** The document's own fonts: weights, and hashes of added fonts. */
  private readonly opened = new Set<string>();
  private readonly shared: Partial<Record<Weight, PDFKit.PDFKitReference>> = {};

  constructor(options: PdfOptions) {
    this.document = newDocument(options);
    this.colors = operandsOf(options.colors);
    this.root = this.document.struct('Document');
    this.document.addStructure(this.root);
  }

  measure({ text, style }: Run): number {
    const shared = sharedFont(style.font).widthOf(text);
    if (shared !== undefined) return (shared * style.size) / 1000;
    return piecesOf(text, style.font).reduce((width, piece) => width + this.widthOf(piece, style), 0);
  }

  private widthOf({ text, font }: Piece, style: Style): number {
    if (font === 'shared') return this.measure({ text, style });
    return this.withFont(style, font).widthOfString(text);
  }

  private withFont({ font, size }: Style, own: AddedFont | 'own'): PDFKit.PDFDocument {
    const name = own === 'own' ? font : own.sha256;
    if (!this.opened.has(name)) {
      const opened = own === 'own' ? ownFont(font) : openAddedFont(own);
      // pdfkit accepts parsed fonts since 0.20, but its types do not declare this.
      this.document.registerFont(name, opened as unknown as Uint8Array);
      this.opened.add(name);
    }
    return this.document.font(name).fontSize(size);
  }

  addPage() {
    this.document.addPage();
  }

  switchToPage(index: number) {
    this.document.switchToPage(index);
  }

  open(parent: Element, tag: Tag, options: ElementOptions = {}) {
    // pdfkit supports `scope`, but its types do not declare it.
    const element = this.document.struct(tag, options as PDFKit.Mixins.StructureElementOptions);
    (parent ?? this.root).add(element);
    return element;
  }

  content(element: Element, draw: () => void) {
    (element ?? this.root).add(draw);
  }

  artifact(draw: () => void, type: ArtifactType) {
    // Only these two artifact types are defined in ISO 32000-1, 14.8.2.2, in pdfkit and in its types.
    this.document.markContent('Artifact', { type });
    draw();
    this.document.endMarkedContent();
  }

  text({ text, style }: Run, x: number, baseline: number) {
    if (this.textShared(text, style, x, baseline)) return;
    let at = x;
    for (const piece of piecesOf(text, style.font)) {
      if (piece.font === 'shared') this.textShared(piece.text, style, at, baseline);
      else {
        this.document.addContent(`${this.colors[style.color]} rg`);
        this.withFont(style, piece.font).text(piece.text, at, baseline, { lineBreak: false, baseline: 'alphabetic' });
      }
      at += this.widthOf(piece, style);
    }
  }

  /** Draws text of shared characters. Returns false if the text has other characters. */
  private textShared(text: string, { font, size, color }: Style, x: number, baseline: number) {
    const shown = sharedFont(font).shown(text);
    if (shown === undefined) return false;
    this.shared[font] ??= this.document.ref({});
    this.document.page.fonts[font] ??= this.shared[font];
    // The page is measured from its top, so text is flipped.
    const matrix = `1 0 0 -1 ${number(x)} ${number(baseline)}`;
    this.document.addContent(`${this.colors[color]} rg BT /${font} ${number(size)} Tf ${matrix} Tm ${shown} ET`);
    return true;
  }

  rule(x: number, y: number, width: number, color: Color, thickness: number) {
    const line = `${number(x)} ${number(y)} m ${number(x + width)} ${number(y)} l S`;
    this.document.addContent(`${number(thickness)} w ${this.colors[color]} RG ${line}`);
  }

  fill({ x, y, width, height }: Box, color: Color, radius: number) {
    this.document.addContent(`${this.colors[color]} rg`);
    this.document.roundedRect(x, y, width, height, radius).addContent('f');
  }

  fillAll(boxes: readonly Box[], { x, y, unit }: Placing, color: Color) {
    const shapes = boxes.map((box) => `${box.x} ${box.y} ${box.width} ${box.height} re`).join(' ');
    const matrix = `${number(unit)} 0 0 ${number(unit)} ${number(x)} ${number(y)} cm`;
    this.document.addContent(`q ${matrix} ${this.colors[color]} rg ${shapes} f Q`);
  }

  image(bytes: Buffer, { x, y, width, height }: Box) {
    this.document.image(bytes, x, y, { width, height });
  }

  frame({ x, y, width, height }: Box, color: Color, thickness: number, radius: number) {
    this.document.addContent(`${number(thickness)} w ${this.colors[color]} RG`);
    this.document.roundedRect(x, y, width, height, radius).addContent('S');
  }

  turned(degrees: number, x: number, y: number, draw: () => void) {
    this.document.save().rotate(-degrees, { origin: [x, y] });
    draw();
    this.document.restore();
  }

  link(parent: Element, { x, y, width, height }: Box, { url, says, draw }: Link) {
    const element = this.open(parent, 'Link');
    this.content(element, draw);
    const options = { structParent: element, Contents: pdfString(says) };
    this.document.link(x, y, width, height, url, options);
    // The reference to the annotation names the current page.
    element.end();
  }

  figure(parent: Element, { x, y, width, height }: Box, { says, draw }: Picture) {
    // Accessibility checkers require a bounding box for a figure.
    const options = { alt: says, bbox: [x, y, x + width, y + height] };
    const element = this.document.struct('Figure', options);
    (parent ?? this.root).add(element);
    element.add(draw);
  }

  finish(): Promise<Buffer> {
    for (const [weight, reference] of Object.entries(this.shared)) {
      sharedFont(weight as Weight).embed(this.document, reference);
    }
    return this.document.finish();
  }
}

/** Divides a text into pieces. A word with a character that is not shared is drawn as a whole, in one font. */
function piecesOf(text: string, weight: Weight): readonly Piece[] {
  const shared = sharedFont(weight);
  const found: { text: string; font: Piece['font'] }[] = [];
  for (const stretch of stretchesOf(text, weight)) {
    const words = stretch.font === undefined ? (stretch.text.match(/[^ ]* ?/g) ?? []) : [stretch.text];
    for (const word of words) {
      const font = stretch.font ?? (shared.widthOf(word) === undefined ? 'own' : 'shared');
      const last = found.at(-1);
      if (last?.font === font) last.text += word;
      else if (word !== '') found.push({ text: word, font });
    }
  }
  return found;
}

/** Rounds to a ten-thousandth of a point, which is finer than any printer. */
const number = (value: number) => Math.round(value * 1e4) / 1e4;

/** Colors as operands of a PDF's operators: red, green and blue from 0 to 1. */
function operandsOf(colors: Theme['colors']): Readonly<Record<Color, string>> {
  const operands = (color: string) => [1, 3, 5].map((at) => number(Number.parseInt(color.slice(at, at + 2), 16) / 255));
  return Object.fromEntries(Object.entries(colors).map(([name, color]) => [name, operands(color).join(' ')])) as Record<
    Color,
    string
  >;
}

/** Noon in UTC, because the date is then the same in almost every time zone. The clock is not read. */
const instantOf = (date: string) => new Date(`${date}T12:00:00Z`);

function newDocument({ size, title, author, issuedOn, eInvoice }: PdfOptions) {
  const at = instantOf(issuedOn);
  const document = new PdfFile({
    size: [...size],
    margin: 0,
    autoFirstPage: false,
    // Buffered, because the foot of the first page shows the number of pages.
    bufferPages: true,
    pdfVersion: '1.7',
    ...(eInvoice && { subset: 'PDF/A-3a' }),
    tagged: true,
    lang: 'en',
    displayTitle: true,
    // No default font, because pdfkit would start with Helvetica.
    font: '',
    // The file's identifier is derived from these fields alone.
    info: { Title: xmlSafe(title), Producer: 'reckoner', Creator: 'reckoner', CreationDate: at, ModDate: at },
  });
  document.appendXML(creatorXml(author));
  if (eInvoice !== undefined) embedFacturX(document, eInvoice, at);
  return document;
}

/** pdfkit copies the title into the XML metadata unchanged. */
const xmlSafe = (text: string) => text.replace(/[<>&]/g, ' ');

/** The issuer is only in the XML metadata, because pdfkit would copy an "&" unescaped from the document information. */
function creatorXml(author: string) {
  const escaped = author.replace(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:creator><rdf:Seq><rdf:li>${escaped}</rdf:li></rdf:Seq></dc:creator></rdf:Description>`;
}
