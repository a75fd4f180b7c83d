/** Draws the body of an adjustment, which bills no ledger rows: one amount against one invoice, and the reason. */
import { Element } from './canvas.ts';
import { Adjustment, Step } from './content.ts';
import { COLUMN_GAP, Place } from './line-columns.ts';
import { drawColumnHeadings, drawRow, headingCell, rowHeight } from './line-table.ts';
import { PageLayout } from './page.ts';
import { Style } from './template.ts';
import { Column } from './text-column.ts';

const AFTER_REASON = 10;
const HEADING_SPACE = 5;
/** The width of the labels, as a fraction. */
const LABELS = 0.7;

export function drawAdjustment(layout: PageLayout, { heading, currency, reason, line, steps }: Adjustment) {
  const { what, amount } = layout.labels.adjustment;
  const column = new Column(layout, layout.width);
  column.text(heading, layout.style('heading'), { tag: 'H2' });
  column.text(currency, layout.style('small'));
  column.text(reason, layout.style('body'), { before: layout.space(HEADING_SPACE) });
  column.draw(layout.root, layout.left);
  layout.y += layout.space(AFTER_REASON);

  const width = layout.width * LABELS;
  const labels: Place = { x: layout.left, width: width - COLUMN_GAP };
  const amounts: Place = { x: layout.left + width, width: layout.width - width };
  const headings = [headingCell(layout, what, labels, 'left'), headingCell(layout, amount, amounts, 'right')];
  layout.keepTogether((2 + steps.length) * rowHeight(layout) + layout.style('total').leading);
  const table = layout.open(layout.root, 'Table');
  const row = (parent: Element, step: Step, style: Style) =>
    drawRow({ layout, headings }, parent, [
      { tag: 'TH', scope: 'Row', place: labels, align: 'left', lines: layout.lines(step.label, style, labels.width) },
      { tag: 'TD', place: amounts, align: 'right', lines: layout.lines(step.amount, style, amounts.width) },
    ]);
  drawColumnHeadings({ layout, headings }, layout.open(layout.open(table, 'THead'), 'TR'));
  row(layout.open(table, 'TBody'), line, layout.style('cell'));
  const foot = layout.open(table, 'TFoot');
  for (const step of steps) row(foot, step, layout.style(step === steps.at(-1) ? 'total' : 'cell'));
}
