import { fieldName } from '../field-names.ts';
import { SEE, toDo, toRun } from '../remedy.ts';
import { plural } from '../text.ts';
import { badInput, refused, says, undecided } from './definition.ts';

export const CLOSE = {
  import_overtaken: refused<Record<string, never>>(
    () =>
      'Another process recorded a row of this import while it ran, so nothing was imported. ' +
      'Run the import again: it counts that row as a duplicate.',
  ),
  row_unknown: badInput<{ entry_id: number }>((f) =>
    says(
      `No such ledger row: ${f.entry_id}. The entry_id column of an export has the ids.`,
      toRun('Export the rows of a month', 'export ledger --month MONTH --format csv --out DIR'),
    ),
  ),
  event_unknown: badInput<{ event_id: number }>((f) =>
    says(
      `No such audit event: ${f.event_id}.`,
      toRun('Export the events of a month with their ids', 'export events --month MONTH --out DIR'),
    ),
  ),
  not_sealed: refused<{ subject: string }>((f) =>
    says(
      `No seal covers ${f.subject} yet, so a proof cannot be exported. The next month close seals it. ` +
        'Export the proof after that.',
      toDo('Close what is due', 'month.close'),
    ),
  ),
  not_as_sealed: refused<{ subject: string; month: string; table: string }>((f) =>
    says(
      `${f.table} differs from what the seal of ${f.month} covers, so ${f.subject} cannot be proved.`,
      SEE.differences,
    ),
  ),
  month_not_ended: refused<{ month: string; time_zone: string; ends_at: string }>((f) =>
    says(
      `${f.month} has not ended in every time zone: in ${f.time_zone} it ends at ${f.ends_at.slice(0, 16).replace('T', ' ')}. ` +
        'Close it after that.',
      toRun('Preview a month that is still running', `close ${f.month} --dry-run`, '/console/close'),
    ),
  ),
  earlier_month_open: refused<{ month: string; open: string; entries: number }>((f) =>
    says(
      `${f.month} cannot be closed while ${f.open} is open with ${plural(f.entries, 'ledger row')}.`,
      toDo(`Close ${f.open} first`, 'month.close', { month: f.open }),
      toDo('Close all due months in order', 'month.close', {}, 'instead'),
    ),
  ),
  tax_rule_missing: refused<{
    month: string;
    lines: readonly {
      partner_id: string;
      policy_id: string;
      country: string;
      date: string;
      /** The rules that apply on other days. */
      other_days: string;
    }[];
  }>((f) => {
    const named = f.lines.slice(0, 10).map(({ partner_id, policy_id, country, date, other_days: other }) => {
      const sale = `${partner_id} (${country || 'no country'}), policy ${policy_id}`;
      return other === '' ? `${sale}, on ${date}` : `${sale}: ${other}; the sale's tax point is ${date}`;
    });
    const rest = f.lines.length - named.length;
    const some = (isDated: boolean) => f.lines.some(({ other_days }) => (other_days !== '') === isDated);
    return [
      `No tax rule applies to ${f.lines.length === 1 ? 'a sale' : `${f.lines.length} sales`} billed in ${f.month}:`,
      ...[...named, ...(rest > 0 ? [`and ${rest} more`] : [])].map((line) => `  ${line}`),
      ...(some(true)
        ? ['Change "from" or "until" of the rule in settings.json, or add a rule under tax.rules for those days.']
        : []),
      ...(some(false)
        ? ['Add a rule under tax.rules of settings.json for each, or one for all without partner, policy and country.']
        : []),
    ].join('\n');
  }),
  we_are_fixed: refused<{ asked: string; recorded: string }>(
    (f) =>
      `settings.json sets we_are to ${f.asked}, but this ledger's rows are posted as ${f.recorded}, and postings ` +
      `cannot change. Set "we_are" to "${f.recorded}". Only an empty ledger can be ${f.asked}.`,
  ),
  first_month_fixed: refused<{ asked: string; fixed: string }>(
    (f) =>
      `The first close set the first month to ${f.fixed}; it cannot change to ${f.asked}. Omit ${fieldName('firstMonth')}.`,
  ),
  before_first_month: refused<{ month: string; first: string }>(
    (f) => `${f.month} is before the first month, ${f.first}. Its rows are billed in ${f.first} or later.`,
  ),
  earlier_books_open: refused<{ month: string; open: string }>((f) =>
    says(
      `The books of ${f.month} cannot be closed while those of ${f.open} are open.`,
      toDo(`Close the books of ${f.open} first`, 'books.close', { month: f.open }),
    ),
  ),
  bank_feed_behind: refused<{
    month: string;
    ends_on: string;
    accounts: readonly { account: string; reported_to: string }[];
  }>((f) =>
    says(
      `The books of ${f.month} cannot be closed until the bank has reported through ${f.ends_on}: ` +
        `${f.accounts.map(({ account, reported_to }) => `account ${account} is reported through ${reported_to}`).join(', ')}. ` +
        `For an account that no longer reports, add ${fieldName('without', 'ACCOUNT')} and ` +
        `${fieldName('reason', 'R')}, or list it in ended_bank_accounts of settings.json.`,
      toDo('Import the missing files', 'payment.import'),
    ),
  ),
  bank_feed_gap: refused<{
    month: string;
    gaps: readonly { account: string; exception: string; reason: string }[];
  }>((f) =>
    says(
      `The books of ${f.month} cannot be closed while a bank statement is missing or wrong: ` +
        `${f.gaps.map(({ reason }) => reason).join('; ')}.`,
      toDo('Import the missing files', 'payment.import'),
      ...f.gaps
        .slice(0, 1)
        .map(({ exception }) => toDo('Close a gap that cannot be filled', 'payment.close_exception', { exception })),
    ),
  ),
  possible_duplicates_open: refused<{ month: string; payments: readonly string[] }>((f) =>
    says(
      `The books of ${f.month} cannot be closed while ${f.payments.join(', ')} may be ` +
        `${f.payments.length === 1 ? 'a duplicate' : 'duplicates'}: the same money would count twice.`,
      { ...SEE.exceptions, label: 'See how to decide' },
    ),
  ),
  signing_key_missing: refused<{ seal: string; key: string }>(
    (f) =>
      `The ${f.seal} was not made: earlier seals are signed, and an unsigned one could not be signed later. Set ` +
      `SEAL_SIGNING_KEY_FILE to the file of the key ${f.key}. If that key is lost, make a new one: ` +
      `'openssl genpkey -algorithm ed25519 -out FILE'. The auditor's e-mail then says that the key is new.`,
  ),
  bank_account_unknown: badInput<{ account: string; known: readonly string[] }>(
    (f) =>
      `No bank file has reported account ${f.account}. ` +
      (f.known.length > 0 ? `Reported accounts: ${f.known.join(', ')}.` : 'No bank file was imported yet.'),
  ),
  feeds_missing: undecided<{
    month: string;
    partners: readonly { partner_id: string; name: string }[];
    without?: readonly string[] | undefined;
  }>((f) =>
    says(
      `${f.month} was not closed: ${plural(f.partners.length, 'active partner')} that had rows in each of the last closed ` +
        `months ${f.partners.length === 1 ? 'has' : 'have'} none in it: ` +
        `${f.partners.map(({ partner_id, name }) => `${partner_id} (${name})`).join(', ')}. Import their rows.`,
      toDo(
        'Close without them',
        'month.close',
        {
          month: f.month,
          without: [...(f.without ?? []), ...f.partners.map(({ partner_id }) => partner_id)],
        },
        'if they had no sales',
      ),
    ),
  ),
  month_empty: undecided<{ month: string }>(({ month }) =>
    says(
      `${month} was not closed: no partner has rows in it. Import the rows.`,
      toDo('Close it empty', 'month.close', { month, allowEmpty: 'yes' }, 'if there were no sales'),
    ),
  ),
  feed_not_missing: refused<{ month: string; partner_id: string }>((f) =>
    says(
      `The feed of ${f.partner_id} is not missing in ${f.month}: the partner has rows, is inactive or unknown, or is not ` +
        `expected. Omit ${fieldName('without', f.partner_id)}.`,
      toRun('See the missing feeds', `close ${f.month} --dry-run`, '/console/close'),
    ),
  ),
  month_not_closed: refused<{ month: string }>(({ month }) =>
    says(`${month} is not closed.`, toDo('Close it', 'month.close', { month }), {
      ...SEE.status,
      label: 'See closed months',
    }),
  ),
  instructions_unchanged: refused<Record<string, never>>(() =>
    says(
      'The bank details in settings.json are already in force. Change them there (instructions).',
      toDo('Then adopt them', 'instructions.adopt'),
    ),
  ),
  nothing_to_verify: refused<Record<string, never>>(() =>
    says('The ledger is empty, so there is nothing to verify.', toDo('Import rows', 'ledger.import')),
  ),
  clock_behind: refused<{ today: string; latest: string; number: string; action: string }>((f) =>
    says(
      `Today is ${f.today} according to this machine's clock, but ${f.number} was ${f.action} on ${f.latest}. ` +
        'Nothing can be dated before an earlier event. Correct the clock and try again. If this clock is right, the ' +
        `clock that dated ${f.number} ran ahead: correct documents with ${fieldName('onLatestDate')}, which dates the ` +
        `correction ${f.latest}.`,
    ),
  ),
} as const;
