/**
 * Imports a bank file once, as a whole or not at all. Every new line gets exactly one outcome with its reason: a
 * payment, a further source record of a payment, a payout of the processor, a return, a refund, bank charges, or
 * ignored. Refusals: those of bank/read.ts.
 */
import { createHash } from 'node:crypto';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { failpoint } from '#failpoint';
import { BankFile } from '#payments/bank/format';
import { ReadBankFile, readBankFile } from '#payments/bank/read';
import { BankLine, BankStatement, invalidFile, placeOf } from '#payments/bank/statement';
import { Caller, lockPayments, openPaymentContext, PaymentContext } from '#payments/context';
import { processorIds } from '#payments/duplicates';
import { PaymentException, readBreaks } from '#payments/exceptions.sql';
import { readRefunds } from '#payments/outgoing-refunds.sql';
import { readCandidates } from '#payments/payments.sql';
import { readOpenItems } from '#payments/read-open-items';
import { Amount, addDays } from '#values';
import { insertBankFile, lineKey, readEqualLines, readImportedAt } from './bank-lines.sql.ts';
import { decideCredits, NewLine, referencesOf } from './decide.ts';
import { recordCredits } from './record.ts';
import { countOutcomes, LineReport, sumBankCharges } from './report.ts';
import { recordDebits } from './returns.ts';
import { findSameLines, SameLines, withRecordedAccounts } from './same-lines.ts';
import { showLines } from './show.ts';

export type BankImport = Readonly<{
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
  new_lines: readonly LineReport[];
  event_id: number | null;
}>;

/** Names a line of a file to people: `0012345 line 3`, or `0012345 line 3.2` for a part of an entry. */
export const bankLineName = ({ account, ...line }: Pick<LineReport, 'account' | 'position' | 'part'>): string =>
  `${account} line ${placeOf(line)}`;

/**
 * `read` is the content of the file, as read before the transaction. A payment of a line in `open` (bankLineName) is
 * recorded and not applied.
 */
export async function importBankFile(
  tx: Transaction,
  caller: Caller,
  file: BankFile,
  read: ReadBankFile = readBankFile(file, caller.settings.bank_csv),
  open: readonly string[] = [],
): Promise<BankImport> {
  const { format } = read;
  refuseUnrecordable(file, read.statements, todayOf(caller));
  const sha256 = createHash('sha256').update(file.bytes).digest('hex');
  failpoint('payments.read');
  await lockPayments(tx);
  failpoint('payments.locked');
  const all = await withRecordedAccounts(tx, read.statements);
  const statements = all.filter(({ only }) => only === undefined);
  const total = statements.reduce((sum, statement) => sum + statement.lines.length, 0);
  const head = { file: file.name, sha256, format, statements: all.map(statementReport) };
  const importedAt = await readImportedAt(tx, sha256);
  if (importedAt !== undefined) {
    return { ...head, ...NOTHING_NEW, already_imported: importedAt, lines: { total, new: 0, known: total } };
  }
  const showOthers = () => {
    const others = all.filter(({ only }) => only !== undefined);
    return showLines(tx, caller, format, others);
  };
  // A file with only pending entries does not count as imported, because the bank may send it again with booked
  // entries.
  if (statements.length === 0 || (total === 0 && statements.some(({ pending }) => pending > 0))) {
    const shown = await showOthers();
    return { ...head, ...NOTHING_NEW, outcomes: countOutcomes(shown), new_lines: shown };
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.import',
    subject: file.name.split(/[/\\]/).at(-1) ?? file.name,
    details: { sha256, format, lines: total, ...(open.length > 0 && { left_open: open }) },
  });
  const accounts = statements.map(({ account }) => account);
  const brokenBefore = new Set((await readBreaks(tx, { accounts })).map(({ exception }) => exception));
  const newLines = await recordFile(
    tx,
    context,
    { sha256, name: file.name, format, bytes: file.bytes.length },
    statements,
  );
  const reports = [...(await recordLines(tx, context, caller, newLines, new Set(open))), ...(await showOthers())];
  failpoint('payments.recorded');
  return {
    ...head,
    already_imported: null,
    lines: { total, new: newLines.length, known: total - newLines.length },
    outcomes: countOutcomes(reports),
    bank_charges: sumBankCharges(reports),
    breaks: (await readBreaks(tx, { accounts })).filter(({ exception }) => !brokenBefore.has(exception)),
    new_lines: reports,
    event_id: context.eventId,
  };
}

const NOTHING_NEW = {
  already_imported: null,
  lines: { total: 0, new: 0, known: 0 },
  outcomes: countOutcomes([]),
  ...{ bank_charges: {}, breaks: [], new_lines: [], event_id: null },
} as const;

const statementReport = ({ lines, pending, remarks = [], only, ...statement }: BankStatement) => ({
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
function refuseUnrecordable(file: BankFile, statements: readonly BankStatement[], today: string) {
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
    return lines.flatMap((line) => {
      const reason = faultOf(line);
      return reason === undefined ? [] : [{ path: `${account}, line ${placeOf(line)}`, reason }];
    });
  });
  if (problems.length > 0) throw invalidFile(file.name, problems);
}

async function recordFile(
  tx: Transaction,
  context: PaymentContext,
  file: { sha256: string; name: string; format: string; bytes: number },
  statements: readonly BankStatement[],
) {
  const same = await findSameLines(tx, file.format, statements);
  const { identities } = same;
  const newIds = await insertBankFile(tx, context, {
    ...file,
    statements: statements.map((statement) => recordedStatement(statement, same)),
  });
  return statements.flatMap(({ account, lines }) =>
    lines.flatMap((line) => {
      const identity = identities.get(line) as string;
      const key = lineKey(account, identity);
      const id = newIds.get(key);
      // A second statement of the file may have the line again.
      newIds.delete(key);
      return id === undefined ? [] : [{ id, account, identity, line }];
    }),
  );
}

/** The statement with the recorded lines in place of lines whose money is recorded in other portions. */
function recordedStatement(statement: BankStatement, { identities, replaced }: SameLines) {
  const lines = statement.lines.map((line) => ({ line, identity: identities.get(line) as string }));
  for (const { lines: told, by } of replaced) {
    const at = lines.findIndex(({ line }) => told.includes(line));
    if (at < 0) continue;
    const kept = lines.filter(({ line }) => !told.includes(line));
    const standIns = by.map(({ identity, direction, amount, currency }) => ({
      line: { ...(told[0] as BankLine), direction, amount: Amount.of(amount, currency) },
      identity,
    }));
    lines.splice(0, lines.length, ...kept.slice(0, at), ...standIns, ...kept.slice(at));
  }
  return {
    statement: { ...statement, lines: lines.map(({ line }) => line) },
    identities: lines.map(({ identity }) => identity),
  };
}

async function recordLines(
  tx: Transaction,
  context: PaymentContext,
  caller: Caller,
  newLines: readonly NewLine[],
  open: ReadonlySet<string>,
) {
  const credits = newLines.filter(({ line }) => line.direction === 'credit');
  const debits = newLines.filter(({ line }) => line.direction === 'debit');
  const equalLines = await readEqualLines(tx, { lineIds: newLines.map((each) => each.id) });
  const items = await readOpenItems(
    tx,
    caller.settings,
    credits.map(({ line }) => line.references),
    credits.map(({ line }) => line.payer_account),
  );
  const decisions = decideCredits(credits, items, {
    candidates: await readLineCandidates(tx, credits),
    equalLines,
    refunds: await readRefunds(tx, moneyOf(credits.filter(({ line }) => line.reversal)), { open: false }),
    payoutNames: caller.settings.payout_names,
    isLeftOpen: ({ account, line: { position, part = null } }) => open.has(bankLineName({ account, position, part })),
  });
  const creditReports = await recordCredits(tx, context, decisions);
  const ownLines = new Map(
    [...creditReports].flatMap(([each, { outcome, payment_id }]) =>
      outcome === 'payment' ? [[payment_id as number, each] as const] : [],
    ),
  );
  // Debits are recorded after credits, because a return may concern a payment in the same file.
  const candidates = await readLineCandidates(tx, debits);
  const debitReports = await recordDebits(tx, context, debits, {
    ...{ candidates, equalLines, ownLines, chargeCodes: caller.settings.bank_charge_codes },
  });
  return newLines.map((each) => (creditReports.get(each) ?? debitReports.get(each)) as LineReport);
}

function readLineCandidates(tx: Transaction, lines: readonly NewLine[]) {
  return readCandidates(tx, {
    money: moneyOf(lines),
    references: processorIds(lines.flatMap(({ line }) => referencesOf(line))),
  });
}

const moneyOf = (lines: readonly NewLine[]) =>
  lines.map(({ line: { amount } }) => ({ currency: amount.currency, amount: amount.toString() }));
