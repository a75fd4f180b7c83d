/** The paper: pages, an explicit cursor, and the few marks that everything else is made of, all tagged. */
import PDFDocument from 'pdfkit';
import type { Fonts } from './fonts.ts';
import { type Colour, fill, type Labels, type Style, type Theme } from './template.ts';
import { type Line, type Run, scaled, shortened, wrap } from './text.ts';

export type Element = PDFKit.PDFStructureElement;

/** Structure types of ISO 32000-1, 14.8.4. */
export type Tag =
  | 'Document'
  | 'Sect'
  | 'H1'
  | 'H2'
  | 'H3'
  | 'P'
  | 'L'
  | 'LI'
  | 'Lbl'
  | 'LBody'
  | 'Link'
  | 'Table'
  | 'THead'
  | 'TBody'
  | 'TFoot'
  | 'TR'
  | 'TH'
  | 'TD';

/** What every page repeats. */
export interface Running {
  /** Said at the top of each page after the first. */
  readonly continued: string;
  readonly about: string;
  /** Said at the foot of each page. */
  readonly foot: string;
  /** The sandbox mark, or null in production. */
  readonly mark: string | null;
}

export interface SheetOptions {
  /** How much of the space between things is kept, from 0 to 1: what just misses one page is set closer. */
  readonly air: number;
  readonly paper: keyof Theme['paper'];
  readonly title: string;
  readonly author: string;
  readonly issuedOn: string;
  readonly fonts: Fonts;
  readonly theme: Theme;
  readonly labels: Labels;
  readonly running: Running;
}

const SIDE_MARGIN = 54;
const TOP_MARGIN = 40;
/** Below the sandbox banner. */
const TOP_MARGIN_MARKED = 44;
const BOTTOM_MARGIN = 52;
const FOOT_ABOVE_EDGE = 36;
const CONTINUATION_HEIGHT = 28;
const RULE_WIDTH = 0.6;
/** Height of capitals in the two fonts, in parts of the size: text is centred in its line by its capitals. */
const CAPITALS = 0.714;
/** The watermark rises below the headline, whose panel would hide a part of it. */
const WATERMARK_ANGLE = 40;
const WATERMARK_CENTRE = 0.6;
const WATERMARK_SIDE = 34;

export class Sheet {
  readonly theme: Theme;
  readonly labels: Labels;
  readonly left = SIDE_MARGIN;
  readonly width: number;
  readonly root: Element;
  /** The cursor: the top of what is drawn next. */
  y = 0;

  private readonly document: PDFKit.PDFDocument;
  private readonly running: Running;
  private readonly paperWidth: number;
  private readonly paperHeight: number;
  private readonly air: number;
  private pages = 0;

  constructor(options: SheetOptions) {
    this.theme = options.theme;
    this.labels = options.labels;
    this.running = options.running;
    this.air = options.air;
    [this.paperWidth, this.paperHeight] = this.theme.paper[options.paper];
    this.width = this.paperWidth - 2 * SIDE_MARGIN;
    this.document = newDocument(options, [this.paperWidth, this.paperHeight]);
    this.root = this.document.struct('Document');
    this.document.addStructure(this.root);
    this.newPage();
  }

  style(name: keyof Theme['styles']): Style {
    return this.theme.styles[name];
  }

  /** A distance between things, with as much air as the document keeps. */
  space(distance: number): number {
    return distance * this.air;
  }

  // --- Pages --------------------------------------------------------------------------------------------------------

  get pageCount(): number {
    return this.pages;
  }

  get top(): number {
    return this.running.mark === null ? TOP_MARGIN : TOP_MARGIN_MARKED;
  }

  get bottom(): number {
    return this.paperHeight - BOTTOM_MARGIN;
  }

  /** What fits between the cursor and the end of the page. */
  get room(): number {
    return this.bottom - this.y;
  }

  /** What fits on a page of its own. */
  get fullRoom(): number {
    return this.bottom - this.top - CONTINUATION_HEIGHT;
  }

  /** Goes on to a new page unless that much fits on this one, or would not fit on a whole page either. */
  keepTogether(height: number): void {
    if (height > this.room && height <= this.fullRoom) this.newPage();
  }

  newPage(): void {
    this.document.addPage();
    this.pages += 1;
    this.y = this.top;
    if (this.running.mark !== null) this.drawMark(this.running.mark);
    if (this.pages > 1) this.drawContinuation();
  }

  // --- Structure ----------------------------------------------------------------------------------------------------

  /** A structure element inside another. A header cell says of what it is the header. */
  open(
    parent: Element,
    tag: Tag,
    options: PDFKit.Mixins.StructureElementOptions & { scope?: 'Row' | 'Column' } = {},
  ): Element {
    const element = this.document.struct(tag, options);
    parent.add(element);
    return element;
  }

  /** Draws at once, as content of that element on the present page. */
  content(element: Element, draw: () => void): void {
    element.add(draw);
  }

  /** Draws what carries no information of its own: rules, panels, repeated headers. */
  artifact(draw: () => void, type: 'Pagination' | 'Layout' = 'Layout'): void {
    this.document.markContent('Artifact', { type });
    draw();
    this.document.endMarkedContent();
  }

  // --- Marks --------------------------------------------------------------------------------------------------------

  readonly measure = ({ text, style }: Run): number =>
    this.document.font(style.font).fontSize(style.size).widthOfString(text);

  lines(text: string | readonly Run[], style: Style, width: number): Line[] {
    return wrap(typeof text === 'string' ? [{ text, style }] : text, width, this.measure);
  }

  /** Text whose line begins at that height, to the right of x. Returns where it ends. */
  text(run: Run, x: number, y: number, leading = run.style.leading): number {
    const { font, size, colour } = run.style;
    const baseline = y + leading / 2 + (size * CAPITALS) / 2;
    this.document
      .font(font)
      .fontSize(size)
      .fillColor(this.theme.colours[colour])
      .text(run.text, x, baseline, { lineBreak: false, baseline: 'alphabetic' });
    return x + this.measure(run);
  }

  line(line: Line, x: number, y: number): void {
    // One baseline for all its runs: that of the first.
    let at = x;
    for (const run of line.runs) at = this.text(run, at, y, line.leading);
  }

  /** Text that ends at x. */
  textTo(run: Run, x: number, y: number, leading = run.style.leading): void {
    this.text(run, x - this.measure(run), y, leading);
  }

  rule(x: number, y: number, width: number, colour: Colour = 'rule', thickness = RULE_WIDTH): void {
    this.artifact(() => {
      this.document
        .lineWidth(thickness)
        .strokeColor(this.theme.colours[colour])
        .moveTo(x, y)
        .lineTo(x + width, y)
        .stroke();
    });
  }

  panel(x: number, y: number, width: number, height: number, colour: Colour, radius = 0): void {
    this.artifact(() => {
      this.document.roundedRect(x, y, width, height, radius).fill(this.theme.colours[colour]);
    });
  }

  frame(x: number, y: number, width: number, height: number, radius: number): void {
    this.artifact(() => {
      this.document.lineWidth(RULE_WIDTH).roundedRect(x, y, width, height, radius).stroke(this.theme.colours.rule);
    });
  }

  /** A link over an area of this page, with the words that a screen reader says for it. */
  link(parent: Element, area: { x: number; y: number; width: number; height: number }, to: LinkTarget): void {
    const element = this.open(parent, 'Link');
    this.content(element, to.draw);
    const options = { structParent: element, Contents: pdfString(to.says) };
    this.document.link(area.x, area.y, area.width, area.height, to.url, options);
    // Ended while its page is the present one: the reference to the annotation names the page.
    element.end();
  }

  // --- The end ------------------------------------------------------------------------------------------------------

  async finish(): Promise<Buffer> {
    for (let page = 0; page < this.pages; page += 1) {
      this.document.switchToPage(page);
      this.artifact(() => this.drawFoot(page + 1), 'Pagination');
    }
    const chunks: Buffer[] = [];
    const finished = new Promise<Buffer>((resolve, reject) => {
      this.document.on('data', (chunk: Buffer) => chunks.push(chunk));
      this.document.on('end', () => resolve(Buffer.concat(chunks)));
      this.document.on('error', reject);
    });
    this.document.end();
    return finished;
  }

  private drawFoot(page: number): void {
    const style = this.style('running');
    const y = this.paperHeight - FOOT_ABOVE_EDGE;
    const number = {
      style,
      text: fill(this.labels.running.page, { page: String(page), pages: String(this.pages) }),
    };
    this.textTo(number, this.left + this.width, y);
    this.text(shortened({ style, text: this.running.foot }, this.width * 0.8, this.measure), this.left, y);
  }

  private drawContinuation(): void {
    const style = this.style('running');
    const continued = { style: { ...style, font: 'bold' as const }, text: this.running.continued };
    this.artifact(() => {
      const end = this.text(continued, this.left, this.y);
      const room = this.left + this.width - end - 2 * style.size;
      this.textTo(shortened({ style, text: this.running.about }, room, this.measure), this.left + this.width, this.y);
    }, 'Pagination');
    this.rule(this.left, this.y + style.leading + 4, this.width);
    this.y += CONTINUATION_HEIGHT;
  }

  /** The banner is content on the first page, so that a screen reader says it too, and repeated as decoration. */
  private drawMark(mark: string): void {
    this.artifact(() => this.drawWatermark(mark));
    const style = this.style('banner');
    this.panel(0, 0, this.paperWidth, style.leading, 'sandbox');
    const run = { style, text: mark };
    const draw = () => void this.text(run, (this.paperWidth - this.measure(run)) / 2, 0);
    if (this.pages === 1) this.content(this.open(this.root, 'P'), draw);
    else this.artifact(draw, 'Pagination');
  }

  /** Drawn first, so that everything else stands on it. */
  private drawWatermark(mark: string): void {
    const centre: [number, number] = [this.paperWidth / 2, this.paperHeight * WATERMARK_CENTRE];
    const style = this.style('watermark');
    const length = (this.paperWidth - 2 * WATERMARK_SIDE) / Math.cos((WATERMARK_ANGLE * Math.PI) / 180);
    const run = { text: mark, style: scaled(style, length / this.measure({ style, text: mark })) };
    this.document.save().rotate(-WATERMARK_ANGLE, { origin: centre });
    this.text(run, centre[0] - this.measure(run) / 2, centre[1] - style.leading / 2);
    this.document.restore();
  }
}

export interface LinkTarget {
  readonly url: string;
  readonly says: string;
  readonly draw: () => void;
}

/** pdfkit writes a String object as a PDF string and a primitive one as a PDF name. */
const pdfString = (text: string): string => Object(text) as string;

/** Noon in UTC: the same day almost wherever it is read, and no clock. */
const instantOf = (date: string): Date => new Date(`${date}T12:00:00Z`);

function newDocument(options: SheetOptions, size: [number, number]): PDFKit.PDFDocument {
  const at = instantOf(options.issuedOn);
  const document = new PDFDocument({
    size,
    margin: 0,
    autoFirstPage: false,
    // The foot of the first page says how many there are.
    bufferPages: true,
    pdfVersion: '1.7',
    tagged: true,
    lang: 'en',
    displayTitle: true,
    // No default font: without this pdfkit would begin with Helvetica.
    font: '',
    // The file's identifier is derived from these alone.
    info: { Title: xmlSafe(options.title), Producer: 'reckoner', Creator: 'reckoner', CreationDate: at, ModDate: at },
  });
  document.appendXML(creatorXml(options.author));
  for (const weight of ['regular', 'bold'] as const) {
    // pdfkit takes parsed fonts since 0.20; its types do not say so yet.
    document.registerFont(weight, options.fonts[weight] as unknown as Uint8Array);
  }
  return document;
}

/** pdfkit copies the title into the XML metadata as it is. */
const xmlSafe = (text: string): string => text.replace(/[<>&]/g, ' ');

/** Who issued the document, in the XML metadata only: pdfkit would copy an «&» from the other kind unescaped. */
function creatorXml(author: string): string {
  const escaped = author.replace(/[<>&]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:creator><rdf:Seq><rdf:li>${escaped}</rdf:li></rdf:Seq></dc:creator></rdf:Description>`;
}
