import { fieldName } from '#field-names';
import { Remedy, SEE, toDo, toRun } from '#remedy';
import { badInput, bullets, FieldProblem, failed, LineProblem, refused, says } from './definition.ts';

const seeOpen = (label: string) => toRun(label, 'reconcile MONTH', '/console/accounts');

export const SPLITS = {
  split_quote_unknown: badInput<{ quote_id: string; partner_id: string | null }>(
    (f) =>
      `The ledger has no accepted quote ${f.quote_id}${f.partner_id === null ? '' : ` of ${f.partner_id}`}. ` +
      'Check the id. To plan a requote, name its quote.',
  ),
  split_partner_needed: badInput<{ quote_id: string; partners: readonly string[] }>(
    (f) =>
      `Several partners have a quote ${f.quote_id}: ${f.partners.join(', ')}. Choose one with ${fieldName('partnerId')}.`,
  ),
  split_not_connected: refused(
    'Quote {quote_id} is not split: {partner_id} was invoiced for {month}, and that invoice covers this quote.',
  ),
  partner_not_connected: refused([
    'Partner {partner_id} has no connected account: it is invoiced, so its settlement files are not imported. ',
    'First add an account in partners.json ("arrangement": "connected_account").',
  ]),
  account_unknown: badInput<{ account: string }>((f) =>
    says(
      `No partner has the connected account ${f.account}. Correct ${fieldName('account')}, or import the partner first.`,
      toRun("See a partner's account", 'partner show ID', SEE.partners.page),
    ),
  ),
  balance_transactions_invalid: badInput<{ source: string; problems: readonly FieldProblem[] }>(
    (f) =>
      `No balance transaction from ${f.source} was recorded:\n${bullets(f.problems)}\n` +
      'Get them from the processor again.',
  ),
  settlement_invalid: badInput<{ file: string; problems: readonly LineProblem[]; problem_count: number }>(
    (f) =>
      `Nothing from ${f.file} was recorded:\n${bullets(f.problems)}\n` +
      (f.problem_count > f.problems.length ? `  and ${f.problem_count - f.problems.length} more\n` : '') +
      'Correct the file and send it again: it is recorded as a whole or not at all.',
    422,
  ),
  share_paid_back: refused<{ balance_transaction: string; quote_id: string; payments: readonly number[] }>(
    (f) =>
      `The match of ${f.balance_transaction} to quote ${f.quote_id} cannot be undone: ` +
      `the money of ${f.payments.length === 1 ? 'payment' : 'payments'} ${f.payments.join(', ')} was paid back. If ` +
      'a reversed transfer took the money back, undo the match of that transfer first; after a refund, keep the match ' +
      'and settle the difference with the partner.',
  ),
  processor_unreachable: failed([
    'Cannot read account {account} from the processor: {reason}. What was read so far is kept. ',
    'Check the key and the network, then run the command again.',
  ]),
  account_key_missing: refused(
    'No key is set to read account {account}. Set {variable}.',
    toDo("Import the partner's settlement files", 'processor.import', {}, 'instead'),
  ),
  balance_transaction_unknown: badInput(
    'No such balance transaction: {balance_transaction}.',
    seeOpen('See the transactions that need manual review'),
  ),
  account_needed: badInput<{ balance_transaction: string; accounts: readonly string[] }>(
    (f) =>
      `Several accounts have a balance transaction ${f.balance_transaction}: ${f.accounts.join(', ')}. ` +
      `Choose one with ${fieldName('account')}.`,
  ),
  balance_transaction_matched: refused(
    'Balance transaction {balance_transaction} is already fully matched.',
    ({ balance_transaction }) => toDo('Undo a match', 'processor.unmatch', { balance_transaction }),
  ),
  balance_transaction_not_open: refused(
    [
      'Balance transaction {balance_transaction} has no open amount: it is matched, returned, closed, or not a ',
      'share.',
    ],
    seeOpen('See the open balance transactions'),
  ),
  quote_not_matchable: refused<{
    balance_transaction: string;
    quote_id: string;
    reason: string;
    remedies?: readonly Remedy[];
  }>((f) =>
    says(`${f.balance_transaction} cannot be matched to quote ${f.quote_id}: ${f.reason}.`, ...(f.remedies ?? [])),
  ),
  balance_transaction_not_reversible: refused(
    '{balance_transaction} cannot be recorded as a reversal: {reason}.',
    seeOpen('See what is open'),
  ),
  split_impossible: refused<{ quote_id: string; requote_id: string | null; because: string; reason: string }>((f) =>
    says(
      `${f.requote_id === null ? `Quote ${f.quote_id}` : `Requote ${f.requote_id}`} cannot be split: ${f.reason}.`,
      toRun('See the options', 'split plan --help'),
    ),
  ),
} as const;
