import { Transaction } from '#database/transaction';
import { resendDocument } from '#delivery/resend';
import { failpoint } from '#failpoint';
import { dismissEmail } from '#mail/dismiss';
import { nameOf, readEmail, remediesOf } from '#mail/log';
import { ListedEmail } from '#mail/log.sql';
import { resendEmail } from '#mail/resend';
import { defineAction, Facts, Partners, reason, text, whole } from './action.ts';
import { deliver } from './documents.ts';
import { commandOf } from './remedies.ts';

const EMAIL = () => whole('E-mail', "The e-mail's number in the list of e-mails.");

const OF_EMAIL = {
  subject: ({ emailId }: { emailId: number }) => String(emailId),
  /** E-mails to finance or the auditor are for users who see every partner. */
  async partners(tx: Transaction, { emailId }: { emailId: number }): Promise<Partners> {
    const { partner_id } = await readEmail(tx, emailId);
    return partner_id === null ? 'all' : [partner_id];
  },
};

export const emailResend = defineAction({
  name: 'email.resend',
  title: 'Send an e-mail again',
  command: {
    summary: 'Send an e-mail again, as a new one with its own Message-ID',
    arguments: { emailId: '<email>' },
    deliver: true,
  },
  role: 'finance',
  input: {
    emailId: EMAIL(),
    to: text('To', 'Send to this address instead of the usual one.', { value: 'address' }).optional(),
  },
  ...OF_EMAIL,
  async perform(tx, context, { emailId, to }) {
    const { document: number } = await readEmail(tx, emailId);
    if (number === null) return readEmail(tx, (await resendEmail(tx, context, { emailId, to })).email_id);
    return readEmail(tx, await resendDocument(tx, context, { number, to }));
  },
  committed: () => failpoint('resend.committed'),
  async after(context, { result: queued }) {
    if (queued.document !== null) return deliver(context, [queued.document]);
    const { sendTheseEmails } = await import('#month-end/month-end');
    const { reporter, ...own } = context;
    await sendTheseEmails(own, reporter, [queued.email_id]);
  },
  facts: async (_tx, _input, queued): Promise<Facts> =>
    queued === undefined ? {} : { 'a new e-mail': { about: nameOf(queued), status: queued.status } },
  async report({ result: queued, delivered }, _context, tx) {
    const email = await readEmail(tx, queued.email_id);
    return {
      json: await emailJson(email),
      text: `E-mail ${email.email_id}, ${nameOf(email)}: ${email.status}`,
      attention: delivered && email.unfinished,
    };
  },
});

export const emailDismiss = defineAction({
  name: 'email.dismiss',
  title: 'Dismiss an e-mail',
  command: {
    summary: 'Dismiss an e-mail that should not be resent',
    arguments: { emailId: '<email>' },
  },
  role: 'finance',
  input: { emailId: EMAIL(), reason: reason() },
  ...OF_EMAIL,
  perform: dismissEmail,
  async facts(tx, { emailId }) {
    const email = await readEmail(tx, emailId);
    return { [`e-mail ${emailId}`]: { status: email.status, dismissed: email.dismissal_reason } };
  },
  async report({ input: { emailId, reason } }, _context, tx) {
    const email = await readEmail(tx, emailId);
    return { json: await emailJson(email), text: `E-mail ${emailId}, ${nameOf(email)}, is dismissed: ${reason}` };
  },
});

export const emailJson = async ({ email_id: number, ...email }: ListedEmail): Promise<Record<string, unknown>> => ({
  number,
  ...email,
  remedies: email.unfinished ? await Promise.all(remediesOf({ email_id: number, ...email }).map(commandOf)) : [],
});
