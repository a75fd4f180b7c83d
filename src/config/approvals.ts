/** Which acts need the approval of a second person, and above which amounts. */
import { z } from 'zod';
import { amountProblem, isCurrency, minorDigits } from '../money.ts';

/**
 * The acts that a rule can name: a test compares them with the registry of acts, which comes after this folder. Left out
 * are those that jobs and servers do by themselves, and what must not wait: a pause, and the end of sessions.
 */
export const APPROVABLE_ACTS: readonly string[] = [
  ...['month.close', 'books.close', 'gl.export', 'invoice.void', 'invoice.rerun', 'invoice.credit'],
  ...['invoice.write_off'],
  ...['invoice.write_off_undone', 'invoice.hold', 'invoice.release', 'invoice.resend', 'invoice.link_rotate'],
  ...['invoice.link_revoke', 'payment.record', 'payment.import', 'payment.apply', 'payment.unapply', 'payment.reverse'],
  ...['payment.assign', 'payment.forget_account', 'payment.settle', 'payment.close_exception', 'credit.apply'],
  ...['credit.unapply', 'credit.refund', 'credit.refund_returned', 'dispute.open', 'dispute.close', 'email.resend'],
  ...['email.dismiss', 'statement.send', 'processor.match', 'processor.unmatch', 'processor.close'],
  ...['processor.reverse', 'processor.reverse_month', 'shares.bill', 'client.create', 'client.rotate', 'client.revoke'],
  ...['webhook.set', 'webhook.rotate', 'webhook.resume', 'webhook.remove', 'partner.import'],
  ...['opening.import', 'opening.reverse', 'instructions.adopt'],
  ...['user.invite', 'user.link', 'user.role', 'user.deactivate'],
];

/**
 * The rules that production should have once two people can approve: what moves money to somebody else, or decides who may ask
 * for it, where e-mails go and where money is sent; and the acts by which one administrator could make the second person, or
 * (`user.deactivate`, from a third approver on: see advisedRules) remove one.
 */
export const ADVISED_RULES: readonly string[] = [
  ...['partner.import', 'client.create', 'credit.refund', 'invoice.write_off', 'instructions.adopt'],
  ...['user.invite', 'user.link', 'user.role', 'user.deactivate'],
];

const above = z.record(z.string().refine(isCurrency, 'must be an ISO 4217 currency'), z.string());

/** Of two approvers, each has to be able to remove the other: a rule would need the one who has left. */
export const advisedRules = (approvers: number): readonly string[] =>
  approvers < 2 ? [] : ADVISED_RULES.filter((act) => act !== 'user.deactivate' || approvers > 2);

/** With `always`, whatever the amount. It is written as `{}` too; the history of the settings shows no empty object. */
const rule = z
  .strictObject({ above: above.optional(), always: z.literal(true).optional() })
  .superRefine(({ above: amounts = {} }, context) => {
    for (const [currency, amount] of Object.entries(amounts)) {
      const problem = amountProblem(amount, minorDigits(currency) ?? 0);
      const message = problem?.reason ?? (amount.startsWith('-') ? 'is below zero' : undefined);
      if (message !== undefined) context.addIssue({ code: 'custom', path: ['above', currency], message });
    }
  })
  .transform(({ above: amounts = {}, always }) =>
    always || Object.keys(amounts).length === 0 ? ({ always: true } as const) : { above: amounts },
  );

export const approvalsSchema = z.record(
  z.string().refine((name) => APPROVABLE_ACTS.includes(name), {
    error: `is no act that can need approval: ${APPROVABLE_ACTS.join(', ')}`,
  }),
  rule,
);

export type ApprovalRule = z.output<typeof rule>;
