/**
 * Importing a bank file: whole or not at all, once. Every line that is new becomes exactly one thing: a payment, another
 * sighting of a payment that is known, a payout of the processor, a return, or nothing of ours; each with its reason.
 * Refusals: those of the readers in bank/read.ts.
 */

import { createHash } from 'node:crypto';
import { DateTime } from 'luxon';
import type { Transaction } from '../database/transaction.ts';
import { failpoint } from '../failpoint.ts';
import { Amount } from '../money.ts';
import { todayOf } from '../today.ts';
import { money } from './apply.ts';
import { type BankFile, type ReadBankFile, readBankFile } from './bank/read.ts';
import { type BankLine, type BankStatement, invalidFile, lineIdentities } from './bank/statement.ts';
import { type Caller, enqueueDeliveries, lockPayments, openPaymentContext, type PaymentContext } from './context.ts';
import { DAYS, daysBetween, processorIds, referencesOf, sameReference, sharedReference } from './duplicates.ts';
import type { Method } from './enums.ts';
import {
  type AccountPayout,
  insertBankFile,
  insertOutcomes,
  insertPayouts,
  insertSettlements,
  lineKey,
  type NewOutcome,
  type NewSettlement,
  readKnownFile,
  readTwins,
  readWithProcessor,
  type TwinRow,
} from './lines.ts';
import { Book, CONFIDENCE, type Match, match, namePlausible, type Payable } from './match.ts';
import { feesPlausible, leftOn, settle } from './payout.ts';
import {
  type Candidate,
  insertApplications,
  insertPaymentSources,
  insertPayments,
  insertSuggestions,
  type NewPayment,
  type NewPaymentSource,
  type NewReversal,
  type NewSuggestion,
  readCandidates,
  readPayables,
  readPayerAccounts,
  readPayers,
} from './queries.ts';
import { findReferences } from './reference.ts';
import { type Reversed, returnReason, reverseAll, whatIsOwedAgain } from './reverse.ts';
import { settleToldPayouts } from './settle.ts';

/** A line as the report shows it. */
export interface LineReport {
  readonly account: string;
  readonly position: number;
  readonly booked_on: string;
  readonly direction: 'credit' | 'debit';
  readonly amount: string;
  readonly currency: string;
  readonly payer: string | null;
  readonly bank_reference: string | null;
  readonly outcome: 'payment' | 'seen_again' | 'payout' | 'return' | 'ignored';
  readonly payment_id: number | null;
  readonly applied: readonly {
    number: string;
    amount: string;
    small_difference: string | null;
    confidence: string;
    why: string;
  }[];
  readonly suggested: readonly { number: string; amount: string; confidence: string; why: string }[];
  /** Payments that it may be another sighting of. */
  readonly same_as: readonly number[];
  readonly why: string;
  readonly needs_review: boolean;
}

export interface BankImport {
  readonly file: string;
  readonly sha256: string;
  readonly format: ReadBankFile['format'];
  /** When the same file was recorded before; then nothing was done. */
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
  readonly new_lines: readonly LineReport[];
}

export async function importBankFile(tx: Transaction, caller: Caller, file: BankFile): Promise<BankImport> {
  const { format, statements } = readBankFile(file, caller.settings.bank_csv);
  refuseFuture(file, statements, todayOf(caller));
  const sha256 = createHash('sha256').update(file.bytes).digest('hex');
  const total = statements.reduce((sum, statement) => sum + statement.lines.length, 0);
  const head = {
    file: file.name,
    sha256,
    format,
    statements: statements.map((each) => ({
      account: each.account,
      currency: each.currency,
      opening: each.opening?.toString() ?? null,
      closing: each.closing?.toString() ?? null,
      lines: each.lines.length,
      pending: each.pending,
    })),
  };
  failpoint('payments.read');
  await lockPayments(tx);
  failpoint('payments.locked');
  const known = await readKnownFile(tx, sha256);
  if (known !== undefined) {
    const lines = { total, new: 0, known: total };
    return { ...head, already_imported: known.recorded_at, lines, outcomes: count([]), new_lines: [] };
  }
  const context = await openPaymentContext(tx, caller, {
    action: 'payment.import',
    subject: file.name.split(/[/\\]/).at(-1) ?? file.name,
    details: { sha256, format, lines: total },
  });
  // Two statements of one account in one file (two days of a BAI2) count equal lines together.
  const accounts = [...new Set(statements.map((each) => each.account))];
  const identities = new Map<BankLine, string>();
  for (const account of accounts) {
    const lines = statements.filter((each) => each.account === account).flatMap((each) => each.lines);
    for (const [index, identity] of lineIdentities(lines).entries()) identities.set(lines[index] as BankLine, identity);
  }
  const newIds = await insertBankFile(
    context,
    { sha256, name: file.name, format, bytes: file.bytes.length },
    statements.map((statement) => ({
      statement,
      identities: statement.lines.map((line) => identities.get(line) as string),
    })),
  );
  const fresh = statements.flatMap((statement) =>
    statement.lines.flatMap((line): FreshLine[] => {
      const identity = identities.get(line) as string;
      const id = newIds.get(lineKey(statement.account, identity));
      return id === undefined ? [] : [{ id, account: statement.account, identity, line }];
    }),
  );
  const reports = await recordLines(context, caller, fresh);
  failpoint('payments.recorded');
  return {
    ...head,
    already_imported: null,
    lines: { total, new: fresh.length, known: total - fresh.length },
    outcomes: count(reports),
    new_lines: reports,
  };
}

/** Tomorrow may have begun where the bank is. */
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

function count(reports: readonly LineReport[]): BankImport['outcomes'] {
  const outcomes = { payment: 0, seen_again: 0, payout: 0, return: 0, ignored: 0 };
  for (const { outcome } of reports) outcomes[outcome] += 1;
  return outcomes;
}

interface FreshLine {
  readonly id: number;
  readonly account: string;
  readonly identity: string;
  readonly line: BankLine;
}

/** What is decided of a line before anything of it is recorded. */
type Decision =
  | { readonly kind: 'payment'; readonly match: Match; readonly alike: readonly Alike[] }
  /** Link money that the bank told of first: it is with us, and the processor will tell of it under this id. */
  | { readonly kind: 'link_payment'; readonly match: Match; readonly processorId: string }
  | { readonly kind: 'seen_again'; readonly payment: Candidate; readonly by: string }
  | {
      readonly kind: 'payout';
      /** The payment that it names. */
      readonly of: Candidate | undefined;
      /** What it brings of that; undefined: a person settles it, or it names none and is settled with the oldest. */
      readonly gross: Amount | undefined;
      readonly namesNone?: true;
      readonly why: string;
    }
  | { readonly kind: 'ignored'; readonly why: string; readonly needsPerson: boolean };

/** A payment that a line may be another sighting of: one that is recorded, or that of an earlier line of the file. */
interface Alike {
  readonly of: number | FreshLine;
  readonly why: string;
}

async function recordLines(
  context: PaymentContext,
  caller: Caller,
  fresh: readonly FreshLine[],
): Promise<LineReport[]> {
  const credits = fresh.filter(({ line }) => line.direction === 'credit');
  const debits = fresh.filter(({ line }) => line.direction === 'debit');
  const book = await openBook(context.tx, caller, credits);
  const twins = await readTwins(
    context.tx,
    fresh.map((each) => each.id),
  );
  const decided = decideCredits(credits, book, {
    candidates: await candidatesFor(context.tx, credits),
    twins,
    payoutNames: caller.settings.payout_names,
  });
  const reports = new Map<FreshLine, LineReport>();
  await recordCredits(context, decided, reports);
  const told = [...reports].flatMap(([each, { outcome, payment_id }]) =>
    outcome === 'payment' ? [[payment_id as number, each] as const] : [],
  );
  await recordDebits(context, debits, { twins, told: new Map(told) }, reports);
  return fresh.map((each) => reports.get(each) as LineReport);
}

async function openBook(tx: Transaction, caller: Caller, credits: readonly FreshLine[]): Promise<Book> {
  const numbers = credits.flatMap(({ line }) => findReferences(line.references).references.map((each) => each.number));
  const payables = (await readPayables(tx, [...new Set(numbers)])).map(
    (row): Payable => ({
      document_id: row.document_id,
      number: row.number,
      partner_id: row.partner_id,
      currency: row.currency,
      status: row.status,
      balance: Amount.of(row.balance, row.currency),
      due_on: row.due_on ?? '',
      replaced_by: row.replaced_by,
    }),
  );
  return new Book(payables, await readPayers(tx), await readPayerAccounts(tx), caller.settings.small_difference);
}

/** Payments that a line may be another sighting of. */
function candidatesFor(tx: Transaction, lines: readonly FreshLine[]): Promise<Candidate[]> {
  return readCandidates(tx, {
    money: lines.map(({ line }) => ({ currency: line.amount.currency, amount: line.amount.toString() })),
    references: processorIds(lines.flatMap(({ line }) => referencesOf(line))),
  });
}

/** Decides of each credit in its order what it is; what one pays is no longer open for the next. Reads nothing. */
function decideCredits(
  credits: readonly FreshLine[],
  book: Book,
  {
    candidates,
    twins,
    payoutNames,
  }: { candidates: readonly Candidate[]; twins: readonly TwinRow[]; payoutNames: readonly string[] },
): Map<FreshLine, Decision> {
  const free = new Map(
    candidates.filter((each) => !each.seen_by_bank && !each.paid_out).map((each) => [each.payment_id, each]),
  );
  /** Ids of the processor that lines of this file told of first. */
  const told = new Set<string>();
  const decisions = new Map<FreshLine, Decision>();
  for (const each of credits) {
    const decision =
      decideTwin(each, twins, decisions, book) ??
      decideCredit(each.line, book, { candidates, free: [...free.values()], told, payoutNames });
    if (decision.kind === 'seen_again') free.delete(decision.payment.payment_id);
    if (decision.kind === 'payout' && decision.gross !== undefined) free.delete(decision.of?.payment_id as number);
    if (decision.kind === 'link_payment') told.add(decision.processorId);
    if ('match' in decision) book.apply(decision.match.applied);
    decisions.set(each, decision);
  }
  return decisions;
}

/** What an earlier line of another account tells of a line that is equal to it; undefined where there is none. */
function decideTwin(
  { id, line }: FreshLine,
  twins: readonly TwinRow[],
  decisions: ReadonlyMap<FreshLine, Decision>,
  book: Book,
): Decision | undefined {
  const alike: Alike[] = [];
  for (const twin of twins.filter((each) => each.bank_line_id === id)) {
    const [earlier, decision] = [...decisions].find(([each]) => each.id === twin.twin_id) ?? [];
    const why = `a line of account ${twin.account} has the same reference, day and amount`;
    if (twin.outcome === 'payout' || decision?.kind === 'payout' || decision?.kind === 'link_payment') {
      return { kind: 'ignored', why: `perhaps the same payout: ${why}, so nothing is posted`, needsPerson: true };
    }
    if (twin.payment_id !== null) alike.push({ of: twin.payment_id, why });
    else if (decision?.kind === 'seen_again') alike.push({ of: decision.payment.payment_id, why });
    else if (decision?.kind === 'payment') alike.push({ of: earlier as FreshLine, why });
  }
  return alike.length === 0 ? undefined : { kind: 'payment', match: heldBack(matched(line, book), alike), alike };
}

/** Nothing is applied of what may be money that is known already; what it would have paid is suggested. */
function heldBack(found: Match, alike: readonly Alike[]): Match {
  if (alike.length === 0) return found;
  const why = alike.map((each) => `perhaps ${paymentOf(each)}: ${each.why}`).join('; ');
  const rest = found.applied.length > 0 ? 'nothing is applied' : found.why;
  return { ...found, applied: [], suggested: [...found.applied, ...found.suggested], why: `${why}; ${rest}` };
}

const paymentOf = ({ of }: Alike): string =>
  typeof of === 'number' ? `payment ${of}` : `the payment of line ${of.line.position}`;

const matched = ({ amount, references, payer_name, payer_account, text }: BankLine, book: Book): Match =>
  match({ amount, references, payer_name, payer_account, text }, book);

/**
 * Whether a line certainly names a document or payer of another partner than a payment is of: then it is another payment,
 * whatever else they share. By name only where neither document nor account tells whose the line is.
 */
function namesAnother(line: BankLine, { partner_id }: Candidate, book: Book): boolean {
  if (partner_id === null) return false;
  const certain = [
    ...certainDocuments(line, book).map((each) => each.partner_id),
    book.partnerOfAccount(line.payer_account),
  ];
  const told = certain.filter((each) => each !== undefined);
  if (told.length > 0) return told.some((each) => each !== partner_id);
  const named = book.namedIn(`${line.payer_name ?? ''} ${line.text}`);
  return named.length > 0 && !named.includes(partner_id);
}

const certainDocuments = (line: BankLine, book: Book): Payable[] =>
  findReferences(line.references).references.flatMap(
    (each) => (each.guess === undefined ? book.numbered(each.number) : undefined) ?? [],
  );

/** Payments of a line's amount that no line of the bank has shown, and that it may be: a person judges. */
function likenesses(line: BankLine, book: Book, equal: readonly Candidate[]): Alike[] {
  const named = certainDocuments(line, book).map((each) => each.number);
  return equal.flatMap((candidate): Alike[] => {
    // A link's money comes with a payout, never from the payer.
    if (candidate.method === 'link' || daysBetween(line.booked_on, candidate.received_on) > DAYS) return [];
    const of = candidate.payment_id;
    const by = sharedReference(line, candidate);
    if (by !== undefined) return [{ of, why: `both have ${by}, but the line names another partner` }];
    const another =
      namesAnother(line, candidate, book) ||
      (named.length > 0 && candidate.documents.length > 0 && !candidate.documents.some((each) => named.includes(each)));
    const why = `of ${candidate.received_on}, of the same amount, which no line of the bank has shown`;
    return another ? [] : [{ of, why }];
  });
}

const whollyTakenBack = (payment: Candidate): boolean =>
  money(payment.reversed, payment).equals(money(payment.amount, payment));

const WHO_SETTLES = "'reckoner payment settle' says which payments it brings";

/** A payout that names a payment brings what was left of it that day, less a fee that a processor may keep. */
function payoutOf(payment: Candidate, line: BankLine, why: string): Decision {
  const left = leftOn(payment, line.booked_on);
  if (feesPlausible(left.minus(line.amount), left, 1)) return { kind: 'payout', of: payment, gross: left, why };
  const unsettled = `names payment ${payment.payment_id}, of which ${left.forPeople()} was left on ${line.booked_on}: ${WHO_SETTLES}`;
  return { kind: 'payout', of: payment, gross: undefined, why: unsettled };
}

function decideCredit(
  line: BankLine,
  book: Book,
  {
    candidates,
    free,
    told,
    payoutNames,
  }: {
    /** All that are of its amount or have an id that it names; free are those that no line has shown. */
    candidates: readonly Candidate[];
    free: readonly Candidate[];
    told: ReadonlySet<string>;
    payoutNames: readonly string[];
  },
): Decision {
  if (line.reversal) {
    return { kind: 'ignored', why: 'takes back an earlier debit: no payment', needsPerson: false };
  }
  const ids = processorIds(referencesOf(line));
  const named = (each: Candidate) =>
    each.currency === line.amount.currency && ids.some((id) => each.references.includes(id));
  const byId = free.find((each) => each.method === 'link' && named(each));
  if (byId !== undefined) return payoutOf(byId, line, `brings payment ${byId.payment_id} from the processor`);
  // Wholly taken back, nothing of it can be seen again.
  const equal = free.filter(
    (each) =>
      each.currency === line.amount.currency &&
      !whollyTakenBack(each) &&
      (each.method === 'link' ? leftOn(each, line.booked_on) : money(each.amount, each)).equals(line.amount),
  );
  for (const candidate of equal) {
    const by = sharedReference(line, candidate);
    if (by === undefined || namesAnother(line, candidate, book)) continue;
    if (candidate.method !== 'link') return { kind: 'seen_again', payment: candidate, by };
    return payoutOf(candidate, line, `brings payment ${candidate.payment_id} from the processor: both have ${by}`);
  }
  // What the processor's id stands for is no new payment, whatever else does not fit.
  const known = candidates.find((each) => named(each) && (each.method === 'link' || !whollyTakenBack(each)));
  if (known !== undefined || ids.some((id) => told.has(id))) {
    const what = known === undefined ? 'a payment of an earlier line' : `payment ${known.payment_id}`;
    const why = `names ${what}, which is no link payment that waits for its payout: ${WHO_SETTLES}`;
    return { kind: 'payout', of: known, gross: undefined, why };
  }
  const processor = payoutNames.find((name) => namePlausible(name, `${line.payer_name ?? ''} ${line.text}`));
  if (processor !== undefined && ids.length === 0 && book.partnerOfAccount(line.payer_account) === undefined) {
    const why = `a payout of the processor: it names ${processor}`;
    return { kind: 'payout', of: undefined, gross: undefined, namesNone: true, why };
  }
  const [processorId] = ids;
  if (processorId !== undefined) return { kind: 'link_payment', match: matched(line, book), processorId };
  const alike = likenesses(line, book, equal);
  return { kind: 'payment', match: heldBack(matched(line, book), alike), alike };
}

// --- Recording --------------------------------------------------------------------------------------------------------

export const bankIdentity = (account: string, identity: string): string => `bank|${account}|${identity}`;
export const processorIdentity = (account: string, id: string): string => `processor|${account}|${id}`;

async function recordCredits(
  context: PaymentContext,
  decisions: ReadonlyMap<FreshLine, Decision>,
  reports: Map<FreshLine, LineReport>,
): Promise<void> {
  const received = [...decisions].flatMap(([each, decision]) => ('match' in decision ? [{ each, decision }] : []));
  const ids = await insertPayments(
    context,
    received.map(({ each, decision }) => newPayment(each, decision)),
  );
  const idOf = ({ each, decision }: (typeof received)[number]): number =>
    ids.get(newPayment(each, decision).identity) as number;

  const alikeOf = (decision: Decision): readonly Alike[] => (decision.kind === 'payment' ? decision.alike : []);
  const paymentIdOf = (of: Alike['of']): number =>
    typeof of === 'number' ? of : (ids.get(bankIdentity(of.account, of.identity)) as number);

  const sightings: NewPaymentSource[] = [];
  const outcomes: NewOutcome[] = [];
  for (const found of received) {
    const { each, decision } = found;
    const paymentId = idOf(found);
    sightings.push(bankSighting(each, paymentId));
    if (decision.kind === 'link_payment') {
      sightings.push({
        identity: processorIdentity('', decision.processorId),
        payment_id: paymentId,
        source: 'processor',
        reference: decision.processorId,
        bank_line_id: null,
      });
    } else outcomes.push(outcome(each, 'payment', decision.match.why, { payment_id: paymentId }));
    const sameAs = alikeOf(decision).map(({ of }) => paymentIdOf(of));
    reports.set(each, { ...paymentReport(each, paymentId, decision.match), same_as: sameAs });
  }
  for (const [each, decision] of decisions) {
    if (decision.kind === 'seen_again') {
      const paymentId = decision.payment.payment_id;
      const why = `payment ${paymentId} is known already: both have ${decision.by}`;
      sightings.push(bankSighting(each, paymentId));
      outcomes.push(outcome(each, 'payment', why, { payment_id: paymentId }));
      reports.set(each, { ...plainReport(each, 'seen_again', why), payment_id: paymentId });
    }
    if (decision.kind === 'ignored') {
      outcomes.push(outcome(each, 'ignored', decision.why, { needs_review: decision.needsPerson }));
      reports.set(each, { ...plainReport(each, 'ignored', decision.why), needs_review: decision.needsPerson });
    }
  }
  await insertPaymentSources(context, sightings);
  await insertApplications(
    context,
    received.flatMap((found) =>
      found.decision.match.applied.map((applied) => ({
        payment_id: idOf(found),
        document_id: applied.document.document_id,
        amount: applied.amount.toString(),
        applied_on: found.each.line.booked_on,
        confidence: applied.confidence,
        evidence: applied.evidence,
        small_difference: applied.small_difference?.toString() ?? null,
      })),
    ),
  );
  await insertSuggestions(
    context,
    received.flatMap((found): NewSuggestion[] => [
      ...alikeOf(found.decision).map(({ of, why }) => ({
        payment_id: idOf(found),
        document_id: null,
        same_as: paymentIdOf(of),
        amount: found.each.line.amount.toString(),
        confidence: CONFIDENCE.same_payment,
        evidence: { why },
      })),
      ...found.decision.match.suggested.map((suggested) => ({
        payment_id: idOf(found),
        document_id: suggested.document.document_id,
        same_as: null,
        amount: suggested.amount.toString(),
        confidence: suggested.confidence,
        evidence: suggested.evidence,
      })),
    ]),
  );
  await recordPayouts(
    context,
    decisions,
    (each) => ids.get(bankIdentity(each.account, each.identity)),
    outcomes,
    reports,
  );
  await insertOutcomes(context, outcomes);
  await enqueueDeliveries(
    context,
    received.flatMap(({ decision }) => decision.match.applied.map((each) => each.document.document_id)),
  );
}

function newPayment(each: FreshLine, decision: Extract<Decision, { match: Match }>): NewPayment {
  const { line, account, identity } = each;
  const link = decision.kind === 'link_payment';
  return {
    identity: bankIdentity(account, identity),
    source: 'bank',
    partner_id: decision.match.partner_id ?? null,
    currency: line.amount.currency,
    amount: line.amount.toString(),
    method: link ? 'link' : methodOf(line),
    account,
    received_on: line.booked_on,
    reference: link
      ? decision.processorId
      : (line.bank_reference ?? line.references[0]?.text.slice(0, 140) ?? `line ${each.id}`),
    payer_name: line.payer_name ?? null,
    payer_account: line.payer_account ?? null,
  };
}

/** By the format's code: BAI2 142/165/169 ACH, 195/208 wires; ISO 20022 by instruments. */
function methodOf({ type, text }: BankLine): Method {
  const written = `${type} ${text}`.toUpperCase();
  if (/^(142|143|164|165|166|168|169)\b/.test(type) || /\bACH\b/.test(written)) return 'ach';
  if (/^(191|195|196|206|208|212|213)\b/.test(type) || /\bWIRE\b|FEDWIRE|RCDT|SWIFT/.test(written)) return 'wire';
  return 'other';
}

const bankSighting = (each: FreshLine, paymentId: number): NewPaymentSource => ({
  identity: bankIdentity(each.account, each.identity),
  payment_id: paymentId,
  source: 'bank',
  reference: each.line.bank_reference ?? each.line.references[0]?.text.slice(0, 140) ?? `line ${each.id}`,
  bank_line_id: each.id,
});

function outcome(
  each: FreshLine,
  kind: NewOutcome['outcome'],
  reason: string,
  named: Partial<Pick<NewOutcome, 'payment_id' | 'payout_id' | 'payment_reversal_id' | 'needs_review'>>,
): NewOutcome {
  return {
    bank_line_id: each.id,
    outcome: kind,
    payment_id: null,
    payout_id: null,
    payment_reversal_id: null,
    needs_review: false,
    reason,
    ...named,
  };
}

async function recordPayouts(
  context: PaymentContext,
  decisions: ReadonlyMap<FreshLine, Decision>,
  paymentOf: (each: FreshLine) => number | undefined,
  outcomes: NewOutcome[],
  reports: Map<FreshLine, LineReport>,
): Promise<void> {
  const found = [...decisions].flatMap(([each, decision]) =>
    decision.kind === 'payout' || decision.kind === 'link_payment' ? [{ each, decision }] : [],
  );
  const payoutIds = await insertPayouts(
    context,
    found.map(({ each }) => each.id),
  );
  const settlements: NewSettlement[] = [];
  const open = new Map<FreshLine, number>();
  for (const { each, decision } of found) {
    const payoutId = payoutIds.get(each.id) as number;
    const { amount } = each.line;
    const gross = decision.kind === 'link_payment' ? amount : decision.gross;
    const paymentId = decision.kind === 'link_payment' ? paymentOf(each) : decision.of?.payment_id;
    const why =
      decision.kind === 'payout' ? decision.why : `brings one payment of the processor, ${decision.processorId}`;
    if (gross !== undefined) {
      settlements.push({
        payout_id: payoutId,
        gross: gross.toString(),
        fees: gross.minus(amount).toString(),
        why,
        payments: [{ payment_id: paymentId as number, amount: gross.toString() }],
      });
    }
    if (decision.kind === 'payout') {
      if (decision.namesNone) open.set(each, payoutId);
      const report = plainReport(each, 'payout', why);
      reports.set(each, { ...report, payment_id: paymentId ?? null, needs_review: gross === undefined });
    }
    outcomes.push(outcome(each, 'payout', why, { payout_id: payoutId }));
  }
  await insertSettlements(context, settlements);
  const told = open.size > 0 ? await settleToldPayouts(context) : [];
  for (const [each, payoutId] of open) {
    const ofAccounts = told.filter((one) => one.payout_id === payoutId);
    const why = ofAccounts.length > 0 ? settledAs(ofAccounts) : await settleWithOldest(context, payoutId, each.line);
    const report = reports.get(each) as LineReport;
    reports.set(each, { ...report, why: `${report.why}; ${why.text}`, needs_review: !why.settled });
  }
}

/** What may be a payout of a connected account is no money of payment links, even where a person has to say which. */
function settledAs(payouts: readonly AccountPayout[]): { settled: boolean; text: string } {
  const names = payouts.map(({ payout, account }) => `${payout ?? 'a payout'} of ${account}`).join(' or ');
  return payouts.some(({ certain }) => certain)
    ? { settled: true, text: `it is ${names}` }
    : { settled: false, text: `perhaps it is ${names}: ${WHO_SETTLES}, by --account` };
}

/** A payout that names no payment is settled with the oldest that it can be; each takes them from the next. */
async function settleWithOldest(
  context: PaymentContext,
  payoutId: number,
  line: BankLine,
): Promise<{ settled: boolean; text: string }> {
  const waiting = await readWithProcessor(context.tx, line.amount.currency, line.booked_on);
  const found = settle(line.amount, waiting);
  if (found === undefined) {
    return { settled: false, text: `which payments it brings can't be told: ${WHO_SETTLES}` };
  }
  const text = `the oldest ${found.payments.length} link payment(s), less ${found.fees.forPeople()} of fees`;
  await insertSettlements(context, [
    {
      payout_id: payoutId,
      gross: found.gross.toString(),
      fees: found.fees.toString(),
      why: text,
      payments: found.payments.map((each) => ({ payment_id: each.payment_id, amount: each.amount.toString() })),
    },
  ]);
  return { settled: true, text };
}

// --- Debits -----------------------------------------------------------------------------------------------------------

/** A return may come so many days after its payment: 60 for an unauthorised debit, and the bank's own time. */
const RETURNED_WITHIN_DAYS = 90;

async function recordDebits(
  context: PaymentContext,
  debits: readonly FreshLine[],
  /** `told`: the payments that lines of the same file told of first. */
  { twins, told }: { twins: readonly TwinRow[]; told: ReadonlyMap<number, FreshLine> },
  reports: Map<FreshLine, LineReport>,
): Promise<void> {
  const candidates = await candidatesFor(
    context.tx,
    debits.filter(({ line }) => line.reversal || line.return_code),
  );
  const free = new Map(candidates.map((each) => [each.payment_id, each]));
  const reversals: { each: FreshLine; reversal: NewReversal }[] = [];
  const outcomes: NewOutcome[] = [];
  for (const each of debits) {
    const { line } = each;
    if (!line.reversal && line.return_code === undefined) {
      const why = 'money out: no payment of a partner';
      outcomes.push(outcome(each, 'ignored', why, {}));
      reports.set(each, plainReport(each, 'ignored', why));
      continue;
    }
    const taken = reversals.map(({ each: { id } }) => id);
    const twin = twins.find(
      (one) => one.bank_line_id === each.id && (one.outcome === 'return' || taken.includes(one.twin_id)),
    );
    if (twin !== undefined) {
      const why = `perhaps the same return: a line of account ${twin.account} has the same reference, day and amount, so nothing is taken back`;
      outcomes.push(outcome(each, 'ignored', why, { needs_review: true }));
      reports.set(each, { ...plainReport(each, 'ignored', why), needs_review: true });
      continue;
    }
    const returned = returnedPayment(line, [...free.values()]);
    if (returned === undefined) {
      const why = `looks like a return (${returnReason(line.return_code)}), but of which payment can't be told: 'reckoner payment reverse' takes it back`;
      outcomes.push(outcome(each, 'ignored', why, { needs_review: true }));
      reports.set(each, { ...plainReport(each, 'ignored', why), needs_review: true });
      continue;
    }
    free.delete(returned.payment_id);
    reversals.push({
      each,
      reversal: {
        identity: bankIdentity(each.account, each.identity),
        payment_id: returned.payment_id,
        amount: line.amount.toString(),
        kind: 'returned',
        code: line.return_code ?? null,
        reason: `returned by the bank: ${returnReason(line.return_code)}`,
        bank_line_id: each.id,
        duplicate_of: null,
        reversed_on: line.booked_on,
      },
    });
  }
  const done = await reverseAll(
    context,
    reversals.map(({ reversal }) => reversal),
  );
  for (const { each, reversal } of reversals) {
    const { payment_reversal_id, reopened } = done.get(reversal.identity) as Reversed;
    // The number of a payment of the same file is only known when it is recorded: a preview would tell another.
    const own = told.get(reversal.payment_id);
    const payment = own === undefined ? `payment ${reversal.payment_id}` : `the payment of line ${own.line.position}`;
    const why = `${payment} is ${reversal.reason}; ${whatIsOwedAgain(reopened)}`;
    outcomes.push(outcome(each, 'return', why, { payment_reversal_id }));
    // An invoice that was paid is open again: finance should know.
    reports.set(each, { ...plainReport(each, 'return', why), payment_id: reversal.payment_id, needs_review: true });
  }
  await insertOutcomes(context, outcomes);
}

/** The one payment that a return can be of: its amount, and a reference of it or a document that it pays. */
function returnedPayment(line: BankLine, candidates: readonly Candidate[]): Candidate | undefined {
  const texts = referencesOf(line);
  const numbers = findReferences(line.references)
    .references.filter((each) => each.guess === undefined)
    .map((each) => each.number);
  const found = candidates.filter(
    (each) =>
      each.currency === line.amount.currency &&
      Amount.of(each.amount, each.currency).equals(line.amount) &&
      Number(each.reversed) === 0 &&
      each.received_on <= line.booked_on &&
      daysBetween(each.received_on, line.booked_on) <= RETURNED_WITHIN_DAYS &&
      (each.documents.some((number) => numbers.includes(number)) ||
        each.references.some((known) => sameReference(known, texts))),
  );
  return found.length === 1 ? found[0] : undefined;
}

// --- The report -------------------------------------------------------------------------------------------------------

function plainReport({ line, account }: FreshLine, kind: LineReport['outcome'], why: string): LineReport {
  return {
    account,
    position: line.position,
    booked_on: line.booked_on,
    direction: line.direction,
    amount: line.amount.toString(),
    currency: line.amount.currency,
    payer: line.payer_name ?? null,
    bank_reference: line.bank_reference ?? null,
    outcome: kind,
    payment_id: null,
    applied: [],
    suggested: [],
    same_as: [],
    why,
    needs_review: false,
  };
}

function paymentReport(each: FreshLine, paymentId: number, found: Match): LineReport {
  const applied = found.applied.reduce((sum, one) => sum.plus(one.amount), Amount.zero(each.line.amount.currency));
  return {
    ...plainReport(each, 'payment', found.why),
    payment_id: paymentId,
    applied: found.applied.map((one) => ({
      number: one.document.number,
      amount: one.amount.toString(),
      small_difference: one.small_difference?.toString() ?? null,
      confidence: one.confidence,
      why: one.evidence.why,
    })),
    suggested: found.suggested.map((one) => ({
      number: one.document.number,
      amount: one.amount.toString(),
      confidence: one.confidence,
      why: one.evidence.why,
    })),
    // Whatever stays unapplied waits for a person.
    needs_review: !applied.equals(each.line.amount),
  };
}
