/**
 * Imports a bank file once, as a whole or not at all. Every new line gets exactly one outcome with its reason: a
 * payment, a further source record of a payment, a payout of the processor, a return, a refund, bank charges, or
 * ignored. Refusals: those of bank/read.ts.
 *
 * The lines of a large file stay packed, and are recorded some at a time: each step reads them again in their order.
 */
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { FieldProblem } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { RecordableFile } from '#payments/bank/read-aside';
import { BankLine, BankStatement, invalidFile, placeOf } from '#payments/bank/statement';
import { Caller, lockPayments, openPaymentContext, PaymentContext } from '#payments/context';
import { Candidate, processorIds } from '#payments/duplicates';
import { PaymentException, readBreaks } from '#payments/exceptions.sql';
import { readRefunds } from '#payments/outgoing-refunds.sql';
import { readCandidates } from '#payments/payments.sql';
import { readOpenItems } from '#payments/read-open-items';
import { tellProgress } from '#reading/aside';
import { inBatches } from '#reading/packed-list';
import { Amount, addDays } from '#values';
import {
  analyzeImport,
  insertBankFile,
  insertBankLines,
  lineKey,
  readEqualLines,
  readImportedAt,
} from './bank-lines.sql.ts';
import { decidingCredits, NewLine, referencesOf } from './decide.ts';
import { PaidOut, recordCredits, recordPayouts } from './record.ts';
import { countOutcomes, LineReport, LineReports, ReportCollection, sumBankCharges } from './report.ts';
import { recordingDebits } from './returns.ts';
import { findSameLines, numberedLines, SameLines, Statement, withRecordedAccounts } from './same-lines.ts';
import { showLines } from './show.ts';

export type BankImport<Lines = readonly LineReport[]> = Readonly<{
  file: string;
  sha256: string;
  format: string;
  /**
   * The instant of an earlier import of the same file. If the same file was imported before, nothing is imported now.
   */
  already_imported: string | null;
  statements: readonly {
    account: string;
    currency: string;
    opening: string | null;
    closing: string | null;
    lines: number;
    pending: number;
    remarks: readonly string[];
    /** Why the lines are shown and not recorded, or null. */
    only: NonNullable<BankStatement['only']> | null;
  }[];
  lines: { total: number; new: number; known: number };
  outcomes: Readonly<Record<LineReport['outcome'], number>>;
  bank_charges: Readonly<Record<string, string>>;
  /**
   * Statements that do not continue an earlier statement of their account. A statement is listed only by the first
   * import that finds the gap.
   */
  breaks: readonly PaymentException[];
  new_lines: Lines;
  event_id: number | null;
}>;

/** Names a line of a file to people: `0012345 line 3`, or `0012345 line 3.2` for a part of an entry. */
export const bankLineName = ({ account, ...line }: Pick<LineReport, 'account' | 'position' | 'part'>): string =>
  `${account} line ${placeOf(line)}`;

/** A payment of a line in `open` (bankLineName) is recorded and not applied. */
export async function importBankFile(
  tx: Transaction,
  caller: Caller,
  file: RecordableFile,
  open: readonly string[] = [],
): Promise<BankImport<LineReports>> {
  const { name, format, sha256, bytes } = file;
  refuseUnrecordable(name, file.statements, todayOf(caller));
  failpoint('payments.read');
  await lockPayments(tx);
  failpoint('payments.locked');
  const all = await withRecordedAccounts(tx, file.statements);
  const statements = all.filter(({ only }) => only === undefined);
  const total = statements.reduce((sum, statement) => sum + statement.lines.length, 0);
  const head = { file: name, sha256, format, statements: all.map(statementReport) };
  const importedAt = await readImportedAt(tx, sha256);
  if (importedAt !== undefined) {
    return { ...head, ...NOTHING_NEW, already_imported: importedAt, lines: { total, new: 0, known: total } };
  }
  const reports = new ReportCollection<Kind>();
  const others = all.filter(({ only }) => only !== undefined);
  const showOthers = async (): Promise<readonly Kind[]> => {
    await showLines(tx, caller, format, others, (report) => reports.add('shown', report));
    return new Array<Kind>(others.reduce((sum, { lines }) => sum + lines.length, 0)).fill('shown');
  };
  // A file with only pending entries does not count as imported, because the bank may send it again with booked
  // entries.
  if (statements.length === 0 || (total === 0 && statements.some(({ pending }) => pending > 0))) {
    const shown = reports.inOrder(await showOthers());
    return { ...head, ...NOTHING_NEW, outcomes: countOutcomes(shown), new_lines: shown };
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.import',
    subject: name.split(/[/\\]/).at(-1) ?? name,
    details: { sha256, format, lines: total, ...(open.length > 0 && { left_open: open }) },
  });
  const accounts = statements.map(({ account }) => account);
  const brokenBefore = new Set((await readBreaks(tx, { accounts })).map(({ exception }) => exception));
  const newLines = await recordFile(tx, context, { sha256, name, format, bytes }, statements);
  const order = await recordLines(tx, context, caller, newLines, new Set(open), reports);
  const lines = reports.inOrder([...order, ...(await showOthers())]);
  failpoint('payments.recorded');
  return {
    ...head,
    already_imported: null,
    lines: { total, new: order.length, known: total - order.length },
    outcomes: countOutcomes(lines),
    bank_charges: sumBankCharges(lines),
    breaks: (await readBreaks(tx, { accounts })).filter(({ exception }) => !brokenBefore.has(exception)),
    new_lines: lines,
    event_id: context.eventId,
  };
}

/** The kinds of lines. Each kind is recorded by itself, and all are reported in the order of the file. */
type Kind = 'credit' | 'payout' | 'debit' | 'shown';

const NOTHING_NEW = {
  already_imported: null,
  lines: { total: 0, new: 0, known: 0 },
  outcomes: countOutcomes([]),
  ...{ bank_charges: {}, breaks: [], new_lines: [], event_id: null },
} as const;

const statementReport = ({ lines, pending, remarks = [], only, ...statement }: Statement) => ({
  account: statement.account,
  currency: statement.currency,
  opening: statement.opening?.toString() ?? null,
  closing: statement.closing?.toString() ?? null,
  lines: lines.length,
  ...{ pending, remarks, only: only ?? null },
});

const AMOUNT_LIMIT = '1000000000000000';
/** Indexes cannot hold longer values. Accounts and references of banks have at most 35 characters. */
const LONGEST_ID = 500;

/**
 * Refuses lines that cannot be recorded, in any format. A line may be dated tomorrow, because the bank may be in a
 * later time zone.
 */
function refuseUnrecordable(file: string, statements: readonly Statement[], today: string) {
  const tomorrow = addDays(today, 1);
  const isLong = (id = '') => Buffer.byteLength(id) > LONGEST_ID;
  const faultOf = ({ booked_on, value_on = booked_on, amount, ...line }: BankLine) => {
    if (booked_on > tomorrow) return `is booked on ${booked_on}, in the future: today is ${today}`;
    if (booked_on < '1900' || value_on < '1900') return 'is dated before the year 1900';
    if (amount.isNegative() || amount.isZero() || !amount.isLessThan(Amount.of(AMOUNT_LIMIT, amount.currency))) {
      return `'${amount.toString()}' is not an amount above 0 and below ${AMOUNT_LIMIT}`;
    }
    const tooLong = `has an account or reference of more than ${LONGEST_ID} bytes`;
    return isLong(line.bank_reference) || isLong(line.payer_account) ? tooLong : undefined;
  };
  const problems = statements.flatMap(({ account, lines }, index) => {
    if (isLong(account))
      return [{ path: `statement ${index + 1}`, reason: `names an account of more than ${LONGEST_ID} bytes` }];
    const found: FieldProblem[] = [];
    for (const line of lines) {
      const reason = faultOf(line);
      if (reason !== undefined) found.push({ path: `${account}, line ${placeOf(line)}`, reason });
    }
    return found;
  });
  if (problems.length > 0) throw invalidFile(file, problems);
}

/** Lines that are sent to the database together. */
const LINES_TOGETHER = 500;

/**
 * Yields the batches of lines of a file, and tells how many have been taken. PostgreSQL analyzes what a large file adds:
 * after the first batch, by which it plans the others, and after the last.
 */
async function* inSteps<Line>(tx: Transaction, label: string, total: number, lines: Iterable<Line>) {
  let done = 0;
  for (const batch of inBatches(lines, LINES_TOGETHER)) {
    yield batch;
    const isFirst = done === 0;
    done += batch.length;
    if (total <= LINES_TOGETHER) continue;
    if (isFirst || done === total) await analyzeImport(tx);
    tellProgress({ label, done, total, unit: 'lines' });
  }
}

/** Records the file and its lines. Returns its new lines. */
async function recordFile(
  tx: Transaction,
  context: PaymentContext,
  file: Readonly<{ sha256: string; name: string; format: string; bytes: number }>,
  statements: readonly Statement[],
) {
  const same = await findSameLines(tx, file.format, statements);
  const totals = statements.map(({ currency }) => ({
    ...{ credit: Amount.zero(currency), debit: Amount.zero(currency), lines: 0 },
  }));
  for (const { line, statement } of recordedLines(statements, same)) {
    const total = totals[statement - 1] as (typeof totals)[number];
    total[line.direction] = total[line.direction].plus(line.amount);
    total.lines += 1;
  }
  await insertBankFile(tx, context, {
    ...file,
    statements: statements.map(({ account, currency, reference, opening, closing, closed_on }, index) => {
      const { credit, debit, lines } = totals[index] as (typeof totals)[number];
      return {
        ...{ position: index + 1, account, currency, reference, lines, closed_on: closed_on ?? null },
        ...{ opening: opening?.toString() ?? null, closing: closing?.toString() ?? null },
        ...{ credits: credit.toString(), debits: debit.toString() },
      };
    }),
  });
  const newLines = new NewLines(statements, same.identities);
  const all = totals.reduce((sum, { lines }) => sum + lines, 0);
  for await (const batch of inSteps(tx, `Recording ${file.name}`, all, recordedLines(statements, same))) {
    const ids = await insertBankLines(tx, file.sha256, batch);
    for (const { account, identity, line, number } of batch) {
      const key = lineKey(account, identity);
      const id = ids.get(key);
      // A second statement of the file may have the line again.
      ids.delete(key);
      if (id !== undefined) newLines.add(number, id, line.direction);
    }
  }
  return newLines;
}

/** The lines of statements, with the recorded lines in place of lines whose money is recorded in other portions. */
function* recordedLines(statements: readonly Statement[], { identities, replaced }: SameLines) {
  const replacements = new Map(replaced.flatMap((each) => each.lines.map((number) => [number, each] as const)));
  let number = 0;
  for (const [index, { account, lines }] of statements.entries()) {
    const done = new Set<SameLines['replaced'][number]>();
    let place = 0;
    const placed = (line: BankLine, identity: string) => {
      place += 1;
      return { line, identity, account, statement: index + 1, place, number };
    };
    for (const line of lines) {
      const replacement = replacements.get(number);
      if (replacement === undefined) yield placed(line, identities[number] as string);
      else if (!done.has(replacement)) {
        done.add(replacement);
        for (const { identity, direction, amount, currency } of replacement.by) {
          yield placed({ ...line, direction, amount: Amount.of(amount, currency) }, identity);
        }
      }
      number += 1;
    }
  }
}

/** The new lines of a file, by their numbers. Only their ids and directions are in memory. */
class NewLines {
  private readonly statements: readonly Statement[];
  private readonly identities: readonly string[];
  private readonly found: number[] = [];
  private readonly directions: BankLine['direction'][] = [];

  constructor(statements: readonly Statement[], identities: readonly string[]) {
    [this.statements, this.identities] = [statements, identities];
  }

  add(number: number, id: number, direction: BankLine['direction']) {
    while (this.found.length < number) this.found.push(KNOWN);
    this.found.push(id);
    // The string of a line that was unpacked is a string of its own.
    this.directions.push(direction === 'credit' ? 'credit' : 'debit');
  }

  get ids() {
    return this.found.filter((id) => id !== KNOWN);
  }

  count(direction: BankLine['direction']) {
    return this.directions.filter((each) => each === direction).length;
  }

  kinds(payouts: ReadonlySet<number>): Kind[] {
    return this.ids.map((id, index) => (payouts.has(id) ? 'payout' : (this.directions[index] as Kind)));
  }

  *of(direction: BankLine['direction']): Generator<NewLine> {
    for (const { line, statement, number } of numberedLines(this.statements)) {
      const id = this.found[number] ?? KNOWN;
      if (id === KNOWN || line.direction !== direction) continue;
      yield { id, account: statement.account, identity: this.identities[number] as string, line };
    }
  }
}

/** In place of the id of a line that was recorded before. */
const KNOWN = 0;

/** Records what the new lines mean, and adds their reports. Returns the kinds of the lines in their order. */
async function recordLines(
  tx: Transaction,
  context: PaymentContext,
  caller: Caller,
  newLines: NewLines,
  open: ReadonlySet<string>,
  reports: ReportCollection<Kind>,
) {
  const equalLines = await readEqualLines(tx, newLines.ids);
  const seen = new Seen();
  const items = await readOpenItems(tx, caller.settings, seen.reading(newLines.of('credit')));
  const decide = decidingCredits(items, {
    candidates: await seen.readCandidates(tx),
    equalLines,
    refunds: await readRefunds(tx, seen.reversals, { open: false }),
    payoutNames: caller.settings.payout_names,
    isLeftOpen: ({ account, line: { position, part = null } }) => open.has(bankLineName({ account, position, part })),
  });
  const paymentIds = new Map<number, number>();
  const paidOut: PaidOut[] = [];
  for await (const batch of inSteps(tx, 'Matching credits', newLines.count('credit'), newLines.of('credit'))) {
    const decisions = new Map(batch.map((each) => [each, decide(each)]));
    for (const [each, decision] of decisions) {
      if (decision.kind === 'payout' || decision.kind === 'link_payment') paidOut.push({ each, decision });
    }
    for (const report of await recordCredits(tx, context, decisions, paymentIds)) reports.add('credit', report);
  }
  for (const report of await recordPayouts(tx, context, paidOut, paymentIds)) reports.add('payout', report);
  // Debits are recorded after credits, because a return may concern a payment in the same file.
  const debits = new Seen();
  for (const _ of debits.reading(newLines.of('debit')));
  const candidates = await debits.readCandidates(tx);
  const record = recordingDebits({
    ...{ candidates, equalLines, ownLines: placesOf(candidates, reports.of('credit')) },
    chargeCodes: caller.settings.bank_charge_codes,
  });
  for await (const batch of inSteps(tx, 'Matching debits', newLines.count('debit'), newLines.of('debit'))) {
    for (const report of (await record(tx, context, batch)).values()) reports.add('debit', report);
  }
  const payouts = paidOut.flatMap(({ each, decision }) => (decision.kind === 'payout' ? [each.id] : []));
  return newLines.kinds(new Set(payouts));
}

/** The places of the lines that are the first to report payments, by payment. */
function placesOf(payments: readonly Candidate[], reports: Iterable<LineReport>) {
  const ids = new Set(payments.map(({ payment_id }) => payment_id));
  const places = new Map<number, string>();
  if (ids.size === 0) return places;
  for (const report of reports) {
    const { payment_id: id, outcome } = report;
    if (outcome === 'payment' && id !== null && ids.has(id)) places.set(id, placeOf(report));
  }
  return places;
}

/** The amounts and processor ids of lines, by which payments are found that the lines may report. */
class Seen {
  readonly reversals: Money[] = [];
  private readonly amounts = new Map<string, Set<string>>();
  private readonly processorIds = new Set<string>();

  *reading(lines: Iterable<NewLine>) {
    for (const { line } of lines) {
      const { currency } = line.amount;
      const amount = line.amount.toString();
      this.amounts.set(currency, (this.amounts.get(currency) ?? new Set()).add(amount));
      if (line.reversal) this.reversals.push({ currency, amount });
      for (const id of processorIds(referencesOf(line))) this.processorIds.add(id);
      yield line;
    }
  }

  readCandidates(tx: Transaction) {
    const money = [...this.amounts].flatMap(([currency, all]) => [...all].map((amount) => ({ currency, amount })));
    return readCandidates(tx, { money, references: [...this.processorIds] });
  }
}

type Money = Readonly<{ currency: string; amount: string }>;
