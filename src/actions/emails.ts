import { OtherEmailKind } from '#mail/kinds';
import { EmailResult } from '#mail/outbox';
import { AfterContext } from './action.ts';

/**
 * Queues and sends every e-mail that is due. The modules for rendering and mail take 0.25 seconds to load, so they are
 * loaded on demand.
 */
export const sendDue = ({ reporter, ...context }: AfterContext) =>
  collected(reporter.onEmail, async (onEmail) => {
    const { sendEmails } = await import('#month-end/month-end');
    await sendEmails(context, { onEmail });
  });

export const sendThese = ({ reporter, ...context }: AfterContext, ids: readonly number[]) =>
  collected(reporter.onEmail, async (onEmail) => {
    const { sendTheseEmails } = await import('#month-end/month-end');
    await sendTheseEmails(context, { onEmail }, ids);
  });

type OnEmail = (result: EmailResult) => void;

async function collected(heard: OnEmail | undefined, send: (onEmail: OnEmail) => Promise<void>) {
  const results: EmailResult[] = [];
  await send((result) => {
    results.push(result);
    heard?.(result);
  });
  return results;
}

/**
 * Returns whether an e-mail needs attention. A deferred e-mail needs no attention, because the next delivery sends it.
 */
export const needsAttention = ({ status }: Pick<EmailResult, 'status'>) =>
  ['held', 'failed', 'uncertain'].includes(status);

const KINDS: Readonly<Record<OtherEmailKind, readonly [one: string, many: string]>> = {
  reminder: ['reminder', 'reminders'],
  account_statement: ['account statement', 'account statements'],
  close_report: ['close report', 'close reports'],
  instructions_changed: ['alert about changed bank details', 'alerts about changed bank details'],
  feed_doubts: ['notice about doubtful feeds', 'notices about doubtful feeds'],
  checkpoint: ['letter about a checkpoint', 'letters about checkpoints'],
  status: ['status', 'statuses'],
  payment_receipt: ['receipt', 'receipts'],
  refund_notice: ['refund notice', 'refund notices'],
  void_notice: ['notice of a void', 'notices of voids'],
  approval_request: ['request for approval', 'requests for approval'],
  approval_decision: ['decision on a request', 'decisions on requests'],
  security_notice: ['security notice', 'security notices'],
};

/** Counts e-mails without a document by kind: `2 reminders, 1 notice about doubtful feeds`. */
export function countKinds(results: readonly EmailResult[]) {
  const counts = Object.entries(KINDS).map(([kind, [one, many]]) => {
    const count = results.filter(({ email }) => email.kind === kind).length;
    return count === 0 ? '' : `${count} ${count === 1 ? one : many}`;
  });
  return counts.filter((each) => each !== '').join(', ');
}
