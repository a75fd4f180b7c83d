/**
 * The notice that a document which reached its partner is void, sent once with the void copy. None if a replacement was
 * issued before, because the e-mail of the replacement names what it replaces.
 */
import { Transaction } from '#database/transaction';
import { documentSnapshot } from '#documents/document';
import { readDocuments } from '#documents/documents.sql';
import { readTemplate } from '#documents/pdf/template';
import { present } from '#documents/present';
import { renderVoidCopy } from '#documents/void-copy';
import { EmailComposer, oneLine, partnerLetter } from '#mail/email';
import { queueEmails } from '#mail/outbox.sql';
import { Amount } from '#money';
import { ActorContext } from '#people/audit-events';
import { readVoidsToTell } from './due.sql.ts';

export const voidNoticeEmail: EmailComposer = {
  kind: 'void_notice',
  queueDue,
  async compose(tx, email, context, templates) {
    const id = email.void_document_id as number;
    const [document] = await readDocuments(tx, { ids: [id], withLogos: true });
    if (document === undefined) throw new Error(`no document ${id} to announce the void of`);
    const due = await readVoidsToTell(tx);
    if (!due.some((each) => each.void_document_id === id)) {
      const { replaced_by: next } = document;
      return { withdrawn: next === null ? 'the document did not reach the partner' : `${next} replaces the document` };
    }
    const letter = await partnerLetter(tx, context, document.partner_id);
    if (letter.held !== undefined) return letter;
    const { to, cc, locale, view } = letter;
    const { currency, credits, void_reason: reason, voided_on: voidedOn } = document;
    const snapshot = documentSnapshot(document, { paymentLink: null, instructions: null, instructionsChanged: false });
    const { title, number, month, amount } = present(snapshot, oneLine, { isVoid: true });
    const [credited] = credits === null ? [] : await readDocuments(tx, { number: credits });
    const filename = `${number}-void.pdf`;
    return {
      ...{ to, cc },
      content: templates.render('void_notice', {
        ...{ ...view, attachments: [{ filename, note: 'a copy marked as void' }] },
        ...{ title, number, month, amount, meaning: readTemplate().labels.void.title[document.document] },
        voidedOn: locale.date(voidedOn as string),
        reason: oneLine(reason ?? ''),
        credits: credits ?? '',
        left: credited?.status === 'open' ? locale.amount(Amount.of(credited.balance, currency)) : '',
      }),
      attachments: [
        { filename, contentType: 'application/pdf', content: await renderVoidCopy(context.environment, document) },
      ],
    };
  },
};

async function queueDue(tx: Transaction, { environment, settings }: ActorContext) {
  const due = (await readVoidsToTell(tx)).filter(({ notices }) => notices === 0);
  if (due.length === 0) return;
  await queueEmails(
    tx,
    due.map(({ notices: _, earlier, ...each }) => ({
      ...{ ...each, kind: 'void_notice' as const },
      name: `void.${each.void_document_id}${earlier === 0 ? '' : `.${earlier + 1}`}`,
    })),
    { environment, settings },
  );
}
