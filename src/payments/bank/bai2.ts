/**
 * BAI2 (Cash Management Balance Reporting Specifications, version 2): records 01 file, 02 group, 03 account, 16
 * transaction, 88 continuation, 49/98/99 trailers. Checks the control totals and counts of all trailers, and the
 * balances and summaries of each account.
 */
import { DateTime } from 'luxon';
import { FieldProblem } from '#errors/refusals';
import { Amount, isCurrency } from '#money';
import { Method } from '#payments/enums';
import { BankFormat, decode } from './format.ts';
import { BankLine, BankStatement, invalidFile, meaningful, methodInWords, references, Totals } from './statement.ts';

export const bai2: BankFormat = {
  name: 'bai2',
  matches: ({ head }) => /^01,/.test(head) && /^02,/m.test(head),
  read: (file) => new Bai2Reader(file.name).read(decode(file, 'latin1')),
};

interface LogicalRecord {
  readonly code: string;
  readonly line: number;
  readonly fields: string[];
  /** The text at the end of a 16 record, with one piece for each physical record. */
  readonly pieces: string[];
  raw: string;
  count: number;
}

const CODES = new Set(['01', '02', '03', '16', '88', '49', '98', '99']);

type Transaction = Readonly<{
  record: LogicalRecord;
  type: string;
  units: bigint;
  valueOn: string | undefined;
  bankReference: string;
  customerReference: string;
}>;

type Account = Readonly<{
  number: string;
  currency: string;
  summaries: Map<string, bigint>;
  transactions: Transaction[];
}>;

type Group = Readonly<{
  asOf: string;
  currency: string;
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
const STATUSES: Readonly<Record<string, string>> = { '2': 'a deletion', '3': 'a correction', '4': 'a test' };

class Bai2Reader {
  private readonly file: string;
  private readonly problems: FieldProblem[] = [];
  private readonly totals = new Totals();
  private readonly statements: BankStatement[] = [];
  private readonly open: Level[] = [{ name: 'file', sum: 0n, records: 0, parts: 0 }];
  private readonly handlers: Readonly<Record<string, (record: LogicalRecord) => void>> = {
    '01': (record) => this.checkHeader(record),
    '02': (record) => this.openGroup(record),
    '03': (record) => this.openAccount(record),
    '16': (record) => this.addTransaction(record),
    '49': (record) => this.closeAccount(record),
    '98': (record) => this.close('group', record),
    '99': (record) => this.close('file', record),
  };

  constructor(file: string) {
    this.file = file;
  }

  read(text: string): BankStatement[] {
    const records = logicalRecords(text, (line, reason) => this.complain(line, reason));
    if (this.problems.length > 0) throw invalidFile(this.file, this.problems);
    for (const record of records) {
      const level = this.open.at(-1);
      if (level === undefined) {
        this.complain(record.line, 'is after the file trailer (99)');
        continue;
      }
      level.records += record.count;
      this.handlers[record.code]?.(record);
    }
    if (records[0]?.code !== '01') this.problems.unshift({ path: 'line 1', reason: 'is not a file header (01)' });
    if (this.open.length > 0)
      this.problems.push({ path: 'end', reason: 'has no file trailer (99): the file is cut off' });
    if (this.problems.length > 0) throw invalidFile(this.file, this.problems);
    this.totals.refuse(this.file);
    return this.statements;
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
    const status = fields[2] ?? '';
    if (status !== '1')
      this.complain(line, `the group's status is ${STATUSES[status] ?? `'${status}'`}, not an update`);
    const asOf = day(fields[3] ?? '');
    if (asOf === undefined) this.complain(line, `'${fields[3] ?? ''}' is not an as-of date YYMMDD`);
    this.openLevel('group', record, { group: { asOf: asOf ?? '', currency: fields[5] || 'USD' } });
  }

  private openAccount(record: LogicalRecord) {
    const { line } = record;
    const [number = '', ownCurrency = '', ...rest] = record.fields;
    const currency = ownCurrency || (this.open[1]?.group?.currency ?? 'USD');
    const account: Account = { number: number.replace(/\s/g, ''), currency, summaries: new Map(), transactions: [] };
    if (account.number === '') this.complain(line, 'the account has no number');
    if (!isCurrency(currency)) this.complain(line, `'${currency}' is not a currency`);
    const level = this.openLevel('account', record, { account });
    // The same group of fields repeats: a type, an amount, an item count, a funds type, and the fields of the funds
    // type.
    for (let at = 0; at < rest.length; ) {
      const [type = '', amount = '', , funds = ''] = rest.slice(at, at + 4);
      if (amount !== '' && !UNITS.test(amount)) this.complain(line, `'${amount}' is not an amount`);
      else if (amount !== '') {
        level.sum += BigInt(amount);
        account.summaries.set(type, BigInt(amount));
      }
      if (!isDistribution(funds, rest[at + 4])) this.complain(line, notPairs(rest[at + 4]));
      at += 4 + fundsFields(funds, rest[at + 4]);
    }
  }

  private addTransaction(record: LogicalRecord) {
    const { fields, line } = record;
    const level = this.open[2];
    const account = level?.account;
    if (level === undefined || account === undefined) {
      this.complain(line, 'a transaction (16) is outside an account (03)');
      return;
    }
    const [type = '', amount = '', funds = ''] = fields;
    if (!/^\d{3}$/.test(type)) this.complain(line, `'${type}' is not a type code`);
    if (!UNITS.test(amount) || BigInt(amount) < 0n) {
      this.complain(line, `'${amount}' is not the amount of a transaction`);
      return;
    }
    if (!isDistribution(funds, fields[3])) this.complain(line, notPairs(fields[3]));
    const head = headLength(fields);
    level.sum += BigInt(amount);
    account.transactions.push({
      record,
      type,
      units: BigInt(amount),
      valueOn: funds.toUpperCase() === 'V' ? day(fields[3] ?? '') : undefined,
      bankReference: fields[head - 2] ?? '',
      customerReference: fields[head - 1] ?? '',
    });
  }

  private closeAccount(record: LogicalRecord) {
    const group = this.open[1]?.group;
    const account = this.close('account', record)?.account;
    if (account === undefined || group === undefined || this.problems.length > 0) return;
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
    this.totals.expect(`${title}: control total`, units(stated.shift()), level.sum.toString());
    if (name !== 'account') {
      this.totals.expect(`${title}: ${LEVELS[depth + 1]}s`, count(stated.shift()), String(level.parts));
    }
    this.totals.expect(`${title}: records`, count(stated.shift()), String(level.records));
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
 * Joins physical records with their continuations. Fields end at `/`, but the text of a 16 record may contain `/` and
 * commas.
 */
function logicalRecords(text: string, complain: (line: number, reason: string) => void) {
  const records: LogicalRecord[] = [];
  for (const [index, physical] of text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const line = index + 1;
    const content = physical.trimEnd();
    if (content === '') continue;
    const code = content.slice(0, 2);
    if (!CODES.has(code) || (content.length > 2 && content[2] !== ',')) {
      complain(line, 'is not a BAI2 record: it must begin with 01, 02, 03, 16, 49, 88, 98 or 99 and a comma');
      continue;
    }
    const body = content.slice(3);
    const last = records.at(-1);
    if (code !== '88') {
      const record: LogicalRecord = { code, line, fields: [], pieces: [], raw: content, count: 1 };
      append(record, body);
      records.push(record);
    } else if (last === undefined || !['02', '03', '16', '49', '98', '01', '99'].includes(last.code)) {
      complain(line, 'is a continuation (88) without a record');
    } else {
      last.raw += `\n${content}`;
      last.count += 1;
      append(last, body);
    }
  }
  return records;
}

function append(record: LogicalRecord, body: string) {
  const ended = body.endsWith('/');
  const content = ended ? body.slice(0, -1) : body;
  if (record.code !== '16') {
    if (content !== '' || record.fields.length === 0) for (const field of content.split(',')) record.fields.push(field);
    return;
  }
  let rest: string | undefined = content;
  while (rest !== undefined && (record.fields.length === 0 || record.fields.length < headLength(record.fields))) {
    const comma: number = rest.indexOf(',');
    record.fields.push(comma < 0 ? rest : rest.slice(0, comma));
    rest = comma < 0 ? undefined : rest.slice(comma + 1);
  }
  if (rest !== undefined && rest !== '') record.pieces.push(rest);
}

/** The number of fields before a transaction's text: type, amount, funds type with its own fields, two references. */
const headLength = (fields: readonly string[]) => 5 + fundsFields(fields[2] ?? '', fields[3]);

/**
 * Returns how many fields a funds type adds. V has a value date, S three amounts, and D as many pairs as its first
 * field states. If the first field after D is not a number of pairs, no fields are added, and the record is refused
 * (`isDistribution`).
 */
const fundsFields = (type: string, first: string | undefined) =>
  ({ V: 2, S: 3, D: 1 + 2 * (PAIRS.test(first ?? '') ? Number(first || '0') : 0) })[type.toUpperCase()] ?? 0;

const isDistribution = (type: string, first: string | undefined) =>
  type.toUpperCase() !== 'D' || PAIRS.test(first ?? '');

const PAIRS = /^\d{0,3}$/;
/** A longer text of digits is refused before it is parsed. */
const UNITS = /^[+-]?\d{1,30}$/;

/**
 * Types 100 to 399 are credits, 400 to 699 debits. Other types (loans, remarks, types of the bank) do not change the
 * balance.
 */
function direction(type: string) {
  if (type >= '100' && type <= '399') return 'credit';
  return type >= '400' && type <= '699' ? 'debit' : undefined;
}

const OPENING = '010';
const CLOSING = '015';
const TOTAL_CREDITS = '100';
const TOTAL_DEBITS = '400';

function statementOf(account: Account, group: Group, totals: Totals): BankStatement {
  const { currency, summaries, number } = account;
  const money = (amount: bigint) => Amount.ofMinorUnits(amount, currency);
  const moved = { credit: 0n, debit: 0n };
  const lines = account.transactions.flatMap((transaction): BankLine[] => {
    const way = direction(transaction.type);
    // A transaction with the amount zero is a remark of the bank.
    if (way === undefined || transaction.units === 0n) return [];
    moved[way] += transaction.units;
    return [lineOf(transaction, way, money(transaction.units), group.asOf)];
  });
  const stated = (type: string) => {
    const amount = summaries.get(type);
    return amount === undefined ? undefined : money(amount);
  };
  const name = `account ${number}`;
  totals.expect(`${name}: total credits (100)`, stated(TOTAL_CREDITS)?.toString(), money(moved.credit).toString());
  totals.expect(`${name}: total debits (400)`, stated(TOTAL_DEBITS)?.toString(), money(moved.debit).toString());
  const opening = stated(OPENING);
  const closing = stated(CLOSING);
  if (opening !== undefined) {
    const found = opening.plus(money(moved.credit)).minus(money(moved.debit));
    totals.expect(`${name}: closing ledger balance (015)`, closing?.toString(), found.toString());
  }
  return {
    ...{ account: number, currency, reference: '', opening, closing, lines, pending: 0 },
    closed_on: closing && group.asOf,
  };
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
    method: methodOfCode(type) ?? methodInWords(type, text),
    reversal: REVERSALS[way].has(type),
    return_code: way === 'debit' && !isFee ? /\bR\d\d\b/.exec(text)?.[0] : undefined,
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

/**
 * Returns the method of a type code: 142 to 169 are ACH, 191 to 213 wires, and 115 (lockbox) and 174 to 176 (check
 * deposits) are checks. Other formats use these codes too.
 */
export function methodOfCode(type: string): Method | undefined {
  if (/^(115|174|175|176)\b/.test(type)) return 'check';
  if (/^(142|143|164|165|166|168|169)\b/.test(type)) return 'ach';
  return /^(191|195|196|206|208|212|213)\b/.test(type) ? 'wire' : undefined;
}

// The text has no separate fields. These labels occur in the addenda of ACH and Fedwire transactions. The first two
// banks write the name before a label, or the account after the name.
const PAYER_NAME =
  /^(?=[^:=#]+\sDES\s*[:=])|\b(?:ORIG CO NAME|ORIGINATOR NAME|ORIG NAME|ORIGINATOR|ORIG|SENDER NAME|B\/O|ORG|DBNM)\s*[:=]/i;
const PAYER_ACCOUNT =
  /\b(?:ORIG ID|ORIGINATOR ID|CO ID|COMPANY ID|ORIG ACCT|B\/O ACCT|DACT|ORIG\s*[:=][^:=#]*\sID)\s*[:=]/i;
const LABEL =
  '(?:ORIG|ORIGINATOR|INDN?|CO|COMPANY|DESC?|OBI|REF|TRN|SRF|TRACE|SEC|EED|EFF|ENTRY|DATE|TIME|TYPE|SEQ|ADDENDA|BNF|' +
  'RFB|ACCT|ID|SND|PMT|CREF|REMI|EREF|CRNM|CACT|DBNM|DACT)(?: [A-Z/]+){0,2}\\s*[:=#]';
const NEXT_LABEL = new RegExp(`\\s${LABEL}|[;|\\n]`, 'i');
const LABEL_FIRST = new RegExp(`^${LABEL}`, 'i');
/** A bank that cuts its text at a fixed length makes records of at least this length. */
const FULL_RECORD = 72;

/**
 * Returns the text after a label. If records that are joined with a space give a different text than records that are
 * joined without a space, a word may be cut. A word is certainly cut only if the bank fills its records.
 */
function labelled({ pieces, raw }: LogicalRecord, label: RegExp) {
  const apart = valueAfter(pieces.join(' '), label);
  const joined = valueAfter(pieces.join(''), label);
  if (apart === joined || joined === undefined) return apart;
  if (apart === undefined) return joined;
  // If the next record begins with a label, no word is cut.
  if (joined.startsWith(apart) && LABEL_FIRST.test(joined.slice(apart.length))) return apart;
  const isFull = raw
    .split('\n')
    .slice(0, -1)
    .every((physical) => physical.length >= FULL_RECORD);
  return isFull ? joined : undefined;
}

function valueAfter(text: string, label: RegExp) {
  const spaced = text.replace(/\s+/g, ' ');
  const found = label.exec(spaced);
  if (found === null) return undefined;
  // If two labels follow each other, the space before the second label must stay, because a label is not a value.
  const rest = ` ${spaced.slice(found.index + found[0].length)}`;
  return meaningful(rest.split(NEXT_LABEL)[0]);
}

const units = (text: string | undefined) =>
  UNITS.test(text ?? '') ? BigInt(text ?? '').toString() : `'${text ?? ''}'`;
const count = (text: string | undefined) => (/^\d{1,15}$/.test(text ?? '') ? String(Number(text)) : `'${text ?? ''}'`);

function day(text: string) {
  const at = DateTime.fromFormat(text, 'yyMMdd', { zone: 'utc' });
  return at.isValid ? at.toFormat('yyyy-MM-dd') : undefined;
}
