import { failpoint } from '#failpoint';
import { sendStatements } from '#month-end/emails/account-statement';
import { toRun } from '#remedy';
import { plural } from '#text';
import { defineAction, month, partner } from './action.ts';
import { needsAttention, sendThese } from './emails.ts';

export const statementSend = defineAction({
  name: 'statement.send',
  title: 'E-mail account statements',
  command: {
    summary:
      'E-mail account statements of a closed month; safe to repeat. They are preliminary until the books of the month close',
  },
  role: 'finance',
  input: {
    month: month('Month', 'A closed month. Default: the last month whose books are closed.').optional(),
    partnerId: partner('Only this partner, even if it does not request statements.').optional(),
  },
  subject: ({ month = 'the last month', partnerId }) =>
    [month, ...(partnerId === undefined ? [] : [partnerId])].join(' '),
  partners: async (_tx, { partnerId }) => (partnerId === undefined ? 'all' : [partnerId]),
  perform: sendStatements,
  committed: () => failpoint('statement.committed'),
  after: (context, { result: { emails } }) =>
    sendThese(
      context,
      emails.map(({ email_id }) => email_id),
    ),
  facts: async (_tx, _input, queued) =>
    Object.fromEntries(
      (queued?.emails ?? []).map(({ partner_id }) => [
        `the account statement of ${partner_id}`,
        { month: queued?.month ?? null, preliminary: queued?.preliminary ? 'yes' : 'no' },
      ]),
    ),
  async report({ result: { month, preliminary, emails }, followed = [], delivered }) {
    const results = followed.map(({ email, status, detail }) => ({ partner_id: email.partner_id, status, detail }));
    const sent = results.filter(({ status }) => status === 'sent').length;
    const did = delivered ? 'Sent' : 'Queued';
    const count = delivered ? sent : emails.length;
    return {
      json: { month, preliminary, emails: results },
      text:
        emails.length === 0
          ? `No ${preliminary ? 'preliminary ' : ''}statement of ${month} is left to send.`
          : preliminary
            ? `${did} ${plural(count, 'preliminary account statement')} of ${month}: its books are open. The final ones follow when they close.`
            : `${did} ${plural(count, 'account statement')} of ${month}.`,
      remedies: emails.length === 0 ? [toRun('See those that were sent', 'email list')] : [],
      attention: results.some(needsAttention),
    };
  },
});
