/** Findings for receipts that need a decision, and for reported money that did not arrive. */

import { moneyText } from '#money';
import { EXCEPTION_NAMES } from '#payments/exceptions';
import { PaymentException } from '#payments/exceptions.sql';
import { ToldNotSeen } from '#splits/payouts.sql';
import { describeToldNotSeen } from '#splits/told-not-seen';
import { Finding, toDo, toRun, troubleOf } from './finding.ts';

/** Returns the finding for a receipt, without suggestions. */
export function receiptOf(receipt: PaymentException): Finding {
  const { exception, kind, partner_id, amount, currency, since, reason } = receipt;
  const money = amount === null || currency === null ? null : { amount, currency };
  const sum = money === null ? '' : `, ${moneyText(money.amount, money.currency)}`;
  return {
    ...{ item: `receipt:${exception}`, kind: 'receipts', ...stateOf(receipt), title: exception, money, since, reason },
    partners: partner_id === null ? [] : [{ id: partner_id, name: partner_id }],
    urgent: `${exception} of ${since}${sum}: ${EXCEPTION_NAMES[kind]}.`,
    remedies: [toRun('Decide on it', 'payment exceptions', `/console/payments/${encodeURIComponent(exception)}`)],
  };
}

export const stateOf = ({ kind }: Pick<PaymentException, 'kind'>): Pick<Finding, 'state' | 'tone'> => ({
  state: EXCEPTION_NAMES[kind],
  tone: kind === 'suggestion' ? 'good' : 'warn',
});

/** Payouts arrive within days and bank files within weeks. Money older than this may never have been sent. */
const TOLD_DAYS = 60;

export const notPaidOut = (told: readonly ToldNotSeen[], now: number): Finding[] =>
  told
    .filter(({ since }) => now - Date.parse(since) > TOLD_DAYS * 86_400_000)
    .map((each) =>
      troubleOf('accounts', `not paid out:${each.account} ${each.currency}`, {
        urgent: `${describeToldNotSeen(each)}. Ask for the payouts.`,
        since: each.since,
        remedies: [toDo('Import the bank files that show them', 'payment.import')],
      }),
    );
