/** Refusals about ledger rows, the month close and verification. */
import { fieldName } from '../field-names.ts';
import { plural } from '../text.ts';
import { badInput, refused, undecided } from './definition.ts';

export const CLOSE = {
  import_overtaken: refused<Record<string, never>>(
    () =>
      'Another process recorded a row of this import while it ran, so nothing was imported. ' +
      'Run the import again: it counts that row as a duplicate.',
  ),
  row_unknown: badInput<{ entry_id: number }>(
    (f) =>
      `No such ledger row: ${f.entry_id}. The column entry_id of 'reckoner export ledger --month MONTH --format csv --out DIR' lists the ids of all rows.`,
  ),
  event_unknown: badInput<{ event_id: number }>(
    (f) =>
      `No such audit event: ${f.event_id}. 'reckoner export events --month MONTH --out DIR' lists the ids of all events.`,
  ),
  not_sealed: refused<{ subject: string }>(
    (f) =>
      `No seal covers ${f.subject} yet, so it cannot be proved. The close of the next month seals it: ` +
      "prove it after 'reckoner close'.",
  ),
  not_as_sealed: refused<{ subject: string; month: string; table: string }>(
    (f) =>
      `${f.table} is not as the seal of ${f.month} covers it, so ${f.subject} cannot be proved. ` +
      "'reckoner verify' names what differs.",
  ),
  month_not_ended: refused<{ month: string; time_zone: string; ends_at: string }>(
    (f) =>
      `${f.month} has not ended in every time zone: in ${f.time_zone} it ends at ${f.ends_at.slice(0, 16).replace('T', ' ')}. ` +
      'Close it after that. Use --dry-run to preview a month that is still running.',
  ),
  earlier_month_open: refused<{ month: string; open: string; entries: number }>(
    (f) =>
      `${f.month} cannot be closed while ${f.open} is open with ${plural(f.entries, 'ledger row')}. ` +
      `Close ${f.open} first, or run 'reckoner close' without a month to close all due months in order.`,
  ),
  tax_rule_missing: refused<{
    month: string;
    lines: readonly {
      partner_id: string;
      policy_id: string;
      country: string;
      /** The tax point. */
      date: string;
      /** The rules that it would have on other days. */
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
      `settings.json says we_are ${f.asked}, and the rows of this ledger are journaled as ${f.recorded}: what was posted ` +
      `cannot change. Set "we_are" to "${f.recorded}". Only a ledger without rows can be ${f.asked}.`,
  ),
  first_month_fixed: refused<{ asked: string; fixed: string }>(
    (f) =>
      `The first close set the first month to ${f.fixed}; it cannot change to ${f.asked}. Omit ${fieldName('firstMonth')}.`,
  ),
  before_first_month: refused<{ month: string; first: string }>(
    (f) => `${f.month} is before the first month, ${f.first}. Its rows are billed in ${f.first} or later.`,
  ),
  earlier_books_open: refused<{ month: string; open: string }>(
    (f) =>
      `The books of ${f.month} cannot be closed while those of ${f.open} are open. ` +
      `Run 'reckoner books close ${f.open}' first.`,
  ),
  bank_feed_behind: refused<{
    month: string;
    ends_on: string;
    accounts: readonly { account: string; reported_to: string }[];
  }>(
    (f) =>
      `The books of ${f.month} cannot be closed before the bank has reported to ${f.ends_on}: ` +
      `${f.accounts.map(({ account, reported_to }) => `account ${account} is reported to ${reported_to}`).join(', ')}. ` +
      `Import the missing files with 'reckoner payment import FILE'. For an account that reports no more, use ` +
      `${fieldName('without', 'ACCOUNT')} and ${fieldName('reason', 'R')}, or name it in ended_bank_accounts of settings.json.`,
  ),
  bank_feed_gap: refused<{
    month: string;
    gaps: readonly { account: string; exception: string; reason: string }[];
  }>(
    (f) =>
      `The books of ${f.month} cannot be closed while a bank statement is missing or wrong: ` +
      `${f.gaps.map(({ reason }) => reason).join('; ')}. Import the missing files with 'reckoner payment import FILE'. ` +
      `For a gap that cannot be filled, run 'reckoner payment close-exception ${f.gaps[0]?.exception} --reason R'.`,
  ),
  possible_duplicates_open: refused<{ month: string; payments: readonly string[] }>(
    (f) =>
      `The books of ${f.month} cannot be closed while ${f.payments.join(', ')} may be ` +
      `${f.payments.length === 1 ? 'a duplicate' : 'duplicates'}: the same money would stand in them twice. ` +
      `'reckoner payment exceptions' names the commands that decide it.`,
  ),
  signing_key_missing: refused<{ seal: string; key: string }>(
    (f) =>
      `The ${f.seal} was not made: earlier seals are signed, and an unsigned one could not be signed later. Set ` +
      `SEAL_SIGNING_KEY_FILE to the file of the key ${f.key}. If that key is lost, make a new one: ` +
      `'openssl genpkey -algorithm ed25519 -out FILE'. The auditor's e-mail says that it is new.`,
  ),
  bank_account_unknown: badInput<{ account: string; known: readonly string[] }>(
    (f) =>
      `No bank file has reported account ${f.account}. ` +
      (f.known.length > 0 ? `Reported accounts: ${f.known.join(', ')}.` : 'No bank file was imported yet.'),
  ),
  feeds_missing: undecided<{
    month: string;
    partners: readonly { partner_id: string; name: string }[];
    /** The partners that the command named already. */
    without?: readonly string[] | undefined;
  }>(
    (f) =>
      `${f.month} was not closed: ${plural(f.partners.length, 'active partner')} that had rows in each of the last closed ` +
      `months ${f.partners.length === 1 ? 'has' : 'have'} none in it: ` +
      `${f.partners.map(({ partner_id, name }) => `${partner_id} (${name})`).join(', ')}. Import their rows. If they had ` +
      `no sales, close with 'reckoner close ${f.month} ` +
      `${[...(f.without ?? []), ...f.partners.map(({ partner_id }) => partner_id)].map((id) => `--without ${id}`).join(' ')}'.`,
  ),
  month_empty: undecided<{ month: string }>(
    (f) =>
      `${f.month} was not closed: no partner has rows in it. Import the rows. If there were no sales, close with ` +
      `'reckoner close ${f.month} --allow-empty'.`,
  ),
  feed_not_missing: refused<{ month: string; partner_id: string }>(
    (f) =>
      `The feed of ${f.partner_id} is not missing in ${f.month}: the partner has rows, is inactive or unknown, or is not ` +
      `expected. Omit ${fieldName('without', f.partner_id)}. 'reckoner close ${f.month} --dry-run' lists the missing feeds.`,
  ),
  month_not_closed: refused<{ month: string }>(
    (f) =>
      `${f.month} is not closed. Close it with 'reckoner close ${f.month}'; 'reckoner status' lists closed months.`,
  ),
  instructions_unchanged: refused<Record<string, never>>(
    () =>
      'The bank details of settings.json are in force already. Change them there (instructions), then run ' +
      "'reckoner instructions adopt'.",
  ),
  nothing_to_verify: refused<Record<string, never>>(
    () => `The ledger is empty, so there is nothing to verify. Import rows with 'reckoner ledger import FILE'.`,
  ),
  clock_behind: refused<{ today: string; latest: string; number: string; act: string }>(
    (f) =>
      `Today is ${f.today} according to this machine's clock, but ${f.number} was ${f.act} on ${f.latest}. ` +
      'Nothing can be dated before an earlier event. Correct the clock and run the command again. If this clock is right, ' +
      `one that ran ahead dated ${f.number}: the commands that correct documents take ${fieldName('onLatestDate')}, which dates the ` +
      `correction on ${f.latest}.`,
  ),
} as const;
