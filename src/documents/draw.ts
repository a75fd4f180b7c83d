/**
 * Draws an invoice, credit note or statement as a tagged PDF. The same face under the same drawing version gives the
 * same bytes: nothing here asks a clock, the environment, or the machine's language and time zone.
 */
import { Column } from './draw/column.ts';
import { ownFonts } from './draw/fonts.ts';
import { type Ink, PdfInk, TrialInk } from './draw/ink.ts';
import { drawAddressee, drawHeadline, drawNames } from './draw/letterhead.ts';
import { drawLines } from './draw/lines.ts';
import { drawPayment } from './draw/payment.ts';
import { type Running, Sheet } from './draw/sheet.ts';
import { fill, readTemplate, type Template } from './draw/template.ts';
import { drawable } from './draw/text.ts';
import { situationOf, type Wording, wordingOf } from './draw/wording.ts';
import type { DocumentFace } from './face.ts';

export { undrawable } from './draw/text.ts';

/** Goes up whenever the bytes of any document would change; a document remembers the version that drew it. */
export const DRAWING_VERSION = 1;

const BEFORE_NOTE = 12;
/** Parts of the usual space between things. With less, many a second page turns out not to be needed. */
const ALL_AIR = 1;
const LESS_AIR = 0.75;
const LEAST_AIR = 0.45;
/** More lines than this fit no single page, and read well when they are close. */
const LONG_TABLE = 24;

/** What a drawing is made from, the same for its trials and for itself. */
interface Plan {
  readonly face: DocumentFace;
  readonly wording: Wording;
  readonly template: Template;
  readonly size: readonly [width: number, height: number];
  readonly running: Running;
}

export async function drawDocument(face: DocumentFace): Promise<Buffer> {
  const plan = planOf(face);
  const { wording, template, size } = plan;
  const pdf = new PdfInk({
    size,
    title: nameOf(wording),
    author: drawable(face.issuer.legal_name),
    issuedOn: face.issued_on,
    fonts: ownFonts(),
    colours: template.theme.colours,
  });
  const sheet = drawWith(pdf, plan, airFor(plan, new TrialInk(pdf)));
  for (let page = 1; page <= sheet.pageCount; page += 1) {
    pdf.switchToPage(page - 1);
    sheet.drawFoot(page);
  }
  return pdf.finish();
}

const nameOf = (wording: Wording): string => `${wording.title} ${wording.number}`;

function planOf(face: DocumentFace): Plan {
  const template = readTemplate();
  const { labels, theme } = template;
  const wording = wordingOf(face, template);
  const paper = theme.letter_countries.includes(face.issuer.address.country) ? 'letter' : 'a4';
  return {
    face,
    wording,
    template,
    size: theme.paper[paper],
    running: {
      continued: fill(labels.running.continued, { title: wording.title, number: wording.number }),
      about: drawable(face.partner.name),
      foot: [drawable(face.issuer.legal_name), wording.contact].filter(Boolean).join('  ·  '),
      mark: face.sandbox ? labels.sandbox[face.document] : null,
    },
  };
}

/** The most air with which the document fits one page; all of it where none makes it fit. */
function airFor(plan: Plan, trial: TrialInk): number {
  if (plan.face.lines.length > LONG_TABLE) return LEAST_AIR;
  const fits = (air: number) => drawWith(trial, plan, air).pageCount === 1;
  return [ALL_AIR, LESS_AIR, LEAST_AIR].find(fits) ?? ALL_AIR;
}

function drawWith(ink: Ink, { face, wording, template, size, running }: Plan, air: number): Sheet {
  const sheet = new Sheet({ ink, size, air, running, template });
  drawNames(sheet, face, wording, template);
  drawHeadline(sheet, wording);
  drawAddressee(sheet, face, wording, template);
  drawLines(sheet, face, wording);
  drawNote(sheet, face.partner.legal_note);
  if (situationOf(face) === 'due') drawPayment(sheet, face, wording, template);
  return sheet;
}

function drawNote(sheet: Sheet, text: string): void {
  const column = new Column(sheet, sheet.width).text(drawable(text), sheet.style('small'));
  if (column.empty) return;
  sheet.y += sheet.space(BEFORE_NOTE);
  sheet.keepTogether(column.height);
  column.draw(sheet.root, sheet.left);
}
