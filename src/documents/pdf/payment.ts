/** How to pay, the easiest way first: link, ACH, wire. Each is complete, with a label for every number. */
import { addressLines, type PaymentFact, type Presentation } from '../present.ts';
import type { DocumentSnapshot } from '../snapshot.ts';
import type { Box, Tag } from './canvas.ts';
import { noticePart, type Part } from './notice-panel.ts';
import type { PageLayout } from './page-layout.ts';
import { type Code, codeOf } from './qr-code.ts';
import { fill, readTemplate, type Style } from './template.ts';
import { type Line, printable, type Run, shrunk } from './text.ts';
import { Column, drawBeside } from './text-column.ts';

const BEFORE_PAYMENT = 17;
const AFTER_HEADING = 6;
const AFTER_PART = 10;
const CARD_PADDING_X = 10;
const CARD_PADDING_Y = 11;
const ONLINE_PADDING = 9;
const CARD_RADIUS = 4;
/** Around the code, which has a quiet zone of its own. */
const CODE_MARGIN = 2;
const CODE_GAP = 4;
const CARD_GAP = 12;
const LABEL_WIDTH = 76;
const WIDE_LABEL_WIDTH = 112;
const BUTTON_PADDING_X = 14;
const BUTTON_PADDING_Y = 5;
const BUTTON_RADIUS = 4;
const PARTY_SPACE = 4;
const FACT_SPACE = 3;
const REFERENCE_SPACE = 8;
/** The address of the payment page shrinks to this part of its size before it breaks into lines. */
const LEAST_LINK = 0.85;

interface CardContext {
  readonly layout: PageLayout;
  readonly currency: string;
  readonly reference: string;
}

interface Context extends CardContext {
  readonly code: Code | undefined;
}

/** Bank details alone, under a heading of their own. */
export interface BankDetails extends Pick<Presentation, 'ach' | 'wire'> {
  readonly heading: string;
  /** Under the heading: what else there is to know. */
  readonly note: string;
  readonly currency: string;
  /** What the payer is to quote. */
  readonly reference: string;
  /** Whether the payer was told other details before. */
  readonly changed: boolean;
}

export function drawBankDetails(layout: PageLayout, details: BankDetails): void {
  const cards = cardsOf({ layout, ...details }, details);
  const note = new Column(layout, layout.width).text(details.note, layout.style('small'));
  const parts = [
    ...(details.changed && cards.length > 0 ? [changedPart(layout)] : []),
    ...(note.empty ? [] : [columnPart(layout, note, layout.space(AFTER_HEADING))]),
    ...(cards.length === 0 ? [] : [cardsPart(layout, cards)]),
  ];
  if (parts.length === 0) return;
  // On one page, if they fit one.
  const draw = () => {
    for (const part of parts) part.draw();
  };
  drawWays(layout, details.heading, [{ height: parts.reduce((sum, { height }) => sum + height, 0), draw }]);
}

export function drawPayment(
  layout: PageLayout,
  snapshot: DocumentSnapshot,
  presentation: Presentation,
  code: Code | undefined,
): void {
  const context = { layout, code, currency: snapshot.currency, reference: presentation.number };
  const { payment_link, instructions_changed } = snapshot;
  const cards = cardsOf(context, presentation);
  const ways: Part[] = [
    ...(instructions_changed && cards.length > 0 ? [changedPart(layout)] : []),
    ...(payment_link === null ? [] : [onlinePart(context, payment_link)]),
    ...(cards.length === 0 ? [] : [cardsPart(layout, cards)]),
  ];
  if (ways.length === 0) {
    if (presentation.reach === '') return;
    ways.push(nonePart(layout, presentation.reach));
  }
  drawWays(layout, layout.labels.payment.heading, ways);
}

/** Changed bank details are the classic invoice fraud: this warning precedes them and says how to verify them. */
function changedPart(layout: PageLayout): Part {
  const { changed_title, changed } = layout.labels.payment;
  return noticePart(layout, { title: changed_title, level: 'H3', text: changed }, AFTER_PART);
}

function drawWays(layout: PageLayout, title: string, ways: readonly Part[]): void {
  layout.y += layout.space(BEFORE_PAYMENT);
  const heading = headingPart(layout, title);
  // What fits below the table stands there, and only the rest moves to a new page. The heading never stands alone.
  layout.keepTogether(heading.height + (ways[0] as Part).height);
  heading.draw();
  for (const way of ways) way.draw();
}

function headingPart(layout: PageLayout, title: string): Part {
  const style = layout.style('heading');
  const column = new Column(layout, layout.width).text(title, style, { tag: 'H2' });
  return columnPart(layout, column, layout.space(AFTER_HEADING));
}

function nonePart(layout: PageLayout, contact: string): Part {
  const text = fill(layout.labels.payment.none, { contact });
  return columnPart(layout, new Column(layout, layout.width).text(text, layout.style('body')), 0);
}

function columnPart(layout: PageLayout, column: Column, after: number): Part {
  return {
    height: column.height + after,
    draw: () => {
      column.draw(layout.root, layout.left);
      layout.y += after;
    },
  };
}

// --- Online ---------------------------------------------------------------------------------------------------------

/** A code to scan, a button, and the full address for readers on paper without a phone. */
function onlinePart({ layout, reference, code }: Context, link: string): Part {
  const { online, online_contents, scan, scan_contents } = layout.labels.payment;
  const url = webAddress(link);
  const button: Run = { text: online, style: layout.style('button') };
  const buttonWidth = layout.measure(button) + 2 * BUTTON_PADDING_X;
  const buttonHeight = button.style.leading + 2 * BUTTON_PADDING_Y;
  // Beside the code there is room for its label above the address.
  const buttonIndent = code === undefined ? CARD_PADDING_X : CODE_MARGIN + code.side + CODE_GAP;
  const addressIndent = buttonIndent + buttonWidth + CARD_GAP;
  const addressWidth = layout.width - addressIndent - CARD_PADDING_X;
  const hint = code === undefined ? [] : layout.lines(scan, layout.style('small'), addressWidth);
  const address = layout.lines(printable(link), linkStyle(layout, printable(link), addressWidth), addressWidth);
  const textHeight = linesHeight(hint) + linesHeight(address);
  const codeHeight = code === undefined ? 0 : code.side + 2 * CODE_MARGIN;
  const height = Math.max(codeHeight, Math.max(buttonHeight, textHeight) + 2 * layout.space(ONLINE_PADDING));
  const says = fill(online_contents, { number: reference });

  const drawLinked = (tag: Tag, area: Box, draw: () => void) => {
    const element = layout.open(layout.root, tag);
    if (url === undefined) layout.content(element, draw);
    else layout.link(element, area, { url, says, draw });
  };
  const drawButton = (x: number, y: number) => {
    const area = { x, y, width: buttonWidth, height: buttonHeight };
    layout.panel(area, 'accent', BUTTON_RADIUS);
    drawLinked('H3', area, () => layout.text(button, x + BUTTON_PADDING_X, y + BUTTON_PADDING_Y));
  };
  const drawCode = ({ side, unit, boxes }: Code, x: number, y: number) => {
    const area = { x, y, width: side, height: side };
    const figure = layout.open(layout.root, 'P');
    layout.figure(figure, area, {
      says: fill(scan_contents, { number: reference }),
      draw: () => layout.shape(boxes, { x, y, unit }, 'code'),
    });
  };
  const drawText = (x: number, top: number) => {
    let y = top;
    if (hint.length > 0) {
      layout.content(layout.open(layout.root, 'P'), () => {
        for (const line of hint) {
          layout.line(line, x, y);
          y += line.leading;
        }
      });
    }
    for (const line of address) {
      const area = { x, y, width: line.width, height: line.leading };
      drawLinked('P', area, () => layout.line(line, area.x, area.y));
      y += line.leading;
    }
  };
  const draw = () => {
    layout.keepTogether(height);
    const top = layout.y;
    layout.frame({ x: layout.left, y: top, width: layout.width, height }, CARD_RADIUS);
    drawButton(layout.left + buttonIndent, top + (height - buttonHeight) / 2);
    if (code !== undefined) drawCode(code, layout.left + CODE_MARGIN, top + (height - code.side) / 2);
    drawText(layout.left + addressIndent, top + (height - textHeight) / 2);
    layout.y = top + height + layout.space(AFTER_PART);
  };
  return { height: height + layout.space(AFTER_PART), draw };
}

/** Shrunk a little if that keeps the address in one line. */
function linkStyle(layout: PageLayout, text: string, width: number): Style {
  const style = layout.style('link');
  const inOneLine = shrunk(style, [{ text, width }], layout.measure);
  return inOneLine.size < style.size * LEAST_LINK ? style : inOneLine;
}

/** The QR code of a link; undefined if it cannot be opened or is too long. */
export function codeOfLink(link: string | null): Code | undefined {
  const url = link === null ? undefined : webAddress(link);
  return url === undefined ? undefined : codeOf(url);
}

/** The address as a PDF viewer may open it: ASCII, http or https only. */
export function webAddress(link: string): string | undefined {
  if (!URL.canParse(link)) return undefined;
  const { protocol, href } = new URL(link);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}

const linesHeight = (lines: readonly Line[]): number => lines.reduce((total, line) => total + line.leading, 0);

// --- Bank transfers -------------------------------------------------------------------------------------------------

/** Fills a column with the facts of one way to pay. */
type Card = (column: Column) => void;

function cardsOf(context: CardContext, { ach, wire }: Pick<Presentation, 'ach' | 'wire'>): Card[] {
  const { payment } = context.layout.labels;
  const wireNote = fill(payment.wire_note, { currency: context.currency });
  return [
    ...(ach === null ? [] : [(column: Column) => fillCard(context, column, ach, payment.ach, payment.ach_note)]),
    ...(wire === null ? [] : [(column: Column) => fillCard(context, column, wire, payment.wire, wireNote)]),
  ];
}

/** Two side by side, or one over the whole width. */
function cardsPart(layout: PageLayout, cards: readonly Card[]): Part {
  const width = (layout.width - (cards.length - 1) * CARD_GAP) / cards.length;
  const labelWidth = cards.length === 1 ? WIDE_LABEL_WIDTH : LABEL_WIDTH;
  const placed = cards.map((fillCard, index) => {
    const column = new Column(layout, width - 2 * CARD_PADDING_X, labelWidth);
    fillCard(column);
    return { column, x: layout.left + index * (width + CARD_GAP) + CARD_PADDING_X };
  });
  const height = Math.max(...placed.map(({ column }) => column.height)) + 2 * layout.space(CARD_PADDING_Y);
  return {
    height,
    draw: () => {
      layout.keepTogether(height);
      if (height <= layout.room) {
        for (const { x } of placed) {
          layout.frame({ x: x - CARD_PADDING_X, y: layout.y, width, height }, CARD_RADIUS);
        }
      }
      layout.y += layout.space(CARD_PADDING_Y);
      drawBeside(layout.root, layout, placed);
      layout.y += layout.space(CARD_PADDING_Y);
    },
  };
}

function fillCard(
  { layout, reference }: CardContext,
  column: Column,
  facts: readonly PaymentFact[],
  title: string,
  note: string,
): void {
  const strong = layout.style('strong');
  const small = layout.style('small');
  column.text(
    [
      { text: `${title} `, style: strong },
      { text: note, style: small },
    ],
    strong,
    { tag: 'H3' },
  );
  for (const fact of facts) {
    if (fact.kind === 'party') {
      const address = fact.address === null ? [] : addressLines(fact.address, readTemplate(), printable);
      const value = [
        [{ text: fact.value, style: layout.style('body') }],
        ...(address.length === 0 ? [] : [[{ text: address.join(', '), style: small }]]),
      ];
      column.fact(fact.label, value, { before: layout.space(PARTY_SPACE) });
    } else {
      const value = [[{ text: shownValue(layout, fact), style: strong }]];
      column.fact(fact.label, value, { before: layout.space(FACT_SPACE) });
    }
  }
  const value = [[{ text: reference, style: strong }]];
  const before = layout.space(REFERENCE_SPACE);
  column.fact(layout.labels.payment.reference, value, { before, emphasized: true });
}

function shownValue(layout: PageLayout, { field, value }: PaymentFact): string {
  // As ISO 13616 prints it.
  if (field === 'iban') return value.replace(/\s/g, '').replace(/.{4}(?=.)/g, '$& ');
  return field === 'account_type' ? layout.labels.payment[value as 'checking' | 'savings'] : value;
}
