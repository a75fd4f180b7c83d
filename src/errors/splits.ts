/** Refusals about connected accounts. */
import { bullets, EXIT, entry, type FieldProblem } from './definition.ts';

export const SPLITS = {
  split_quote_unknown: entry<{ quote_id: string; partner_id: string | null }>(
    EXIT.badInput,
    (f) =>
      `The ledger has no accepted quote ${f.quote_id}${f.partner_id === null ? '' : ` of ${f.partner_id}`}. ` +
      'Check its id; a requote is planned with its quote.',
  ),
  split_partner_needed: entry<{ quote_id: string; partners: readonly string[] }>(
    EXIT.badInput,
    (f) => `Several partners have a quote ${f.quote_id}: ${f.partners.join(', ')}. Say which one with --partner.`,
  ),
  split_not_connected: entry<{ quote_id: string; partner_id: string; month: string }>(
    EXIT.refused,
    (f) =>
      `Quote ${f.quote_id} is not split: ${f.partner_id} was invoiced for ${f.month}, and its share comes by that invoice.`,
  ),
  partner_not_connected: entry<{ partner_id: string }>(
    EXIT.refused,
    (f) =>
      `Partner ${f.partner_id} has no connected account, so nothing is routed for it. ` +
      'Give it one in partners.json first ("arrangement": "connected_account").',
  ),
  account_unknown: entry<{ account: string }>(
    EXIT.badInput,
    (f) =>
      `No partner's connected account is ${f.account}. 'reckoner partner show ID' shows a partner's; ` +
      'correct --account, or import the partner first.',
  ),
  movements_invalid: entry<{ source: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `No movement from ${f.source} was recorded:\n${bullets(f.problems)}\nGet them from the processor again.`,
  ),
  settlement_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `Nothing of ${f.file} was recorded:\n${bullets(f.problems)}\nAsk the partner for a corrected file.`,
  ),
  processor_unreachable: entry<{ account: string; reason: string }>(
    EXIT.failed,
    (f) =>
      `The account ${f.account} cannot be read at the processor: ${f.reason}. What was read stays; ` +
      'check its key and the way to it, then run again.',
  ),
  account_key_missing: entry<{ account: string }>(
    EXIT.refused,
    (f) =>
      `There is no key to read ${f.account} with. Set STRIPE_SECRET_KEY_${f.account}, or take in the partner's ` +
      "settlement files ('reckoner processor import FILE --partner ID').",
  ),
  balance_transaction_unknown: entry<{ movement: string }>(
    EXIT.badInput,
    (f) => `No movement ${f.movement} was taken in. 'reckoner reconcile MONTH' names those that need a person.`,
  ),
  account_needed: entry<{ movement: string; accounts: readonly string[] }>(
    EXIT.badInput,
    (f) => `Several accounts have a movement ${f.movement}: ${f.accounts.join(', ')}. Say which one with --account.`,
  ),
  balance_transaction_explained: entry<{ movement: string }>(
    EXIT.refused,
    (f) => `All of movement ${f.movement} is matched already. 'reckoner processor unmatch' takes a match back.`,
  ),
  balance_transaction_not_reversible: entry<{ movement: string; reason: string }>(
    EXIT.refused,
    (f) => `Movement ${f.movement} becomes no reversal: ${f.reason}. 'reckoner reconcile MONTH' shows what is open.`,
  ),
  split_impossible: entry<{ quote_id: string; requote_id: string | null; because: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `${f.requote_id === null ? `Quote ${f.quote_id}` : `Requote ${f.requote_id}`} cannot be split: ${f.reason}. ` +
      "'reckoner split plan --help' tells what can be given.",
  ),
} as const;
