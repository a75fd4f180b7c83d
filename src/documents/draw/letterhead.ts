/** The head of a document: who issues it, what it is, what is due, to whom it is addressed, and its facts. */

import type { Logo } from '../../config/logo.ts';
import { monthName } from '../../month.ts';
import type { DocumentFace } from '../face.ts';
import { Column, drawBeside } from './column.ts';
import type { Sheet } from './sheet.ts';
import { filledWith, type Template } from './template.ts';
import { drawable, type Run, scaled, widthOf } from './text.ts';
import { addressLines, type Headline, situationOf, type Wording } from './wording.ts';

/** The right-hand column begins at this part of the width; the document's name and its facts share that edge. */
const RIGHT_COLUMN = 0.58;
const COLUMN_GAP = 24;
const FACT_LABEL_WIDTH = 82;
const FACT_SPACE = 2.4;
const AFTER_NAMES = 15;
/** The last lines of an address. */
const TOWN_AND_COUNTRY = 2;
const PANEL_PADDING_X = 14;
const PANEL_PADDING_Y = 11;
const PANEL_RADIUS = 4;
const HEADLINE_SPACE = 3;
const AFTER_PANEL = 16;
const AFTER_HEAD = 17;
const BEFORE_DETAILS = 3;
/** A logo keeps its proportions within these. */
const MOST_LOGO_WIDTH = 190;
const MOST_LOGO_HEIGHT = 44;
const AFTER_LOGO = 6;
/** The headline shrinks to this part of its size before it breaks into lines. */
const LEAST_HEADLINE = 0.75;

interface Halves {
  readonly left: Column;
  readonly right: Column;
  readonly rightX: number;
}

function halves(sheet: Sheet): Halves {
  const leftWidth = sheet.width * RIGHT_COLUMN - COLUMN_GAP;
  const rightWidth = sheet.width * (1 - RIGHT_COLUMN);
  return {
    left: new Column(sheet, leftWidth),
    right: new Column(sheet, rightWidth, FACT_LABEL_WIDTH),
    rightX: sheet.left + sheet.width * RIGHT_COLUMN,
  };
}

/** The document's name comes first for a reader by ear, though it stands to the right of the issuer's. */
export function drawNames(
  sheet: Sheet,
  face: Pick<DocumentFace, 'issuer'>,
  wording: Pick<Wording, 'title' | 'number'>,
  template: Template,
): void {
  const { left, right, rightX } = halves(sheet);
  const { issuer } = face;
  right.text(wording.title, sheet.style('title'), { tag: 'H1' });
  right.text(wording.number, sheet.style('number'));
  const name = drawable(issuer.legal_name);
  if (issuer.logo !== null) addLogo(sheet, left, issuer.logo, name);
  left.text(name, sheet.style('issuer'), { before: AFTER_LOGO });
  const taxId = drawable(issuer.tax_id);
  const details = [issuer.email, issuer.phone].map(drawable).filter(Boolean);
  if (taxId !== '') details.push(`${sheet.labels.facts.tax_id} ${taxId}`);
  const address = addressLines(issuer.address, template);
  // Street and town on a line each: the issuer's head is the least that a payer needs to read.
  const street = address.slice(0, -TOWN_AND_COUNTRY).join(', ');
  for (const line of [street, address.slice(-TOWN_AND_COUNTRY).join(', '), details.join('  ·  ')]) {
    left.text(line, sheet.style('small'));
  }
  drawBeside(sheet.root, sheet, [
    { column: right, x: rightX },
    { column: left, x: sheet.left },
  ]);
  sheet.y += sheet.space(AFTER_NAMES);
}

function addLogo(sheet: Sheet, column: Column, { content, width, height }: Logo, says: string): void {
  // An image of one pixel a point at most: a small one would only be blurred by enlarging it.
  const scale = Math.min(MOST_LOGO_WIDTH / width, MOST_LOGO_HEIGHT / height, 1);
  const bytes = Buffer.from(content, 'base64');
  column.figure({ width: width * scale, height: height * scale }, says, (box) => sheet.image(bytes, box));
}

/** What is due in one line, and in a sentence who owes it to whom. */
export function drawHeadline(sheet: Sheet, wording: Wording): void {
  const column = new Column(sheet, sheet.width - 2 * PANEL_PADDING_X);
  column.text(headlineRuns(sheet, wording.headline, column.width), sheet.style('headline'), { tag: 'H2' });
  column.text(wording.sentence, sheet.style('body'), { before: HEADLINE_SPACE });
  const height = column.height + 2 * sheet.space(PANEL_PADDING_Y);
  sheet.keepTogether(height);
  if (height <= sheet.room) {
    sheet.panel({ x: sheet.left, y: sheet.y, width: sheet.width, height }, 'panel', PANEL_RADIUS);
  }
  sheet.y += sheet.space(PANEL_PADDING_Y);
  column.draw(sheet.root, sheet.left + PANEL_PADDING_X);
  sheet.y += sheet.space(PANEL_PADDING_Y) + sheet.space(AFTER_PANEL);
}

/** In one line if it may shrink a little for that, else in as many as it takes. */
function headlineRuns(sheet: Sheet, headline: Headline, width: number): Run[] {
  const natural = headlineAt(sheet, headline, 1);
  const scale = Math.min(1, width / widthOf(natural, sheet.measure));
  return scale === 1 ? natural : headlineAt(sheet, headline, Math.max(scale, LEAST_HEADLINE));
}

function headlineAt(sheet: Sheet, { label, amount, values }: Headline, scale: number): Run[] {
  const plain = scaled(sheet.style('headline'), scale);
  const strong = scaled(sheet.style('headline_strong'), scale);
  // Without an amount the words themselves are the message.
  const inPlain = (text: string): Run => ({ text, style: label.includes('{amount}') ? plain : strong });
  const runs = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, inPlain(value)]));
  return filledWith(label, { ...runs, amount: { text: amount, style: strong } }, inPlain);
}

export function drawAddressee(sheet: Sheet, face: DocumentFace, wording: Wording, template: Template): void {
  const { left, right, rightX } = halves(sheet);
  const { partner } = face;
  const { labels } = sheet;
  const body = sheet.style('body');
  left.text(labels.addressee[face.document], sheet.style('label'));
  left.text(drawable(partner.name), sheet.style('strong'), { before: 1 });
  for (const line of addressLines(partner.address, template)) left.text(line, body);
  const taxId = drawable(partner.tax_id);
  if (taxId !== '') left.text(`${labels.facts.tax_id} ${taxId}`, body, { before: sheet.space(BEFORE_DETAILS) });

  const facts: readonly (readonly [label: string, value: string | undefined])[] = [
    [labels.facts.credits, drawable(face.credits ?? '')],
    [labels.facts.replaces, drawable(face.replaces ?? '')],
    [labels.facts.issued_on, sheet.locale.date(face.issued_on)],
    [labels.facts.due_on, wording.dueOn],
    [labels.facts.terms, wording.terms],
    [labels.facts.month, monthName(face.month)],
    [
      labels.facts.enrollments,
      situationOf(face) === 'adjustment' ? undefined : sheet.locale.number(String(face.enrollments)),
    ],
    [labels.facts.partner_id, drawable(partner.partner_id)],
    [labels.facts.purchase_order, drawable(partner.purchase_order)],
  ];
  for (const [label, value] of facts) {
    if (value) right.fact(label, [[{ text: value, style: body }]], { before: sheet.space(FACT_SPACE) });
  }
  drawBeside(sheet.root, sheet, [
    { column: left, x: sheet.left },
    { column: right, x: rightX },
  ]);
  sheet.y += sheet.space(AFTER_HEAD);
}
