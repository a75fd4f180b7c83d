import { fieldName } from '#field-names';
import { Remedy, SEE, seeDocument, toDo, toRun } from '#remedy';
import { badInput, bullets, FieldProblem, refused, says } from './definition.ts';

const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');

const PAYOUTS = 'payment payouts';

/** `format` is the format that was seen, such as `MT940`. */
type BankFileProblems = Readonly<{ file: string; problems: readonly FieldProblem[]; format?: string }>;

const seenAs = ({ file, format }: BankFileProblems) => (format === undefined ? file : `${file} (${format})`);
const AGAIN = 'If this file differs from the file at the bank, download it again.';

export const PAYMENTS = {
  bank_format_unknown: badInput<{ file: string; formats: readonly string[] }>(
    (f) =>
      `Cannot recognize the format of ${f.file}. Choose a format with ${fieldName('format')}: ${f.formats.join(', ')}.`,
  ),
  bank_format_not_read: badInput('Nothing was recorded: {file} is {format}, which Reckoner does not read. {instead}'),
  bank_map_unknown: badInput<{ file: string; map: string; maps: readonly string[] }>(
    (f) =>
      `Cannot read ${f.file} (CSV): ${f.map === '' ? 'no column map fits its headings' : `no column map '${f.map}'`}. ` +
      `Choose a map with ${fieldName('map')}: ${f.maps.join(', ')}. Or try one with ${fieldName('columns')}, and add it ` +
      'under "bank_csv" in the settings.',
  ),
  bank_columns_missing: badInput<{
    file: string;
    map: string;
    line: number;
    missing: readonly string[];
    columns: readonly string[];
  }>(
    (f) =>
      `Nothing was recorded: the columns of ${f.file} (CSV) do not fit the column map '${f.map}'. Line ${f.line} has no column ` +
      `${quoted(f.missing)}; it has ${quoted(f.columns)}.\nDescribe the columns of this bank under "bank_csv" in ` +
      `settings.json (docs/files.md shows how), or choose another map with ${fieldName('map')}.`,
  ),
  bank_file_invalid: badInput<BankFileProblems & { map?: string }>(
    (f) =>
      `Nothing was recorded: ${seenAs(f)} cannot be read:\n${bullets(f.problems)}\n${AGAIN} ` +
      (f.map === undefined
        ? 'If it is the same, import this account in another format that the bank offers.'
        : `If it is the same, correct the column map '${f.map}' under "bank_csv" in settings.json.`),
  ),
  bank_file_totals: badInput<BankFileProblems>(
    (f) =>
      `Nothing was recorded: ${seenAs(f)} is incomplete or was changed, because its totals do not match its lines:\n` +
      `${bullets(f.problems)}\n${AGAIN} If it is the same, tell the bank which totals are wrong.`,
  ),
  exception_unknown: refused("No such open exception: '{exception}'.", SEE.exceptions),
  exception_needs_action: refused<{ exception: string; reason: string; needs: string; remedies: readonly Remedy[] }>(
    (f) => says(`${f.exception} (${f.reason}) cannot be closed with a note. ${f.needs}`.trimEnd(), ...f.remedies),
  ),
  payment_unsettled: refused(
    'Payment {payment_id} is unapplied in part or disputed, so its payer must stay known. Settle it first.',
    SEE.payments,
  ),
  payment_unknown: badInput('No such payment: {payment_id}.', SEE.payments),
  payment_not_applicable: refused<{
    payment_id: number;
    number: string;
    reason: string;
    /** This fact is given if the payer of the payment is unknown. */
    remedies?: readonly Remedy[];
  }>((f) => says(`Payment ${f.payment_id} cannot be applied to ${f.number}: ${f.reason}.`, ...(f.remedies ?? []))),
  bank_fee_not_applicable: refused('Payment {payment_id} cannot be applied with a bank fee of {fee}: {reason}.'),
  payment_not_assignable: refused('The payer of payment {payment_id} cannot be set: {reason}.', {
    ...SEE.payments,
    label: 'See its payer',
  }),
  payer_account_unknown: refused(
    "No payer is known for the account '{account}'.",
    toRun('See all known accounts', 'payment accounts'),
  ),
  payment_is_share: refused<{ payment_id: number }>((f) =>
    says(
      `Payment ${f.payment_id} is a share that came through the processor, so no bank can return it. When its ` +
        `transfer is reversed, the payment is reversed too. If you paid it back, use ${fieldName('kind', 'refunded')}.`,
      toDo('Undo its match', 'processor.unmatch', {}, 'if it belongs to another quote'),
    ),
  ),
  payment_amount_too_large: refused<{ amount: string; most: string; what: string; nothing_left?: boolean }>((f) =>
    f.nothing_left
      ? says(`There is nothing ${f.what}.`, { ...SEE.payments, label: 'See what became of it' })
      : `${f.amount} is more than the ${f.most} ${f.what}. Give a smaller amount.`,
  ),
  payment_nothing_applied: refused<{ payment_id: number; number?: string }>((f) =>
    says(`No part of payment ${f.payment_id} is applied to ${f.number ?? 'an invoice'}, so there is nothing to undo.`, {
      ...SEE.payments,
      label: 'See its applications',
    }),
  ),
  payout_unknown: refused('No such payout: {payout_id}.', toRun('See all payouts', PAYOUTS)),
  payout_settled: refused('Payout {payout_id} is already settled.', toRun('See what it contained', PAYOUTS)),
  payout_not_settled: refused('Payout {payout_id} cannot be settled: {reason}.', toRun('See open payouts', PAYOUTS)),
  credit_not_refundable: refused('{number} cannot be refunded: {reason}.', ({ number }) =>
    seeDocument('See its open credit', number),
  ),
  refund_repeated: refused<{ number: string; amount: string; on: string; reference: string }>(
    (f) =>
      `${f.amount} of ${f.number} was already refunded on ${f.on} ${f.reference === '' ? 'without a reference' : 'with the same reference'}. ` +
      `To record another refund, add ${fieldName('again')}.`,
  ),
  processor_events_invalid: badInput<{ file: string; problems: readonly FieldProblem[] }>(
    (f) => `No event from ${f.file} was stored:\n${bullets(f.problems)}\nCorrect the events and send the file again.`,
  ),
  processor_environment: refused<{ event: string; livemode: boolean; environment: string }>(
    (f) =>
      `Event ${f.event} comes from the processor's ${f.livemode ? 'live' : 'test'} mode, but this is ` +
      `${f.environment}. Nothing was stored. Send the event to the other environment.`,
  ),
} as const;
