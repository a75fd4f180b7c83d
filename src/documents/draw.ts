/**
 * Draws an invoice, credit note or statement as a tagged PDF. The same face under the same drawing version gives the
 * same bytes: nothing here asks a clock, the environment, or the machine's language and time zone.
 */
import { monthName } from '../month.ts';
import { drawAdjustment } from './draw/adjustment.ts';
import type { Code } from './draw/code.ts';
import { Column } from './draw/column.ts';
import { DRAWING_VERSION, type Edition, editionOf, localeIn } from './draw/edition.ts';
import { type Ink, PdfInk, TrialInk } from './draw/ink.ts';
import { drawAddressee, drawHeadline, drawNames } from './draw/letterhead.ts';
import { drawLines } from './draw/lines.ts';
import { noticePart } from './draw/notice.ts';
import { codeOfLink, drawPayment } from './draw/payment.ts';
import { type Mark, type Running, Sheet } from './draw/sheet.ts';
import { fill, readTemplate, type Template } from './draw/template.ts';
import { drawable } from './draw/text.ts';
import { situationOf, type Wording, wordingOf } from './draw/wording.ts';
import type { DocumentFace, FaceVoid } from './face.ts';
import type { Locale } from './locale.ts';

export { DRAWING_VERSION, DRAWING_VERSIONS } from './draw/edition.ts';
export { undrawable } from './draw/text.ts';

const BEFORE_NOTE = 12;
const AFTER_NOTICE = 14;
/** More lines than this fit no single page, and read well when they are close. */
const LONG_TABLE = 24;

export interface DrawingOptions {
  /** The version that the document was issued with; the present one for a new document. */
  readonly version?: number | undefined;
  /** Makes it the copy of a void document, marked so on each page and without a way to pay. */
  readonly void?: FaceVoid | undefined;
}

/** What a drawing is made from, the same for its trials and for itself. */
interface Plan {
  readonly face: DocumentFace;
  readonly edition: Edition;
  readonly locale: Locale;
  readonly void: FaceVoid | undefined;
  /** Of the payment link. */
  readonly code: Code | undefined;
  readonly wording: Wording;
  readonly template: Template;
  readonly size: readonly [width: number, height: number];
  readonly running: Running;
}

export async function drawDocument(face: DocumentFace, options: DrawingOptions = {}): Promise<Buffer> {
  const plan = planOf(face, options);
  const { template, size } = plan;
  const pdf = new PdfInk({
    size,
    title: nameOf(plan),
    author: drawable(face.issuer.legal_name),
    issuedOn: face.issued_on,
    colours: template.theme.colours,
  });
  const sheet = drawWith(pdf, plan, airFor(plan, new TrialInk(pdf)));
  for (let page = 1; page <= sheet.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    sheet.drawFoot(page);
  }
  return pdf.finish();
}

function nameOf({ wording: { title, number }, template, void: voided }: Plan): string {
  return voided === undefined ? `${title} ${number}` : fill(template.labels.void.document_title, { title, number });
}

function planOf(face: DocumentFace, { version = DRAWING_VERSION, void: voided }: DrawingOptions): Plan {
  const edition = editionOf(version);
  const locale = localeIn(edition, face);
  const template = readTemplate();
  const { labels, theme } = template;
  const wording = wordingOf(face, template, locale);
  const paper = theme.letter_countries.includes(face.issuer.address.country) ? 'letter' : 'a4';
  return {
    face: edition.logo ? face : { ...face, issuer: { ...face.issuer, logo: null } },
    edition,
    locale,
    void: voided,
    code: edition.qrCode ? codeOfLink(face.payment_link) : undefined,
    wording,
    template,
    size: theme.paper[paper],
    running: {
      continued: fill(labels.running.continued, { title: wording.title, number: wording.number }),
      about: drawable(face.partner.name),
      foot: [drawable(face.issuer.legal_name), wording.contact].filter(Boolean).join('  ·  '),
      mark: markOf(face, template, locale, voided),
    },
  };
}

/** A void document says so aloud on every page: whoever is handed the second one alone must know it too. */
function markOf(face: DocumentFace, { labels }: Template, locale: Locale, voided: FaceVoid | undefined): Mark | null {
  const sandbox = labels.sandbox[face.document];
  if (voided === undefined) {
    return face.sandbox ? { banner: sandbox, across: sandbox, style: 'watermark', spoken: 'first' } : null;
  }
  const banner = fill(labels.void.banner, { on: locale.date(voided.on) });
  return {
    banner: [banner, ...(face.sandbox ? [sandbox] : [])].join(' · '),
    across: labels.void.mark,
    style: 'void_mark',
    spoken: 'every',
  };
}

/** The most air with which the document fits one page; all of it where none makes it fit. */
function airFor(plan: Plan, trial: TrialInk): number {
  const { airs } = plan.edition;
  if (plan.face.lines.length > LONG_TABLE) return Math.min(...airs);
  const fits = (air: number) => drawWith(trial, plan, air).pageCount === 1;
  return airs.find(fits) ?? Math.max(...airs);
}

function drawWith(ink: Ink, plan: Plan, air: number): Sheet {
  const { face, wording, template, size, running, edition, locale } = plan;
  const sheet = new Sheet({ ink, size, air, running, template, locale });
  drawNames(sheet, face, wording, template);
  if (plan.void !== undefined) drawVoidNotice(sheet, face, plan.void);
  drawHeadline(sheet, wording);
  drawAddressee(sheet, face, wording, template);
  if (situationOf(face) === 'adjustment') drawAdjustment(sheet, face, wording);
  else drawLines(sheet, face, wording, edition);
  drawNote(sheet, drawable(face.partner.legal_note));
  // What is void is not to be paid, and its link leads nowhere by now.
  if (situationOf(face) === 'due' && plan.void === undefined) drawPayment(sheet, face, wording, template, plan.code);
  if (edition.seal && face.seal !== null) {
    const month = monthName(face.seal.month);
    drawNote(sheet, fill(template.labels.seal, { month, root: drawable(face.seal.root) }));
  }
  return sheet;
}

function drawVoidNotice(sheet: Sheet, face: DocumentFace, { on, reason, replacedBy }: FaceVoid): void {
  const labels = sheet.labels.void;
  const after = replacedBy === null ? labels.not_replaced : fill(labels.replaced, { number: drawable(replacedBy) });
  const text = fill(labels.text, { on: sheet.locale.date(on), after, reason: drawable(reason) });
  noticePart(sheet, { title: labels.title[face.document], level: 'H2', text }, AFTER_NOTICE).draw();
}

function drawNote(sheet: Sheet, text: string): void {
  const column = new Column(sheet, sheet.width).text(text, sheet.style('small'));
  if (column.empty) return;
  sheet.y += sheet.space(BEFORE_NOTE);
  sheet.keepTogether(column.height);
  column.draw(sheet.root, sheet.left);
}
