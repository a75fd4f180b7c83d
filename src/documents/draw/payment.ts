/** How to pay, in order of ease: the link, ACH, wire; each in full, every number labelled with what it is for. */
import type { AchInstructions, Address, WireInstructions } from '../../config.ts';
import type { DocumentFace } from '../face.ts';
import { Column, drawBeside } from './column.ts';
import type { Sheet } from './sheet.ts';
import { fill, type Template } from './template.ts';
import { drawable, type Line, type Run } from './text.ts';
import { addressLines, type Wording } from './wording.ts';

const BEFORE_PAYMENT = 16;
const AFTER_HEADING = 5;
const AFTER_PART = 9;
const NOTICE_PADDING_X = 12;
const NOTICE_PADDING_Y = 8;
const NOTICE_BAR = 3;
const CARD_PADDING = 11;
const CARD_RADIUS = 4;
const CARD_GAP = 12;
const LABEL_WIDTH = 76;
const WIDE_LABEL_WIDTH = 150;
const BUTTON_PADDING_X = 14;
const BUTTON_PADDING_Y = 6;
const BUTTON_RADIUS = 4;
const AFTER_TITLE = 4;
const FACT_SPACE = 2.5;
const REFERENCE_SPACE = 7;

/** A part of the section, whose height is known before it is drawn. */
interface Part {
  readonly height: number;
  readonly draw: () => void;
}

interface Context {
  readonly sheet: Sheet;
  readonly template: Template;
  readonly currency: string;
  readonly reference: string;
}

export function drawPayment(sheet: Sheet, face: DocumentFace, wording: Wording, template: Template): void {
  const context = { sheet, template, currency: face.currency, reference: wording.number };
  const { payment_link, instructions, instructions_changed } = face;
  const cards = cardsOf(context, instructions ?? {});
  const parts: Part[] = [
    headingPart(sheet),
    ...(instructions_changed && cards.length > 0 ? [noticePart(sheet)] : []),
    ...(payment_link === null ? [] : [onlinePart(context, payment_link)]),
    ...(cards.length === 0 ? [] : [cardsPart(sheet, cards)]),
  ];
  if (parts.length === 1) parts.push(nonePart(sheet, wording));
  sheet.y += BEFORE_PAYMENT;
  sheet.keepTogether(parts.reduce((total, part) => total + part.height, 0));
  for (const part of parts) part.draw();
}

function headingPart(sheet: Sheet): Part {
  const style = sheet.style('heading');
  const column = new Column(sheet, sheet.width).text(sheet.labels.payment.heading, style, { tag: 'H2' });
  return columnPart(sheet, column, AFTER_HEADING);
}

function nonePart(sheet: Sheet, wording: Wording): Part {
  const text = fill(sheet.labels.payment.none, { contact: wording.reach });
  return columnPart(sheet, new Column(sheet, sheet.width).text(text, sheet.style('body')), 0);
}

function columnPart(sheet: Sheet, column: Column, after: number): Part {
  return {
    height: column.height + after,
    draw: () => {
      column.draw(sheet.root, sheet.left);
      sheet.y += after;
    },
  };
}

/** Changed bank details are the classic invoice fraud: this stands before them, and says how to make sure. */
function noticePart(sheet: Sheet): Part {
  const { changed_title, changed } = sheet.labels.payment;
  const column = new Column(sheet, sheet.width - 2 * NOTICE_PADDING_X);
  column.text(changed_title, sheet.style('warning_strong'), { tag: 'H3' });
  column.text(changed, sheet.style('warning'));
  const height = column.height + 2 * NOTICE_PADDING_Y;
  return {
    height: height + AFTER_PART,
    draw: () => {
      sheet.keepTogether(height);
      sheet.panel(sheet.left, sheet.y, sheet.width, height, 'warning_panel');
      sheet.panel(sheet.left, sheet.y, NOTICE_BAR, height, 'warning_rule');
      sheet.y += NOTICE_PADDING_Y;
      column.draw(sheet.root, sheet.left + NOTICE_PADDING_X);
      sheet.y += NOTICE_PADDING_Y + AFTER_PART;
    },
  };
}

// --- Online ---------------------------------------------------------------------------------------------------------

/** A button, and the address in full for who reads on paper. */
function onlinePart({ sheet, reference }: Context, link: string): Part {
  const { online, online_button, online_contents } = sheet.labels.payment;
  const button: Run = { text: online_button, style: sheet.style('button') };
  const buttonWidth = sheet.measure(button) + 2 * BUTTON_PADDING_X;
  const buttonHeight = button.style.leading + 2 * BUTTON_PADDING_Y;
  const title = new Column(sheet, sheet.width - 2 * CARD_PADDING).text(online, sheet.style('strong'), { tag: 'H3' });
  const addressWidth = sheet.width - 2 * CARD_PADDING - buttonWidth - CARD_GAP;
  const address = sheet.lines(drawable(link), sheet.style('link'), addressWidth);
  const textHeight = title.height + linesHeight(address);
  const height = Math.max(buttonHeight, textHeight) + 2 * CARD_PADDING;
  const says = fill(online_contents, { number: reference });

  const draw = () => {
    sheet.keepTogether(height);
    const top = sheet.y;
    sheet.frame(sheet.left, top, sheet.width, height, CARD_RADIUS);
    sheet.y = top + (height - textHeight) / 2;
    title.draw(sheet.root, sheet.left + CARD_PADDING);
    drawAddress(address);
    drawButton(sheet.left + sheet.width - CARD_PADDING - buttonWidth, top + (height - buttonHeight) / 2);
    sheet.y = top + height + AFTER_PART;
  };
  const drawAddress = (lines: readonly Line[]) => {
    const paragraph = sheet.open(sheet.root, 'P');
    for (const line of lines) {
      const area = { x: sheet.left + CARD_PADDING, y: sheet.y, width: line.width, height: line.leading };
      sheet.link(paragraph, area, { url: link, says, draw: () => sheet.line(line, area.x, area.y) });
      sheet.y += line.leading;
    }
  };
  const drawButton = (x: number, y: number) => {
    sheet.panel(x, y, buttonWidth, buttonHeight, 'accent', BUTTON_RADIUS);
    sheet.link(
      sheet.open(sheet.root, 'P'),
      { x, y, width: buttonWidth, height: buttonHeight },
      { url: link, says, draw: () => void sheet.text(button, x + BUTTON_PADDING_X, y + BUTTON_PADDING_Y) },
    );
  };
  return { height: height + AFTER_PART, draw };
}

const linesHeight = (lines: readonly Line[]): number => lines.reduce((total, line) => total + line.leading, 0);

// --- Bank transfers -------------------------------------------------------------------------------------------------

/** Fills a column with the facts of one way to pay. */
type Card = (column: Column) => void;

function cardsOf(
  context: Context,
  { ach, wire }: { ach?: AchInstructions | undefined; wire?: WireInstructions | undefined },
): Card[] {
  return [
    ...(ach === undefined ? [] : [(column: Column) => fillAch(context, ach, column)]),
    ...(wire === undefined ? [] : [(column: Column) => fillWire(context, wire, column)]),
  ];
}

/** Side by side where there are two, else one over the whole width. */
function cardsPart(sheet: Sheet, cards: readonly Card[]): Part {
  const width = (sheet.width - (cards.length - 1) * CARD_GAP) / cards.length;
  const labelWidth = cards.length === 1 ? WIDE_LABEL_WIDTH : LABEL_WIDTH;
  const placed = cards.map((fillCard, index) => {
    const column = new Column(sheet, width - 2 * CARD_PADDING, labelWidth);
    fillCard(column);
    return { column, x: sheet.left + index * (width + CARD_GAP) + CARD_PADDING };
  });
  const height = Math.max(...placed.map(({ column }) => column.height)) + 2 * CARD_PADDING;
  return {
    height,
    draw: () => {
      sheet.keepTogether(height);
      if (height <= sheet.room) {
        for (const { x } of placed) sheet.frame(x - CARD_PADDING, sheet.y, width, height, CARD_RADIUS);
      }
      sheet.y += CARD_PADDING;
      drawBeside(sheet.root, sheet, placed);
      sheet.y += CARD_PADDING;
    },
  };
}

function fillAch(context: Context, ach: AchInstructions, column: Column): void {
  const { payment } = context.sheet.labels;
  fillTitle(context, column, payment.ach, payment.ach_note);
  fillParty(context, column, payment.account_holder, ach.account_holder, ach.account_holder_address);
  fillParty(context, column, payment.bank, ach.bank_name, ach.bank_address);
  fillNumber(context, column, payment.routing_number_ach, ach.routing_number);
  fillNumber(context, column, payment.account_number, ach.account_number);
  fillNumber(context, column, payment.account_type, payment[ach.account_type]);
  fillReference(context, column);
}

function fillWire(context: Context, wire: WireInstructions, column: Column): void {
  const { payment } = context.sheet.labels;
  fillTitle(context, column, payment.wire, fill(payment.wire_note, { currency: context.currency }));
  fillParty(context, column, payment.account_holder, wire.account_holder, wire.account_holder_address);
  fillParty(context, column, payment.bank, wire.bank_name, wire.bank_address);
  fillNumber(context, column, payment.routing_number_wire, wire.routing_number);
  fillNumber(context, column, payment.account_number, wire.account_number);
  fillNumber(context, column, payment.iban, wire.iban === undefined ? undefined : inFours(wire.iban));
  fillNumber(context, column, payment.bic, wire.bic);
  const { intermediary } = wire;
  if (intermediary !== undefined) {
    fillParty(context, column, payment.intermediary, intermediary.bank_name, intermediary.bank_address);
    fillNumber(context, column, payment.intermediary_bic, intermediary.bic);
  }
  fillReference(context, column);
}

/** An IBAN as ISO 13616 prints it. */
const inFours = (iban: string): string => iban.replace(/\s/g, '').replace(/.{4}(?=.)/g, '$& ');

function fillTitle({ sheet }: Context, column: Column, title: string, note: string): void {
  const runs = [
    { text: `${title} `, style: sheet.style('strong') },
    { text: note, style: sheet.style('small') },
  ];
  column.text(runs, sheet.style('strong'), { tag: 'H3' });
}

function fillParty(
  { sheet, template }: Context,
  column: Column,
  label: string,
  name: string,
  address: Address | undefined,
): void {
  const lines = address === undefined ? [] : addressLines(address, template);
  const value = [
    [{ text: drawable(name), style: sheet.style('body') }],
    ...(lines.length === 0 ? [] : [[{ text: lines.join(', '), style: sheet.style('small') }]]),
  ];
  column.fact(label, value, { before: AFTER_TITLE });
}

function fillNumber({ sheet }: Context, column: Column, label: string, number: string | undefined): void {
  if (number === undefined) return;
  column.fact(label, [[{ text: drawable(number), style: sheet.style('strong') }]], { before: FACT_SPACE });
}

function fillReference({ sheet, reference }: Context, column: Column): void {
  const value = [[{ text: reference, style: sheet.style('strong') }]];
  column.fact(sheet.labels.payment.reference, value, { before: REFERENCE_SPACE, emphasised: true });
}
