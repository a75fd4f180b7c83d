/**
 * Renders an invoice, credit note or statement as a tagged PDF. The same snapshot under the same renderer version gives
 * the same bytes: the renderer reads no clock, environment, language or time zone.
 */
import type { Address } from '../../config/validation.ts';
import { monthName } from '../../month.ts';
import type { Locale } from '../locale.ts';
import { type Presentation, present } from '../present.ts';
import type { DocumentSnapshot, VoidMark } from '../snapshot.ts';
import { type AddedFont, withAddedFonts } from './added-fonts.ts';
import { drawAdjustment } from './adjustment.ts';
import { type Canvas, MeasuringCanvas, PdfCanvas } from './canvas.ts';
import { drawAddressee, drawHeadline, drawNames } from './letterhead.ts';
import { type Section, sectionsOf } from './line-columns.ts';
import { drawLines } from './line-table.ts';
import { noticePart } from './notice-panel.ts';
import { type Mark, PageLayout, type Running } from './page-layout.ts';
import { codeOfLink, drawPayment } from './payment.ts';
import type { Code } from './qr-code.ts';
import { fill, readTemplate, type Template } from './template.ts';
import { printable } from './text.ts';
import { Column } from './text-column.ts';
import { RENDERER_VERSION, refuseUnknownVersion } from './version.ts';

export { unprintable } from './text.ts';
export { RENDERER_VERSION, RENDERER_VERSIONS } from './version.ts';

const BEFORE_NOTE = 12;
const AFTER_NOTICE = 14;
/** A longer table never fits one page, and reads well with the closest spacing. */
const LONG_TABLE = 24;
/** Parts of the usual distances, tried in this order until the document fits one page. */
const SPACINGS = [1, 0.75, 0.6, 0.45] as const;

export interface RenderOptions {
  /** The version that the document was issued with; the current one for a new document. */
  readonly version?: number | undefined;
  /** The fonts that it needs besides the program's own (see printable.ts). */
  readonly fonts?: readonly AddedFont[] | undefined;
  /** Renders the copy of a void document, marked as void on each page and without a way to pay. */
  readonly void?: VoidMark | undefined;
  /** The Factur-X file to embed: the PDF is then a PDF/A-3a. */
  readonly eInvoice?: Uint8Array | undefined;
}

/** What a document is rendered from, the same when it is measured and when it is drawn. */
interface Plan {
  readonly snapshot: DocumentSnapshot;
  readonly void: VoidMark | undefined;
  /** The QR code of the payment link. */
  readonly code: Code | undefined;
  readonly presentation: Presentation;
  /** Of its lines. */
  readonly sections: readonly Section[];
  readonly template: Template;
  readonly size: readonly [width: number, height: number];
  readonly running: Running;
}

export async function renderDocument(snapshot: DocumentSnapshot, options: RenderOptions = {}): Promise<Buffer> {
  return withAddedFonts(options.fonts ?? [], () => draw(snapshot, options)).finish();
}

function draw(snapshot: DocumentSnapshot, options: RenderOptions): PdfCanvas {
  const plan = planOf(snapshot, options);
  const { template, size } = plan;
  const pdf = new PdfCanvas({
    size,
    title: nameOf(plan),
    author: plan.presentation.issuer,
    issuedOn: snapshot.issued_on,
    colors: template.theme.colors,
    eInvoice: options.eInvoice,
  });
  const { layout } = layOut(pdf, plan, spacingFor(plan, new MeasuringCanvas(pdf)));
  for (let page = 1; page <= layout.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    layout.drawFoot(page);
  }
  return pdf;
}

function nameOf({ presentation: { title, number }, template, void: voided }: Plan): string {
  return voided === undefined ? `${title} ${number}` : fill(template.labels.void.document_title, { title, number });
}

function planOf(snapshot: DocumentSnapshot, { version = RENDERER_VERSION, void: voided }: RenderOptions): Plan {
  refuseUnknownVersion(version);
  const template = readTemplate();
  const { labels, theme } = template;
  const presentation = present(snapshot, printable, { isVoid: voided !== undefined });
  const { title, number, partner, issuer, contact, locale } = presentation;
  return {
    snapshot,
    void: voided,
    code: codeOfLink(snapshot.payment_link),
    presentation,
    sections: sectionsOf(snapshot),
    template,
    size: paperSize(theme, snapshot),
    running: {
      continued: fill(labels.running.continued, { title, number }),
      about: partner.name,
      foot: [issuer, contact].filter(Boolean).join('  ·  '),
      mark: markOf(snapshot, template, locale, voided),
    },
  };
}

/** Letter or A4, as the partner prints it; as the issuer does if the partner's country is unknown. */
export function paperSize(
  { paper, letter_countries: letterCountries }: Template['theme'],
  {
    partner,
    issuer,
  }: { readonly partner: { readonly address: Address }; readonly issuer: { readonly address: Address } },
): readonly [width: number, height: number] {
  return letterCountries.includes(partner.address.country || issuer.address.country) ? paper.letter : paper.a4;
}

/** A void document is tagged as void on every page, because its pages can be separated. */
function markOf(
  snapshot: DocumentSnapshot,
  { labels }: Template,
  locale: Locale,
  voided: VoidMark | undefined,
): Mark | null {
  const sandbox = labels.sandbox[snapshot.document];
  if (voided === undefined) {
    return snapshot.sandbox ? { banner: sandbox, across: sandbox, style: 'watermark', spoken: 'first' } : null;
  }
  const banner = fill(labels.void.banner, { on: locale.date(voided.on) });
  return {
    banner: [banner, ...(snapshot.sandbox ? [sandbox] : [])].join(' · '),
    across: labels.void.mark,
    style: 'void_mark',
    spoken: 'every',
  };
}

/** The widest spacing with which the document fits one page, or else its table does; the widest of all if none makes it fit. */
function spacingFor(plan: Plan, canvas: MeasuringCanvas): number {
  if (plan.snapshot.lines.length > LONG_TABLE) return Math.min(...SPACINGS);
  let keepsTable: number | undefined;
  for (const spacing of SPACINGS) {
    const { layout, tableEndsOn } = layOut(canvas, plan, spacing);
    if (layout.pageCount === 1) return spacing;
    if (tableEndsOn === 1) keepsTable ??= spacing;
  }
  return keepsTable ?? Math.max(...SPACINGS);
}

interface LaidOut {
  readonly layout: PageLayout;
  /** The page on which the table and its total end. */
  readonly tableEndsOn: number;
}

function layOut(canvas: Canvas, plan: Plan, spacing: number): LaidOut {
  const { snapshot, presentation, sections, template, size, running } = plan;
  const { situation, locale } = presentation;
  const layout = new PageLayout({ canvas, size, spacing, running, template, locale });
  drawNames(layout, snapshot, presentation, template);
  if (plan.void !== undefined) drawVoidNotice(layout, snapshot, plan.void);
  drawHeadline(layout, presentation);
  const { address, contact_name: contact, tax_id: taxId } = snapshot.partner;
  const addressee = template.labels.addressee[snapshot.document];
  drawAddressee(layout, { addressee, contact, address, taxId }, presentation, template);
  if (situation === 'adjustment') drawAdjustment(layout, snapshot, presentation);
  else drawLines(layout, snapshot, presentation, sections);
  const tableEndsOn = layout.pageCount;
  for (const note of presentation.tax.notes) drawNote(layout, note);
  drawNote(layout, printable(snapshot.partner.legal_note));
  // A void document must not be paid, and its link is closed.
  if (situation === 'due' && plan.void === undefined) drawPayment(layout, snapshot, presentation, plan.code);
  if (snapshot.seal !== null) {
    const month = monthName(snapshot.seal.month);
    drawNote(layout, fill(template.labels.seal, { month, root: printable(snapshot.seal.root) }));
  }
  return { layout, tableEndsOn };
}

function drawVoidNotice(layout: PageLayout, snapshot: DocumentSnapshot, { on, reason, replacedBy }: VoidMark): void {
  const labels = layout.labels.void;
  const after = replacedBy === null ? labels.not_replaced : fill(labels.replaced, { number: printable(replacedBy) });
  const text = fill(labels.text, { on: layout.locale.date(on), after, reason: printable(reason) });
  noticePart(layout, { title: labels.title[snapshot.document], level: 'H2', text }, AFTER_NOTICE).draw();
}

function drawNote(layout: PageLayout, text: string): void {
  const column = new Column(layout, layout.width).text(text, layout.style('small'));
  if (column.empty) return;
  layout.y += layout.space(BEFORE_NOTE);
  layout.keepTogether(column.height);
  column.draw(layout.root, layout.left);
}
