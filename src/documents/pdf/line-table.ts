/** The table of lines: what was sold, month by month, and the steps from the total to the amount due. */
import { monthName } from '../../month.ts';
import type { Presentation, Total } from '../present.ts';
import type { DocumentSnapshot, SnapshotLine } from '../snapshot.ts';
import type { Element } from './canvas.ts';
import {
  type Amounts,
  COLUMN_GAP,
  type Columns,
  layOutColumns,
  type Place,
  policyNames,
  type Section,
} from './line-columns.ts';
import type { PageLayout } from './page-layout.ts';
import { fill, type Style } from './template.ts';
import { type Line, shrunk } from './text.ts';

const ROW_PADDING = 3.4;
const HEADER_SPACE = 5;
const SECTION_SPACE = 6;
const HEADING_SPACE = 5;
const STEP_SPACE = 4;
const TOTALS_RULE = 0.9;
/** Between the label of a step and its amount. */
const TOTAL_GAP = 18;
/** The part of the width for the steps to the amount due, below the amounts. */
const STEPS_WIDTH = 0.5;

interface Cell {
  readonly tag: 'TH' | 'TD';
  readonly scope?: 'Row' | 'Column';
  readonly place: Place;
  readonly lines: readonly Line[];
  readonly align: 'left' | 'right';
}

interface Table {
  readonly layout: PageLayout;
  readonly snapshot: DocumentSnapshot;
  readonly columns: Columns;
  readonly names: ReadonlyMap<string, string>;
  readonly headings: readonly Cell[];
  /** What follows the kind of a line. */
  readonly taxOfLine: (line: SnapshotLine) => string;
}

export function drawLines(
  layout: PageLayout,
  snapshot: DocumentSnapshot,
  presentation: Presentation,
  sections: readonly Section[],
): void {
  const columns = layOutColumns(layout, snapshot, presentation, sections);
  const table: Table = {
    layout,
    snapshot,
    columns,
    names: policyNames(snapshot.lines),
    headings: headingCells(layout, columns),
    taxOfLine: presentation.tax.ofLine,
  };
  drawHeading(table);
  const element = layout.open(layout.root, 'Table');
  drawColumnHeadings(table, layout.open(layout.open(element, 'THead'), 'TR'));
  const subtotal = sections.length > 1 ? rowHeight(layout) : 0;
  const closing = subtotal + totalsHeight(table, presentation);
  for (const section of sections) {
    const body = layout.open(element, 'TBody');
    const isLast = section === sections.at(-1);
    if (section.late) drawSectionHeading(table, body, section);
    for (const line of section.lines) {
      // The last line moves to a new page with the totals, so that they never stand there alone.
      const company = isLast && line === section.lines.at(-1) ? closing : 0;
      drawRow(table, body, lineCells(table, line), section, company);
    }
    if (sections.length > 1) drawSubtotal(table, body, section);
  }
  drawTotals(table, layout.open(element, 'TFoot'), presentation);
}

// --- Headings -------------------------------------------------------------------------------------------------------

/** The document's month, and the currency that all amounts are in. */
function drawHeading({ layout, snapshot, headings }: Table): void {
  const { lines } = layout.labels;
  const heading = { style: layout.style('heading'), text: fill(lines.heading, { month: monthName(snapshot.month) }) };
  const notes = [
    fill(lines.currency, { currency: snapshot.currency }),
    ...(snapshot.document === 'credit_note' && snapshot.lines.length > 0 ? [lines.credit_note_signs] : []),
  ];
  const note = notes.join('. ');
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
  const style = layout.style('column');
  const cell = (text: string, place: Place, align: Cell['align']): Cell => ({
    tag: 'TH',
    scope: 'Column',
    place,
    align,
    lines: layout.lines(text, style, place.width),
  });
  return [
    cell(labels.policy, columns.policy, 'left'),
    cell(labels.what, columns.what, 'left'),
    cell(labels.count, columns.count, 'right'),
    ...columns.amounts.map((column) => cell(column.heading, column, 'right')),
  ];
}

const headerHeight = (layout: PageLayout, headings: readonly Cell[]): number =>
  Math.max(...headings.map((cell) => linesHeight(cell.lines))) + 2 * layout.space(HEADER_SPACE);

/** Column headings, tagged in the given row, or as decoration if a page repeats them. */
function drawColumnHeadings({ layout, headings }: Table, row?: Element): void {
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

const sectionTitle = ({ layout }: Table, section: Section): string =>
  fill(layout.labels.lines.late, { month: section.name });

function drawSectionHeading(table: Table, body: Element, section: Section): void {
  const { layout, columns } = table;
  const style = layout.style('section');
  const height = layout.space(SECTION_SPACE) + style.leading + layout.space(ROW_PADDING);
  breakBefore(table, height + rowHeight(layout));
  layout.y += layout.space(SECTION_SPACE);
  const row = layout.open(body, 'TR');
  const run = { style, text: sectionTitle(table, section) };
  layout.content(layout.open(row, 'TH', { scope: 'Row' }), () => layout.text(run, columns.policy.x, layout.y));
  // A row has a cell for every column, even an empty one.
  for (let cell = 1; cell < table.headings.length; cell += 1) layout.open(row, 'TD');
  layout.y += style.leading + layout.space(ROW_PADDING);
}

// --- Rows -----------------------------------------------------------------------------------------------------------

const linesHeight = (lines: readonly Line[]): number => lines.reduce((total, line) => total + line.leading, 0);
const rowHeight = (layout: PageLayout): number => layout.style('cell').leading + 2 * layout.space(ROW_PADDING);

function numberCell(layout: PageLayout, text: string, place: Place, style: Style): Cell {
  const run = { text, style };
  return {
    tag: 'TD',
    place,
    align: 'right',
    lines: [{ runs: [run], width: layout.measure(run), leading: style.leading }],
  };
}

function amountCells({ layout, columns }: Table, amounts: Amounts, style: Style): Cell[] {
  const sized = { ...style, size: columns.numberSize };
  return columns.amounts.map((column) => numberCell(layout, layout.locale.number(amounts[column.name]), column, sized));
}

function lineCells(table: Table, line: SnapshotLine): Cell[] {
  const { layout, columns, names } = table;
  const style = layout.style('cell');
  const left = (text: string, place: Place) => ({
    place,
    align: 'left' as const,
    lines: layout.lines(text, style, place.width),
  });
  const number = { ...style, size: columns.numberSize };
  return [
    { tag: 'TH', scope: 'Row', ...left(names.get(line.policy_id) ?? line.policy_id, columns.policy) },
    { tag: 'TD', ...left(`${layout.labels.lines.kind[line.kind]}${table.taxOfLine(line)}`, columns.what) },
    numberCell(layout, layout.locale.number(String(line.count)), columns.count, number),
    ...amountCells(table, line, style),
  ];
}

/** A row, kept on one page unless it is higher than a page. */
function drawRow(table: Table, body: Element, cells: readonly Cell[], section: Section, company: number): void {
  const { layout } = table;
  const row = layout.open(body, 'TR');
  const elements = cells.map((cell) => ({
    cell,
    element: layout.open(row, cell.tag, cell.scope === undefined ? {} : { scope: cell.scope }),
  }));
  const height = Math.max(...cells.map((cell) => linesHeight(cell.lines))) + 2 * layout.space(ROW_PADDING);
  breakBefore(table, height + company, section);
  const count = Math.max(...cells.map((cell) => cell.lines.length));
  const leading = layout.style('cell').leading;
  let from = 0;
  while (from < count) {
    if (from > 0) breakPage(table, section);
    const to = Math.min(count, from + Math.max(1, Math.floor((layout.room - 2 * layout.space(ROW_PADDING)) / leading)));
    const top = layout.y + layout.space(ROW_PADDING);
    for (const { cell, element } of elements) {
      const lines = cell.lines.slice(from, to);
      if (lines.length > 0) layout.content(element, () => drawCell(layout, cell, lines, top));
    }
    layout.y = top + (to - from) * leading + layout.space(ROW_PADDING);
    from = to;
  }
  layout.rule(layout.left, layout.y, layout.width);
}

function drawCell(layout: PageLayout, cell: Cell, lines: readonly Line[], top: number): void {
  let y = top;
  for (const line of lines) {
    const x = cell.align === 'left' ? cell.place.x : cell.place.x + cell.place.width - line.width;
    layout.line(line, x, y);
    y += line.leading;
  }
}

/** Starts a new page with the column headings if this height does not fit on the current one. */
function breakBefore(table: Table, height: number, section?: Section): void {
  const { layout, headings } = table;
  const fitsElsewhere = height + headerHeight(layout, headings) <= layout.fullRoom;
  if (height > layout.room && fitsElsewhere) breakPage(table, section);
}

function breakPage(table: Table, section?: Section): void {
  const { layout } = table;
  layout.newPage();
  drawColumnHeadings(table);
  if (!section?.late) return;
  const continued = fill(layout.labels.lines.continued, { section: sectionTitle(table, section) });
  layout.y += layout.space(SECTION_SPACE);
  const run = { style: layout.style('section'), text: continued };
  layout.artifact(() => layout.text(run, layout.left, layout.y), 'Pagination');
  layout.y += run.style.leading + layout.space(ROW_PADDING);
}

// --- Totals ---------------------------------------------------------------------------------------------------------

/** A label across the columns without amounts, and the three sums. */
function drawSums(table: Table, parent: Element, label: string, amounts: Amounts): void {
  const { layout, columns } = table;
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
  for (const cell of amountCells(table, amounts, style)) {
    layout.content(layout.open(row, 'TD'), () => drawCell(layout, cell, cell.lines, top));
  }
  layout.y = top + style.leading + layout.space(ROW_PADDING);
}

function drawSubtotal(table: Table, body: Element, section: Section): void {
  breakBefore(table, rowHeight(table.layout), section);
  drawSums(table, body, fill(table.layout.labels.lines.subtotal, { month: section.name }), section.subtotal);
  table.layout.rule(table.layout.left, table.layout.y, table.layout.width);
}

const totalsHeight = ({ layout }: Table, { steps }: Presentation): number =>
  2 * rowHeight(layout) + steps.length * (layout.style('total').leading + 2 * layout.space(STEP_SPACE));

function drawTotals(table: Table, foot: Element, presentation: Presentation): void {
  const { layout, snapshot } = table;
  breakBefore(table, totalsHeight(table, presentation));
  layout.rule(layout.left, layout.y, layout.width, 'strong_rule', TOTALS_RULE);
  drawSums(table, foot, presentation.total.label, snapshot);
  const { steps } = presentation;
  for (const step of steps) drawStep(table, foot, step, step === steps.at(-1));
}

/** One step from the total to the amount due; the last is the result, with its currency. */
function drawStep({ layout, headings }: Table, foot: Element, step: Total, isResult: boolean): void {
  const width = layout.width * STEPS_WIDTH;
  const right = layout.left + layout.width;
  const left = right - width;
  const style = layout.style(isResult ? 'total' : 'cell');
  const amount = isResult ? layout.locale.amount(step.amount) : layout.locale.number(step.amount.toString());
  const fitted = shrunk(style, [{ text: `${step.label}${amount}`, width: width - TOTAL_GAP }], layout.measure);
  if (isResult) layout.rule(left, layout.y, width, 'strong_rule', TOTALS_RULE);
  layout.y += layout.space(STEP_SPACE);
  const row = layout.open(foot, 'TR');
  layout.content(layout.open(row, 'TH', { scope: 'Row' }), () => {
    layout.text({ text: step.label, style: fitted }, left, layout.y);
  });
  // Its label, then an empty cell for each column up to the amount's.
  for (let cell = 1; cell < headings.length - 1; cell += 1) layout.open(row, 'TD');
  layout.content(layout.open(row, 'TD'), () => layout.textTo({ text: amount, style: fitted }, right, layout.y));
  layout.y += style.leading + layout.space(STEP_SPACE) / 2;
}
