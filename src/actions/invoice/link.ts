import { defineAction, documentNumber, Facts, text } from '#actions/action';
import { OF_DOCUMENT, reportDocument } from '#actions/documents';
import { Transaction } from '#database/transaction';
import { changeLink, LinkChange } from '#delivery/change-link';
import { readDocuments } from '#documents/documents.sql';
import { refuseField } from '#errors/refusals';
import { Remedy, toDo } from '#remedy';
import { wrapped } from '#text-table';

type Next = Readonly<{
  says: string;
  remedy: Remedy;
}>;

const linkAction = (to: LinkChange['to'], title: string, nextOf: (number: string, link: string | null) => Next) =>
  defineAction({
    name: `invoice.link_${to}`,
    command: { called: `invoice link --${to}`, arguments: { number: '<number>' } },
    title,
    role: 'finance',
    input: { number: documentNumber(), reason: text('Reason', 'Why the link is changed. It is recorded.') },
    check({ reason }) {
      if (reason.trim() === '') throw refuseField('reason', reason, 'give the reason for changing the link');
    },
    ...OF_DOCUMENT,
    perform: (tx, context, request) => changeLink(tx, context, { ...request, to }),
    facts: (tx, { number }, changed) => linkFacts(tx, number, changed !== undefined),
    report: ({ input: { number } }, _context, tx) =>
      reportDocument(tx, number, ({ payment_link }) => {
        const { says, remedy } = nextOf(number, payment_link);
        return {
          text: wrapped(`The old link of ${number} no longer works. ${says}`.trimEnd(), 80).join('\n'),
          remedies: [remedy],
        };
      }),
  });

/** Returns facts without the link itself, because the link opens the page. */
async function linkFacts(tx: Transaction, number: string, changed: boolean): Promise<Facts> {
  const [document] = await readDocuments(tx, { number });
  if (document === undefined) return {};
  const link = document.payment_link === null ? 'none' : changed ? 'a new one' : 'the current one';
  return { [number]: { 'payment link': link } };
}

export const invoiceLinkRotate = linkAction('rotate', 'Replace the link of a payment page', (number, link) => ({
  says: `The new link is ${link}. The stored PDF shows the old one.`,
  remedy: toDo('Send an e-mail with the new link', 'invoice.resend', { number }),
}));

export const invoiceLinkRevoke = linkAction('revoke', 'Revoke the link of a payment page', (number) => ({
  says: '',
  remedy: toDo('Make a new one', 'invoice.link_rotate', { number }),
}));
