/**
 * Draws an invoice, credit note or statement as a tagged PDF. The same face under the same drawing version gives the
 * same bytes: nothing here asks a clock, the environment, or the machine's language and time zone.
 */
import { Column } from './draw/column.ts';
import { ownFonts } from './draw/fonts.ts';
import { drawAddressee, drawHeadline, drawNames } from './draw/letterhead.ts';
import { drawLines } from './draw/lines.ts';
import { drawPayment } from './draw/payment.ts';
import { Sheet } from './draw/sheet.ts';
import { fill, readTemplate, type Template } from './draw/template.ts';
import { drawable } from './draw/text.ts';
import { situationOf, type Wording, wordingOf } from './draw/wording.ts';
import type { DocumentFace } from './face.ts';

export { undrawable } from './draw/text.ts';

/** Goes up whenever the bytes of any document would change; a document remembers the version that drew it. */
export const DRAWING_VERSION = 1;

const BEFORE_NOTE = 12;
/** Parts of the usual space between things: tried where a document would need a second page. */
const LESS_AIR = 0.75;
const LEAST_AIR = 0.45;
/** More lines than this fit no single page, and read well when they are close. */
const LONG_TABLE = 24;

export async function drawDocument(face: DocumentFace): Promise<Buffer> {
  const template = readTemplate();
  const wording = wordingOf(face, template);
  if (face.lines.length > LONG_TABLE) return layOut(face, wording, template, LEAST_AIR).finish();
  const roomy = layOut(face, wording, template, 1);
  if (roomy.pageCount !== 2) return roomy.finish();
  // Set closer, many a second page turns out not to be needed.
  for (const air of [LESS_AIR, LEAST_AIR]) {
    const closer = layOut(face, wording, template, air);
    if (closer.pageCount === 1) return closer.finish();
  }
  return roomy.finish();
}

function layOut(face: DocumentFace, wording: Wording, template: Template, air: number): Sheet {
  const sheet = newSheet(face, wording, template, air);
  drawNames(sheet, face, wording, template);
  drawHeadline(sheet, wording);
  drawAddressee(sheet, face, wording, template);
  drawLines(sheet, face, wording);
  drawNote(sheet, face.partner.legal_note);
  if (situationOf(face) === 'due') drawPayment(sheet, face, wording, template);
  return sheet;
}

function newSheet(face: DocumentFace, wording: Wording, { labels, theme }: Template, air: number): Sheet {
  const name = `${wording.title} ${wording.number}`;
  const issuer = drawable(face.issuer.legal_name);
  return new Sheet({
    air,
    paper: theme.letter_countries.includes(face.issuer.address.country) ? 'letter' : 'a4',
    title: name,
    author: issuer,
    issuedOn: face.issued_on,
    fonts: ownFonts(),
    theme,
    labels,
    running: {
      continued: fill(labels.running.continued, { title: wording.title, number: wording.number }),
      about: drawable(face.partner.name),
      foot: [issuer, wording.contact].filter(Boolean).join('  ·  '),
      mark: face.sandbox ? labels.sandbox[face.document] : null,
    },
  });
}

function drawNote(sheet: Sheet, text: string): void {
  const column = new Column(sheet, sheet.width).text(drawable(text), sheet.style('small'));
  if (column.empty) return;
  sheet.y += sheet.space(BEFORE_NOTE);
  sheet.keepTogether(column.height);
  column.draw(sheet.root, sheet.left);
}
