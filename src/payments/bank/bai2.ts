/**
 * BAI2 (Cash Management Balance Reporting Specifications, version 2): records 01 file, 02 group, 03 account, 16
 * transaction, 88 continuation, 49/98/99 trailers. Checks the control totals and counts of all trailers, and the
 * balances and summaries of each account.
 */
import { FieldProblem } from '#errors/refusals';
import { Amount, isCurrency } from '#money';
import { PROBLEMS_TOLD } from '#reading/limits';
import {
  fundsFields,
  headLength,
  isDistribution,
  LogicalRecord,
  logicalRecords,
  physicalRecords,
  UNITS,
} from './bai2-records.ts';
import { BankFile, BankFormat } from './format.ts';
import { labelled, PAYER_ACCOUNT, PAYER_NAME } from './payer-labels.ts';
import {
  BankLine,
  BankPart,
  BankStatement,
  balanceRemarks,
  compact,
  invalidFile,
  meaningful,
  methodOf,
  references,
  returnCodeIn,
  shortDay,
  Totals,
} from './statement.ts';

export const bai2: BankFormat = {
  name: 'bai2',
  title: 'BAI2',
  matches: ({ head }) => /^01,/.test(head) && /(?:^|\/[ \t]*)02,/m.test(head),
  read: (file) => new Bai2Reader(file).read(),
};

type Transaction = Readonly<{
  record: LogicalRecord;
  type: string;
  units: bigint;
  valueOn: string | undefined;
  bankReference: string;
  customerReference: string;
}>;

/** An account with what its transactions moved so far. */
interface Account {
  readonly number: string;
  readonly currency: string;
  readonly summaries: Map<string, bigint>;
  readonly moved: { credit: bigint; debit: bigint };
  isEmpty: boolean;
  /** The texts of the bank that are not transactions. */
  readonly notes: string[];
  /** By type: the transactions that are neither credits nor debits. */
  readonly others: Map<string, { count: number; sum: bigint; line: number }>;
  /** Whether the trailer states the control total. */
  hasTotal?: boolean;
}

type Group = Readonly<{
  status: string;
  line: number;
  asOf: string;
  currency: string;
  isInterim: boolean;
}>;

type LevelName = 'file' | 'group' | 'account';

/** An open level of the file, with the figures to check against its trailer. */
interface Level {
  readonly name: LevelName;
  sum: bigint;
  /** The number of physical records, including header and trailer. */
  records: number;
  parts: number;
  readonly group?: Group;
  readonly account?: Account;
}

const LEVELS: readonly LevelName[] = ['file', 'group', 'account'];
const HEADER = { file: '01', group: '02', account: '03' } as const;
const TRAILER = { file: '99', group: '98', account: '49' } as const;
const UPDATE = '1';
const CORRECTION = '3';
/** The as-of-date modifiers of the previous day and of the same day, before the final report. */
const INTERIM = ['1', '3'];
/** What happens to the accounts of a group that is not an update. */
const STATUSES: Readonly<Record<string, string>> = {
  '2': 'deletes data that the bank sent earlier: its lines were not recorded. Reverse the payments that it deletes',
  [CORRECTION]:
    'corrects data that the bank sent earlier: its new payments are not applied. Compare them with that data',
  '4': 'is a test: its lines were not recorded',
};

class Bai2Reader {
  private readonly file: BankFile;
  private readonly problems: FieldProblem[] = [];
  private readonly totals = new Totals();
  private readonly statements: Omit<BankStatement, 'lines'>[] = [];
  private readonly open: Level[] = [{ name: 'file', sum: 0n, records: 0, parts: 0 }];
  private readonly handlers: Readonly<Record<string, (record: LogicalRecord) => void>> = {
    '01': (record) => this.checkHeader(record),
    '02': (record) => this.openGroup(record),
    '03': (record) => this.openAccount(record),
    '49': (record) => this.closeAccount(record),
    '98': (record) => this.close('group', record),
    '99': (record) => this.close('file', record),
  };

  constructor(file: BankFile) {
    this.file = file;
  }

  *read(): Generator<BankPart> {
    const { name } = this.file;
    let first: string | undefined;
    for (const [record, at] of logicalRecords(physicalRecords(this.file), (line, reason) =>
      this.complain(line, reason),
    )) {
      first ??= record.code;
      const level = this.open.at(-1);
      if (level === undefined) this.complain(record.line, 'is after the file trailer (99)');
      else {
        level.records += record.count;
        this.handlers[record.code]?.(record);
        const line = record.code === '16' ? this.addTransaction(record) : undefined;
        if (line !== undefined) yield { of: this.statements.length, at, line };
      }
      if (this.problems.length >= PROBLEMS_TOLD) break;
    }
    if (first !== '01') this.problems.unshift({ path: 'line 1', reason: 'is not a file header (01)' });
    if (this.open.length > 0)
      this.problems.push({ path: 'end', reason: 'has no file trailer (99): the file is cut off' });
    if (this.problems.length > 0) throw invalidFile(name, this.problems);
    this.totals.refuse(name);
    for (const [of, statement] of this.statements.entries()) yield { of, statement };
  }

  private complain(line: number, reason: string) {
    this.problems.push({ path: `line ${line}`, reason });
  }

  private checkHeader({ line, count, fields }: LogicalRecord) {
    if (this.open[0]?.records !== count) this.complain(line, 'is a second file header (01)');
    const version = fields[7] ?? '';
    if (version !== '' && version !== '2')
      this.complain(line, `has BAI version ${version}; only version 2 is supported`);
  }

  private openGroup(record: LogicalRecord) {
    const { fields, line } = record;
    const status = fields[2] || UPDATE;
    if (status !== UPDATE && STATUSES[status] === undefined) this.complain(line, `'${status}' is not a group status`);
    const asOf = shortDay(fields[3] ?? '');
    if (asOf === undefined) this.complain(line, `'${fields[3] ?? ''}' is not an as-of date YYMMDD`);
    const isInterim = INTERIM.includes(fields[6] ?? '');
    this.openLevel('group', record, {
      group: { status, line, asOf: asOf ?? '', currency: fields[5] || 'USD', isInterim },
    });
  }

  private openAccount(record: LogicalRecord) {
    const { line } = record;
    const [number = '', ownCurrency = '', ...rest] = record.fields;
    const currency = ownCurrency || (this.open[1]?.group?.currency ?? 'USD');
    const account: Account = { number: compact(number), currency, ...emptyAccount() };
    if (account.number === '') this.complain(line, 'the account has no number');
    if (!isCurrency(currency)) this.complain(line, `'${currency}' is not a currency`);
    const level = this.openLevel('account', record, { account });
    // The same group of fields repeats: a type, an amount, an item count, a funds type, and the fields of the funds
    // type.
    for (let at = 0; at < rest.length; ) {
      const [type = '', amount = '', , funds = ''] = rest.slice(at, at + 4);
      // Some banks write a comma more before a continuation (88).
      if (type === '') {
        at += 1;
        continue;
      }
      if (amount !== '' && !UNITS.test(amount)) this.complain(line, `'${amount}' is not an amount`);
      else if (amount !== '') {
        level.sum += BigInt(amount);
        const before = account.summaries.get(type) ?? BigInt(amount);
        if (CHECKED.includes(type) && before !== BigInt(amount))
          this.complain(line, `states type ${type} twice: ${before} and ${BigInt(amount)}`);
        account.summaries.set(type, BigInt(amount));
      }
      if (!isDistribution(funds, rest[at + 4])) this.complain(line, notPairs(rest[at + 4]));
      at += 4 + fundsFields(funds, rest[at + 4]);
    }
  }

  private addTransaction(record: LogicalRecord): BankLine | undefined {
    const { fields, line } = record;
    const level = this.open[2];
    const account = level?.account;
    if (level === undefined || account === undefined) {
      this.complain(line, 'a transaction (16) is outside an account (03)');
      return undefined;
    }
    const [type = '', amount = '', funds = ''] = fields;
    if (!/^\d{3}$/.test(type)) this.complain(line, `'${type}' is not a type code`);
    const way = direction(type);
    if (way === undefined && amount === '') {
      account.notes.push(...record.pieces);
      return undefined;
    }
    if (!UNITS.test(amount) || BigInt(amount) < 0n) {
      this.complain(line, `'${amount}' is not the amount of a transaction`);
      return undefined;
    }
    if (!isDistribution(funds, fields[3])) this.complain(line, notPairs(fields[3]));
    const head = headLength(fields);
    level.sum += BigInt(amount);
    const units = BigInt(amount);
    if (way === undefined) {
      const { count, sum, line: first } = account.others.get(type) ?? { count: 0, sum: 0n, line };
      account.others.set(type, { count: count + 1, sum: sum + units, line: first });
      return undefined;
    }
    account.isEmpty = false;
    const group = this.open[1]?.group;
    // A transaction with the amount zero is a remark of the bank.
    if (units === 0n || group === undefined || !isCurrency(account.currency)) return undefined;
    account.moved[way] += units;
    if (group.status !== UPDATE && group.status !== CORRECTION) return undefined;
    const transaction: Transaction = {
      ...{ record, type, units },
      valueOn: funds.toUpperCase() === 'V' ? shortDay(fields[3] ?? '') : undefined,
      bankReference: fields[head - 2] ?? '',
      customerReference: fields[head - 1] ?? '',
    };
    const made = lineOf(transaction, way, Amount.ofMinorUnits(units, account.currency), group.asOf);
    return group.status === CORRECTION ? { ...made, held: 'the bank corrects earlier data' } : made;
  }

  private closeAccount(record: LogicalRecord) {
    const group = this.open[1]?.group;
    const account = this.close('account', record)?.account;
    if (account === undefined || group === undefined || this.problems.length > 0) return;
    account.hasTotal = record.fields[0] !== '';
    this.statements.push(statementOf(account, group, this.totals));
  }

  /** The header counts as a record of the level that it opens, not of the level above. */
  private openLevel(name: LevelName, { line, count }: LogicalRecord, content: { group?: Group; account?: Account }) {
    const depth = LEVELS.indexOf(name);
    const title = `${article(name)} (${HEADER[name]})`;
    (this.open.at(-1) as Level).records -= count;
    if (this.open.length < depth) this.complain(line, `${title} is outside a group (02)`);
    if (this.open.length > depth) {
      this.complain(line, `${title} begins before the previous one has ended (${TRAILER[name]})`);
      this.open.length = depth;
    }
    // Missing levels are opened, so that the records in them are not reported as errors too.
    while (this.open.length < depth) {
      this.open.push({ name: LEVELS[this.open.length] as LevelName, sum: 0n, records: 0, parts: 0 });
    }
    const level: Level = { name, sum: 0n, records: count, parts: 0, ...content };
    this.open.push(level);
    return level;
  }

  private close(name: LevelName, { line, fields }: LogicalRecord) {
    const depth = LEVELS.indexOf(name);
    const level = this.open[depth];
    if (level === undefined) {
      this.complain(line, `${article(name)} trailer (${TRAILER[name]}) has no header (${HEADER[name]})`);
      return undefined;
    }
    const inner = this.open[depth + 1]?.name;
    if (inner !== undefined) {
      this.complain(line, `${article(name)} ends (${TRAILER[name]}) before its ${inner} has ended (${TRAILER[inner]})`);
    }
    this.open.length = depth;
    const title =
      level.account === undefined
        ? `${name} trailer at line ${line}`
        : `account ${level.account.number}, trailer at line ${line}`;
    const stated = [...fields];
    // Some banks leave figures blank. A blank figure states nothing.
    const expect = (what: string, figure: string, found: string) =>
      this.totals.expect(`${title}: ${what}`, figure === `''` ? undefined : figure, found);
    if (stated.every((figure) => figure === '')) this.complain(line, 'has neither a control total nor a count');
    expect('control total', units(stated.shift()), level.sum.toString());
    if (name !== 'account') expect(`${LEVELS[depth + 1]}s`, count(stated.shift()), String(level.parts));
    expect('records', count(stated.shift()), String(level.records));
    const parent = this.open.at(-1);
    if (parent !== undefined) {
      parent.sum += level.sum;
      parent.records += level.records;
      parent.parts += 1;
    }
    return level;
  }
}

const notPairs = (text = '') => `'${text}' is not the number of availability pairs of funds type D`;

const article = (name: LevelName) => (name === 'account' ? 'an account' : `a ${name}`);

/**
 * Types 100 to 399 are credits, 400 to 699 debits; of the types of the bank itself, 920 to 959 are credits, 960 to 999
 * debits. Other types (balances, loans, remarks) do not change the balance.
 */
function direction(type: string) {
  if (/^(?:[123]\d\d|9[2-5]\d)$/.test(type)) return 'credit';
  return /^(?:[456]\d\d|9[6-9]\d)$/.test(type) ? 'debit' : undefined;
}

const OPENING = '010';
const CLOSING = '015';
const TOTAL_CREDITS = '100';
const TOTAL_DEBITS = '400';
/** An account has one of each. */
const CHECKED = [OPENING, CLOSING, TOTAL_CREDITS, TOTAL_DEBITS];

const emptyAccount = () => ({
  ...{ summaries: new Map<string, bigint>(), moved: { credit: 0n, debit: 0n }, isEmpty: true },
  ...{ notes: [] as string[], others: new Map<string, { count: number; sum: bigint; line: number }>() },
});

function statementOf(account: Account, group: Group, totals: Totals): Omit<BankStatement, 'lines'> {
  const { currency, summaries, number, moved } = account;
  const stated = (type: string) => {
    const amount = summaries.get(type);
    return amount === undefined ? undefined : Amount.ofMinorUnits(amount, currency);
  };
  const missing = missingDetails(account);
  const [opening, closing] = [stated(OPENING), stated(CLOSING)];
  const name = `account ${number}`;
  const credits = Amount.ofMinorUnits(moved.credit, currency);
  const debits = Amount.ofMinorUnits(moved.debit, currency);
  if (missing === undefined) {
    const expect = (what: string, type: string, found: Amount) =>
      totals.expect(`${name}: ${what} (${type})`, stated(type)?.toString(), found.toString());
    expect('total credits', TOTAL_CREDITS, credits);
    expect('total debits', TOTAL_DEBITS, debits);
    if (opening !== undefined) expect('closing ledger balance', CLOSING, opening.plus(credits).minus(debits));
  }
  const status = STATUSES[group.status];
  const isUpdate = group.status === UPDATE;
  const hasSums = summaries.has(TOTAL_CREDITS) && summaries.has(TOTAL_DEBITS);
  const control = account.hasTotal ? 'its control total, which has no signs' : '';
  const proof = hasSums ? 'its totals of credits and debits' : control;
  return {
    ...{ account: number, currency, reference: '', pending: 0 },
    opening: isUpdate && missing === undefined ? opening : undefined,
    closing: isUpdate ? closing : undefined,
    closed_on: closing === undefined || !isUpdate ? undefined : group.asOf,
    ...(group.isInterim && { only: 'interim' }),
    remarks: [
      ...(account.notes.length === 0 ? [] : [`The bank writes of ${number}: ${account.notes.join(' ')}`]),
      ...[...account.others].map(
        ([type, { count, sum, line }]) =>
          `Account ${number}: transactions of type ${type}, which are neither credits nor debits, were not recorded: ` +
          `${count} of ${Amount.ofMinorUnits(sum, currency).forPeople()} in all, the first at line ${line}.`,
      ),
      ...(status === undefined ? [] : [`The group at line ${group.line} ${status}.`]),
      ...(missing === undefined
        ? balanceRemarks({ account: number, opening, closing }, proof)
        : [`Account ${number}: ${missing}.`]),
    ],
  };
}

/**
 * Describes the transactions that an account's totals of credits (100) and debits (400) contain and the file does not:
 * many banks give details of some transactions only, or of none. Undefined if nothing is missing. These totals are
 * not control totals; but more details than a total has, or details without the totals that explain the difference to
 * the balances, are an error.
 */
function missingDetails({ summaries, currency, moved, isEmpty }: Account) {
  const credits = summaries.get(TOTAL_CREDITS);
  const debits = summaries.get(TOTAL_DEBITS);
  const opening = summaries.get(OPENING);
  const closing = summaries.get(CLOSING);
  const adds = (credit: bigint, debit: bigint) =>
    opening === undefined || closing === undefined || opening + credit - debit === closing;
  if (!isEmpty && (credits === undefined || debits === undefined)) return undefined;
  const hasMoved = [...summaries].some(([type, amount]) => direction(type) !== undefined && amount !== 0n);
  if (isEmpty && !hasMoved && adds(0n, 0n)) return undefined;
  const missing = { credit: (credits ?? moved.credit) - moved.credit, debit: (debits ?? moved.debit) - moved.debit };
  const explains = adds(moved.credit + missing.credit, moved.debit + missing.debit);
  if (!isEmpty && (missing.credit < 0n || missing.debit < 0n || !explains)) return undefined;
  if (!isEmpty && missing.credit === 0n && missing.debit === 0n) return undefined;
  const text = (amount: bigint) => Amount.ofMinorUnits(amount, currency).forPeople();
  return isEmpty
    ? 'the file has its balances and totals only, without transactions'
    : `the file has no details of ${text(missing.credit)} of credits and ${text(missing.debit)} of debits`;
}

function lineOf(transaction: Transaction, way: 'credit' | 'debit', amount: Amount, asOf: string): BankLine {
  const { record, type } = transaction;
  const text = record.pieces.join(' ').trim();
  // A document number may continue in the next record.
  const joined = record.pieces.length > 1 ? record.pieces.map((piece) => piece.trim()).join('') : undefined;
  const isFee = type === RETURN_FEE || /\bRETURN(?:ED)?(?: ITEMS?)? (?:FEE|CHARGE)S?\b/i.test(text);
  return {
    position: record.line,
    booked_on: asOf,
    value_on: transaction.valueOn,
    direction: way,
    amount,
    bank_reference: meaningful(transaction.bankReference),
    references: references([
      ['customer reference', transaction.customerReference],
      ['text', text],
      ['text', joined],
      ['bank reference', transaction.bankReference],
    ]),
    text,
    payer_name: labelled(record, PAYER_NAME),
    payer_account: labelled(record, PAYER_ACCOUNT)?.split(/\s/)[0],
    type,
    method: methodOf(type, text),
    reversal: REVERSALS[way].has(type),
    return_code: isFee ? undefined : returnCodeIn(way, text),
    raw: record.raw,
  };
}

/**
 * Type codes of reversed money. Debits: credit reversal, deposited item returned, posting error, individual ACH return
 * item, ACH reversal, returned items, adjustment. For credits, the same codes mean reversals of payments that we made.
 */
const REVERSALS = {
  debit: new Set(['552', '554', '555', '557', '558', '561', '566', '568']),
  credit: new Set(['252', '255', '257', '258', '261', '266', '268']),
} as const;
const RETURN_FEE = '567';

const units = (text: string | undefined) =>
  UNITS.test(text ?? '') ? BigInt(text ?? '').toString() : `'${text ?? ''}'`;
const count = (text: string | undefined) => (/^\d{1,15}$/.test(text ?? '') ? String(Number(text)) : `'${text ?? ''}'`);
