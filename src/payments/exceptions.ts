/**
 * Payment exceptions: payments, bank lines and events that need manual review. Most exceptions are resolved by the
 * command that the exception names.
 *
 * These exceptions can also be closed with a recorded reason: a bank line, bank statement or event that needs no
 * action, digits that were not swapped, and a possible duplicate that is a different payment. Refusals:
 * exception_unknown, exception_needs_action.
 */

import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Amount } from '#money';
import { Scope } from '#people/scope';
import { Remedy, ToDo, toDo } from '#remedy';
import { Caller, lockPayments, openPaymentContext } from './context.ts';
import {
  ExceptionalPayment,
  ExceptionKind,
  ExceptionSuggestion,
  insertClosing,
  isClosable,
  PaymentException,
  readExceptionalPayments,
  readExceptions,
  readLineTexts,
} from './exceptions.sql.ts';
import { PresentMatch, readPresentMatches } from './present-suggestions.ts';

export const EXCEPTION_NAMES: Readonly<Record<ExceptionKind, string>> = {
  unknown_payer: 'unknown payer',
  possible_duplicate: 'possible duplicate',
  digits_swapped: 'digits swapped',
  suggestion: 'suggestion',
  unapplied_cash: 'unapplied cash',
  payout: 'payout',
  bank_line: 'bank line',
  bank_statement: 'bank statement',
  event: 'processor event',
  waiting_event: 'waiting event',
};

function endsOf({
  kind,
  exception,
  amount,
  reason,
}: Pick<PaymentException, 'kind' | 'exception' | 'amount'> & { reason?: string }) {
  const id = /\d+$/.exec(exception)?.[0] ?? '';
  const apply = (when?: string) => toDo('Apply it', 'payment.apply', { paymentId: id }, when);
  const close = (label: string, when?: string) => toDo(label, 'payment.close_exception', { exception }, when);
  const ends: Readonly<Record<ExceptionKind, readonly Remedy[]>> = {
    unknown_payer: [apply()],
    possible_duplicate: [
      reversing(id, { kind: 'duplicate' }),
      apply('if it is a different payment'),
      close('Keep it', 'if it is a different payment that pays nothing yet'),
    ],
    digits_swapped: [close('Close it', 'if the amount is intended; otherwise, request the difference')],
    suggestion: [apply()],
    unapplied_cash: [apply(), reversing(id, { kind: 'refunded' }, 'once it is paid back')],
    payout: [toDo('Record its contents', 'payment.settle', { payoutId: id })],
    bank_line: [...endsOfLine(id, amount, reason), close('Close it')],
    bank_statement: [toDo('Import the missing file', 'payment.import'), close('Close it', 'if no file is missing')],
    event: [close('Close it')],
    waiting_event: [],
  };
  return [...ends[kind]];
}

const reversing = (paymentId: string, values: Readonly<Record<string, string>>, when?: string) =>
  toDo('Reverse it', 'payment.reverse', { paymentId, ...values }, when);

/**
 * The remedies of a bank line. The reason of its outcome is our own sentence (bank-import/returns.ts and decide.ts),
 * which names the payment or the credit note that the line is about.
 */
function endsOfLine(bankLineId: string, amount: string | null, reason = ''): Remedy[] {
  const [, paymentId] = /\bpayment (\d+)/.exec(reason) ?? [];
  const [number] = /\bCN-\d{4}-\d+/.exec(reason) ?? [];
  const why = 'returned by the bank';
  const about = amount?.startsWith('-')
    ? toDo(
        'Reverse the payment',
        'payment.reverse',
        { ...(paymentId !== undefined && { paymentId }), kind: 'returned', bankLineId, reason: why },
        'if the debit is the return of a payment',
      )
    : toDo(
        'Record the return',
        'credit.refund_returned',
        { ...(number !== undefined && { number }), bankLineId, reason: why },
        'if a refund came back',
      );
  return [about, toDo('Book it', 'bank.book', { bankLineId }, "if it is not a customer's money")];
}

/** A suggestion. `accepts` is null if no single command accepts the suggestion unchanged. */
type Acceptable = Readonly<{
  number: string | null;
  same_as: number | null;
  partner_id: string | null;
  amount: string;
  confidence: string;
  why: string;
  accepts: ToDo | null;
}>;

export type ListedException = PaymentException &
  Readonly<{
    payment_id: number | null;
    partner_name: string | null;
    payer: Readonly<{ name: string | null; account: string | null }> | null;
    reference: string | null;
    text: string | null;
    sets: readonly Readonly<{ numbers: readonly string[]; why: string; accepts: ToDo }>[];
    suggestions: readonly Acceptable[];
    remedies: readonly Remedy[];
  }>;

/** Lists open exceptions with the facts that finance needs to decide, and the commands that resolve them. */
export const listExceptions = async (
  tx: Transaction,
  settings: Pick<Settings, 'small_difference'>,
): Promise<ListedException[]> => describeExceptions(tx, { settings, scope: null }, await readExceptions(tx));

/** Describes the given exceptions, without data of partners outside the scope. */
export async function describeExceptions(
  tx: Transaction,
  { settings, scope }: Readonly<{ settings: Pick<Settings, 'small_difference'>; scope: Scope }>,
  exceptions: readonly PaymentException[],
): Promise<ListedException[]> {
  const ids = exceptions.flatMap(({ exception }) => /^payment-(\d+)$/.exec(exception)?.[1] ?? []);
  const stored = ids.length === 0 ? [] : await readExceptionalPayments(tx, { ids });
  const lines = exceptions.flatMap(({ exception }) => /^line-(\d+)$/.exec(exception)?.[1] ?? []);
  const texts = lines.length === 0 ? new Map<string, string>() : await readLineTexts(tx, lines);
  const present = await readPresentMatches(tx, settings, stored);
  const payments = new Map(
    stored.map((each) => {
      const { suggestions, ...matches } = present.get(each.payment_id) as PresentMatch;
      const matched = { ...each, ...matches, suggestions: [...each.suggestions, ...suggestions] };
      return [`payment-${each.payment_id}`, inScope(matched, scope)];
    }),
  );
  return exceptions.map((each) => {
    const payment = payments.get(each.exception);
    return payment === undefined
      ? otherException(each, texts.get(each.exception) ?? null)
      : paymentException(each, payment);
  });
}

type MatchedPayment = ExceptionalPayment & PresentMatch;

function inScope(payment: MatchedPayment, scope: Scope) {
  if (scope === null) return payment;
  const { suggestions, account_partner: account } = payment;
  return {
    ...payment,
    suggestions: suggestions.filter(({ partner_id: id }) => id !== null && scope.includes(id)),
    account_partner: account !== null && scope.includes(account) ? account : null,
    written_off: [],
  };
}

export function countKinds(exceptions: readonly Pick<PaymentException, 'kind'>[]) {
  const counts: Partial<Record<ExceptionKind, number>> = {};
  for (const { kind } of exceptions) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

function presentKind(exception: PaymentException, payment: MatchedPayment): Pick<PaymentException, 'kind' | 'reason'> {
  const { kind, reason } = exception;
  if (kind === 'possible_duplicate') return { kind, reason };
  const [best] = payment.suggestions;
  if (best !== undefined) return { kind: 'suggestion', reason: `perhaps ${best.number}: ${best.evidence.why}` };
  return {
    kind: payment.partner_id === null ? 'unknown_payer' : 'unapplied_cash',
    reason:
      kind === 'suggestion'
        ? `no invoice is known for it: by ${payment.method}, reference ${payment.reference}`
        : reason,
  };
}

const otherException = (exception: PaymentException, text: string | null): ListedException => ({
  ...exception,
  ...{ payment_id: null, partner_name: null, payer: null, reference: null, text, sets: [], suggestions: [] },
  remedies: endsOf(exception),
});

function paymentException(stored: PaymentException, payment: MatchedPayment): ListedException {
  const exception = { ...stored, ...presentKind(stored, payment) };
  const { payment_id, partner_name, payer_name, payer_account, reference, text } = payment;
  const sets = setsOf(payment);
  const suggestions = payment.suggestions.map((each) => acceptable(payment, each));
  const suggested = [...sets, ...suggestions].flatMap(({ accepts }) => accepts ?? []);
  return {
    ...exception,
    ...{ payment_id, partner_name, payer: { name: payer_name, account: payer_account }, reference, text },
    ...{
      sets,
      suggestions,
      remedies: [
        ...suggested,
        ...payment.written_off.flatMap((number) => [
          toDo(`Undo the write-off of ${number}`, 'invoice.write_off_undone', { number }),
          toDo(`Then apply it to ${number}`, 'payment.apply', { paymentId: String(payment_id), numbers: [number] }),
        ]),
        ...(suggested.length === 0 || exception.kind === 'possible_duplicate'
          ? remediesWithoutSuggestion(exception, payment)
          : []),
      ],
    },
  };
}

const applying = (
  paymentId: number,
  numbers: readonly string[],
  { creditNotes = [], fee }: { creditNotes?: readonly string[]; fee?: string | undefined } = {},
) =>
  toDo('Accept', 'payment.apply', {
    ...{ paymentId: String(paymentId), numbers },
    ...(creditNotes.length > 0 && { creditNotes }),
    ...(fee !== undefined && { fee }),
  });

function setsOf({ payment_id, currency, unapplied, suggestions }: ExceptionalPayment): ListedException['sets'] {
  const sets = new Map<string, ListedException['sets'][number]>();
  for (const { evidence } of suggestions) {
    const { set = [], fee, why } = evidence;
    const parts = suggestions.filter((each) => each.number !== null && set.includes(each.number));
    const amount = (value: string | null) => Amount.of(value ?? '0', currency);
    const open = parts.every((each) => !amount(each.balance).isLessThan(amount(each.amount)));
    const total = parts.reduce((sum, each) => sum.plus(amount(each.amount)), amount('0'));
    if (set.length < 2 || parts.length < set.length || !open || amount(unapplied).isLessThan(total)) continue;
    sets.set(set.join(' '), { numbers: set, why, accepts: applying(payment_id, set, { fee }) });
  }
  return [...sets.values()];
}

const CORRECTED = 'the bank corrected its amount';

function acceptable(payment: ExceptionalPayment, suggestion: ExceptionSuggestion): Acceptable {
  const { payment_id } = payment;
  const { number, same_as, partner_id, amount, confidence, evidence, reversible } = suggestion;
  const duplicate = toDo('Reverse it as a duplicate', 'payment.reverse', {
    ...{ paymentId: String(payment_id), kind: 'duplicate', reason: 'recorded twice', duplicateOf: String(same_as) },
  });
  const corrected = toDo('Reverse the first', 'payment.reverse', {
    ...{ paymentId: String(same_as), kind: 'returned', reason: CORRECTED },
  });
  const applied =
    number === null ? undefined : applying(payment_id, [number], { creditNotes: creditBeside(payment, suggestion) });
  return {
    number,
    same_as,
    partner_id,
    amount,
    confidence,
    why: evidence.why,
    accepts: applied ?? (evidence.corrects ? corrected : reversible ? duplicate : null),
  };
}

/** The credit notes that can pay the part of the invoice that the payment leaves open. */
function creditBeside({ currency, unapplied }: ExceptionalPayment, { balance, less }: ExceptionSuggestion) {
  let open = Amount.of(balance ?? '0', currency).minus(Amount.of(unapplied, currency));
  return less.flatMap((credit) => {
    if (!open.isPositive()) return [];
    open = open.minus(Amount.of(credit.balance, currency));
    return [credit.number];
  });
}

function remediesWithoutSuggestion(
  { kind, exception, amount }: PaymentException,
  { payment_id, account_partner, unapplied, currency, suggestions }: MatchedPayment,
) {
  const paymentId = String(payment_id);
  if (kind === 'possible_duplicate') {
    return [
      ...(suggestions.some(({ evidence }) => evidence.corrects)
        ? [reversing(paymentId, { kind: 'returned', reason: CORRECTED }, 'if the first amount is right')]
        : []),
      ...endsOf({ kind, exception, amount }).slice(1),
    ];
  }
  const apply = toDo('Apply it', 'payment.apply', { paymentId });
  if (kind === 'unknown_payer') {
    const partnerId = account_partner === null ? {} : { partnerId: account_partner };
    const assign = toDo('Name its payer', 'payment.assign', { paymentId, ...partnerId });
    const other = reversing(paymentId, { kind: 'other', account: 'income:ACCOUNT' }, "if it is not a customer's");
    return account_partner === null ? [apply, assign, other] : [assign, apply, other];
  }
  // Without an amount, the reversal would include the applied part.
  const left = Amount.of(unapplied, currency).toString();
  return [apply, reversing(paymentId, { kind: 'refunded', amount: left }, 'once it is paid back')];
}

export async function closeException(
  tx: Transaction,
  caller: Caller,
  { exception, reason }: { exception: string; reason: string },
): Promise<PaymentException> {
  await lockPayments(tx);
  const open = (await readExceptions(tx)).find((each) => each.exception === exception);
  if (open === undefined) throw refuse('exception_unknown', { exception });
  const { kind } = open;
  if (!isClosable(kind)) {
    const needs = kind === 'waiting_event' ? 'The event that it waits for resolves it.' : '';
    throw refuse('exception_needs_action', { exception, reason: open.reason, needs, remedies: endsOf(open) });
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.close_exception',
    subject: exception,
    details: { reason },
  });
  await insertClosing(tx, context, { exception, kind, reason });
  return open;
}
