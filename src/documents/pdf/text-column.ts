/** A column of paragraphs and labeled facts, measured before it is drawn, and broken only between lines. */
import { Box, Element, Tag } from './canvas.ts';
import { PageLayout } from './page.ts';
import { Style } from './template.ts';
import { Line, Run } from './text.ts';

type Paragraph = Readonly<{
  tag: Tag;
  before: number;
  lines: readonly Line[];
}>;

type Fact = Readonly<{
  before: number;
  label: readonly Line[];
  value: readonly Line[];
  emphasized: boolean;
}>;

type Figure = Readonly<{
  before: number;
  width: number;
  figureHeight: number;
  says: string;
  paint: (box: Box) => void;
}>;

type Item = Paragraph | Fact | Figure;

const LABEL_GAP = 8;
const PANEL_X = 6;
const PANEL_Y = 3;

const heightOf = (lines: readonly Line[]) => lines.reduce((total, line) => total + line.leading, 0);

const rowsOf = (item: Paragraph | Fact) =>
  'label' in item ? Math.max(item.label.length, item.value.length) : item.lines.length;

/** The height of one row, which a label and its value share. */
const rowHeight = (item: Paragraph | Fact, row: number) =>
  'label' in item
    ? Math.max(item.label[row]?.leading ?? 0, item.value[row]?.leading ?? 0)
    : (item.lines[row]?.leading ?? 0);

function itemHeight(item: Item) {
  if ('figureHeight' in item) return item.figureHeight;
  if (!('label' in item)) return heightOf(item.lines);
  let height = item.emphasized ? 2 * PANEL_Y : 0;
  for (let row = 0; row < rowsOf(item); row += 1) height += rowHeight(item, row);
  return height;
}

export class Column {
  readonly width: number;
  private readonly layout: PageLayout;
  private readonly labelWidth: number;
  private readonly items: Item[] = [];

  constructor(layout: PageLayout, width: number, labelWidth = 0) {
    this.layout = layout;
    this.width = width;
    this.labelWidth = labelWidth;
  }

  text(text: string | readonly Run[], style: Style, { tag = 'P' as Tag, before = 0 } = {}): this {
    const lines = this.layout.lines(text, style, this.width);
    if (lines.length > 0) this.items.push({ tag, before, lines });
    return this;
  }

  fact(label: string, value: readonly (readonly Run[])[], { before = 0, emphasized = false } = {}): this {
    const { layout, labelWidth, width } = this;
    const lines = value.flatMap((runs) => {
      const style = runs[0]?.style ?? layout.style('body');
      return layout.lines(runs, style, width - labelWidth - LABEL_GAP);
    });
    if (lines.length === 0) return this;
    const style = layout.style('label');
    this.items.push({ before, emphasized, label: layout.lines(label, style, labelWidth), value: lines });
    return this;
  }

  figure(size: { width: number; height: number }, says: string, paint: (box: Box) => void): this {
    this.items.push({ before: 0, width: size.width, figureHeight: size.height, says, paint });
    return this;
  }

  get empty() {
    return this.items.length === 0;
  }

  get height() {
    return this.items.reduce((total, item, index) => total + (index === 0 ? 0 : item.before) + itemHeight(item), 0);
  }

  /** Draws from the cursor and moves it below the column. Continues on a new page when the current one is full. */
  draw(parent: Element, x: number) {
    let list: Element | undefined;
    for (const [index, item] of this.items.entries()) {
      if (index > 0) this.layout.y += item.before;
      if ('label' in item) {
        list ??= this.layout.open(parent, 'L');
        this.drawFact(list, item, x);
      } else {
        list = undefined;
        if ('figureHeight' in item) this.drawFigure(parent, item, x);
        else this.drawParagraph(parent, item, x);
      }
    }
  }

  private drawFigure(parent: Element, { width, figureHeight: height, says, paint }: Figure, x: number) {
    this.layout.keepTogether(height);
    const box = { x, y: this.layout.y, width, height };
    this.layout.figure(parent, box, { says, draw: () => paint(box) });
    this.layout.y += height;
  }

  private drawParagraph(parent: Element, item: Paragraph, x: number) {
    const element = this.layout.open(parent, item.tag);
    this.eachPage(item, (from, to) => {
      this.layout.content(element, () => this.drawLines(item.lines.slice(from, to), x));
    });
  }

  private drawFact(list: Element, item: Fact, x: number) {
    const { layout } = this;
    const entry = layout.open(list, 'LI');
    const label = layout.open(entry, 'Lbl');
    const value = layout.open(entry, 'LBody');
    if (item.emphasized) {
      const height = itemHeight(item);
      layout.keepTogether(height);
      if (height <= layout.room) {
        const box = { x: x - PANEL_X, y: layout.y, width: this.width + 2 * PANEL_X, height };
        layout.panel(box, 'panel', PANEL_Y);
      }
      layout.y += PANEL_Y;
    }
    this.eachPage(item, (from, to) => {
      const heights = Array.from({ length: to - from }, (_, index) => rowHeight(item, from + index));
      const stretches = [
        { element: label, lines: item.label.slice(from, to), at: x },
        { element: value, lines: item.value.slice(from, to), at: x + this.labelWidth + LABEL_GAP },
      ];
      for (const { element, lines, at } of stretches) {
        if (lines.length > 0) layout.content(element, () => this.drawLevel(lines, heights, at));
      }
      layout.y += heights.reduce((total, height) => total + height, 0);
    });
    if (item.emphasized) layout.y += PANEL_Y;
  }

  /**
   * Draws lines aligned with the rows that they share. A label's font is smaller than its value's, on the same
   * baseline.
   */
  private drawLevel(lines: readonly Line[], heights: readonly number[], x: number) {
    let y = this.layout.y;
    for (const [row, line] of lines.entries()) {
      const leading = heights[row] ?? line.leading;
      this.layout.line({ ...line, leading }, x, y);
      y += leading;
    }
  }

  private drawLines(lines: readonly Line[], x: number) {
    for (const line of lines) {
      this.layout.line(line, x, this.layout.y);
      this.layout.y += line.leading;
    }
  }

  /** Calls `draw` for the rows of each page. */
  private eachPage(item: Paragraph | Fact, draw: (from: number, to: number) => void) {
    const { layout } = this;
    const rows = rowsOf(item);
    let from = 0;
    while (from < rows) {
      let to = from;
      let height = 0;
      while (to < rows && height + rowHeight(item, to) <= layout.room) {
        height += rowHeight(item, to);
        to += 1;
      }
      if (to > from) draw(from, to);
      from = to;
      if (from < rows) layout.newPage();
    }
  }
}

type PlacedColumn = Readonly<{
  column: Column;
  x: number;
}>;

/** Draws columns side by side on one page, or one below the other if they are too high for a page. */
export function drawBeside(parent: Element, layout: PageLayout, placed: readonly PlacedColumn[]) {
  const height = Math.max(...placed.map(({ column }) => column.height));
  if (height > layout.fullRoom) {
    for (const { column, x } of placed) column.draw(parent, x);
    return;
  }
  layout.keepTogether(height);
  const top = layout.y;
  for (const { column, x } of placed) {
    layout.y = top;
    column.draw(parent, x);
  }
  layout.y = top + height;
}
