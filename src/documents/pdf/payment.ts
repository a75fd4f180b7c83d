/** Draws the ways to pay, the easiest first: link, ACH, wire. Every way is complete, with a label for every number. */
import { Box, Tag } from './canvas.ts';

import { noticePart, Part } from './notice-panel.ts';
import { PageLayout } from './page.ts';
import { Card, Payment, PaymentLink, TransferCode } from './payment-content.ts';
import { Code } from './qr-code.ts';
import { Line, Run, shrunk } from './text.ts';
import { Column, drawBeside } from './text-column.ts';

const BEFORE_PAYMENT = 17;
const AFTER_HEADING = 6;
const AFTER_PART = 10;
const CARD_PADDING_X = 10;
const CARD_PADDING_Y = 11;
const ONLINE_PADDING = 9;
const CARD_RADIUS = 4;
/** The margin around the code. The code has its own quiet zone. */
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
/** The address shrinks to this fraction of its size before it breaks into lines. */
const LEAST_LINK = 0.85;

/** What is drawn with the cards. */
type Quoted = Pick<Payment, 'reference'> & Partial<Pick<Payment, 'creditorReference' | 'transfer'>>;

/** Bank details without other ways to pay, under their own heading. */
type BankDetails = Pick<Payment, 'heading' | 'cards' | 'reference' | 'changed'> &
  Readonly<{
    note: string;
  }>;

export function drawBankDetails(layout: PageLayout, { heading, note: text, cards, reference, changed }: BankDetails) {
  const note = new Column(layout, layout.width).text(text, layout.style('small'));
  const parts = [
    ...(changed && cards.length > 0 ? [changedPart(layout)] : []),
    ...(note.empty ? [] : [columnPart(layout, note, layout.space(AFTER_HEADING))]),
    ...(cards.length === 0 ? [] : [cardsPart(layout, cards, { reference })]),
  ];
  if (parts.length === 0) return;
  // Kept on one page, if they fit.
  const draw = () => {
    for (const part of parts) part.draw();
  };
  drawWays(layout, heading, [{ height: parts.reduce((sum, { height }) => sum + height, 0), draw }]);
}

export function drawPayment(layout: PageLayout, payment: Payment) {
  const { heading, changed, online, cards, none } = payment;
  const ask = new Column(layout, layout.width).text(none, layout.style('body'));
  drawWays(layout, heading, [
    ...(changed ? [changedPart(layout)] : []),
    ...(online === null ? [] : [onlinePart(layout, online)]),
    ...(cards.length === 0 ? [] : [cardsPart(layout, cards, payment)]),
    ...(ask.empty ? [] : [columnPart(layout, ask, 0)]),
  ]);
}

/** The warning before changed bank details, the classic invoice fraud, and how to verify them. */
function changedPart(layout: PageLayout) {
  const { changed_title: title, changed: text } = layout.labels.payment;
  return noticePart(layout, { title, text }, 'H3', AFTER_PART);
}

function drawWays(layout: PageLayout, title: string, ways: readonly Part[]) {
  layout.y += layout.space(BEFORE_PAYMENT);
  const heading = headingPart(layout, title);
  // What fits below the table is drawn there, and the rest on a new page. The heading is never alone at the end.
  layout.keepTogether(heading.height + (ways[0] as Part).height);
  heading.draw();
  for (const way of ways) way.draw();
}

function headingPart(layout: PageLayout, title: string): Part {
  const style = layout.style('heading');
  const column = new Column(layout, layout.width).text(title, style, { tag: 'H2' });
  return columnPart(layout, column, layout.space(AFTER_HEADING));
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

// --- Online ---

/** A QR code, a button, and the full address for readers on paper without a phone. */
function onlinePart(layout: PageLayout, { text, url, code, says, scan: scanSays }: PaymentLink): Part {
  const { online, scan } = layout.labels.payment;
  const button: Run = { text: online, style: layout.style('button') };
  const buttonWidth = layout.measure(button) + 2 * BUTTON_PADDING_X;
  const buttonHeight = button.style.leading + 2 * BUTTON_PADDING_Y;
  // The label of the code is beside it, above the address.
  const buttonIndent = code === undefined ? CARD_PADDING_X : CODE_MARGIN + code.side + CODE_GAP;
  const addressIndent = buttonIndent + buttonWidth + CARD_GAP;
  const addressWidth = layout.width - addressIndent - CARD_PADDING_X;
  const hint = code === undefined ? [] : layout.lines(scan, layout.style('small'), addressWidth);
  const address = layout.lines(text, linkStyle(layout, text, addressWidth), addressWidth);
  const textHeight = linesHeight(hint) + linesHeight(address);
  const codeHeight = code === undefined ? 0 : code.side + 2 * CODE_MARGIN;
  const height = Math.max(codeHeight, Math.max(buttonHeight, textHeight) + 2 * layout.space(ONLINE_PADDING));

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
      says: scanSays,
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

/** The link's style, shrunk a little if that keeps the address in one line. */
function linkStyle(layout: PageLayout, text: string, width: number) {
  const style = layout.style('link');
  const inOneLine = shrunk(style, [{ text, width }], layout.measure);
  return inOneLine.size < style.size * LEAST_LINK ? style : inOneLine;
}

const linesHeight = (lines: readonly Line[]) => lines.reduce((total, line) => total + line.leading, 0);

// --- Bank transfers ---

/** Two cards side by side, or one over the whole width, with the QR code of the transfer on its right. */
function cardsPart(layout: PageLayout, cards: readonly Card[], quoted: Quoted): Part {
  const { transfer } = quoted;
  const codeWidth = transfer === undefined ? 0 : transfer.code.side + CODE_GAP;
  const width = (layout.width - (cards.length - 1) * CARD_GAP) / cards.length;
  const labelWidth = cards.length === 1 ? WIDE_LABEL_WIDTH : LABEL_WIDTH;
  const placed = cards.map((card, index) => {
    const column = new Column(layout, width - 2 * CARD_PADDING_X - codeWidth, labelWidth);
    fillCard(layout, column, card, quoted);
    return { column, x: layout.left + index * (width + CARD_GAP) + CARD_PADDING_X };
  });
  const columns = transfer === undefined ? placed : [...placed, codeColumn(layout, transfer)];
  const height = Math.max(...columns.map(({ column }) => column.height)) + 2 * layout.space(CARD_PADDING_Y);
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
      drawBeside(layout.root, layout, columns);
      layout.y += layout.space(CARD_PADDING_Y);
    },
  };
}

function codeColumn(layout: PageLayout, { code: { side, unit, boxes }, says }: TransferCode) {
  // The label is above the dark squares, not above the quiet zone.
  const quiet = (boxes[0]?.x ?? 0) * unit;
  const width = side - quiet;
  const column = new Column(layout, width).text(layout.labels.payment.scan_transfer, layout.style('small'));
  column.figure({ width, height: side }, says, ({ x, y }) => layout.shape(boxes, { x: x - quiet, y, unit }, 'code'));
  return { column, x: layout.left + layout.width - width - CODE_MARGIN };
}

function fillCard(
  layout: PageLayout,
  column: Column,
  { title, note, facts }: Card,
  { reference, creditorReference = '' }: Quoted,
) {
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
  for (const { label, kind, value, address } of facts) {
    const isParty = kind === 'party';
    const shown = [
      [{ text: value, style: isParty ? layout.style('body') : strong }],
      ...(address === '' ? [] : [[{ text: address, style: small }]]),
    ];
    column.fact(label, shown, { before: layout.space(isParty ? PARTY_SPACE : FACT_SPACE) });
  }
  const value = [[{ text: reference, style: strong }]];
  const before = layout.space(REFERENCE_SPACE);
  const { payment: labels } = layout.labels;
  column.fact(labels.reference, value, { before, emphasized: true });
  if (creditorReference === '') return;
  const checked = [[{ text: creditorReference, style: strong }]];
  column.fact(labels.creditor_reference, checked, { before: layout.space(FACT_SPACE), emphasized: true });
}
