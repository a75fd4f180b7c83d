/** The table of lines: what was sold, month by month, and how it adds up to what is owed. */
import { monthName } from '../../month.ts';
import type { DocumentFace, FaceLine } from '../face.ts';
import {
  AMOUNTS,
  type Amounts,
  COLUMN_GAP,
  type Columns,
  layOutColumns,
  type Place,
  policyNames,
  type Section,
  sectionsOf,
} from './columns.ts';
import type { Edition } from './edition.ts';
import type { Element } from './ink.ts';
import type { Sheet } from './sheet.ts';
import { fill, type Style } from './template.ts';
import { type Line, shrunk } from './text.ts';
import type { Total, Wording } from './wording.ts';

const ROW_PADDING = 3.4;
const HEADER_SPACE = 5;
const SECTION_SPACE = 6;
const HEADING_SPACE = 5;
const STEP_SPACE = 4;
const TOTALS_RULE = 0.9;
/** Between the label of a step and its amount. */
const TOTAL_GAP = 18;
/** The steps to what is owed stand below the amounts, on this part of the width. */
const STEPS_WIDTH = 0.5;
/** Cells of a step before its amount: its label, and those of the columns that it has nothing for. */
const CELLS_BEFORE_AMOUNT = 5;

interface Cell {
  readonly tag: 'TH' | 'TD';
  readonly scope?: 'Row' | 'Column';
  readonly place: Place;
  readonly lines: readonly Line[];
  readonly align: 'left' | 'right';
}

interface Table {
  readonly sheet: Sheet;
  readonly face: DocumentFace;
  readonly columns: Columns;
  readonly names: ReadonlyMap<string, string>;
  readonly headings: readonly Cell[];
}

export function drawLines(sheet: Sheet, face: DocumentFace, wording: Wording, edition: Edition): void {
  const sections = sectionsOf(face);
  const columns = layOutColumns(sheet, face, sections);
  const table: Table = {
    sheet,
    face,
    columns,
    names: policyNames(face.lines),
    headings: headingCells(sheet, face, columns),
  };
  drawHeading(table);
  const element = sheet.open(sheet.root, 'Table');
  drawColumnHeadings(table, sheet.open(sheet.open(element, 'THead'), 'TR'));
  const subtotal = sections.length > 1 && edition.totalsTakeSubtotal ? rowHeight(sheet) : 0;
  const closing = subtotal + totalsHeight(table, wording);
  for (const section of sections) {
    const body = sheet.open(element, 'TBody');
    const isLast = section === sections.at(-1);
    if (section.late) drawSectionHeading(table, body, section);
    for (const line of section.lines) {
      // The last line goes to a new page with the totals, lest they stand there alone.
      const company = isLast && line === section.lines.at(-1) ? closing : 0;
      drawRow(table, body, lineCells(table, line), section, company);
    }
    if (sections.length > 1) drawSubtotal(table, body, section);
  }
  drawTotals(table, sheet.open(element, 'TFoot'), wording);
}

// --- Headings -------------------------------------------------------------------------------------------------------

/** The document's month, and the currency that all amounts are in. */
function drawHeading({ sheet, face, headings }: Table): void {
  const { lines } = sheet.labels;
  const heading = { style: sheet.style('heading'), text: fill(lines.heading, { month: monthName(face.month) }) };
  const notes = [
    fill(lines.currency, { currency: face.currency }),
    ...(face.document === 'credit_note' && face.lines.length > 0 ? [lines.credit_note_signs] : []),
  ];
  const note = notes.join('. ');
  const noteWidth = sheet.width - sheet.measure(heading) - COLUMN_GAP;
  const noteStyle = shrunk(sheet.style('small'), [{ text: note, width: noteWidth }], sheet.measure);
  sheet.keepTogether(
    heading.style.leading + sheet.space(HEADING_SPACE) + headerHeight(sheet, headings) + 2 * rowHeight(sheet),
  );
  sheet.content(sheet.open(sheet.root, 'H2'), () => sheet.text(heading, sheet.left, sheet.y));
  sheet.content(sheet.open(sheet.root, 'P'), () => {
    sheet.textTo({ text: note, style: noteStyle }, sheet.left + sheet.width, sheet.y, heading.style.leading);
  });
  sheet.y += heading.style.leading + sheet.space(HEADING_SPACE);
}

function headingCells(sheet: Sheet, face: DocumentFace, columns: Columns): Cell[] {
  const labels = sheet.labels.lines;
  const style = sheet.style('column');
  const cell = (text: string, place: Place, align: Cell['align']): Cell => ({
    tag: 'TH',
    scope: 'Column',
    place,
    align,
    lines: sheet.lines(text, style, place.width),
  });
  return [
    cell(labels.policy, columns.policy, 'left'),
    cell(labels.what, columns.what, 'left'),
    cell(labels.count, columns.count, 'right'),
    cell(labels.spotPrice, columns.spotPrice, 'right'),
    cell(labels.partnerCut, columns.partnerCut, 'right'),
    cell(labels.invoiceAmount[face.document], columns.invoiceAmount, 'right'),
  ];
}

const headerHeight = (sheet: Sheet, headings: readonly Cell[]): number =>
  Math.max(...headings.map((cell) => linesHeight(cell.lines))) + 2 * sheet.space(HEADER_SPACE);

/** Column headings, tagged in the given row, or as decoration where a page repeats them. */
function drawColumnHeadings({ sheet, headings }: Table, row?: Element): void {
  const height = headerHeight(sheet, headings);
  sheet.rule(sheet.left, sheet.y, sheet.width, 'strong_rule', TOTALS_RULE);
  for (const cell of headings) {
    // Headings of more than one line stand on the same base.
    const top = sheet.y + height - sheet.space(HEADER_SPACE) - linesHeight(cell.lines);
    const draw = () => drawCell(sheet, cell, cell.lines, top);
    if (row === undefined) sheet.artifact(draw, 'Pagination');
    else sheet.content(sheet.open(row, 'TH', { scope: 'Column' }), draw);
  }
  sheet.y += height;
  sheet.rule(sheet.left, sheet.y, sheet.width);
}

const sectionTitle = ({ sheet }: Table, section: Section): string =>
  fill(sheet.labels.lines.late, { month: section.name });

function drawSectionHeading(table: Table, body: Element, section: Section): void {
  const { sheet, columns } = table;
  const style = sheet.style('section');
  const height = sheet.space(SECTION_SPACE) + style.leading + sheet.space(ROW_PADDING);
  breakBefore(table, height + rowHeight(sheet));
  sheet.y += sheet.space(SECTION_SPACE);
  const row = sheet.open(body, 'TR');
  const run = { style, text: sectionTitle(table, section) };
  sheet.content(sheet.open(row, 'TH', { scope: 'Row' }), () => sheet.text(run, columns.policy.x, sheet.y));
  // A row has a cell for every column, also where nothing stands in it.
  for (let cell = 1; cell < table.headings.length; cell += 1) sheet.open(row, 'TD');
  sheet.y += style.leading + sheet.space(ROW_PADDING);
}

// --- Rows -----------------------------------------------------------------------------------------------------------

const linesHeight = (lines: readonly Line[]): number => lines.reduce((total, line) => total + line.leading, 0);
const rowHeight = (sheet: Sheet): number => sheet.style('cell').leading + 2 * sheet.space(ROW_PADDING);

function numberCell(sheet: Sheet, text: string, place: Place, style: Style): Cell {
  const run = { text, style };
  return {
    tag: 'TD',
    place,
    align: 'right',
    lines: [{ runs: [run], width: sheet.measure(run), leading: style.leading }],
  };
}

function amountCells({ sheet, columns }: Table, amounts: Amounts, style: Style): Cell[] {
  const sized = { ...style, size: columns.numberSize };
  return AMOUNTS.map((name) => numberCell(sheet, sheet.locale.number(amounts[name]), columns[name], sized));
}

function lineCells(table: Table, line: FaceLine): Cell[] {
  const { sheet, columns, names } = table;
  const style = sheet.style('cell');
  const left = (text: string, place: Place) => ({
    place,
    align: 'left' as const,
    lines: sheet.lines(text, style, place.width),
  });
  const number = { ...style, size: columns.numberSize };
  return [
    { tag: 'TH', scope: 'Row', ...left(names.get(line.policy_id) ?? line.policy_id, columns.policy) },
    { tag: 'TD', ...left(sheet.labels.lines.kind[line.kind], columns.what) },
    numberCell(sheet, sheet.locale.number(String(line.count)), columns.count, number),
    ...amountCells(table, line, style),
  ];
}

/** A row that stays on one page, unless it alone is higher than a page. */
function drawRow(table: Table, body: Element, cells: readonly Cell[], section: Section, company: number): void {
  const { sheet } = table;
  const row = sheet.open(body, 'TR');
  const elements = cells.map((cell) => ({
    cell,
    element: sheet.open(row, cell.tag, cell.scope === undefined ? {} : { scope: cell.scope }),
  }));
  const height = Math.max(...cells.map((cell) => linesHeight(cell.lines))) + 2 * sheet.space(ROW_PADDING);
  breakBefore(table, height + company, section);
  const count = Math.max(...cells.map((cell) => cell.lines.length));
  const leading = sheet.style('cell').leading;
  let from = 0;
  while (from < count) {
    if (from > 0) breakPage(table, section);
    const to = Math.min(count, from + Math.max(1, Math.floor((sheet.room - 2 * sheet.space(ROW_PADDING)) / leading)));
    const top = sheet.y + sheet.space(ROW_PADDING);
    for (const { cell, element } of elements) {
      const lines = cell.lines.slice(from, to);
      if (lines.length > 0) sheet.content(element, () => drawCell(sheet, cell, lines, top));
    }
    sheet.y = top + (to - from) * leading + sheet.space(ROW_PADDING);
    from = to;
  }
  sheet.rule(sheet.left, sheet.y, sheet.width);
}

function drawCell(sheet: Sheet, cell: Cell, lines: readonly Line[], top: number): void {
  let y = top;
  for (const line of lines) {
    const x = cell.align === 'left' ? cell.place.x : cell.place.x + cell.place.width - line.width;
    sheet.line(line, x, y);
    y += line.leading;
  }
}

/** Goes on to a new page with the column headings where that much does not fit on this one. */
function breakBefore(table: Table, height: number, section?: Section): void {
  const { sheet, headings } = table;
  const fitsElsewhere = height + headerHeight(sheet, headings) <= sheet.fullRoom;
  if (height > sheet.room && fitsElsewhere) breakPage(table, section);
}

function breakPage(table: Table, section?: Section): void {
  const { sheet } = table;
  sheet.newPage();
  drawColumnHeadings(table);
  if (!section?.late) return;
  const continued = fill(sheet.labels.lines.continued, { section: sectionTitle(table, section) });
  sheet.y += sheet.space(SECTION_SPACE);
  const run = { style: sheet.style('section'), text: continued };
  sheet.artifact(() => sheet.text(run, sheet.left, sheet.y), 'Pagination');
  sheet.y += run.style.leading + sheet.space(ROW_PADDING);
}

// --- Totals ---------------------------------------------------------------------------------------------------------

/** A label that reaches over the columns without amounts, and the three sums. */
function drawSums(table: Table, parent: Element, label: string, amounts: Amounts): void {
  const { sheet, columns } = table;
  const style = sheet.style('cell_strong');
  const width = columns.spotPrice.x - COLUMN_GAP - sheet.left;
  const row = sheet.open(parent, 'TR');
  const top = sheet.y + sheet.space(ROW_PADDING);
  const labelled = shrunk(style, [{ text: label, width }], sheet.measure);
  sheet.content(sheet.open(row, 'TH', { scope: 'Row' }), () => {
    sheet.text({ text: label, style: labelled }, sheet.left, top);
  });
  sheet.open(row, 'TD');
  sheet.open(row, 'TD');
  for (const cell of amountCells(table, amounts, style)) {
    sheet.content(sheet.open(row, 'TD'), () => drawCell(sheet, cell, cell.lines, top));
  }
  sheet.y = top + style.leading + sheet.space(ROW_PADDING);
}

function drawSubtotal(table: Table, body: Element, section: Section): void {
  breakBefore(table, rowHeight(table.sheet), section);
  drawSums(table, body, fill(table.sheet.labels.lines.subtotal, { month: section.name }), section.subtotal);
  table.sheet.rule(table.sheet.left, table.sheet.y, table.sheet.width);
}

const totalsHeight = ({ sheet }: Table, { steps }: Wording): number =>
  2 * rowHeight(sheet) + steps.length * (sheet.style('total').leading + 2 * sheet.space(STEP_SPACE));

function drawTotals(table: Table, foot: Element, wording: Wording): void {
  const { sheet, face } = table;
  breakBefore(table, totalsHeight(table, wording));
  sheet.rule(sheet.left, sheet.y, sheet.width, 'strong_rule', TOTALS_RULE);
  drawSums(table, foot, sheet.labels.totals.total, face);
  const steps = wording.steps;
  for (const step of steps) drawStep(table, foot, step, step === steps.at(-1));
}

/** One step from the total to what is owed; the last is the result, with its currency. */
function drawStep({ sheet }: Table, foot: Element, step: Total, isResult: boolean): void {
  const width = sheet.width * STEPS_WIDTH;
  const right = sheet.left + sheet.width;
  const left = right - width;
  const style = sheet.style(isResult ? 'total' : 'cell');
  const amount = isResult ? sheet.locale.amount(step.amount) : sheet.locale.number(step.amount.toString());
  const fitted = shrunk(style, [{ text: `${step.label}${amount}`, width: width - TOTAL_GAP }], sheet.measure);
  if (isResult) sheet.rule(left, sheet.y, width, 'strong_rule', TOTALS_RULE);
  sheet.y += sheet.space(STEP_SPACE);
  const row = sheet.open(foot, 'TR');
  sheet.content(sheet.open(row, 'TH', { scope: 'Row' }), () => {
    sheet.text({ text: step.label, style: fitted }, left, sheet.y);
  });
  for (let cell = 1; cell < CELLS_BEFORE_AMOUNT; cell += 1) sheet.open(row, 'TD');
  sheet.content(sheet.open(row, 'TD'), () => sheet.textTo({ text: amount, style: fitted }, right, sheet.y));
  sheet.y += style.leading + sheet.space(STEP_SPACE) / 2;
}
