/**
 * Draws the table of lines: the sales of each month, and the steps from the total to the amount due. Adjustments and
 * account statements draw their tables with the same rows and headings.
 */
import { Element } from './canvas.ts';
import { Step, Sums, Table, TableLine } from './content.ts';
import { COLUMN_GAP, Columns, layOutColumns, Place } from './line-columns.ts';
import { PageLayout } from './page.ts';
import { Style } from './template.ts';
import { Line, shrunk } from './text.ts';

const ROW_PADDING = 3.4;
const HEADER_SPACE = 5;
const SECTION_SPACE = 6;
const HEADING_SPACE = 5;
const STEP_SPACE = 4;
const TOTALS_RULE = 0.9;
/** The gap between the label of a step and its amount. */
const TOTAL_GAP = 18;
/** The width of the steps to the amount due, below the amounts, as a fraction. */
const STEPS_WIDTH = 0.5;

export type Cell = Readonly<{
  tag: 'TH' | 'TD';
  scope?: 'Row' | 'Column';
  place: Place;
  lines: readonly Line[];
  align: 'left' | 'right';
  link?: Readonly<{ url: string; says: string }> | undefined;
}>;

/** A table that continues on further pages, where its headings repeat. */
type TableDrawing = Readonly<{
  layout: PageLayout;
  headings: readonly Cell[];
}>;

type Drawing = TableDrawing &
  Readonly<{
    columns: Columns;
  }>;

export function drawLines(layout: PageLayout, table: Table) {
  const { sections, total, steps } = table;
  const columns = layOutColumns(layout, table);
  const drawing = { layout, columns, headings: headingCells(layout, columns) };
  drawHeading(drawing, table);
  const element = layout.open(layout.root, 'Table');
  drawColumnHeadings(drawing, layout.open(layout.open(element, 'THead'), 'TR'));
  const subtotal = sections.length > 1 ? rowHeight(layout) : 0;
  const closing = subtotal + totalsHeight(layout, steps);
  for (const section of sections) {
    const body = layout.open(element, 'TBody');
    const isLast = section === sections.at(-1);
    if (section.heading !== '') drawSectionHeading(drawing, body, section.heading);
    for (const line of section.lines) {
      // The last line stays with the totals, so that they are never alone on a page.
      const company = isLast && line === section.lines.at(-1) ? closing : 0;
      drawRow(drawing, body, lineCells(drawing, line), section.continued, company);
    }
    if (sections.length > 1) drawSubtotal(drawing, body, section.subtotal, section.continued);
  }
  drawTotals(drawing, layout.open(element, 'TFoot'), total, steps);
}

// --- Headings ---

function drawHeading({ layout, headings }: Drawing, { heading: text, note }: Table) {
  const heading = { style: layout.style('heading'), text };
  const noteWidth = layout.width - layout.measure(heading) - COLUMN_GAP;
  const noteStyle = shrunk(layout.style('small'), [{ text: note, width: noteWidth }], layout.measure);
  layout.keepTogether(
    heading.style.leading + layout.space(HEADING_SPACE) + headerHeight(layout, headings) + 2 * rowHeight(layout),
  );
  layout.content(layout.open(layout.root, 'H2'), () => layout.text(heading, layout.left, layout.y));
  layout.content(layout.open(layout.root, 'P'), () => {
    layout.textTo({ text: note, style: noteStyle }, layout.left + layout.width, layout.y, heading.style.leading);
  });
  layout.y += heading.style.leading + layout.space(HEADING_SPACE);
}

function headingCells(layout: PageLayout, columns: Columns): Cell[] {
  const labels = layout.labels.lines;
  return [
    headingCell(layout, labels.policy, columns.policy, 'left'),
    headingCell(layout, labels.what, columns.what, 'left'),
    headingCell(layout, labels.count, columns.count, 'right'),
    ...columns.amounts.map((column) => headingCell(layout, column.heading, column, 'right')),
  ];
}

export const headingCell = (layout: PageLayout, text: string, place: Place, align: Cell['align']): Cell => ({
  tag: 'TH',
  scope: 'Column',
  place,
  align,
  lines: layout.lines(text, layout.style('column'), place.width),
});

const headerHeight = (layout: PageLayout, headings: readonly Cell[]) =>
  Math.max(...headings.map((cell) => linesHeight(cell.lines))) + 2 * layout.space(HEADER_SPACE);

/** Draws column headings in the given row; without one, they are decoration, repeated at the top of a page. */
export function drawColumnHeadings({ layout, headings }: TableDrawing, row?: Element) {
  const height = headerHeight(layout, headings);
  layout.rule(layout.left, layout.y, layout.width, 'strong_rule', TOTALS_RULE);
  for (const cell of headings) {
    // Headings of different heights are aligned at the bottom.
    const top = layout.y + height - layout.space(HEADER_SPACE) - linesHeight(cell.lines);
    const draw = () => drawCell(layout, cell, cell.lines, top);
    if (row === undefined) layout.artifact(draw, 'Pagination');
    else layout.content(layout.open(row, 'TH', { scope: 'Column' }), draw);
  }
  layout.y += height;
  layout.rule(layout.left, layout.y, layout.width);
}

function drawSectionHeading(drawing: Drawing, body: Element, heading: string) {
  const { layout, columns } = drawing;
  const style = layout.style('section');
  const height = layout.space(SECTION_SPACE) + style.leading + layout.space(ROW_PADDING);
  breakBefore(drawing, height + rowHeight(layout));
  layout.y += layout.space(SECTION_SPACE);
  const row = layout.open(body, 'TR');
  const run = { style, text: heading };
  layout.content(layout.open(row, 'TH', { scope: 'Row' }), () => layout.text(run, columns.policy.x, layout.y));
  // A row has a cell for every column, even an empty one.
  for (let cell = 1; cell < drawing.headings.length; cell += 1) layout.open(row, 'TD');
  layout.y += style.leading + layout.space(ROW_PADDING);
}

// --- Rows ---

const linesHeight = (lines: readonly Line[]) => lines.reduce((total, line) => total + line.leading, 0);
export const rowHeight = (layout: PageLayout) => layout.style('cell').leading + 2 * layout.space(ROW_PADDING);

function numberCell(layout: PageLayout, text: string, place: Place, style: Style): Cell {
  const run = { text, style };
  return {
    tag: 'TD',
    place,
    align: 'right',
    lines: [{ runs: [run], width: layout.measure(run), leading: style.leading }],
  };
}

function amountCells({ layout, columns }: Drawing, amounts: readonly string[], style: Style): Cell[] {
  const sized = { ...style, size: columns.numberSize };
  return columns.amounts.map((column, at) => numberCell(layout, amounts[at] ?? '', column, sized));
}

function lineCells(drawing: Drawing, { policy, what, count, amounts }: TableLine): Cell[] {
  const { layout, columns } = drawing;
  const style = layout.style('cell');
  const left = (text: string, place: Place) => ({
    place,
    align: 'left' as const,
    lines: layout.lines(text, style, place.width),
  });
  const number = { ...style, size: columns.numberSize };
  return [
    { tag: 'TH', scope: 'Row', ...left(policy, columns.policy) },
    { tag: 'TD', ...left(what, columns.what) },
    numberCell(layout, count, columns.count, number),
    ...amountCells(drawing, amounts, style),
  ];
}

/** Kept on one page, with as much below it as `company`, unless it is higher than a page. */
export function drawRow(drawing: TableDrawing, body: Element, cells: readonly Cell[], continued = '', company = 0) {
  const { layout } = drawing;
  const row = layout.open(body, 'TR');
  const elements = cells.map((cell) => ({
    cell,
    element: layout.open(row, cell.tag, cell.scope === undefined ? {} : { scope: cell.scope }),
  }));
  const height = Math.max(...cells.map((cell) => linesHeight(cell.lines))) + 2 * layout.space(ROW_PADDING);
  breakBefore(drawing, height + company, continued);
  const count = Math.max(...cells.map((cell) => cell.lines.length));
  const leading = Math.max(...cells.flatMap(({ lines }) => lines.map((line) => line.leading)));
  let from = 0;
  while (from < count) {
    if (from > 0) breakPage(drawing, continued);
    const to = Math.min(count, from + Math.max(1, Math.floor((layout.room - 2 * layout.space(ROW_PADDING)) / leading)));
    const top = layout.y + layout.space(ROW_PADDING);
    for (const { cell, element } of elements) {
      const lines = cell.lines.slice(from, to);
      const draw = () => drawCell(layout, cell, lines, top);
      if (lines.length > 0 && cell.link === undefined) layout.content(element, draw);
      else if (lines.length > 0 && cell.link !== undefined) {
        const width = Math.max(...lines.map((line) => line.width));
        layout.link(element, { x: cell.place.x, y: top, width, height: linesHeight(lines) }, { ...cell.link, draw });
      }
    }
    layout.y = top + (to - from) * leading + layout.space(ROW_PADDING);
    from = to;
  }
  layout.rule(layout.left, layout.y, layout.width);
}

function drawCell(layout: PageLayout, cell: Cell, lines: readonly Line[], top: number) {
  let y = top;
  for (const line of lines) {
    const x = cell.align === 'left' ? cell.place.x : cell.place.x + cell.place.width - line.width;
    layout.line(line, x, y);
    y += line.leading;
  }
}

/** Starts a new page with the column headings if this height does not fit. */
function breakBefore(drawing: TableDrawing, height: number, continued?: string) {
  const { layout, headings } = drawing;
  const fitsElsewhere = height + headerHeight(layout, headings) <= layout.fullRoom;
  if (height > layout.room && fitsElsewhere) breakPage(drawing, continued);
}

function breakPage(drawing: TableDrawing, continued = '') {
  const { layout } = drawing;
  layout.newPage();
  drawColumnHeadings(drawing);
  if (continued === '') return;
  layout.y += layout.space(SECTION_SPACE);
  const run = { style: layout.style('section'), text: continued };
  layout.artifact(() => layout.text(run, layout.left, layout.y), 'Pagination');
  layout.y += run.style.leading + layout.space(ROW_PADDING);
}

// --- Totals ---

function drawSums(drawing: Drawing, parent: Element, { label, amounts }: Sums) {
  const { layout, columns } = drawing;
  const style = layout.style('cell_strong');
  const width = (columns.amounts[0] as Place).x - COLUMN_GAP - layout.left;
  const row = layout.open(parent, 'TR');
  const top = layout.y + layout.space(ROW_PADDING);
  const labeled = shrunk(style, [{ text: label, width }], layout.measure);
  layout.content(layout.open(row, 'TH', { scope: 'Row' }), () => {
    layout.text({ text: label, style: labeled }, layout.left, top);
  });
  layout.open(row, 'TD');
  layout.open(row, 'TD');
  for (const cell of amountCells(drawing, amounts, style)) {
    layout.content(layout.open(row, 'TD'), () => drawCell(layout, cell, cell.lines, top));
  }
  layout.y = top + style.leading + layout.space(ROW_PADDING);
}

function drawSubtotal(drawing: Drawing, body: Element, subtotal: Sums, continued: string) {
  const { layout } = drawing;
  breakBefore(drawing, rowHeight(layout), continued);
  drawSums(drawing, body, subtotal);
  layout.rule(layout.left, layout.y, layout.width);
}

const totalsHeight = (layout: PageLayout, steps: readonly Step[]) =>
  2 * rowHeight(layout) + steps.length * (layout.style('total').leading + 2 * layout.space(STEP_SPACE));

function drawTotals(drawing: Drawing, foot: Element, total: Sums, steps: readonly Step[]) {
  const { layout } = drawing;
  breakBefore(drawing, totalsHeight(layout, steps));
  layout.rule(layout.left, layout.y, layout.width, 'strong_rule', TOTALS_RULE);
  drawSums(drawing, foot, total);
  for (const step of steps) drawStep(drawing, foot, step, step === steps.at(-1));
}

/** Draws a step from the total to the amount due. The last step is the result, with its currency. */
function drawStep({ layout, headings }: Drawing, foot: Element, { label, amount }: Step, isResult: boolean) {
  const width = layout.width * STEPS_WIDTH;
  const right = layout.left + layout.width;
  const left = right - width;
  const style = layout.style(isResult ? 'total' : 'cell');
  const fitted = shrunk(style, [{ text: `${label}${amount}`, width: width - TOTAL_GAP }], layout.measure);
  if (isResult) layout.rule(left, layout.y, width, 'strong_rule', TOTALS_RULE);
  layout.y += layout.space(STEP_SPACE);
  const row = layout.open(foot, 'TR');
  layout.content(layout.open(row, 'TH', { scope: 'Row' }), () => {
    layout.text({ text: label, style: fitted }, left, layout.y);
  });
  // The row's label, then an empty cell for each column before the amount's.
  for (let cell = 1; cell < headings.length - 1; cell += 1) layout.open(row, 'TD');
  layout.content(layout.open(row, 'TD'), () => layout.textTo({ text: amount, style: fitted }, right, layout.y));
  layout.y += style.leading + layout.space(STEP_SPACE) / 2;
}
