/** Draws the body of an adjustment, which bills no ledger rows: one amount against one invoice, and the reason. */
import { Element } from './canvas.ts';
import { Adjustment } from './content.ts';
import { PageLayout } from './page.ts';
import { Style } from './template.ts';
import { shrunk } from './text.ts';
import { Column } from './text-column.ts';

const AFTER_REASON = 10;
const HEADING_SPACE = 5;
const ROW_PADDING = 4;
const STRONG_RULE = 0.9;
const CELL_GAP = 18;

export function drawAdjustment(layout: PageLayout, { heading, currency, reason, line, steps }: Adjustment) {
  const { what, amount } = layout.labels.adjustment;
  const column = new Column(layout, layout.width);
  column.text(heading, layout.style('heading'), { tag: 'H2' });
  column.text(currency, layout.style('small'));
  column.text(reason, layout.style('body'), { before: layout.space(HEADING_SPACE) });
  column.draw(layout.root, layout.left);
  layout.y += layout.space(AFTER_REASON);

  const rows = 1 + 1 + steps.length;
  layout.keepTogether(rows * (layout.style('total').leading + 2 * layout.space(ROW_PADDING)));
  const table = layout.open(layout.root, 'Table');
  const row = (parent: Element, label: string, value: string, style: Style, heads: 'Column' | 'Row') =>
    drawRow(layout, layout.open(parent, 'TR'), { label, value, style, heads });
  layout.rule(layout.left, layout.y, layout.width, 'strong_rule', STRONG_RULE);
  row(layout.open(table, 'THead'), what, amount, layout.style('column'), 'Column');
  layout.rule(layout.left, layout.y, layout.width);
  row(layout.open(table, 'TBody'), line.label, line.amount, layout.style('cell'), 'Row');
  layout.rule(layout.left, layout.y, layout.width, 'strong_rule', STRONG_RULE);
  const foot = layout.open(table, 'TFoot');
  for (const step of steps) {
    row(foot, step.label, step.amount, layout.style(step === steps.at(-1) ? 'total' : 'cell'), 'Row');
  }
}

type Row = Readonly<{
  label: string;
  value: string;
  style: Style;
  heads: 'Column' | 'Row';
}>;

function drawRow(layout: PageLayout, element: Element, { label, value, style, heads }: Row) {
  const room = { text: `${label}${value}`, width: layout.width - CELL_GAP };
  const run = (text: string) => ({ text, style: shrunk(style, [room], layout.measure) });
  layout.y += layout.space(ROW_PADDING);
  layout.content(layout.open(element, 'TH', { scope: heads }), () => layout.text(run(label), layout.left, layout.y));
  const cell = heads === 'Column' ? layout.open(element, 'TH', { scope: 'Column' }) : layout.open(element, 'TD');
  layout.content(cell, () => layout.textTo(run(value), layout.left + layout.width, layout.y));
  layout.y += style.leading + layout.space(ROW_PADDING);
}
