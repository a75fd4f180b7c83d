/**
 * Renders a document as a tagged PDF. With the same renderer version, equal snapshots give equal bytes: the renderer
 * reads no clock, environment, language or time zone.
 */
import { DocumentSnapshot, VoidMark } from '#documents/snapshot';
import { AddedFont, withAddedFonts } from './added-fonts.ts';
import { drawAdjustment } from './adjustment.ts';
import { Canvas, MeasuringCanvas, PdfCanvas } from './canvas.ts';
import { Content, contentOf } from './content.ts';
import { drawAddressee, drawHeadline, drawNames } from './letterhead.ts';
import { drawLines } from './line-table.ts';
import { noticePart } from './notice-panel.ts';
import { PageLayout } from './page.ts';
import { drawPayment } from './payment.ts';
import { readTemplate } from './template.ts';
import { Column } from './text-column.ts';

export { unprintable } from './text.ts';

const BEFORE_NOTE = 12;
const AFTER_NOTICE = 14;
/** A longer table never fits one page, and reads well with the closest spacing. */
const LONG_TABLE = 24;
/** Fractions of the usual distances, tried in this order until the document fits one page. */
const SPACINGS = [1, 0.75, 0.6, 0.45] as const;

export type RenderOptions = Readonly<{
  fonts?: readonly AddedFont[] | undefined;
  /** Renders the void copy, marked as void on each page and without a way to pay. */
  void?: VoidMark | undefined;
  /** The Factur-X file to embed, which makes the PDF a PDF/A-3a. */
  eInvoice?: Uint8Array | undefined;
}>;

export async function renderDocument(snapshot: DocumentSnapshot, options: RenderOptions = {}): Promise<Buffer> {
  const draw = () => drawContent(contentOf(snapshot, options.void), options.eInvoice);
  return withAddedFonts(options.fonts ?? [], draw).finish();
}

function drawContent(content: Content, eInvoice: Uint8Array | undefined) {
  const { size, name, names, issuedOn } = content;
  const { colors } = readTemplate().theme;
  const pdf = new PdfCanvas({ size, title: name, author: names.issuer, issuedOn, colors, eInvoice });
  const { layout } = layOut(pdf, content, spacingFor(content, new MeasuringCanvas(pdf)));
  for (let page = 1; page <= layout.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    layout.drawFoot(page);
  }
  return pdf;
}

/** The widest spacing with which the document fits one page, or else its table, or else the widest of all. */
function spacingFor(content: Content, canvas: MeasuringCanvas) {
  const { body } = content;
  const lines = 'table' in body ? body.table.sections.reduce((sum, section) => sum + section.lines.length, 0) : 0;
  if (lines > LONG_TABLE) return Math.min(...SPACINGS);
  let keepsTable: number | undefined;
  for (const spacing of SPACINGS) {
    const { layout, tableEndsOn } = layOut(canvas, content, spacing);
    if (layout.pageCount === 1) return spacing;
    if (tableEndsOn === 1) keepsTable ??= spacing;
  }
  return keepsTable ?? Math.max(...SPACINGS);
}

type LaidOut = Readonly<{
  layout: PageLayout;
  tableEndsOn: number;
}>;

function layOut(canvas: Canvas, content: Content, spacing: number): LaidOut {
  const { size, running, body } = content;
  const layout = new PageLayout({ canvas, size, spacing, running, template: readTemplate() });
  drawNames(layout, content.names);
  if (content.notice !== null) noticePart(layout, content.notice, 'H2', AFTER_NOTICE).draw();
  drawHeadline(layout, content.headline);
  drawAddressee(layout, content.addressee);
  if ('adjustment' in body) drawAdjustment(layout, body.adjustment);
  else drawLines(layout, body.table);
  const tableEndsOn = layout.pageCount;
  for (const note of content.notes) drawNote(layout, note);
  // A void document must not be paid, and its link is closed.
  if (content.payment !== null) drawPayment(layout, content.payment);
  drawNote(layout, content.checkpoint);
  return { layout, tableEndsOn };
}

function drawNote(layout: PageLayout, text: string) {
  const column = new Column(layout, layout.width).text(text, layout.style('small'));
  if (column.empty) return;
  layout.y += layout.space(BEFORE_NOTE);
  layout.keepTogether(column.height);
  column.draw(layout.root, layout.left);
}
