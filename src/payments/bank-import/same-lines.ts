/**
 * Finds lines of a file that a file in another format has already reported, so that a day in two formats is
 * recorded once. Two lines of one account with the same day, direction and amount are the same line
 *
 * 1. if they share a reference or id;
 * 2. else if they share the counterparty's account, its name, or a number in their texts, and do not name different
 *    documents;
 * 3. else if both files tell the whole day: the sums of all credits and of all debits of the day are equal, and the
 *    files state the same closing balance or have another line of the day in common. Then a batch and its parts are the
 *    same money too.
 *
 * Each recorded line is found at most once. Lines that are found in none of these ways are new lines, and duplicate
 * detection holds those with an equal amount.
 */
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import {
  BankLine,
  BankLines,
  BankStatement,
  identifiers,
  lineIdentities,
  normalizeReference,
} from '#payments/bank/statement';
import { findReferences } from '#payments/reference';
import {
  RecordedLine,
  readAccounts,
  readAccountsInOtherFormats,
  readClosings,
  readRecordedLines,
} from './recorded-lines.sql.ts';

export type Statement = BankStatement<BankLines>;

/** A line of a file with its statement, and its number among the lines of all statements. */
type NumberedLine = Readonly<{ line: BankLine; statement: Statement; number: number }>;

export function* numberedLines(statements: readonly Statement[]): Generator<NumberedLine> {
  let number = 0;
  for (const statement of statements) {
    for (const line of statement.lines) {
      yield { line, statement, number };
      number += 1;
    }
  }
}

/** Gives an account the name under which it is recorded: a bank writes its IBAN in one format and not in another. */
export async function withRecordedAccounts(tx: Transaction, statements: readonly Statement[]) {
  const recorded = (await readAccounts(tx)).map(({ account }) => account);
  const known = new Set(recorded);
  const byNumber = new Map(recorded.flatMap((account) => numbersOf(account).map((number) => [number, account])));
  return statements.map((statement) => {
    if (known.has(statement.account)) return statement;
    const [account] = numbersOf(statement.account).flatMap((number) => byNumber.get(number) ?? []);
    return account === undefined ? statement : { ...statement, account };
  });
}

/** A shorter number lacks the bank, so that two banks may have it. */
const FULL_NUMBER = 12;

/** The numbers that name an account. One is enough: with the bank, and without the zeros before it. */
function numbersOf(account: string) {
  const number = nationalNumber(account);
  const [, withoutZeros] = /^0*([1-9]\d{5,})$/.exec(account) ?? [];
  return [
    ...(number.length < FULL_NUMBER ? [] : [number]),
    ...(withoutZeros === undefined ? [] : [`0${withoutZeros}`]),
  ];
}

/** The bank and the account number as an IBAN has them, without the letters of a bank in the United Kingdom and Ireland. */
const nationalNumber = (account: string) =>
  account
    // The bank's BIC.
    .replace(/^[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?\//, '')
    // The bank code and the account number in Germany.
    .replace(/^(\d{8})\/(\d{1,10})$/, (_, bank: string, number: string) => bank + number.padStart(10, '0'))
    .replace(/[^A-Z0-9]/g, '')
    .replace(/^[A-Z]{2}\d{2}(?=[A-Z0-9]{11,30}$)/, '')
    .replace(/^[A-Z]{4}(?=\d{14}$)/, '');

/** Lines are named by their numbers (numberedLines). */
export type SameLines = Readonly<{
  /** The identity under which each line is recorded, or will be recorded. */
  identities: readonly string[];
  recorded: ReadonlyMap<number, RecordedLine>;
  /** Lines whose money is recorded in other portions, with the recorded lines that stand for them. */
  replaced: readonly Replacement[];
}>;

type Replacement = Readonly<{ lines: readonly number[]; by: readonly RecordedLine[] }>;

export async function findSameLines(
  tx: Transaction,
  format: string,
  statements: readonly Statement[],
): Promise<SameLines> {
  // Equal lines without a bank reference are counted per account over the whole file, because a BAI2 file may have
  // several days of one account.
  const identities = lineIdentities(statements);
  const recorded = new Map<number, RecordedLine>();
  const replaced: Replacement[] = [];
  const named = [...new Set(statements.map((each) => each.account))];
  const accounts = (await readAccountsInOtherFormats(tx, { accounts: named, format })).map(({ account }) => account);
  if (accounts.length === 0) return { identities, recorded, replaced };
  const days = daysOf(statements.filter(({ account }) => accounts.includes(account)));
  const known = groupBy(await readRecordedLines(tx, { accounts, days, format }), dayOf);
  const closings = new Set((await readClosings(tx, { accounts, format })).map(closingOf));
  const isClosing = once((statement: Statement) => statesClosing(statement, closings));
  // Only lines of days that a file of another format has can be found.
  const byDay = new Map<string, NumberedLine[]>();
  for (const each of numberedLines(statements)) {
    const { account } = each.statement;
    const day = dayOf({ account, currency: each.line.amount.currency, booked_on: each.line.booked_on });
    if (!known.has(day)) continue;
    const those = byDay.get(day);
    if (those === undefined) byDay.set(day, [each]);
    else those.push(each);
  }
  for (const [day, those] of byDay) {
    // Lines with one identity are one line of two statements.
    const equal = groupBy(those, ({ number }) => identities[number] as string);
    const firsts = new Map([...equal.values()].map((each) => [each[0]?.line as BankLine, each]));
    const own = new Map(those.map(({ line, number }) => [line, identities[number] as string]));
    const pairs = new Pairs([...firsts.keys()], known.get(day) ?? [], own);
    const whole: Replaced[] = [];
    const isClosed = those.every(({ statement }) => isClosing(statement));
    if (isClosed || pairs.found.size > 0) pairs.matchWholeDay(whole);
    const numbersOf = (first: BankLine) => (firsts.get(first) ?? []).map(({ number }) => number);
    for (const { lines, by } of whole) replaced.push({ lines: lines.flatMap(numbersOf), by });
    for (const [first, found] of pairs.found) {
      for (const number of numbersOf(first)) {
        recorded.set(number, found);
        identities[number] = found.identity;
      }
    }
  }
  return { identities, recorded, replaced };
}

export function daysOf(statements: readonly Statement[]) {
  const days = new Set<string>();
  for (const { line } of numberedLines(statements)) days.add(line.booked_on);
  return [...days];
}

const dayOf = ({ account, currency, booked_on }: Pick<RecordedLine, 'account' | 'currency' | 'booked_on'>) =>
  `${account} ${currency} ${booked_on}`;

const closingOf = ({
  account,
  currency,
  closed_on,
  closing,
}: Record<'account' | 'currency' | 'closed_on' | 'closing', string>) =>
  `${account} ${currency} ${closed_on} ${closing}`;

function statesClosing({ account, currency, closing, closed_on, lines }: Statement, closings: ReadonlySet<string>) {
  if (closing === undefined) return false;
  let last = closed_on ?? '';
  if (closed_on === undefined) for (const { booked_on } of lines) if (booked_on > last) last = booked_on;
  return closings.has(closingOf({ account, currency, closed_on: last, closing: closing.toString() }));
}

export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string) {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

type Replaced = Readonly<{ lines: readonly BankLine[]; by: readonly RecordedLine[] }>;

/** The pairs of the lines of one day of an account with the recorded lines of that day. */
class Pairs {
  readonly found = new Map<BankLine, RecordedLine>();
  private readonly lines: readonly BankLine[];
  private readonly known: readonly RecordedLine[];
  private readonly taken = new Set<RecordedLine>();

  constructor(lines: readonly BankLine[], known: readonly RecordedLine[], identities: ReadonlyMap<BankLine, string>) {
    [this.lines, this.known] = [lines, known];
    const equal = new Map(known.map((each) => [each.identity, each]));
    for (const line of lines) {
      const same = equal.get(identities.get(line) as string);
      if (same !== undefined) this.take(line, same);
    }
    const ids = once((line: BankLine | RecordedLine) => new Set(identifiers(line).map(normalizeReference)));
    this.match((line, each) => haveCommon(ids(line), ids(each)));
    const parties = once(partyOf);
    const documents = once(documentsOf);
    const disagree = (one: ReadonlySet<string>, other: ReadonlySet<string>) =>
      one.size > 0 && other.size > 0 && !haveCommon(one, other);
    this.match((line, each) => haveCommon(parties(line), parties(each)) && !disagree(documents(line), documents(each)));
  }

  private take(line: BankLine, known: RecordedLine) {
    this.found.set(line, known);
    this.taken.add(known);
  }

  private left() {
    return {
      lines: this.lines.filter((line) => !this.found.has(line)),
      known: this.known.filter((each) => !this.taken.has(each)),
    };
  }

  private match(isSame: (line: BankLine, known: RecordedLine) => boolean) {
    const { lines, known } = this.left();
    const byMoney = groupBy(known, moneyOf);
    for (const line of lines) {
      const same = byMoney.get(moneyOf(line))?.find((each) => !this.taken.has(each) && isSame(line, each));
      if (same !== undefined) this.take(line, same);
    }
  }

  /** Both files tell the whole day if its sums are equal. */
  matchWholeDay(replaced: Replaced[]) {
    for (const direction of ['credit', 'debit'] as const) {
      if (sumOf(this.lines, direction) !== sumOf(this.known, direction)) return;
    }
    this.match(() => true);
    const { lines, known } = this.left();
    if (lines.length > 0 && known.length > 0) replaced.push({ lines, by: known });
  }
}

type SomeLine = BankLine | RecordedLine;

export const moneyOf = ({ direction, amount }: SomeLine) => `${direction} ${amount.toString()}`;

const sumOf = (lines: readonly SomeLine[], direction: SomeLine['direction']) =>
  lines
    .filter((each) => each.direction === direction)
    .map((each) =>
      typeof each.amount === 'string' ? Amount.of(each.amount, (each as RecordedLine).currency) : each.amount,
    )
    .reduce<Amount | undefined>((sum, each) => sum?.plus(each) ?? each, undefined)
    ?.toString();

/** Words with at least three digits, such as document numbers, and the counterparty's name and account. */
function partyOf({ text, payer_name, payer_account, references }: SomeLine) {
  const words = [text, ...references.map((each) => each.text ?? '')].flatMap((each) => each.split(/[\s,;:]+/));
  const numbers = words.map(normalizeReference).filter((word) => word.length >= 6 && /(?:\d\D*){3}/.test(word));
  const names = [payer_name, payer_account]
    .map((each) => normalizeReference(each ?? ''))
    .filter((each) => each.length >= 4);
  return new Set([...numbers, ...names]);
}

const documentsOf = ({ references }: SomeLine) => {
  const fields = references.flatMap(({ field = '', text }) => (text === undefined ? [] : [{ field, text }]));
  return new Set(findReferences(fields).references.flatMap((each) => (each.guess === undefined ? [each.number] : [])));
};

const haveCommon = (one: ReadonlySet<string>, other: ReadonlySet<string>) => [...one].some((each) => other.has(each));

/** Computes the result for each object once. */
export function once<Of extends object, Result>(compute: (of: Of) => Result) {
  const known = new WeakMap<Of, Result>();
  return (of: Of) => {
    const result = known.get(of) ?? compute(of);
    known.set(of, result);
    return result;
  };
}
