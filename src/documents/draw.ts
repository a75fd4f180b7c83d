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
const BEFORE_CONTACT = 12;

export async function drawDocument(face: DocumentFace): Promise<Buffer> {
  const template = readTemplate();
  const wording = wordingOf(face, template);
  const sheet = newSheet(face, wording, template);
  drawNames(sheet, face, wording, template);
  drawHeadline(sheet, wording);
  drawAddressee(sheet, face, wording, template);
  drawLines(sheet, face, wording);
  drawNote(sheet, face.partner.legal_note, BEFORE_NOTE);
  if (situationOf(face) === 'due') drawPayment(sheet, face, wording, template);
  drawNote(sheet, wording.contact, BEFORE_CONTACT);
  return sheet.finish();
}

function newSheet(face: DocumentFace, wording: Wording, { labels, theme }: Template): Sheet {
  const name = `${wording.title} ${wording.number}`;
  return new Sheet({
    paper: theme.letter_countries.includes(face.issuer.address.country) ? 'letter' : 'a4',
    title: name,
    author: drawable(face.issuer.legal_name),
    issuedOn: face.issued_on,
    fonts: ownFonts(),
    theme,
    labels,
    running: {
      continued: fill(labels.running.continued, { title: wording.title, number: wording.number }),
      about: drawable(face.partner.name),
      foot: [drawable(face.issuer.legal_name), name].filter(Boolean).join('  ·  '),
      mark: face.sandbox ? labels.sandbox[face.document] : null,
    },
  });
}

function drawNote(sheet: Sheet, text: string, before: number): void {
  const column = new Column(sheet, sheet.width).text(drawable(text), sheet.style('small'));
  if (column.empty) return;
  sheet.y += before;
  sheet.keepTogether(column.height);
  column.draw(sheet.root, sheet.left);
}
