/**
 * Draws a statement of account as a tagged PDF, with the letterhead, type and paper of the documents. The same statement
 * gives the same bytes.
 */
import type { Issuer } from '../config/settings.ts';
import { Column } from '../documents/draw/column.ts';
import type { Element } from '../documents/draw/ink.ts';
import { PdfInk } from '../documents/draw/ink.ts';
import { drawNames } from '../documents/draw/letterhead.ts';
import { Sheet } from '../documents/draw/sheet.ts';
import { fill, readTemplate } from '../documents/draw/template.ts';
import { drawable, shortened } from '../documents/draw/text.ts';
import { addressLines } from '../documents/draw/wording.ts';
import { localeOf } from '../documents/locale.ts';
import { type AccountStatement, movementName, type Statement, type StatementLine } from './statement.ts';

export interface StatementFace {
  readonly statement: Statement;
  readonly issuer: Issuer;
  readonly sandbox: boolean;
}

const ROW_PADDING = 3.4;
const COLUMN_GAP = 12;
const BEFORE_TABLE = 16;
const AFTER_ADDRESS = 6;
const STRONG_RULE = 0.9;

interface TableColumn {
  readonly heading: string;
  /** In parts of the width. */
  readonly width: number;
  readonly align: 'left' | 'right';
}

interface TableRow {
  readonly cells: readonly string[];
  /** Stands out: the balances before and after. */
  readonly strong?: boolean;
}

export async function drawStatement({ statement, issuer, sandbox }: StatementFace): Promise<Buffer> {
  const { address } = statement;
  const template = readTemplate();
  const labels = template.labels.account;
  const locale = localeOf(address.country);
  const period = fill(labels.period, { from: locale.date(statement.from), to: locale.date(statement.as_of) });
  const paper = template.theme.letter_countries.includes(issuer.address.country) ? 'letter' : 'a4';
  const size = template.theme.paper[paper];
  const pdf = new PdfInk({
    size,
    title: `${labels.title}, ${drawable(statement.name)}, ${period}`,
    author: drawable(issuer.legal_name),
    issuedOn: statement.as_of,
    colours: template.theme.colours,
  });
  const mark = { banner: labels.sandbox, across: labels.sandbox, style: 'watermark', spoken: 'first' } as const;
  const running = {
    continued: fill(template.labels.running.continued, { title: labels.title, number: period }),
    about: drawable(statement.name),
    foot: [issuer.legal_name, issuer.email, issuer.phone].map(drawable).filter(Boolean).join('  ·  '),
    mark: sandbox ? mark : null,
  };
  const sheet = new Sheet({ ink: pdf, size, air: 1, running, template, locale });
  drawNames(sheet, { issuer }, { title: labels.title, number: period }, template);
  const column = new Column(sheet, sheet.width);
  column.text(labels.addressee, sheet.style('label'));
  column.text(drawable(statement.name), sheet.style('strong'), { before: 1 });
  for (const line of addressLines(address, template)) column.text(line, sheet.style('body'));
  column.text(`${template.labels.facts.partner_id} ${statement.partner_id}`, sheet.style('small'), {
    before: AFTER_ADDRESS,
  });
  column.text(statement.accounts.length === 0 ? labels.nothing : labels.favour, sheet.style('small'));
  column.draw(sheet.root, sheet.left);
  for (const account of statement.accounts) drawAccount(sheet, statement, account);
  for (let page = 1; page <= sheet.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    sheet.drawFoot(page);
  }
  return pdf.finish();
}

function drawAccount(sheet: Sheet, { from, as_of: asOf }: Statement, account: AccountStatement): void {
  const { account: labels } = sheet.labels;
  const { currency } = account;
  const number = (text: string) => sheet.locale.number(text);
  const right = (heading: string, width: number): TableColumn => ({ heading, width, align: 'right' });
  const left = (heading: string, width: number): TableColumn => ({ heading, width, align: 'left' });
  drawTable(
    sheet,
    fill(labels.heading, { currency }),
    [left(labels.date, 0.2), left(labels.what, 0.42), right(labels.amount, 0.19), right(labels.balance, 0.19)],
    [
      { cells: [sheet.locale.date(from), labels.brought_forward, '', number(account.opening)], strong: true },
      ...account.lines.map((line) => ({
        cells: [sheet.locale.date(line.date), movement(labels, line), number(line.amount), number(line.balance)],
      })),
      { cells: [sheet.locale.date(asOf), labels.closing, '', number(account.closing)], strong: true },
    ],
  );
  const overdue = (days: number | null) =>
    days === null || days <= 0 ? '' : days === 1 ? labels.one_day : fill(labels.days, { days: String(days) });
  const rows: TableRow[] = account.open_items.map((item) => ({
    cells: [
      item.number,
      item.due_on === null ? labels.credit : sheet.locale.date(item.due_on),
      overdue(item.days_due),
      number(item.document === 'credit_note' ? `-${item.balance}` : item.balance),
    ],
  }));
  if (Number(account.unapplied) !== 0)
    rows.push({ cells: [labels.unapplied, '', '', number(`-${account.unapplied}`)] });
  if (rows.length === 0) return;
  drawTable(
    sheet,
    fill(labels.open, { date: sheet.locale.date(asOf), currency }),
    [left(labels.what, 0.38), left(labels.due, 0.24), right(labels.overdue, 0.19), right(labels.balance, 0.19)],
    [...rows, { cells: [labels.closing, '', '', number(account.closing)], strong: true }],
  );
}

const movement = (labels: Sheet['labels']['account'], line: StatementLine): string =>
  fill(labels.movements[movementName(line)], { of: drawable(line.document ?? line.reference ?? '') }).trim();

// --- Tables ---------------------------------------------------------------------------------------------------------------

/** A heading and a table whose rows stay whole; its columns are named again on each page. */
function drawTable(sheet: Sheet, title: string, columns: readonly TableColumn[], rows: readonly TableRow[]): void {
  const heading = { style: sheet.style('heading'), text: title };
  const height = sheet.style('cell').leading + 2 * ROW_PADDING;
  sheet.y += BEFORE_TABLE;
  sheet.keepTogether(heading.style.leading + ROW_PADDING + 3 * height);
  sheet.content(sheet.open(sheet.root, 'H2'), () => sheet.text(heading, sheet.left, sheet.y));
  sheet.y += heading.style.leading + ROW_PADDING;
  const table = sheet.open(sheet.root, 'Table');
  drawHeadings(sheet, columns, height, sheet.open(sheet.open(table, 'THead'), 'TR'));
  const body = sheet.open(table, 'TBody');
  for (const row of rows) {
    if (height > sheet.room) {
      sheet.newPage();
      drawHeadings(sheet, columns, height);
    }
    const element = sheet.open(body, 'TR');
    const style = sheet.style(row.strong ? 'cell_strong' : 'cell');
    eachCell(sheet, columns, (column, index, x, width) => {
      const text = row.cells[index] ?? '';
      const cell = index === 0 ? sheet.open(element, 'TH', { scope: 'Row' }) : sheet.open(element, 'TD');
      if (text === '') return;
      const run = shortened({ style, text }, width, sheet.measure);
      sheet.content(cell, () =>
        column.align === 'left'
          ? sheet.text(run, x, sheet.y + ROW_PADDING)
          : sheet.textTo(run, x + width, sheet.y + ROW_PADDING),
      );
    });
    sheet.y += height;
    sheet.rule(sheet.left, sheet.y, sheet.width);
  }
}

/** Tagged in the given row, or as decoration where a page repeats them. */
function drawHeadings(sheet: Sheet, columns: readonly TableColumn[], height: number, row?: Element): void {
  sheet.rule(sheet.left, sheet.y, sheet.width, 'strong_rule', STRONG_RULE);
  const style = sheet.style('column');
  eachCell(sheet, columns, ({ heading, align }, _, x, width) => {
    const run = shortened({ style, text: heading }, width, sheet.measure);
    const draw = () =>
      align === 'left'
        ? sheet.text(run, x, sheet.y + ROW_PADDING)
        : sheet.textTo(run, x + width, sheet.y + ROW_PADDING);
    if (row === undefined) sheet.artifact(draw, 'Pagination');
    else sheet.content(sheet.open(row, 'TH', { scope: 'Column' }), draw);
  });
  sheet.y += height;
  sheet.rule(sheet.left, sheet.y, sheet.width);
}

function eachCell(
  sheet: Sheet,
  columns: readonly TableColumn[],
  draw: (column: TableColumn, index: number, x: number, width: number) => void,
): void {
  const room = sheet.width - COLUMN_GAP * (columns.length - 1);
  let x = sheet.left;
  columns.forEach((column, index) => {
    const width = room * column.width;
    draw(column, index, x, width);
    x += width + COLUMN_GAP;
  });
}
