/**
 * Imports a bank file: whole or not at all, once. Every new line becomes exactly one thing, with its reason: a payment,
 * another source record of a payment, a payout of the processor, a return, or nothing of ours.
 * Refusals: those of bank/read.ts.
 */
import { createHash } from 'node:crypto';
import { DateTime } from 'luxon';
import { todayOf } from '../../config/today.ts';
import type { Transaction } from '../../database/transaction.ts';
import { failpoint } from '../../failpoint.ts';
import type { BankFile } from '../bank/format.ts';
import { type ReadBankFile, readBankFile } from '../bank/read.ts';
import { type BankLine, type BankStatement, invalidFile, lineIdentities } from '../bank/statement.ts';
import { type Caller, lockPayments, openPaymentContext, type PaymentContext } from '../context.ts';
import { type Candidate, processorIds } from '../duplicates.ts';
import { type PaymentException, readBreaks } from '../exceptions.sql.ts';
import { readCandidates } from '../queries.ts';
import { readOpenItems } from '../read-open-items.ts';
import { insertBankFile, lineKey, readEqualLines, readImportedAt } from './bank-lines.sql.ts';
import { decideCredits, type NewLine, referencesOf } from './decide.ts';
import { recordCredits } from './record.ts';
import { countOutcomes, type LineReport, sumBankCharges } from './report.ts';
import { isReturn, recordDebits } from './returns.ts';

export interface BankImport {
  readonly file: string;
  readonly sha256: string;
  readonly format: string;
  /** When the same file was imported before; then nothing is done. */
  readonly already_imported: string | null;
  readonly statements: readonly {
    account: string;
    currency: string;
    opening: string | null;
    closing: string | null;
    lines: number;
    pending: number;
  }[];
  readonly lines: { total: number; new: number; known: number };
  readonly outcomes: Readonly<Record<LineReport['outcome'], number>>;
  /** Small differences that this import wrote to bank charges, by currency. */
  readonly bank_charges: Readonly<Record<string, string>>;
  /** Statements that do not continue what is known of their account; only the import that shows it reports them. */
  readonly breaks: readonly PaymentException[];
  readonly new_lines: readonly LineReport[];
}

/** `read`: the file as it was read before the transaction began. */
export async function importBankFile(
  tx: Transaction,
  caller: Caller,
  file: BankFile,
  read: ReadBankFile = readBankFile(file, caller.settings.bank_csv),
): Promise<BankImport> {
  const { format, statements } = read;
  refuseFuture(file, statements, todayOf(caller));
  const sha256 = createHash('sha256').update(file.bytes).digest('hex');
  const total = statements.reduce((sum, statement) => sum + statement.lines.length, 0);
  const head = { file: file.name, sha256, format, statements: statements.map(statementReport) };
  failpoint('payments.read');
  await lockPayments(tx);
  failpoint('payments.locked');
  const importedAt = await readImportedAt(tx, sha256);
  if (importedAt !== undefined) {
    const lines = { total, new: 0, known: total };
    return {
      ...head,
      already_imported: importedAt,
      lines,
      outcomes: countOutcomes([]),
      bank_charges: {},
      breaks: [],
      new_lines: [],
    };
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.import',
    subject: file.name.split(/[/\\]/).at(-1) ?? file.name,
    details: { sha256, format, lines: total },
  });
  const accounts = statements.map(({ account }) => account);
  const brokenBefore = new Set((await readBreaks(tx, accounts)).map(({ exception }) => exception));
  const newLines = await recordFile(context, { sha256, name: file.name, format, bytes: file.bytes.length }, statements);
  const reports = await recordLines(context, caller, newLines);
  failpoint('payments.recorded');
  return {
    ...head,
    already_imported: null,
    lines: { total, new: newLines.length, known: total - newLines.length },
    outcomes: countOutcomes(reports),
    bank_charges: sumBankCharges(reports),
    breaks: (await readBreaks(tx, accounts)).filter(({ exception }) => !brokenBefore.has(exception)),
    new_lines: reports,
  };
}

const statementReport = ({ account, currency, opening, closing, lines, pending }: BankStatement) => ({
  account,
  currency,
  opening: opening?.toString() ?? null,
  closing: closing?.toString() ?? null,
  lines: lines.length,
  pending,
});

/** A line may be dated tomorrow: at the bank's place it may be tomorrow already. */
function refuseFuture(file: BankFile, statements: readonly BankStatement[], today: string): void {
  const tomorrow = DateTime.fromISO(today, { zone: 'utc' }).plus({ days: 1 }).toFormat('yyyy-MM-dd');
  const problems = statements.flatMap(({ account, lines }) =>
    lines
      .filter((line) => line.booked_on > tomorrow)
      .map(({ position, booked_on }) => ({
        path: `${account}, line ${position}`,
        reason: `is booked on ${booked_on}, in the future: today is ${today}`,
      })),
  );
  if (problems.length > 0) throw invalidFile(file.name, problems);
}

/** Records the file with all its lines, and gives the new ones. */
async function recordFile(
  context: PaymentContext,
  file: { sha256: string; name: string; format: string; bytes: number },
  statements: readonly BankStatement[],
): Promise<NewLine[]> {
  // Equal lines are counted for each account over the whole file: a BAI2 file may have several days of one account.
  const identities = new Map<BankLine, string>();
  for (const account of new Set(statements.map((each) => each.account))) {
    const lines = statements.filter((each) => each.account === account).flatMap((each) => each.lines);
    for (const [index, identity] of lineIdentities(lines).entries()) identities.set(lines[index] as BankLine, identity);
  }
  const newIds = await insertBankFile(context, {
    ...file,
    statements: statements.map((statement) => ({
      statement,
      identities: statement.lines.map((line) => identities.get(line) as string),
    })),
  });
  return statements.flatMap(({ account, lines }) =>
    lines.flatMap((line): NewLine[] => {
      const identity = identities.get(line) as string;
      const id = newIds.get(lineKey(account, identity));
      return id === undefined ? [] : [{ id, account, identity, line }];
    }),
  );
}

async function recordLines(
  context: PaymentContext,
  caller: Caller,
  newLines: readonly NewLine[],
): Promise<LineReport[]> {
  const { tx } = context;
  const credits = newLines.filter(({ line }) => line.direction === 'credit');
  const debits = newLines.filter(({ line }) => line.direction === 'debit');
  const equalLines = await readEqualLines(
    tx,
    newLines.map((each) => each.id),
  );
  const items = await readOpenItems(
    tx,
    caller.settings,
    credits.map(({ line }) => line.references),
    credits.map(({ line }) => line.payer_account),
  );
  const decisions = decideCredits(credits, items, {
    candidates: await readLineCandidates(tx, credits),
    equalLines,
    payoutNames: caller.settings.payout_names,
  });
  const creditReports = await recordCredits(context, decisions);
  const ownLines = new Map(
    [...creditReports].flatMap(([each, { outcome, payment_id }]) =>
      outcome === 'payment' ? [[payment_id as number, each] as const] : [],
    ),
  );
  // After the credits: a return may be of a payment of the same file.
  const candidates = await readLineCandidates(tx, debits.filter(isReturn));
  const debitReports = await recordDebits(context, debits, { candidates, equalLines, ownLines });
  return newLines.map((each) => (creditReports.get(each) ?? debitReports.get(each)) as LineReport);
}

/** Payments that these lines may report again, or return. */
function readLineCandidates(tx: Transaction, lines: readonly NewLine[]): Promise<Candidate[]> {
  return readCandidates(tx, {
    money: lines.map(({ line }) => ({ currency: line.amount.currency, amount: line.amount.toString() })),
    references: processorIds(lines.flatMap(({ line }) => referencesOf(line))),
  });
}
