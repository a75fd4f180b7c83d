/** What an adjustment credits: one amount against one invoice, and why. It stands for no ledger rows. */
import { Amount } from '../../money.ts';
import type { DocumentFace } from '../face.ts';
import { Column } from './column.ts';
import type { Element } from './ink.ts';
import type { Sheet } from './sheet.ts';
import { fill, type Style } from './template.ts';
import { drawable, type Run, shrunk } from './text.ts';
import type { Wording } from './wording.ts';

const AFTER_REASON = 10;
const HEADING_SPACE = 5;
const ROW_PADDING = 4;
const STRONG_RULE = 0.9;
const CELL_GAP = 18;

export function drawAdjustment(sheet: Sheet, face: DocumentFace, wording: Wording): void {
  const { adjustment, lines } = sheet.labels;
  const credits = drawable(face.credits ?? '');
  const column = new Column(sheet, sheet.width);
  column.text(fill(adjustment.heading, { credits }), sheet.style('heading'), { tag: 'H2' });
  column.text(fill(lines.currency, { currency: face.currency }), sheet.style('small'));
  const reason = drawable(face.reason ?? '');
  if (reason !== '') {
    const before = sheet.space(HEADING_SPACE);
    column.text(fill(adjustment.reason, { reason }), sheet.style('body'), { before });
  }
  column.draw(sheet.root, sheet.left);
  sheet.y += sheet.space(AFTER_REASON);

  const amount = Amount.of(face.invoiceAmount, face.currency);
  const rows = 1 + 1 + wording.steps.length;
  sheet.keepTogether(rows * (sheet.style('total').leading + 2 * sheet.space(ROW_PADDING)));
  const table = sheet.open(sheet.root, 'Table');
  const row = (parent: Element, label: string, value: string, style: Style, heads: 'Column' | 'Row') =>
    drawRow(sheet, sheet.open(parent, 'TR'), { label, value, style, heads });
  sheet.rule(sheet.left, sheet.y, sheet.width, 'strong_rule', STRONG_RULE);
  row(sheet.open(table, 'THead'), adjustment.what, adjustment.amount, sheet.style('column'), 'Column');
  sheet.rule(sheet.left, sheet.y, sheet.width);
  const line = fill(adjustment.line, { credits });
  row(sheet.open(table, 'TBody'), line, sheet.locale.number(amount.toString()), sheet.style('cell'), 'Row');
  sheet.rule(sheet.left, sheet.y, sheet.width, 'strong_rule', STRONG_RULE);
  const foot = sheet.open(table, 'TFoot');
  for (const step of wording.steps) {
    row(foot, step.label, sheet.locale.amount(step.amount), sheet.style('total'), 'Row');
  }
}

interface Row {
  readonly label: string;
  readonly value: string;
  readonly style: Style;
  /** What its header cells are the headers of. */
  readonly heads: 'Column' | 'Row';
}

function drawRow(sheet: Sheet, element: Element, { label, value, style, heads }: Row): void {
  const room = { text: `${label}${value}`, width: sheet.width - CELL_GAP };
  const run = (text: string): Run => ({ text, style: shrunk(style, [room], sheet.measure) });
  sheet.y += sheet.space(ROW_PADDING);
  sheet.content(sheet.open(element, 'TH', { scope: heads }), () => sheet.text(run(label), sheet.left, sheet.y));
  const cell = heads === 'Column' ? sheet.open(element, 'TH', { scope: 'Column' }) : sheet.open(element, 'TD');
  sheet.content(cell, () => sheet.textTo(run(value), sheet.left + sheet.width, sheet.y));
  sheet.y += style.leading + sheet.space(ROW_PADDING);
}
