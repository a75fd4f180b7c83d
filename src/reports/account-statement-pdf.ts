/**
 * Renders an account statement as a tagged PDF, with the documents' letterhead, fonts and paper. Equal statements give
 * equal bytes.
 */
import { Issuer } from '#config/settings';
import { Locale, localeOf } from '#documents/locale';
import { AddedFont, withAddedFonts } from '#documents/pdf/added-fonts';
import { Canvas, MeasuringCanvas, PdfCanvas } from '#documents/pdf/canvas';
import { addresseeLines, issuerNames, paperSize } from '#documents/pdf/content';
import { drawAddressee, drawHeadline, drawNames } from '#documents/pdf/letterhead';
import { COLUMN_GAP, Place } from '#documents/pdf/line-columns';
import { Cell, drawColumnHeadings, drawRow, headingCell, rowHeight } from '#documents/pdf/line-table';
import { noticePart } from '#documents/pdf/notice-panel';
import { PageLayout } from '#documents/pdf/page';
import { drawBankDetails } from '#documents/pdf/payment';
import { cardsOf, webAddress } from '#documents/pdf/payment-content';
import { fill, readTemplate } from '#documents/pdf/template';
import { printable } from '#documents/pdf/text';
import { Column } from '#documents/pdf/text-column';
import { bankDetails } from '#documents/present';
import { addressText, instructionsText, NamedText } from '#documents/printable';
import { Amount, isZero } from '#money';
import { HowToPay } from './account-payment.ts';
import { ActivityLine } from './account-statement.sql.ts';
import {
  AccountStatement,
  activityName,
  CurrencyAccount,
  ofPartner,
  overdueOf,
  withoutOwnCorrections,
} from './account-statement.ts';
import { BUCKETS } from './aging.ts';

type StatementToRender = Readonly<{
  statement: AccountStatement;
  pay: HowToPay;
  issuer: Issuer;
  sandbox: boolean;
  fonts?: readonly AddedFont[] | undefined;
}>;

const AFTER_HEADING = 3.4;
const BEFORE_TABLE = 16;
const AFTER_NOTICE = 14;
const BEFORE_NOTE = 8;

type TableColumn = Readonly<{
  heading: string;
  /** The width as a fraction of the table's width. */
  width: number;
  align: 'left' | 'right';
}>;

type TableRow = Readonly<{
  cells: readonly string[];
  strong?: boolean;
  link?: Readonly<{ url: string; says: string }> | undefined;
}>;

export async function renderAccountStatement(request: StatementToRender): Promise<Buffer> {
  return withAddedFonts(request.fonts ?? [], () => draw(request)).finish();
}

/** The texts of a statement that come from a partner, the settings or a bank. */
export const textsOfStatement = ({
  statement,
  pay,
  issuer,
}: Pick<StatementToRender, 'statement' | 'pay' | 'issuer'>): NamedText[] => [
  ["the partner's name", statement.name],
  ['the names of the partners that it pays for', statement.pays_for.map(({ name }) => name).join(' ')],
  ["the partner's address", addressText(statement.address)],
  ["the issuer's name", issuer.legal_name],
  ["the issuer's address", addressText(issuer.address)],
  ['the bank details', pay.accounts.map(({ instructions }) => instructionsText(instructions)).join(' ')],
  [
    'a payment reference',
    statement.accounts.flatMap(({ lines }) => lines.map((line) => line.reference ?? '')).join(' '),
  ],
];

/**
 * The spacings to try, as fractions of the usual spacing. The statement uses the widest spacing that needs no more
 * pages than the tightest spacing.
 */
const SPACINGS = [1, 0.7, 0.45] as const;

function draw(request: StatementToRender) {
  const { statement, issuer } = request;
  const { labels, theme } = readTemplate();
  const { address } = statement;
  const asOf = fill(labels.account.as_of, { date: localeOf(address.country).date(statement.as_of) });
  const pdf = new PdfCanvas({
    size: paperSize(theme, { partner: { address }, issuer }),
    title: `${labels.account.title}, ${printable(statement.name)}, ${asOf}`,
    author: printable(issuer.legal_name),
    issuedOn: statement.as_of,
    colors: theme.colors,
  });
  const measuring = new MeasuringCanvas(pdf);
  const pagesOf = (spacing: number) => layOut(measuring, request, spacing).pageCount;
  const fewest = pagesOf(Math.min(...SPACINGS));
  const layout = layOut(pdf, request, SPACINGS.find((each) => pagesOf(each) === fewest) ?? 1);
  for (let page = 1; page <= layout.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    layout.drawFoot(page);
  }
  return pdf;
}

function layOut(canvas: Canvas, { statement, pay, issuer, sandbox }: StatementToRender, spacing: number) {
  const { address } = statement;
  const template = readTemplate();
  const labels = template.labels.account;
  const locale = localeOf(address.country);
  const size = paperSize(template.theme, { partner: { address }, issuer });
  const number = fill(labels.as_of, { date: locale.date(statement.as_of) });
  const continued = fill(labels.continued, { date: locale.date(statement.as_of) });
  const mark = { banner: labels.sandbox, across: labels.sandbox, style: 'watermark', spoken: 'first' } as const;
  const running = {
    continued: fill(template.labels.running.continued, { title: labels.title, number: continued }),
    about: printable(statement.name),
    foot: [issuer.legal_name, issuer.email, issuer.phone].map(printable).filter(Boolean).join('  ·  '),
    mark: sandbox ? mark : null,
  };
  const layout = new PageLayout({ canvas, size, spacing, running, template });
  drawNames(layout, { title: labels.title, number, ...issuerNames(issuer, template) });
  if (statement.preliminary) {
    const notice = { title: labels.preliminary_title, text: labels.preliminary };
    noticePart(layout, notice, 'H2', AFTER_NOTICE).draw();
  }
  drawTotals(layout, statement, locale);
  drawAddressee(layout, {
    heading: labels.addressee,
    name: printable(statement.name),
    lines: addresseeLines('', address, template),
    taxId: '',
    facts: [
      { label: labels.from, value: locale.date(statement.from) },
      { label: labels.to, value: locale.date(statement.as_of) },
      { label: template.labels.facts.partner_id, value: statement.partner_id },
    ],
  });
  for (const account of statement.accounts) drawAccount(layout, { statement, account, pay, locale });
  drawSmallPrint(layout, statement, locale);
  return layout;
}

function drawTotals(layout: PageLayout, { accounts }: AccountStatement, locale: Locale) {
  const { account: labels } = layout.labels;
  const show = (label: string, amount: string, sentence: string) =>
    drawHeadline(layout, { label, amount, values: {}, sentence });
  if (accounts.length === 0) show(labels.nothing_due, '', labels.nothing);
  for (const account of accounts) {
    const closing = Amount.of(account.closing, account.currency);
    if (closing.isPositive()) show(labels.total_due, locale.amount(closing), overdueText(layout, account, locale));
    else if (closing.isNegative()) show(labels.in_favor, locale.amount(closing.negated()), labels.credit_kept);
    else show(accounts.length === 1 ? labels.nothing_due : `${labels.nothing_due}, ${account.currency}`, '', '');
  }
}

/**
 * The overdue amount, but at most the total due. Credit and unapplied cash reduce the total, but not the single
 * invoices.
 */
function overdueText(layout: PageLayout, account: CurrencyAccount, locale: Locale) {
  const { account: labels } = layout.labels;
  const total = Amount.of(account.closing, account.currency);
  const overdue = overdueOf(account);
  if (!overdue.isPositive()) return labels.none_overdue;
  if (overdue.equals(total)) return labels.all_overdue;
  return fill(labels.overdue_of_it, { overdue: locale.amount(overdue) });
}

function drawSmallPrint(layout: PageLayout, { accounts, as_of }: AccountStatement, locale: Locale) {
  const { account: labels } = layout.labels;
  if (accounts.length === 0) return;
  const text = `${fill(labels.later_activity, { date: locale.date(as_of) })} ${labels.favor}`;
  const column = new Column(layout, layout.width).text(text, layout.style('small'));
  layout.y += layout.space(BEFORE_NOTE);
  layout.keepTogether(column.height);
  column.draw(layout.root, layout.left);
}

type AccountToDraw = Readonly<{
  statement: AccountStatement;
  account: CurrencyAccount;
  pay: HowToPay;
  locale: Locale;
}>;

function drawAccount(layout: PageLayout, { statement, account, pay, locale }: AccountToDraw) {
  const { account: labels } = layout.labels;
  const { currency } = account;
  const number = (text: string) => locale.number(text);
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
    fill(labels.heading, { currency }),
    [left(labels.date, 0.2), left(labels.what, 0.42), right(labels.amount, 0.19), right(labels.balance, 0.19)],
    [
      {
        cells: [locale.date(statement.from), labels.brought_forward, '', number(account.opening)],
        strong: true,
      },
      ...withoutOwnCorrections(account).map((line) => ({
        cells: [
          locale.date(line.date),
          // If the books of the event's month were already closed, the event's own date is shown beside the date of its
          // entry.
          movement(labels, line) +
            printable(ofPartner(statement, line.partner_id)) +
            (line.dated_on === line.date ? '' : ` (${locale.date(line.dated_on)})`),
          number(line.amount),
          number(line.balance),
        ],
      })),
      { cells: [locale.date(statement.as_of), labels.closing, '', number(account.closing)], strong: true },
    ],
  );
  drawOpenItems(layout, { statement, account, pay, locale });
  const way = pay.accounts.find((each) => each.currency === currency);
  if (way === undefined) return;
  const online = account.open_items.some((item) => pay.links.has(item.number));
  drawBankDetails(layout, {
    cards: cardsOf(bankDetails(way.instructions, printable), currency),
    heading: fill(labels.pay, { currency }),
    note: online ? labels.pay_online : labels.pay_by_bank,
    reference: labels.reference,
    changed: way.changed,
  });
}

function drawOpenItems(layout: PageLayout, { statement, account, pay, locale }: AccountToDraw) {
  const { account: labels, payment } = layout.labels;
  const { currency } = account;
  const number = (text: string) => locale.number(text);
  const overdue = (days: number | null) =>
    days === null || days <= 0 ? '' : days === 1 ? labels.one_day : fill(labels.days, { days: String(days) });
  const rows: TableRow[] = account.open_items.map((item) => {
    const url = webAddress(pay.links.get(item.number) ?? '');
    return {
      link: url === undefined ? undefined : { url, says: fill(payment.online_contents, { number: item.number }) },
      cells: [
        (Number(item.disputed) === 0
          ? item.number
          : fill(labels.disputed, { number: item.number, amount: number(item.disputed) })) +
          printable(ofPartner(statement, item.partner_id)),
        item.due_on === null ? labels.credit : locale.date(item.due_on),
        overdue(item.days_due),
        number(item.document === 'credit_note' ? `-${item.balance}` : item.balance),
      ],
    };
  });
  if (!isZero(account.unapplied)) rows.push({ cells: [labels.unapplied, '', '', number(`-${account.unapplied}`)] });
  if (rows.length === 0) return;
  drawTable(
    layout,
    fill(labels.open, { date: locale.date(statement.as_of), currency }),
    [left(labels.document, 0.38), left(labels.due, 0.24), right(labels.overdue, 0.19), right(labels.balance, 0.19)],
    [...rows, { cells: [labels.closing, '', '', number(account.closing)], strong: true }],
  );
}

const right = (heading: string, width: number): TableColumn => ({ heading, width, align: 'right' });
const left = (heading: string, width: number): TableColumn => ({ heading, width, align: 'left' });

const movement = (labels: PageLayout['labels']['account'], line: ActivityLine) =>
  fill(labels.movements[activityName(line)], { of: printable(line.document ?? line.reference ?? '') }).trim();

// --- Tables ---

/** Draws a heading and a table. The column names repeat on each page. */
function drawTable(layout: PageLayout, title: string, columns: readonly TableColumn[], rows: readonly TableRow[]) {
  const heading = { style: layout.style('heading'), text: title };
  const after = heading.style.leading + layout.space(AFTER_HEADING);
  layout.y += layout.space(BEFORE_TABLE);
  layout.keepTogether(after + 3 * rowHeight(layout));
  layout.content(layout.open(layout.root, 'H2'), () => layout.text(heading, layout.left, layout.y));
  layout.y += after;
  const places = placesOf(layout, columns);
  const headings = columns.map(({ heading: text, align }, at) => headingCell(layout, text, places[at] as Place, align));
  const table = layout.open(layout.root, 'Table');
  drawColumnHeadings({ layout, headings }, layout.open(layout.open(table, 'THead'), 'TR'));
  const body = layout.open(table, 'TBody');
  for (const { cells, strong, link } of rows) {
    const style = layout.style(strong ? 'cell_strong' : 'cell');
    const drawn = headings.map(({ place, align }, at): Cell => {
      const isFirst = at === 0;
      const own = isFirst && link ? { ...style, color: 'accent' as const } : style;
      return {
        ...(isFirst ? { tag: 'TH', scope: 'Row', link } : { tag: 'TD' }),
        ...{ place, align, lines: layout.lines(cells[at] ?? '', own, place.width) },
      };
    });
    drawRow({ layout, headings }, body, drawn);
  }
}

function placesOf(layout: PageLayout, columns: readonly TableColumn[]) {
  const room = layout.width - COLUMN_GAP * (columns.length - 1);
  let x = layout.left;
  return columns.map((column): Place => {
    const place = { x, width: room * column.width };
    x += place.width + COLUMN_GAP;
    return place;
  });
}
