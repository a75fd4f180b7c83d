/**
 * Page layout: margins, pages, an explicit cursor, and the drawing primitives of every part of a document. `render.ts`
 * has the order of the parts; `templates/document.json` has sizes and labels. A change of the bytes needs a new version
 * (`version.ts`).
 */
import { ArtifactType, Box, Canvas, Element, ElementOptions, Link, Picture, Placing, Tag } from './canvas.ts';
import { Mark, Running } from './content.ts';
import { Color, fill, Labels, Style, Template, Theme } from './template.ts';
import { Line, Run, scaled, shortened, wrap } from './text.ts';

type PageLayoutOptions = Readonly<{
  canvas: Canvas;
  size: readonly [width: number, height: number];
  /** The fraction of the usual distances, from 0 to 1. A document slightly too long for one page gets smaller ones. */
  spacing: number;
  running: Running;
  template: Template;
}>;

const SIDE_MARGIN = 54;
const TOP_MARGIN = 40;
/** The top margin of pages with the sandbox banner. */
const TOP_MARGIN_MARKED = 44;
const BOTTOM_MARGIN = 52;
const FOOT_ABOVE_EDGE = 38;
/** The fraction of the width for the foot's text. The page number takes the rest. */
const FOOT_WIDTH = 0.8;
const CONTINUATION_HEIGHT = 28;
const CONTINUATION_RULE = 14;
const CONTINUATION_GAP = 16;
const RULE_WIDTH = 0.6;
/** The height of capitals in both fonts, as a fraction of the size, by which a text is centered in its line. */
const CAPITALS = 0.714;
const WATERMARK_ANGLE = 40;
/** The center of the watermark, as a fraction of the height: below the headline, whose panel would hide part of it. */
const WATERMARK_CENTER = 0.6;
const WATERMARK_SIDE = 34;
const WATERMARK_MOST_SIZE = 170;

export class PageLayout {
  readonly theme: Theme;
  readonly labels: Labels;
  readonly root: Element;
  readonly left = SIDE_MARGIN;
  readonly width: number;
  /** The cursor: the top of the next drawing. */
  y = 0;

  private readonly canvas: Canvas;
  private readonly spacing: number;
  private readonly running: Running;
  private readonly paperWidth: number;
  private readonly paperHeight: number;
  private pages = 0;

  constructor({ canvas, size, spacing, running, template }: PageLayoutOptions) {
    this.theme = template.theme;
    this.labels = template.labels;
    this.canvas = canvas;
    this.root = canvas.root;
    this.spacing = spacing;
    this.running = running;
    [this.paperWidth, this.paperHeight] = size;
    this.width = this.paperWidth - 2 * SIDE_MARGIN;
    this.newPage();
  }

  style(name: keyof Theme['styles']): Style {
    return this.theme.styles[name];
  }

  /** A distance, scaled by the document's spacing. */
  space(distance: number) {
    return distance * this.spacing;
  }

  // --- Pages ---

  get pageCount() {
    return this.pages;
  }

  private get top(): number {
    return this.running.mark === null ? TOP_MARGIN : TOP_MARGIN_MARKED;
  }

  private get bottom() {
    return this.paperHeight - BOTTOM_MARGIN;
  }

  get room() {
    return this.bottom - this.y;
  }

  /** The height of an empty page. */
  get fullRoom() {
    return this.bottom - this.top - CONTINUATION_HEIGHT;
  }

  /** Starts a new page unless this height fits or exceeds a whole page. */
  keepTogether(height: number) {
    if (height > this.room && height <= this.fullRoom) this.newPage();
  }

  newPage() {
    this.canvas.addPage();
    this.pages += 1;
    this.y = this.top;
    if (this.running.mark !== null) this.drawMark(this.running.mark);
    if (this.pages > 1) this.drawContinuation();
  }

  // --- Primitives ---

  open(parent: Element, tag: Tag, options?: ElementOptions) {
    return this.canvas.open(parent, tag, options);
  }

  content(element: Element, draw: () => void) {
    this.canvas.content(element, draw);
  }

  artifact(draw: () => void, type: ArtifactType = 'Layout') {
    this.canvas.artifact(draw, type);
  }

  link(parent: Element, box: Box, link: Link) {
    this.canvas.link(parent, box, link);
  }

  figure(parent: Element, box: Box, picture: Picture) {
    this.canvas.figure(parent, box, picture);
  }

  /** Draws many boxes as one shape, within a figure. */
  shape(boxes: readonly Box[], at: Placing, color: Color) {
    this.canvas.fillAll(boxes, at, color);
  }

  image(bytes: Buffer, box: Box) {
    this.canvas.image(bytes, box);
  }

  readonly measure = (run: Run) => this.canvas.measure(run);

  lines(text: string | readonly Run[], style: Style, width: number): Line[] {
    return wrap(typeof text === 'string' ? [{ text, style }] : text, width, this.measure);
  }

  /** Draws text to the right of x, with the top of its line at y. */
  text(run: Run, x: number, y: number, leading = run.style.leading) {
    this.canvas.text(run, x, y + leading / 2 + (run.style.size * CAPITALS) / 2);
  }

  /** Draws text that ends at x. */
  textTo(run: Run, x: number, y: number, leading = run.style.leading) {
    this.text(run, x - this.measure(run), y, leading);
  }

  line({ runs, leading }: Line, x: number, y: number) {
    const largest = Math.max(...runs.map((run) => run.style.size));
    const baseline = y + leading / 2 + (largest * CAPITALS) / 2;
    let at = x;
    for (const run of runs) {
      this.canvas.text(run, at, baseline);
      if (runs.length > 1) at += this.measure(run);
    }
  }

  rule(x: number, y: number, width: number, color: Color = 'rule', thickness = RULE_WIDTH) {
    this.artifact(() => this.canvas.rule(x, y, width, color, thickness));
  }

  panel(box: Box, color: Color, radius = 0) {
    this.artifact(() => this.canvas.fill(box, color, radius));
  }

  frame(box: Box, radius: number) {
    this.artifact(() => this.canvas.frame(box, 'rule', RULE_WIDTH, radius));
  }

  // --- Parts of every page ---

  /** Draws the foot of a page, last, when the number of pages is known. */
  drawFoot(page: number) {
    const style = this.style('running');
    const y = this.paperHeight - FOOT_ABOVE_EDGE;
    const text = fill(this.labels.running.page, { page: String(page), pages: String(this.pages) });
    this.artifact(() => {
      this.text(shortened({ style, text: this.running.foot }, this.width * FOOT_WIDTH, this.measure), this.left, y);
      this.textTo({ style, text }, this.left + this.width, y);
    }, 'Pagination');
  }

  private drawContinuation() {
    const style = this.style('running');
    const continued = { style: this.style('running_strong'), text: this.running.continued };
    const room = this.width - this.measure(continued) - CONTINUATION_GAP;
    this.artifact(() => {
      this.text(continued, this.left, this.y);
      this.textTo(shortened({ style, text: this.running.about }, room, this.measure), this.left + this.width, this.y);
    }, 'Pagination');
    this.rule(this.left, this.y + CONTINUATION_RULE, this.width);
    this.y += CONTINUATION_HEIGHT;
  }

  /** Content for screen readers on the first page, and decoration on the others. */
  private drawMark(mark: Mark) {
    this.drawWatermark(mark);
    const style = this.style('banner');
    this.panel({ x: 0, y: 0, width: this.paperWidth, height: style.leading }, 'sandbox');
    const run = { style, text: mark.banner };
    const draw = () => this.text(run, (this.paperWidth - this.measure(run)) / 2, 0);
    if (this.pages === 1 || mark.spoken === 'every') this.content(this.open(this.root, 'P'), draw);
    else this.artifact(draw, 'Pagination');
  }

  /** Draws the watermark first, below everything else. */
  private drawWatermark(mark: Mark) {
    const [x, y] = [this.paperWidth / 2, this.paperHeight * WATERMARK_CENTER];
    const style = this.style(mark.style);
    const length = (this.paperWidth - 2 * WATERMARK_SIDE) / Math.cos((WATERMARK_ANGLE * Math.PI) / 180);
    const fitting = length / this.measure({ style, text: mark.across });
    // A short word of that width would be so high that its corners would be off the page.
    const run = { text: mark.across, style: scaled(style, Math.min(fitting, WATERMARK_MOST_SIZE / style.size)) };
    this.artifact(() => {
      this.canvas.turned(WATERMARK_ANGLE, x, y, () => {
        this.text(run, x - this.measure(run) / 2, y - style.leading / 2);
      });
    }, 'Pagination');
  }
}
