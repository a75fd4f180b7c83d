/**
 * Draws a statement of account as a tagged PDF, with the letterhead, type and paper of the documents. The same statement
 * gives the same bytes.
 */
import type { Issuer } from '../config/settings.ts';
import { localeOf } from '../documents/locale.ts';
import { type AddedFont, withAddedFonts } from '../documents/pdf/added-fonts.ts';
import type { Element } from '../documents/pdf/canvas.ts';
import { PdfCanvas } from '../documents/pdf/canvas.ts';
import { drawNames } from '../documents/pdf/letterhead.ts';
import { PageLayout } from '../documents/pdf/page-layout.ts';
import { paperSize } from '../documents/pdf/render.ts';
import { fill, readTemplate } from '../documents/pdf/template.ts';
import { printable, shortened } from '../documents/pdf/text.ts';
import { Column } from '../documents/pdf/text-column.ts';
import { addressLines } from '../documents/present.ts';
import { addressText, type NamedText } from '../documents/printable.ts';
import { Amount, isZero } from '../money.ts';
import { type AccountStatement, type ActivityLine, activityName, type CurrencyAccount } from './account-statement.ts';
import { BUCKETS } from './aging.ts';

export interface StatementToRender {
  readonly statement: AccountStatement;
  readonly issuer: Issuer;
  readonly sandbox: boolean;
  /** The fonts that it needs besides the program's own. */
  readonly fonts?: readonly AddedFont[] | undefined;
}

const ROW_PADDING = 3.4;
const COLUMN_GAP = 12;
const BEFORE_TABLE = 16;
const AFTER_ADDRESS = 6;
const BEFORE_TOTAL = 14;
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

export async function renderAccountStatement(request: StatementToRender): Promise<Buffer> {
  return withAddedFonts(request.fonts ?? [], () => draw(request)).finish();
}

/** The texts of a statement that come from a partner, the settings or a bank. */
export const textsOfStatement = ({
  statement,
  issuer,
}: Pick<StatementToRender, 'statement' | 'issuer'>): NamedText[] => [
  ["the partner's name", statement.name],
  ["the partner's address", addressText(statement.address)],
  ["the issuer's name", issuer.legal_name],
  ["the issuer's address", addressText(issuer.address)],
  [
    'a payment reference',
    statement.accounts.flatMap(({ lines }) => lines.map((line) => line.reference ?? '')).join(' '),
  ],
];

function draw({ statement, issuer, sandbox }: StatementToRender): PdfCanvas {
  const { address } = statement;
  const template = readTemplate();
  const labels = template.labels.account;
  const locale = localeOf(address.country);
  const period = fill(labels.period, { from: locale.date(statement.from), to: locale.date(statement.as_of) });
  const size = paperSize(template.theme, { partner: { address }, issuer });
  const pdf = new PdfCanvas({
    size,
    title: `${labels.title}, ${printable(statement.name)}, ${period}`,
    author: printable(issuer.legal_name),
    issuedOn: statement.as_of,
    colors: template.theme.colors,
  });
  const mark = { banner: labels.sandbox, across: labels.sandbox, style: 'watermark', spoken: 'first' } as const;
  const running = {
    continued: fill(template.labels.running.continued, { title: labels.title, number: period }),
    about: printable(statement.name),
    foot: [issuer.legal_name, issuer.email, issuer.phone].map(printable).filter(Boolean).join('  ·  '),
    mark: sandbox ? mark : null,
  };
  const layout = new PageLayout({ canvas: pdf, size, spacing: 1, running, template, locale });
  drawNames(layout, { issuer }, { title: labels.title, number: period }, template);
  const column = new Column(layout, layout.width);
  column.text(labels.addressee, layout.style('label'));
  column.text(printable(statement.name), layout.style('strong'), { before: 1 });
  for (const line of addressLines(address, template, printable)) column.text(line, layout.style('body'));
  column.text(`${template.labels.facts.partner_id} ${statement.partner_id}`, layout.style('small'), {
    before: AFTER_ADDRESS,
  });
  const due = statement.accounts.filter(({ closing }) => Number(closing) > 0);
  for (const [index, { currency, closing }] of due.entries()) {
    const text = fill(labels.total_due, { amount: locale.amount(Amount.of(closing, currency)) });
    column.text(text, layout.style('headline_strong'), { before: index === 0 ? BEFORE_TOTAL : 0 });
  }
  if (due.length > 0) column.text(labels.pay, layout.style('body'));
  column.text(statement.accounts.length === 0 ? labels.nothing : labels.favor, layout.style('small'));
  column.draw(layout.root, layout.left);
  for (const account of statement.accounts) drawAccount(layout, statement, account);
  for (let page = 1; page <= layout.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    layout.drawFoot(page);
  }
  return pdf;
}

function drawAccount(layout: PageLayout, { from, as_of: asOf }: AccountStatement, account: CurrencyAccount): void {
  const { account: labels } = layout.labels;
  const { currency } = account;
  const number = (text: string) => layout.locale.number(text);
  const right = (heading: string, width: number): TableColumn => ({ heading, width, align: 'right' });
  const left = (heading: string, width: number): TableColumn => ({ heading, width, align: 'left' });
  drawTable(
    layout,
    fill(labels.heading, { currency }),
    [left(labels.date, 0.2), left(labels.what, 0.42), right(labels.amount, 0.19), right(labels.balance, 0.19)],
    [
      { cells: [layout.locale.date(from), labels.brought_forward, '', number(account.opening)], strong: true },
      ...account.lines.map((line) => ({
        cells: [layout.locale.date(line.date), movement(labels, line), number(line.amount), number(line.balance)],
      })),
      { cells: [layout.locale.date(asOf), labels.closing, '', number(account.closing)], strong: true },
    ],
  );
  const overdue = (days: number | null) =>
    days === null || days <= 0 ? '' : days === 1 ? labels.one_day : fill(labels.days, { days: String(days) });
  const rows: TableRow[] = account.open_items.map((item) => ({
    cells: [
      Number(item.disputed) === 0
        ? item.number
        : fill(labels.disputed, { number: item.number, amount: number(item.disputed) }),
      item.due_on === null ? labels.credit : layout.locale.date(item.due_on),
      overdue(item.days_due),
      number(item.document === 'credit_note' ? `-${item.balance}` : item.balance),
    ],
  }));
  if (!isZero(account.unapplied)) rows.push({ cells: [labels.unapplied, '', '', number(`-${account.unapplied}`)] });
  if (rows.length === 0) return;
  if (account.open_items.some(({ document }) => document === 'invoice')) {
    drawTable(
      layout,
      fill(labels.aging, { currency }),
      BUCKETS.map((bucket) => right(labels.buckets[bucket], 1 / BUCKETS.length)),
      [{ cells: BUCKETS.map((bucket) => number(account.aging[bucket])) }],
    );
  }
  drawTable(
    layout,
    fill(labels.open, { date: layout.locale.date(asOf), currency }),
    [left(labels.what, 0.38), left(labels.due, 0.24), right(labels.overdue, 0.19), right(labels.balance, 0.19)],
    [...rows, { cells: [labels.closing, '', '', number(account.closing)], strong: true }],
  );
}

const movement = (labels: PageLayout['labels']['account'], line: ActivityLine): string =>
  fill(labels.movements[activityName(line)], { of: printable(line.document ?? line.reference ?? '') }).trim();

// --- Tables ---------------------------------------------------------------------------------------------------------------

/** A heading and a table whose rows stay whole; its columns are named again on each page. */
function drawTable(
  layout: PageLayout,
  title: string,
  columns: readonly TableColumn[],
  rows: readonly TableRow[],
): void {
  const heading = { style: layout.style('heading'), text: title };
  const height = layout.style('cell').leading + 2 * ROW_PADDING;
  layout.y += BEFORE_TABLE;
  layout.keepTogether(heading.style.leading + ROW_PADDING + 3 * height);
  layout.content(layout.open(layout.root, 'H2'), () => layout.text(heading, layout.left, layout.y));
  layout.y += heading.style.leading + ROW_PADDING;
  const table = layout.open(layout.root, 'Table');
  drawHeadings(layout, columns, height, layout.open(layout.open(table, 'THead'), 'TR'));
  const body = layout.open(table, 'TBody');
  for (const row of rows) {
    if (height > layout.room) {
      layout.newPage();
      drawHeadings(layout, columns, height);
    }
    const element = layout.open(body, 'TR');
    const style = layout.style(row.strong ? 'cell_strong' : 'cell');
    eachCell(layout, columns, (column, index, x, width) => {
      const text = row.cells[index] ?? '';
      const cell = index === 0 ? layout.open(element, 'TH', { scope: 'Row' }) : layout.open(element, 'TD');
      if (text === '') return;
      const run = shortened({ style, text }, width, layout.measure);
      layout.content(cell, () =>
        column.align === 'left'
          ? layout.text(run, x, layout.y + ROW_PADDING)
          : layout.textTo(run, x + width, layout.y + ROW_PADDING),
      );
    });
    layout.y += height;
    layout.rule(layout.left, layout.y, layout.width);
  }
}

/** Tagged in the given row, or as decoration where a page repeats them. */
function drawHeadings(layout: PageLayout, columns: readonly TableColumn[], height: number, row?: Element): void {
  layout.rule(layout.left, layout.y, layout.width, 'strong_rule', STRONG_RULE);
  const style = layout.style('column');
  eachCell(layout, columns, ({ heading, align }, _, x, width) => {
    const run = shortened({ style, text: heading }, width, layout.measure);
    const draw = () =>
      align === 'left'
        ? layout.text(run, x, layout.y + ROW_PADDING)
        : layout.textTo(run, x + width, layout.y + ROW_PADDING);
    if (row === undefined) layout.artifact(draw, 'Pagination');
    else layout.content(layout.open(row, 'TH', { scope: 'Column' }), draw);
  });
  layout.y += height;
  layout.rule(layout.left, layout.y, layout.width);
}

function eachCell(
  layout: PageLayout,
  columns: readonly TableColumn[],
  draw: (column: TableColumn, index: number, x: number, width: number) => void,
): void {
  const room = layout.width - COLUMN_GAP * (columns.length - 1);
  let x = layout.left;
  columns.forEach((column, index) => {
    const width = room * column.width;
    draw(column, index, x, width);
    x += width + COLUMN_GAP;
  });
}
