/** What a document is drawn on: a PDF by pdfkit, or a canvas that only measures, to try a layout. */
import PDFDocument from 'pdfkit';
import { type AddedFont, openAddedFont, type Stretch, stretchesOf } from './added-fonts.ts';
import { embedFacturX } from './factur-x.ts';
import type { Color, Style, Theme } from './template.ts';
import type { Run } from './text.ts';
import { openFont } from './text-cache.ts';

/** A structure element; the measuring canvas has none. */
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

export interface ElementOptions {
  /** The scope of a header cell. */
  readonly scope?: 'Row' | 'Column';
}

/** Decoration that screen readers skip: of the page, or of its content. */
export type ArtifactType = 'Pagination' | 'Layout';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Picture {
  /** What a screen reader says for it. */
  readonly says: string;
  readonly draw: () => void;
}

export interface Link {
  readonly url: string;
  /** What a screen reader says for it. */
  readonly says: string;
  readonly draw: () => void;
}

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
  /** Fills many boxes as one shape, so that no seam shows where two of them touch. */
  fillAll(boxes: readonly Box[], color: Color): void;
  /** A PNG or JPEG file's bytes. */
  image(bytes: Buffer, box: Box): void;
  frame(box: Box, color: Color, thickness: number, radius: number): void;
  /** Draws rotated around a point, counterclockwise. */
  turned(degrees: number, x: number, y: number, draw: () => void): void;
  link(parent: Element, box: Box, link: Link): void;
  /** Draws at once, as a figure on the current page. */
  figure(parent: Element, box: Box, picture: Picture): void;
}

/** Takes the same calls and draws nothing, to find out how many pages a layout needs. */
export class MeasuringCanvas implements Canvas {
  readonly root = undefined;
  private readonly measuredBy: Canvas;

  constructor(measuredBy: Canvas) {
    this.measuredBy = measuredBy;
  }

  measure(run: Run): number {
    return this.measuredBy.measure(run);
  }

  content(_element: Element, draw: () => void): void {
    draw();
  }

  artifact(draw: () => void): void {
    draw();
  }

  turned(_degrees: number, _x: number, _y: number, draw: () => void): void {
    draw();
  }

  link(_parent: Element, _box: Box, link: Link): void {
    link.draw();
  }

  open(): Element {
    return undefined;
  }

  addPage(): void {}
  figure(): void {}
  text(): void {}
  rule(): void {}
  fill(): void {}
  fillAll(): void {}
  image(): void {}
  frame(): void {}
}

export interface PdfOptions {
  readonly size: readonly [width: number, height: number];
  readonly title: string;
  readonly author: string;
  /** `YYYY-MM-DD` */
  readonly issuedOn: string;
  readonly colors: Theme['colors'];
  readonly eInvoice?: Uint8Array | undefined;
}

export class PdfCanvas implements Canvas {
  readonly root: PDFKit.PDFStructureElement;
  private readonly document: PDFKit.PDFDocument;
  private readonly colors: Theme['colors'];
  /** Weights, and hashes of added fonts. */
  private readonly opened = new Set<string>();

  constructor(options: PdfOptions) {
    this.document = newDocument(options);
    this.colors = options.colors;
    this.root = this.document.struct('Document');
    this.document.addStructure(this.root);
  }

  measure({ text, style }: Run): number {
    return stretchesOf(text, style.font).reduce((width, stretch) => width + this.widthOf(stretch, style), 0);
  }

  private widthOf({ text, font }: Stretch, style: Style): number {
    return this.withFont(style, font).widthOfString(text);
  }

  private withFont({ font, size }: Style, added?: AddedFont): PDFKit.PDFDocument {
    const name = added?.sha256 ?? font;
    if (this.opened.has(name)) this.document.font(name);
    // pdfkit accepts parsed fonts since 0.20; its types do not declare it yet.
    else if (added !== undefined)
      this.document.registerFont(name, openAddedFont(added) as unknown as Uint8Array).font(name);
    else openFont(this.document, font);
    this.opened.add(name);
    return this.document.fontSize(size);
  }

  addPage(): void {
    this.document.addPage();
  }

  switchToPage(index: number): void {
    this.document.switchToPage(index);
  }

  open(parent: Element, tag: Tag, options: ElementOptions = {}): PDFKit.PDFStructureElement {
    // pdfkit supports `scope`; its types do not declare it yet.
    const element = this.document.struct(tag, options as PDFKit.Mixins.StructureElementOptions);
    (parent ?? this.root).add(element);
    return element;
  }

  content(element: Element, draw: () => void): void {
    (element ?? this.root).add(draw);
  }

  artifact(draw: () => void, type: ArtifactType): void {
    // The types declare other artifact types than ISO 32000-1, 14.8.2.2 and pdfkit; these two are in both.
    this.document.markContent('Artifact', { type });
    draw();
    this.document.endMarkedContent();
  }

  text({ text, style }: Run, x: number, baseline: number): void {
    let at = x;
    for (const stretch of stretchesOf(text, style.font)) {
      this.withFont(style, stretch.font)
        .fillColor(this.colors[style.color])
        .text(stretch.text, at, baseline, { lineBreak: false, baseline: 'alphabetic' });
      at += this.widthOf(stretch, style);
    }
  }

  rule(x: number, y: number, width: number, color: Color, thickness: number): void {
    const line = this.document.lineWidth(thickness).strokeColor(this.colors[color]);
    line
      .moveTo(x, y)
      .lineTo(x + width, y)
      .stroke();
  }

  fill({ x, y, width, height }: Box, color: Color, radius: number): void {
    this.document.roundedRect(x, y, width, height, radius).fill(this.colors[color]);
  }

  fillAll(boxes: readonly Box[], color: Color): void {
    for (const { x, y, width, height } of boxes) this.document.rect(x, y, width, height);
    this.document.fill(this.colors[color]);
  }

  image(bytes: Buffer, { x, y, width, height }: Box): void {
    this.document.image(bytes, x, y, { width, height });
  }

  frame({ x, y, width, height }: Box, color: Color, thickness: number, radius: number): void {
    this.document.lineWidth(thickness).roundedRect(x, y, width, height, radius).stroke(this.colors[color]);
  }

  turned(degrees: number, x: number, y: number, draw: () => void): void {
    this.document.save().rotate(-degrees, { origin: [x, y] });
    draw();
    this.document.restore();
  }

  link(parent: Element, { x, y, width, height }: Box, { url, says, draw }: Link): void {
    const element = this.open(parent, 'Link');
    this.content(element, draw);
    const options = { structParent: element, Contents: pdfString(says) };
    this.document.link(x, y, width, height, url, options);
    // Ended while its page is the current one: the reference to the annotation names the page.
    element.end();
  }

  figure(parent: Element, { x, y, width, height }: Box, { says, draw }: Picture): void {
    // Accessibility checkers require a bounding box for a figure.
    const options = { alt: says, bbox: [x, y, x + width, y + height] };
    const element = this.document.struct('Figure', options);
    (parent ?? this.root).add(element);
    element.add(draw);
  }

  async finish(): Promise<Buffer> {
    const chunks: Buffer[] = [];
    const finished = new Promise<Buffer>((resolve, reject) => {
      this.document.on('data', (chunk: Buffer) => chunks.push(chunk));
      this.document.on('end', () => resolve(Buffer.concat(chunks)));
      this.document.on('error', reject);
    });
    this.document.end();
    return finished;
  }
}

/** pdfkit writes a String object as a PDF string and a primitive one as a PDF name. */
const pdfString = (text: string): string => Object(text) as string;

/** Noon in UTC, not the clock: the same date in almost every time zone. */
const instantOf = (date: string): Date => new Date(`${date}T12:00:00Z`);

function newDocument({ size, title, author, issuedOn, eInvoice }: PdfOptions): PDFKit.PDFDocument {
  const at = instantOf(issuedOn);
  const document = new PDFDocument({
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
    // No default font: otherwise pdfkit starts with Helvetica.
    font: '',
    // The file's identifier is derived from these alone.
    info: { Title: xmlSafe(title), Producer: 'reckoner', Creator: 'reckoner', CreationDate: at, ModDate: at },
  });
  document.appendXML(creatorXml(author));
  if (eInvoice !== undefined) embedFacturX(document, eInvoice, at);
  return document;
}

/** pdfkit copies the title into the XML metadata as it is. */
const xmlSafe = (text: string): string => text.replace(/[<>&]/g, ' ');

/** The issuer, in the XML metadata only: pdfkit copies an "&" from the other kind unescaped. */
function creatorXml(author: string): string {
  const escaped = author.replace(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:creator><rdf:Seq><rdf:li>${escaped}</rdf:li></rdf:Seq></dc:creator></rdf:Description>`;
}
