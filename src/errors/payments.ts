/** Refusals about bank files, payments, payouts and processor events. */
import { bullets, EXIT, entry, type FieldProblem } from './definition.ts';

export const PAYMENTS = {
  bank_format_unknown: entry<{ file: string; formats: readonly string[] }>(
    EXIT.badInput,
    (f) => `The format of ${f.file} is not recognized. Name it with --format: ${f.formats.join(', ')}.`,
  ),
  bank_map_unknown: entry<{ file: string; map: string; maps: readonly string[] }>(
    EXIT.badInput,
    (f) =>
      `How ${f.file} is to be read is not known: ${f.map === '' ? 'there are several column maps' : `there is no column map '${f.map}'`} ` +
      `under "bank_csv" in the settings (${f.maps.join(', ') || 'none'}). Name one with --map, or add it.`,
  ),
  bank_file_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) =>
      `Nothing of ${f.file} was recorded, because it cannot be read:\n${bullets(f.problems)}\nAsk the bank for the file again.`,
  ),
  bank_file_totals: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) =>
      `Nothing of ${f.file} was recorded: its own totals say that something is missing or was changed:\n${bullets(f.problems)}\n` +
      'Ask the bank for the file again.',
  ),
  exception_unknown: entry<{ exception: string }>(
    EXIT.refused,
    (f) => `There is no open exception '${f.exception}'. 'reckoner payment exceptions' lists those that there are.`,
  ),
  exception_needs_an_act: entry<{ exception: string; reason: string; ends: string }>(
    EXIT.refused,
    (f) => `${f.exception} (${f.reason}) is not ended by a word about it. What ends it: ${f.ends}.`,
  ),
  payment_unknown: entry<{ payment_id: number }>(
    EXIT.badInput,
    (f) => `There is no payment ${f.payment_id}. 'reckoner payment list' shows those there are.`,
  ),
  payment_not_applicable: entry<{ payment_id: number; number: string; reason: string }>(
    EXIT.refused,
    (f) => `Payment ${f.payment_id} cannot be applied to ${f.number}: ${f.reason}.`,
  ),
  payment_amount_too_large: entry<{ amount: string; most: string; what: string }>(
    EXIT.refused,
    (f) => `${f.amount} is more than the ${f.most} ${f.what}. Give an amount up to that.`,
  ),
  payment_nothing_applied: entry<{ payment_id: number }>(
    EXIT.refused,
    (f) =>
      `Nothing of payment ${f.payment_id} is applied there, so there is nothing to undo. 'reckoner payment list' shows it.`,
  ),
  payout_not_settled: entry<{ payout_id: number; reason: string }>(
    EXIT.refused,
    (f) => `Payout ${f.payout_id} cannot be settled so: ${f.reason}. 'reckoner payment payouts' shows what is open.`,
  ),
  credit_not_refundable: entry<{ number: string; reason: string }>(
    EXIT.refused,
    (f) => `${f.number} cannot be refunded: ${f.reason}. 'reckoner invoice show ${f.number}' shows what is open of it.`,
  ),
  processor_events_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `No event of ${f.file} was stored:\n${bullets(f.problems)}\nCorrect the file and feed it again.`,
  ),
  processor_environment: entry<{ event: string; livemode: boolean; environment: string }>(
    EXIT.refused,
    (f) =>
      `Event ${f.event} is of the processor's ${f.livemode ? 'live' : 'test'} mode, but this is ${f.environment}. ` +
      'Nothing was stored. Feed it to the other environment.',
  ),
} as const;
