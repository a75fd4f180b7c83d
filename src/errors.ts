/**
 * Every refusal this program can answer with: its code, the facts it names, the sentence for people, the exit
 * status (contract, Commands) and the HTTP status (contract, HTTP). A bug is an ordinary exception and never one of these.
 */

/** Exit statuses: 0 done · 1 failed · 2 bad usage or input · 3 refused by a rule · 4 done, but needs attention. */
export const EXIT = { done: 0, failed: 1, badInput: 2, refused: 3, attention: 4 } as const;

type ExitStatus = (typeof EXIT)[keyof typeof EXIT];

interface Entry<Facts> {
  readonly exit: ExitStatus;
  /** The status that the HTTP side answers with. */
  readonly http: number;
  /** What happened, to which thing, and what to do now. */
  readonly sentence: (facts: Facts) => string;
}

const HTTP_OF_EXIT: Readonly<Record<ExitStatus, number>> = { 0: 200, 1: 503, 2: 400, 3: 422, 4: 200 };

const entry = <Facts>(
  exit: ExitStatus,
  sentence: (facts: Facts) => string,
  http = HTTP_OF_EXIT[exit],
): Entry<Facts> => ({ exit, http, sentence });

/** A refusal that only the HTTP side can answer with. */
const answer = <Facts>(http: number, sentence: (facts: Facts) => string): Entry<Facts> =>
  entry(http === 422 || http === 409 ? EXIT.refused : http >= 500 ? EXIT.failed : EXIT.badInput, sentence, http);

export interface FieldProblem {
  readonly path: string;
  readonly reason: string;
}

const bullets = (problems: readonly FieldProblem[]) =>
  problems.map((problem) => `  ${problem.path || '(whole file)'}: ${problem.reason}`).join('\n');

const COMMANDS = {
  // Environment, settings, database
  environment_invalid: entry<{ variable: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.variable} ${f.reason}. Correct the environment variable and run the command again.`,
  ),
  settings_missing: entry<{ file: string }>(
    EXIT.badInput,
    (f) => `There are no settings at ${f.file}. Run 'reckoner init' first, or point RECKONER_HOME at an existing home.`,
  ),
  settings_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `The settings in ${f.file} cannot be used:\n${bullets(f.problems)}\nCorrect the file and run again.`,
  ),
  settings_incomplete: entry<{ file: string; missing: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `Production issues no documents yet: in ${f.file} real values are missing for ${f.missing.join(', ')}. ` +
      `Complete the settings; 'reckoner init --check' lists everything that is missing.`,
  ),
  database_unreachable: entry<{ database: string; reason: string }>(
    EXIT.failed,
    (f) => `The database ${f.database} cannot be reached: ${f.reason}. Check that it runs, then repeat the command.`,
  ),
  replica_unusable: entry<{ database: string; reason: string; remedy: string }>(
    EXIT.failed,
    (f) =>
      `The database ${f.database} cannot stand in for the primary: it ${f.reason}. ${f.remedy} Without ` +
      'DATABASE_URL_READ, everything is read from DATABASE_URL.',
  ),
  database_too_old: entry<{ version: string }>(
    EXIT.failed,
    (f) => `PostgreSQL ${f.version} is too old: version 16 or later is needed. Point DATABASE_URL at a newer server.`,
  ),
  database_not_migrated: entry<{ pending: readonly string[] }>(
    EXIT.refused,
    (f) => `The database lacks ${f.pending.length} migration(s): ${f.pending.join(', ')}. Run 'reckoner migrate'.`,
  ),
  database_newer: entry<{ unknown: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `The database has migrations that this program does not know (${f.unknown.join(', ')}). ` +
      'Use the newer program that made them.',
  ),
  database_environment: entry<{ database: string; program: string }>(
    EXIT.refused,
    (f) =>
      `This database belongs to ${f.database} for good, but RECKONER_ENVIRONMENT is ${f.program}. ` +
      'Use the database of that environment, or correct the variable.',
  ),
  database_failed: entry<{ reason: string; remedy: string }>(
    EXIT.failed,
    (f) => `PostgreSQL gave up: ${f.reason}. What was committed stays, the rest was undone. ${f.remedy}`,
  ),
  embedded_server: entry<{ reason: string; remedy: string }>(
    EXIT.failed,
    (f) => `The embedded PostgreSQL server cannot run: ${f.reason}. ${f.remedy}`,
  ),

  database_not_empty: entry<{ tables: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `Nothing was restored: this database is not empty, there are rows in ${f.tables.join(', ')}. ` +
      'Restore into an empty database (another DATABASE_URL or RECKONER_HOME).',
  ),
  backup_exists: entry<{ file: string }>(
    EXIT.refused,
    (f) => `${f.file} is there already, and a backup replaces no file. Name another one, or move this one away.`,
  ),
  export_exists: entry<{ out: string }>(
    EXIT.refused,
    (f) => `${f.out} is there already, and an export replaces nothing. Name another place, or an empty folder.`,
  ),
  row_unknown: entry<{ entry_id: number }>(
    EXIT.badInput,
    (f) =>
      `There is no row ${f.entry_id} in the ledger. The column entry_id of 'reckoner export ledger' has the numbers.`,
  ),
  backup_invalid: entry<{ file: string; reason: string }>(
    EXIT.badInput,
    (f) => `Nothing was restored from ${f.file}: ${f.reason}. Use another copy or an earlier backup.`,
  ),
  backup_newer: entry<{ file: string; program: string; unknown: readonly string[] }>(
    EXIT.refused,
    (f) =>
      `${f.file} was made by a newer program (${f.program}), which has ${f.unknown.join(', ')}. ` +
      'Restore it with that program or a later one.',
  ),
  backup_environment: entry<{ file: string; backup: string; program: string }>(
    EXIT.refused,
    (f) =>
      `${f.file} is a backup of ${f.backup}, but RECKONER_ENVIRONMENT is ${f.program}. ` +
      'Use a backup of that environment, or correct the variable.',
  ),

  // Files and arguments
  argument_invalid: entry<{ argument: string; value: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.argument} '${f.value}' ${f.reason}.`,
  ),
  usage: entry<{ reason: string }>(EXIT.badInput, (f) => `${f.reason}. Run 'reckoner --help' for the commands.`),
  file_unreadable: entry<{ file: string; reason: string }>(
    EXIT.badInput,
    (f) => `${f.file} cannot be read: ${f.reason}. Check the path and its permissions.`,
  ),
  file_unwritable: entry<{ file: string; reason: string }>(
    EXIT.failed,
    (f) => `${f.file} cannot be written: ${f.reason}. Check the path, its permissions and the space left.`,
  ),
  file_format_unknown: entry<{ file: string }>(
    EXIT.badInput,
    (f) => `The format of ${f.file} cannot be told from its name. Say --format csv or --format ndjson.`,
  ),
  partners_invalid: entry<{ file: string; problems: readonly FieldProblem[] }>(
    EXIT.badInput,
    (f) => `No partner was imported: ${f.file} has mistakes:\n${bullets(f.problems)}\nCorrect them and import again.`,
  ),
  arrangement_change: entry<{ partner_id: string; reason: string }>(
    EXIT.refused,
    (f) => `The arrangement of partner ${f.partner_id} cannot change: ${f.reason}.`,
  ),
  partner_unknown: entry<{ partner_id: string }>(
    EXIT.badInput,
    (f) => `There is no partner ${f.partner_id}. 'reckoner partner list' shows those there are.`,
    404,
  ),
  client_unknown: entry<{ client_id: string }>(
    EXIT.badInput,
    (f) => `There is no client ${f.client_id}. 'reckoner client list' shows those there are.`,
    404,
  ),
  client_revoked: entry<{ client_id: string }>(
    EXIT.refused,
    (f) => `Client ${f.client_id} is revoked for good. Create another with 'reckoner client create PARTNER'.`,
  ),
  client_secrets_live: entry<{ client_id: string; ends_at: string }>(
    EXIT.refused,
    (f) =>
      `Client ${f.client_id} has two live secrets; the older one ends at ${f.ends_at}. ` +
      'Rotate again after that, or now with --overlap-days 0, which ends every older secret at once.',
  ),
  listen_failed: entry<{ address: string; reason: string }>(
    EXIT.failed,
    (f) => `Cannot listen at ${f.address}: ${f.reason}. Stop what listens there, or choose another --host or --port.`,
  ),
  document_unknown: entry<{ number: string }>(
    EXIT.badInput,
    (f) => `There is no document ${f.number}. 'reckoner invoice list' shows those there are.`,
  ),
  pdf_not_drawn: entry<{ number: string; reason: string; void: boolean }>(EXIT.refused, (f) =>
    f.void
      ? `${f.number} was voided before its PDF was drawn. 'reckoner invoice pdf ${f.number} --void-copy' draws one.`
      : `${f.number} has no PDF yet: ${f.reason}. Run 'reckoner deliver', then ask again.`,
  ),

  // Correcting documents
  document_void: entry<{
    number: string;
    voided_on: string;
    purpose: string;
    month: string;
    replaced_by: string | null;
  }>(EXIT.refused, (f) => {
    const since = `${f.number} is void since ${f.voided_on}`;
    if (f.replaced_by !== null) return `${since}. ${f.replaced_by} replaces it: use that.`;
    return f.purpose === 'month'
      ? `${since}. It has no replacement: 'reckoner invoice rerun --month ${f.month}' issues one.`
      : `${since}, and nothing replaces it.`;
  }),
  document_not_void: entry<{ number: string }>(
    EXIT.refused,
    (f) => `${f.number} is not void, so it has no void copy. Without --void-copy you get the PDF that was issued.`,
  ),
  not_an_invoice: entry<{ number: string; document: string; act: string }>(
    EXIT.refused,
    (f) => `${f.number} is a ${f.document.replace('_', ' ')}: only an invoice can be ${f.act}.`,
  ),
  not_of_the_ledger: entry<{ number: string; purpose: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} is no month's document (${f.purpose.replace('_', ' ')}), so it cannot be made again from ledger ` +
      'rows. Void it and make a new one.',
  ),
  payment_applied: entry<{ number: string; amount_paid: string; act: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} cannot be ${f.act} while a payment is applied to it (${f.amount_paid}). ` +
      `Take it back first ('reckoner payment list', 'payment unapply ID'), or lower the invoice by 'reckoner invoice credit'.`,
  ),
  credit_used: entry<{ number: string; used: string; act: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} cannot be ${f.act}: ${f.used} of its credit is used already. ` +
      'Void the invoice that used it first, or leave the credit note and correct the difference by later rows.',
  ),
  document_written_off: entry<{ number: string; written_off: string; act: string }>(
    EXIT.refused,
    (f) => `${f.number} cannot be ${f.act}: ${f.written_off} of it is written off, which is final.`,
  ),
  credit_repeated: entry<{ number: string; amount: string; by: string; on: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} has been credited ${f.amount} for that reason already, by ${f.by} of ${f.on}. ` +
      'If another credit of the same amount is meant, add --again.',
  ),
  credit_exceeds_invoice: entry<{ number: string; amount: string; left: string }>(
    EXIT.refused,
    (f) =>
      `${f.amount} is more than ${f.number} can still be credited: ${f.left}. ` +
      'Credits and write-offs never exceed the invoice. Name a smaller amount.',
  ),
  nothing_to_write_off: entry<{ number: string }>(
    EXIT.refused,
    (f) => `Nothing is open on ${f.number}: there is nothing to write off.`,
  ),
  document_on_hold: entry<{ number: string; since: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `${f.number} is on hold since ${f.since}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      `'reckoner invoice release ${f.number}' ends the hold.`,
  ),
  document_not_on_hold: entry<{ number: string }>(EXIT.refused, (f) => `${f.number} is not on hold.`),
  sending_unfinished: entry<{ number: string; status: string; reason: string }>(
    EXIT.refused,
    (f) =>
      `The e-mail of ${f.number} has not gone out yet: it is ${f.status}${f.reason === '' ? '' : ` (${f.reason})`}. ` +
      `Supply what it lacks, then run 'reckoner deliver'; send again once it was sent, failed or uncertain.`,
  ),
  recipient_refused: entry<{ address: string }>(
    EXIT.refused,
    (f) => `Sandbox mail goes only to sandbox_recipients in settings.json, and ${f.address} is not among them.`,
  ),

  // Money in
  bank_format_unknown: entry<{ file: string }>(
    EXIT.badInput,
    (f) => `${f.file} is neither BAI2 nor camt.053, and not named as CSV. Say --format csv, bai2 or camt053.`,
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

  // Connected accounts
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

  // Closing
  month_not_ended: entry<{ month: string; time_zone: string; ends_at: string }>(
    EXIT.refused,
    (f) =>
      `${f.month} has not ended everywhere: in ${f.time_zone} it runs until ${f.ends_at}. ` +
      'Close it after that; --dry-run previews a running month.',
  ),
  earlier_month_open: entry<{ month: string; open: string; entries: number }>(
    EXIT.refused,
    (f) =>
      `${f.month} cannot close while ${f.open} is open and has ${f.entries} ledger row(s). ` +
      `Close ${f.open} first, or run 'reckoner close' without a month to close all that are due in order.`,
  ),
  first_month_fixed: entry<{ asked: string; fixed: string }>(
    EXIT.refused,
    (f) => `The first month is ${f.fixed} since the first close and cannot become ${f.asked}. Leave --first-month out.`,
  ),
  before_first_month: entry<{ month: string; first: string }>(
    EXIT.refused,
    (f) =>
      `${f.month} lies before the first month ${f.first}; its rows post to ${f.first} or later. Close a later month.`,
  ),
  month_not_closed: entry<{ month: string }>(
    EXIT.refused,
    (f) => `${f.month} is not closed. 'reckoner close ${f.month}' closes it; 'reckoner status' shows which months are.`,
  ),
  nothing_to_verify: entry<Record<string, never>>(
    EXIT.refused,
    () => `The ledger is empty: there is nothing to verify. Import rows with 'reckoner ledger import FILE' first.`,
  ),
  clock_behind: entry<{ today: string; latest: string; number: string; act: string }>(
    EXIT.refused,
    (f) =>
      `Today is ${f.today} by this machine's clock, but ${f.number} was ${f.act} on ${f.latest}: ` +
      'nothing may be dated before what happened already. Correct the clock and run again.',
  ),
} as const;

/** Answers of the HTTP side (contract, HTTP). */
const CALLS = {
  // The request
  request_invalid: answer<{ problems: readonly FieldProblem[] }>(
    400,
    (f) => `The request cannot be used:\n${bullets(f.problems)}\nCorrect it and send it again.`,
  ),
  route_unknown: answer<{ method: string; path: string }>(
    404,
    (f) => `There is nothing at ${f.path}. The calls there are stand at /reference.`,
  ),
  method_not_allowed: answer<{ method: string; path: string; allowed: readonly string[] }>(
    405,
    (f) => `${f.path} does not take ${f.method}. Use ${f.allowed.join(' or ')}.`,
  ),
  media_type_unsupported: answer<{ media_type: string }>(
    415,
    (f) => `A body of ${f.media_type} is not understood. Send application/json in UTF-8.`,
  ),
  body_too_large: answer<{ limit: number }>(413, (f) => `The body is larger than the ${f.limit} bytes that are read.`),
  prefetch_refused: answer<Record<string, never>>(
    422,
    () =>
      'Nothing is accepted ahead of need: this request says that it is a prefetch. Send it without when it is meant.',
  ),
  rate_limited: answer<{ retry_after: number }>(
    429,
    (f) => `There were too many requests. Wait ${f.retry_after} second(s), then go on more slowly.`,
  ),
  address_not_allowed: answer<{ address: string }>(
    403,
    (f) => `Calls from ${f.address} are not allowed. Ask for its network to be added, or call from an allowed one.`,
  ),

  // Who calls
  token_missing: answer<Record<string, never>>(
    401,
    () => "There is no access token. Send 'Authorization: Bearer TOKEN' with a token from POST /api/oauth/token.",
  ),
  token_invalid: answer<{ reason: string }>(
    401,
    (f) => `The access token is not accepted: ${f.reason}. Get a new one from POST /api/oauth/token.`,
  ),
  partner_header_missing: answer<{ header: string }>(
    400,
    (f) => `The header ${f.header} is missing. Send your partner id in it.`,
  ),
  partner_header_mismatch: answer<{ header: string }>(
    403,
    (f) => `The header ${f.header} names another partner than the one that the token was given to.`,
  ),

  // Quotes
  quote_unknown: answer<{ quote_id: string }>(404, (f) => `There is no quote ${f.quote_id}. Check its id.`),
  requote_unknown: answer<{ requote_id: string }>(404, (f) => `There is no requote ${f.requote_id}. Check its id.`),
  policy_unknown: answer<{ policy_id: string }>(
    404,
    (f) => `There is no policy ${f.policy_id}. Use one of those that were configured for you.`,
  ),
  policy_not_priced: answer<{ policy_id: string }>(
    422,
    (f) => `Policy ${f.policy_id} has no price to quote by. Ask for one to be configured.`,
  ),
  partner_inactive: answer<{ partner_id: string }>(
    422,
    (f) => `Partner ${f.partner_id} is not active: nothing new is quoted or accepted. Ask for it to be activated.`,
  ),
  policy_inactive: answer<{ policy_id: string }>(
    422,
    (f) => `Policy ${f.policy_id} is not active: nothing new is quoted or accepted under it. Use another policy.`,
  ),
  price_too_large: answer<{ currency: string }>(
    422,
    (f) => `The price would not be below 1000000000000000 ${f.currency}. Insure a smaller amount.`,
  ),
  quote_not_accepted: answer<{ quote_id: string }>(
    422,
    (f) =>
      `Quote ${f.quote_id} is not accepted, and only an accepted price can be raised. Accept it, or make a new quote.`,
  ),
  quote_reversed: answer<{ quote_id: string }>(
    422,
    (f) => `Quote ${f.quote_id} was reversed, whole or in part, and is requoted no more. Make a new quote.`,
  ),
  requote_lower: answer<{ accepted: string; asked: string; currency: string }>(
    422,
    (f) =>
      `The price would be ${f.asked} ${f.currency}, and ${f.accepted} is accepted already: a requote never lowers. ` +
      'What must be given back is reversed.',
  ),
  requote_stale: answer<{ requote_id: string; quote_id: string }>(
    409,
    (f) =>
      `Requote ${f.requote_id} starts from a price of quote ${f.quote_id} that is no longer the last accepted one. ` +
      'Make a new requote.',
  ),
  recorded_otherwise: answer<{ id: string }>(
    409,
    (f) => `The ledger has ${f.id} from an import, not from an acceptance here. Ask finance which of the two is right.`,
  ),
  idempotency_key_reused: answer<{ key: string }>(
    409,
    (f) => `The Idempotency-Key ${f.key} was used for another request. Use a new key for a new request.`,
  ),
  ledger_busy: answer<{ retry_after: number }>(
    503,
    () => 'The ledger is busy with a month-close. Nothing was recorded; send the same request again in a few seconds.',
  ),
  unavailable: answer<{ retry_after: number }>(
    503,
    () => 'The database cannot be reached at present. Send the same request again in a few seconds.',
  ),
  internal: answer<{ request_id: string }>(
    500,
    (f) =>
      `Something failed on our side. Send the request again; if it goes on, tell us the request id ${f.request_id}.`,
  ),

  // Webhooks
  webhook_not_configured: answer<Record<string, never>>(
    404,
    () => 'No webhook is expected here: STRIPE_WEBHOOK_SECRET is not set.',
  ),
  webhook_signature_invalid: answer<{ reason: string }>(400, (f) => `The webhook is not accepted: ${f.reason}.`),
} as const;

const CATALOGUE = { ...COMMANDS, ...CALLS };

export type RefusalCode = keyof typeof CATALOGUE;
/** Codes that only the HTTP side answers with. */
export type CallRefusalCode = keyof typeof CALLS;
type FactsOf<Code extends RefusalCode> = (typeof CATALOGUE)[Code] extends Entry<infer Facts> ? Facts : never;

/** All codes, for the test that wants one reproducible case for each. */
export const REFUSAL_CODES = Object.keys(CATALOGUE) as RefusalCode[];
export const CALL_REFUSAL_CODES = Object.keys(CALLS) as CallRefusalCode[];

export const httpStatusOf = (code: RefusalCode): number => CATALOGUE[code].http;

/** An expected answer of «no», with the facts that decided it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly exit: ExitStatus;

  constructor(code: RefusalCode, facts: Record<string, unknown>, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.facts = facts;
    this.exit = CATALOGUE[code].exit;
  }
}

/** Makes a refusal; `throw refuse('month_not_ended', {…})`. The facts are those its sentence names. */
export function refuse<Code extends RefusalCode>(code: Code, facts: FactsOf<Code>, cause?: unknown): Refusal {
  const sentence = CATALOGUE[code].sentence as (facts: FactsOf<Code>) => string;
  return new Refusal(code, facts as Record<string, unknown>, sentence(facts), cause);
}

/** What a caught value says, for a log or a reason. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
