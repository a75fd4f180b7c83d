import { fieldName } from '#field-names';
import { Remedy, SEE, toDo, toRun } from '#remedy';
import { counted, inShort, plural } from '#text';
import { badInput, refused, says, someOf, undecided } from './definition.ts';

/** A partner's rows of an open month and the receipts of its rows, which differ. */
export type UntiedRows = Readonly<{
  posted_month: string;
  partner_id: string;
  currency: string;
  rows: number;
  receipts: number;
  invoice_amount: string;
  of_receipts: string;
}>;
const untied = ({ posted_month, partner_id, currency, rows, receipts, invoice_amount, of_receipts }: UntiedRows) =>
  `${partner_id} in ${posted_month}: ${plural(rows, 'row')} of ${currency} ${invoice_amount}, but receipts of ` +
  `${plural(receipts, 'row')} and ${currency} ${of_receipts}`;

type FoundDoubt = Readonly<{
  partner_id: string;
  name: string;
  kind: string;
  evidence: string;
}>;

/** The number of doubts that a sentence names, and that one remedy accepts. */
const DOUBTS_NAMED = 20;

/** `p-2 (Harbour Lights) has no rows, but had rows in each of the last closed months.` */
export function doubtSentences(doubts: readonly FoundDoubt[], most = DOUBTS_NAMED) {
  const named = doubts.slice(0, most).map(({ partner_id, name, evidence }) => `${partner_id} (${name}) ${evidence}.`);
  const rest = doubts.length - named.length;
  return [...named, ...(rest > 0 ? [`${plural(rest, 'more doubt')}.`] : [])].join(' ');
}

export const closeEmpty = (month: string) =>
  toDo('Close it empty', 'month.close', { month, allowEmpty: 'yes' }, 'if there were no sales');

export type Decided = Readonly<{
  without?: readonly string[];
  acceptFeed?: readonly string[];
  needsApproval?: boolean;
}>;

/** Closes a month with these doubts accepted, and those that the request already names. */
export function closeAccepting(
  month: string,
  doubts: readonly Pick<FoundDoubt, 'partner_id' | 'kind'>[],
  { without = [], acceptFeed = [], needsApproval = false }: Decided = {},
): Remedy {
  const [first] = doubts;
  if (needsApproval && first !== undefined) {
    return toDo('Ask to accept it', 'feed.accept', { partnerId: first.partner_id, month }, 'if the rows are right');
  }
  if (doubts.length > DOUBTS_NAMED) return toRun('See and accept them', `close ${month} --dry-run`, '/console/close');
  const named = (given: readonly string[], isMissing: boolean) => [
    ...new Set([
      ...given,
      ...doubts.filter(({ kind }) => (kind === 'missing') === isMissing).map(({ partner_id }) => partner_id),
    ]),
  ];
  const accepted = { without: named(without, true), acceptFeed: named(acceptFeed, false) };
  const input = Object.fromEntries(Object.entries(accepted).filter(([, ids]) => ids.length > 0));
  return accepted.acceptFeed.length === 0
    ? toDo('Close without them', 'month.close', { month, ...input }, 'if they had no sales')
    : toDo('Close it as it is', 'month.close', { month, ...input }, 'if the rows are right');
}

export const CLOSE = {
  import_overtaken: refused([
    'Another process recorded a row of this import while the import ran, so nothing was imported. ',
    'Run the import again: it counts that row as a duplicate.',
  ]),
  partner_without_rows: refused('{partner_id} has no row that was billed in {month}, so there is nothing to prove.'),
  month_not_ended: refused<{ month: string; time_zone: string; ends_at: string }>((f) =>
    says(
      `${f.month} has not ended in every time zone: in ${f.time_zone} it ends at ${f.ends_at.slice(0, 16).replace('T', ' ')}. ` +
        'Close the month after that.',
      toRun('Preview a month that is still running', `close ${f.month} --dry-run`, '/console/close'),
    ),
  ),
  month_not_begun: badInput<{ month: string; time_zone: string }>(
    (f) => `${f.month} has not begun in ${f.time_zone}, so nothing is known of its rows. Correct the month.`,
    422,
  ),
  earlier_month_open: refused<{ month: string; open: string; entries: number }>((f) =>
    says(
      `${f.month} cannot be closed while ${f.open} is open and has ${plural(f.entries, 'ledger row')}.`,
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
      /** Why rules that are for the sale do not apply: they are for other days, or do not name insurance. */
      why: string;
    }[];
  }>((f) => {
    const named = f.lines.slice(0, 10).map(({ partner_id, policy_id, country, date, why }) => {
      const sale = `${partner_id} (${country || 'no country'}), policy ${policy_id}`;
      return why === '' ? `${sale}, on ${date}` : `${sale}: ${why}; the sale's tax point is ${date}`;
    });
    const rest = f.lines.length - named.length;
    const remedies = [
      [
        /\d$/,
        'In settings.json, extend the days of the rule ("from", "until"), or add a rule for those days under tax.rules.',
      ],
      [/"kind"/, 'For insurance, add a rule with "kind": "insurance", mostly of the category exempt.'],
      [
        /^$/,
        'Under tax.rules in settings.json, add a rule for each, or one rule that names no partner, policy or country.',
      ],
    ] as const;
    return [
      `No tax rule applies to ${f.lines.length === 1 ? 'a sale' : `${f.lines.length} sales`} billed in ${f.month}:`,
      ...[...named, ...(rest > 0 ? [`and ${rest} more`] : [])].map((line) => `  ${line}`),
      ...remedies.filter(([form]) => f.lines.some(({ why }) => form.test(why))).map(([, remedy]) => remedy),
    ].join('\n');
  }),
  we_are_fixed: refused([
    "settings.json sets we_are to {asked}, but this ledger's rows are posted as {recorded}, and postings ",
    'cannot change. Set "we_are" to "{recorded}". Only an empty ledger can change to {asked}.',
  ]),
  recognition_fixed: refused([
    'settings.json sets recognition to {asked}, but the months of this ledger were closed with {recorded}, and their ',
    'reversals follow them. Set "recognition" to "{recorded}".',
  ]),
  first_month_fixed: refused<{ asked: string; fixed: string }>(
    (f) =>
      `The first close set the first month to ${f.fixed}; it cannot change to ${f.asked}. Omit ${fieldName('firstMonth')}.`,
  ),
  before_first_month: refused(
    '{month} is before the first month, {first}. The rows of {month} are billed in {first} or later.',
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
  taxed_documents_void: refused<{ month: string; documents: readonly { number: string; month: string }[] }>((f) =>
    says(
      `The books of ${f.month} cannot be closed while ${plural(f.documents.length, 'taxed document')} ` +
        `(${inShort(f.documents.map(({ number }) => number))}) ${f.documents.length === 1 ? 'is' : 'are'} void without ` +
        'a replacement: a replacement after the close would have its tax lines in a later month.',
      ...[...new Set(f.documents.map(({ month }) => month))].map((month) =>
        toDo(`Issue the replacements of ${month}`, 'invoice.rerun', { month }),
      ),
    ),
  ),

  bank_account_unknown: badInput<{ account: string; known: readonly string[] }>(
    (f) =>
      `No bank file has reported account ${f.account}. ` +
      (f.known.length > 0 ? `Reported accounts: ${f.known.join(', ')}.` : 'No bank file was imported yet.'),
  ),
  feeds_in_doubt: undecided<{ month: string; doubts: readonly FoundDoubt[] } & Decided>((f) =>
    says(
      `${f.month} was not closed. ${doubtSentences(f.doubts)} Import what is missing.`,
      closeAccepting(f.month, f.doubts, f),
    ),
  ),
  month_empty: undecided('{month} was not closed: no partner has rows in it. Import the rows.', ({ month }) =>
    closeEmpty(month),
  ),
  feed_not_in_doubt: refused<{ month: string; partner_id: string; field?: 'without' | 'acceptFeed' }>((f) =>
    says(
      (f.field === 'without'
        ? `The feed of ${f.partner_id} is not missing in ${f.month}: the partner has rows, is inactive or unknown, or is not ` +
          'expected to send rows.'
        : `Nothing about the rows of ${f.partner_id} in ${f.month} is in doubt.`) +
        (f.field === undefined ? '' : ` Omit ${fieldName(f.field, f.partner_id)}.`),
      toRun('See what is in doubt', `close ${f.month} --dry-run`, '/console/close'),
    ),
  ),
  decide_separately: refused(
    [
      'The settings require approval for accepting a feed (feed.accept), so the close of {month} cannot accept the feed ',
      'of {partner_id}.',
    ],
    ({ partner_id, month }) => toDo('Accept it first', 'feed.accept', { partnerId: partner_id, month }),
  ),
  month_not_closed: refused('{month} is not closed.', ({ month }) => toDo('Close it', 'month.close', { month }), {
    ...SEE.status,
    label: 'See closed months',
  }),
  nothing_to_verify: refused(
    'The ledger is empty, so there is nothing to verify.',
    toDo('Import rows', 'ledger.import'),
  ),
  log_forked: refused<{ origin: string; seen: number; here: number }>((f) =>
    says(
      `The log ${f.origin} had ${plural(f.seen, 'fact')} when RECKONER_HOME/log-head was written, but this database ` +
        `does not continue that log: the last checkpoint here has ${counted(f.here)}. The database was restored to an ` +
        'earlier state, or a standby with an earlier state was promoted. No checkpoint is taken, so that no ' +
        'one sees two histories under one name.',
      toDo('Pause the ledger with the time of the restored state', 'ledger.pause', {}),
      toRun('Then record what was lost', 'resume'),
    ),
  ),
  checkpoint_of_other_log: badInput(
    "The checkpoint belongs to the log {origin}, but this ledger's log is {own}. Give a checkpoint of this log.",
  ),
  checkpoint_unreadable: badInput([
    '{file} is not a checkpoint of a log: it must have the lines of the note that the auditor received, from the ',
    'name of the log to the signatures.',
  ]),
  checkpoint_needed: refused([
    'The last checkpoint that anyone outside saw is needed, so that the log does not sign two histories. With ',
    "--checkpoint FILE, give the note from the auditor's last letter or from a witness. If no one outside has a ",
    'checkpoint, give --no-checkpoint-seen.',
  ]),
  checkpoint_unknown: badInput<{ size: number; last: number | null }>((f) =>
    says(
      `The log has no checkpoint of ${plural(f.size, 'fact')}.` +
        (f.last === null
          ? ''
          : ` Its last checkpoint has ${f.last}. If a witness saw a checkpoint of this size, the ` +
            'witness saw another history: ask the operator.'),
    ),
  ),
  checkpoint_not_signed: refused<{ origin: string; size: number; key: string }>((f) =>
    says(
      `The checkpoint of ${plural(f.size, 'fact')} of ${f.origin} is not signed by the key of ${f.key}. Ask the operator ` +
        'for the current key, and how it replaced the key that you have.',
    ),
  ),
  log_inconsistent: refused<{ origin: string; seen: number; size: number }>((f) =>
    says(
      `${f.origin} shows ${plural(f.size, 'fact')} that do not continue the ${counted(f.seen)} seen before. Nothing was signed, and ` +
        'what was seen before is kept. Facts were changed or removed, or this is another history: ask the operator.',
    ),
  ),
  witness_unknown: badInput('No witness in the settings (witnesses) made this signature for this checkpoint: {line}'),
  no_checkpoint: refused(
    'There is no checkpoint of the log yet, so nothing in a pack could be proved.',
    toRun('Take one', 'checkpoint take'),
  ),
  ledger_incomplete: refused<{ untied: readonly UntiedRows[] }>((f) =>
    says(
      `${plural(f.untied.length, 'total')} of rows and receipts differ, so no month was closed and no checkpoint taken: ` +
        `${someOf(f.untied.map(untied))}. Rows were lost, added or changed outside the program, or not all of the ` +
        'database was restored.',
      toRun('See what differs', 'verify'),
    ),
  ),
  log_behind: undecided<{ seconds: number; transactions: readonly string[] }>((f) =>
    says(
      `No checkpoint was taken: a transaction that records facts has not ended for ${plural(f.seconds, 'second')} ` +
        `(${f.transactions.join(', ')} in pg_locks). Nothing is lost: the next run tries again. If a prepared or ` +
        'abandoned transaction holds the lock, end that transaction.',
    ),
  ),
  clock_behind: refused<{ today: string; latest: string; number: string; action: string }>((f) =>
    says(
      `Today is ${f.today} according to this machine's clock, but ${f.number} was ${f.action} on ${f.latest}. ` +
        'No event can have an earlier date than the event before it. If this clock is wrong, correct it and try again. ' +
        `If it is right, the clock that dated ${f.number} was fast: add ${fieldName('onLatestDate')}, which takes the ` +
        `date ${f.latest}.`,
    ),
  ),
} as const;
