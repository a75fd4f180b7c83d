/**
 * Exports a month's journal for the general ledger. The journal consists of all parts of the month in a format. The
 * first part contains the whole month. A later part contains newer postings, or amounts that move to other accounts. An
 * exported part never changes. Refusals: before_first_month, month_not_closed, books_open, accounts_missing,
 * accounts_invalid, accounts_unmapped, gl_lines_unusable, gl_name_unusable, gl_names_shared, gl_not_exported,
 * gl_not_tied.
 */
import { keepArchives } from '#archive/archive.sql';
import { needRows } from '#archive/rows';
import { readBooksState } from '#close/books.sql';
import { Accounts, accountsFile, readAccounts } from '#config/accounts';
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { readPartnerNames } from '#partners/partners.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { readBalances } from '#reports/balances.sql';
import { Amount, lastDay, Month, monthBefore } from '#values';
import { GlFormat } from './accounts.ts';
import {
  GlExport,
  insertExport,
  insertFiles,
  insertLines,
  readFiles,
  readLines,
  readParts,
  readPostings,
  readRoots,
  readUnknownIds,
} from './exports.sql.ts';
import { filesOf, GlFile, GlKind, WRITER } from './files.ts';
import {
  GlLine,
  latestTargets,
  mapped,
  moved,
  Posting,
  postedSince,
  renamed,
  runnableNames,
  sharedNames,
  summarise,
} from './journal.ts';
import { unusableLines } from './limits.ts';

export type GlRequest = Readonly<{
  month: Month;
  format: GlFormat;
  /** Whether to export a month even if the month's books are open. */
  preliminary?: boolean | undefined;
  /** Whether to move exported amounts to the accounts that the map names now. */
  reclassify?: boolean | undefined;
}>;

export type GlExportResult = Readonly<{
  /** The part that this call recorded; if it recorded none, the last part; undefined if the month has no postings. */
  part: GlExport | undefined;
  recorded: boolean;
  files: readonly GlFile[];
  lines: readonly GlLine[];
  /** Exported lines that the map now assigns to a different account, and that this call did not move. */
  movable: readonly GlLine[];
}>;

/** Records the journal of a month, or its changes. If nothing has changed, returns the last part. */
export async function exportGl(tx: Transaction, context: ActorContext, request: GlRequest): Promise<GlExportResult> {
  const { month, format } = request;
  await keepArchives(tx);
  // Nothing is posted or exported between this read and the commit.
  await lockLedgerWhole(tx);
  const { checkpoint, booksClosed, after } = await readState(tx, request);
  const accounts = context.settings.accounts ?? readAccounts(context.environment);
  await checkAccountRules(tx, accounts, accountsFile(context.environment));
  await needRows(tx, { from: after === '' ? undefined : month, to: month });
  const postings = await readPostings(tx, { after, month });
  await checkTies(tx, { month, after, postings });
  const parts = await readParts(tx, request);
  const exported = await readLines(tx, { ids: parts.map(({ gl_export_id }) => gl_export_id) });
  const { lines, kind, movable } = await linesToExport(tx, { accounts, postings, exported, request });
  const last = parts.at(-1);
  if (lines.length === 0) {
    const files = last === undefined ? [] : await readFiles(tx, { id: last.gl_export_id });
    const own = last === undefined ? [] : await readLines(tx, { ids: [last.gl_export_id] });
    return { part: last, recorded: false, files, lines: own, movable };
  }
  const journal = {
    month,
    format,
    part: (last?.part ?? 0) + 1,
    kind,
    checkpoint,
    books_closed: booksClosed,
    accounts,
    lines,
  };
  const files = filesOf(journal);
  const part = await record(tx, context, { ...journal, files });
  failpoint('gl.recorded');
  return { part, recorded: true, files, lines, movable };
}

/**
 * The checkpoint that names the journal, and the previous month. For the first month, which includes everything
 * earlier, the previous month is ''.
 */
async function readState(
  tx: Transaction,
  { month, preliminary }: GlRequest,
): Promise<{ checkpoint: string; booksClosed: boolean; after: Month | '' }> {
  const { first_closed: first, last_closed: last } = await readBooksState(tx);
  if (first !== null && month < first) throw refuse('before_first_month', { month, first });
  if (last === null || month > last) throw refuse('month_not_closed', { month });
  const { root, books_root } = await readRoots(tx, { month });
  if (books_root === null && !preliminary) throw refuse('books_open', { month });
  return {
    checkpoint: books_root ?? root,
    booksClosed: books_root !== null,
    after: month === first ? '' : monthBefore(month),
  };
}

/**
 * Refuses a rule for a partner or policy that does not exist, because such a rule is a typo. The postings meant for
 * such a rule would silently go to the account of a more general rule.
 */
export async function checkAccountRules(tx: Transaction, { accounts }: Accounts, file: string) {
  const named = (field: 'partner' | 'policy') => [...new Set(accounts.flatMap((rule) => rule[field] ?? []))];
  const unknown = await readUnknownIds(tx, { partners: named('partner'), policies: named('policy') });
  if (unknown.length === 0) return;
  const problems = accounts.flatMap((rule, at) =>
    unknown
      .filter(({ field, id }) => rule[field] === id)
      .map(({ field, id }) => ({ path: `accounts.${at}.${field}`, reason: `no ${field} has the id ${id}` })),
  );
  throw refuse('accounts_invalid', { file, problems });
}

/**
 * Checks, account by account, that the postings equal the difference between the trial balances at the ends of both
 * months.
 */
async function checkTies(
  tx: Transaction,
  { month, after, postings }: { month: Month; after: Month | ''; postings: readonly Posting[] },
) {
  const sums = new Map<string, Amount>();
  const add = ({ account, currency, amount }: { account: string; currency: string; amount: string }, sign: 1 | -1) => {
    const key = `${account} ${currency}`;
    const value = Amount.of(amount, currency);
    sums.set(key, (sums.get(key) ?? Amount.zero(currency)).plus(sign === 1 ? value : value.negated()));
  };
  for (const balance of await readBalances(tx, lastDay(month))) add(balance, 1);
  if (after !== '') for (const balance of await readBalances(tx, lastDay(after))) add(balance, -1);
  for (const posting of postings) add(posting, -1);
  const accounts = [...sums].filter(([, left]) => !left.isZero()).map(([account, left]) => `${account} by ${left}`);
  if (accounts.length > 0) throw refuse('gl_not_tied', { month, accounts });
}

type ExportInput = Readonly<{
  accounts: Accounts;
  postings: readonly Posting[];
  exported: readonly GlLine[];
  request: GlRequest;
}>;

/**
 * The lines that are not exported yet, with their targets. Refuses postings without an account, and names that no file
 * can contain.
 */
async function linesToExport(
  tx: Transaction,
  { accounts, postings, exported: written, request }: ExportInput,
): Promise<{ lines: readonly GlLine[]; kind: GlKind; movable: readonly GlLine[] }> {
  const ids = [...new Set([...postings, ...written].flatMap(({ partner_id }) => partner_id ?? []))];
  const names = await readPartnerNames(tx, ids);
  const exported = renamed(accounts, written, names);
  const usable = (given: ReturnType<typeof mapped>) => {
    if (given.unmapped.length > 0) {
      throw refuse('accounts_unmapped', { month: request.month, accounts: unmappedAccounts(given.unmapped) });
    }
    return given.lines;
  };
  const now = mapped(accounts, postings, names);
  const checked = (lines: readonly GlLine[]) => {
    const partners = runnableNames(lines);
    if (partners.length > 0) throw refuse('gl_name_unusable', { partners });
    const unusable = unusableLines(request.format, lines);
    if (unusable.length > 0) throw refuse('gl_lines_unusable', { ...request, lines: unusable });
    const shared = lines.length === 0 ? [] : sharedNames(accounts, [...exported, ...lines]);
    if (shared.length > 0) throw refuse('gl_names_shared', { shared });
    return lines;
  };
  if (exported.length === 0) {
    if (request.reclassify) throw refuse('gl_not_exported', { month: request.month, format: request.format });
    return { lines: checked(usable(now)), kind: 'journal', movable: [] };
  }
  if (request.reclassify) {
    return { lines: checked(moved(usable(now), exported)), kind: 'reclassification', movable: [] };
  }
  const since = mapped(accounts, postedSince(postings, exported), names, latestTargets(exported));
  const lines = checked(usable(since));
  return { lines, kind: 'difference', movable: moved(now.lines, [...exported, ...lines]).filter(isMapped(now.lines)) };
}

/** Selects lines whose account the map still contains, because lines of other accounts are not reported as movable. */
function isMapped(lines: readonly GlLine[]): (line: GlLine) => boolean {
  const known = new Set(lines.map(({ account, currency }) => `${account} ${currency}`));
  return ({ account, currency }) => known.has(`${account} ${currency}`);
}

function unmappedAccounts(unmapped: readonly { account: string; currency: string }[]) {
  const currencies = new Map<string, Set<string>>();
  for (const { account, currency } of unmapped) {
    currencies.set(account, (currencies.get(account) ?? new Set()).add(currency));
  }
  return [...currencies].map(([account, own]) => `${account} (${[...own].sort().join(', ')})`).sort();
}

async function record(
  tx: Transaction,
  { environment, actor }: ActorContext,
  {
    lines,
    files,
    accounts,
    ...journal
  }: Omit<GlExport, 'gl_export_id' | 'recorded_at'> &
    Readonly<{
      accounts: Accounts;
      lines: readonly GlLine[];
      files: readonly GlFile[];
    }>,
): Promise<GlExport> {
  const now = environment.now().toISO();
  const { month, format, part, kind } = journal;
  const totals = Object.fromEntries(summarise(lines).map(({ currency, total }) => [currency, total.toString()]));
  const eventId = await recordEvent(tx, actor, {
    action: 'gl.export',
    subject: month,
    details: { format, part, kind, books_closed: journal.books_closed, lines: lines.length, totals },
    now,
  });
  const written = { ...journal, recorded_at: now };
  const id = await insertExport(tx, { ...written, accounts: JSON.stringify(accounts), writer: WRITER, eventId });
  await insertLines(tx, { id, lines });
  await insertFiles(tx, id, files);
  return { gl_export_id: id, ...written };
}
