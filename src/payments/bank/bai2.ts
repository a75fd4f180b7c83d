/**
 * BAI2 (Cash Management Balance Reporting Specifications, version 2): records 01 file, 02 group, 03 account, 16
 * transaction, 88 continuation, 49/98/99 trailers. Every trailer's control total and count is checked, and so are the
 * balances and summaries of an account.
 */
import { DateTime } from 'luxon';
import type { FieldProblem } from '../../errors/refusals.ts';
import { Amount, isCurrency, minorDigits } from '../../money.ts';
import {
  type BankLine,
  type BankStatement,
  invalidFile,
  meaningful,
  type ReferenceField,
  Totals,
} from './statement.ts';

/** A logical record: its code, its fields, and the texts of a 16 record's end, one for each physical record. */
interface Record_ {
  readonly code: string;
  readonly line: number;
  readonly fields: string[];
  readonly pieces: string[];
  raw: string;
  /** Physical records: its own and its continuations. */
  count: number;
}

const CODES = new Set(['01', '02', '03', '16', '88', '49', '98', '99']);

interface Transaction {
  readonly record: Record_;
  readonly type: string;
  readonly units: bigint;
  readonly valueOn: string | undefined;
  readonly bankReference: string;
  readonly customerReference: string;
}

interface Account {
  readonly number: string;
  readonly currency: string;
  readonly record: Record_;
  /** Of the 03 record, by type code: balances and summaries. */
  readonly summaries: Map<string, bigint>;
  readonly transactions: Transaction[];
  /** All amounts of its 03 and 16 records, as written. */
  sum: bigint;
  records: number;
}

interface Group {
  readonly asOf: string;
  readonly currency: string;
  sum: bigint;
  records: number;
  accounts: number;
}

export function readBai2(text: string, file: string): BankStatement[] {
  const problems: FieldProblem[] = [];
  const complain = (line: number, reason: string): void => {
    problems.push({ path: `line ${line}`, reason });
  };
  const records = logicalRecords(text, complain);
  if (problems.length > 0) throw invalidFile(file, problems);
  const totals = new Totals();
  const statements: BankStatement[] = [];
  let groups = 0;
  let fileSum = 0n;
  let fileRecords = 0;
  let group: Group | undefined;
  let account: Account | undefined;
  let ended = false;

  for (const record of records) {
    const { code, fields, line } = record;
    fileRecords += record.count;
    if (group !== undefined && code !== '99') group.records += record.count;
    if (account !== undefined && code !== '98' && code !== '99') account.records += record.count;
    if (ended) complain(line, 'stands after the file trailer (99)');
    switch (code) {
      case '01':
        if (fileRecords !== record.count) complain(line, 'a second file header (01)');
        if (fields[7] !== undefined && fields[7] !== '' && fields[7] !== '2') {
          complain(line, `the file is of BAI version ${fields[7]}, and only version 2 is read`);
        }
        break;
      case '02': {
        if (group !== undefined) complain(line, 'a group (02) begins before the one before has ended (98)');
        const status = fields[2] ?? '';
        if (status !== '1') complain(line, `the group's status is ${STATUSES[status] ?? `'${status}'`}, not an update`);
        const asOf = day(fields[3] ?? '');
        if (asOf === undefined) complain(line, `'${fields[3] ?? ''}' is no as-of date YYMMDD`);
        group = { asOf: asOf ?? '', currency: fields[5] || 'USD', sum: 0n, records: record.count, accounts: 0 };
        break;
      }
      case '03':
        if (group === undefined) complain(line, 'an account (03) stands outside a group (02)');
        if (account !== undefined) complain(line, 'an account (03) begins before the one before has ended (49)');
        account = openAccount(record, group?.currency ?? 'USD', complain);
        break;
      case '16':
        if (account === undefined) complain(line, 'a transaction (16) stands outside an account (03)');
        else addTransaction(account, record, complain);
        break;
      case '49': {
        if (account === undefined || group === undefined) {
          complain(line, 'an account trailer (49) without its account (03)');
          break;
        }
        const name = `account ${account.number}, trailer at line ${line}`;
        totals.expect(`${name}: control total`, units(fields[0]), account.sum.toString());
        totals.expect(`${name}: records`, count(fields[1]), String(account.records));
        group.sum += account.sum;
        group.accounts += 1;
        if (problems.length === 0) statements.push(statementOf(account, group, totals));
        account = undefined;
        break;
      }
      case '98': {
        if (group === undefined) {
          complain(line, 'a group trailer (98) without its group (02)');
          break;
        }
        if (account !== undefined) complain(line, 'a group ends (98) before its account has ended (49)');
        const name = `group trailer at line ${line}`;
        totals.expect(`${name}: control total`, units(fields[0]), group.sum.toString());
        totals.expect(`${name}: accounts`, count(fields[1]), String(group.accounts));
        totals.expect(`${name}: records`, count(fields[2]), String(group.records));
        fileSum += group.sum;
        groups += 1;
        group = undefined;
        break;
      }
      case '99': {
        if (group !== undefined) complain(line, 'the file ends (99) before its group has ended (98)');
        const name = `file trailer at line ${line}`;
        totals.expect(`${name}: control total`, units(fields[0]), fileSum.toString());
        totals.expect(`${name}: groups`, count(fields[1]), String(groups));
        totals.expect(`${name}: records`, count(fields[2]), String(fileRecords));
        ended = true;
        break;
      }
    }
  }
  if (records[0]?.code !== '01') problems.unshift({ path: 'line 1', reason: 'is no file header (01)' });
  if (!ended) problems.push({ path: 'the end', reason: 'has no file trailer (99): the file is cut off' });
  if (problems.length > 0) throw invalidFile(file, problems);
  totals.refuse(file);
  return statements;
}

const STATUSES: Readonly<Record<string, string>> = { '2': 'a deletion', '3': 'a correction', '4': 'a test' };

/** Joins physical records and their continuations. A record's fields end at `/`; a 16 record's text may hold both signs. */
function logicalRecords(text: string, complain: (line: number, reason: string) => void): Record_[] {
  const records: Record_[] = [];
  for (const [index, physical] of text
    .replace(/^\uFEFF/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    const line = index + 1;
    const content = physical.trimEnd();
    if (content === '') continue;
    const code = content.slice(0, 2);
    if (!CODES.has(code) || (content.length > 2 && content[2] !== ',')) {
      complain(line, 'is no BAI2 record: it must begin with 01, 02, 03, 16, 49, 88, 98 or 99 and a comma');
      continue;
    }
    const body = content.slice(3);
    const last = records.at(-1);
    if (code !== '88') {
      const record: Record_ = { code, line, fields: [], pieces: [], raw: content, count: 1 };
      take(record, body);
      records.push(record);
    } else if (last === undefined || !['02', '03', '16', '49', '98', '01', '99'].includes(last.code)) {
      complain(line, 'continues (88) nothing');
    } else {
      last.raw += `\n${content}`;
      last.count += 1;
      take(last, body);
    }
  }
  return records;
}

/** Adds a physical record's content to its logical record. */
function take(record: Record_, body: string): void {
  const ended = body.endsWith('/');
  const content = ended ? body.slice(0, -1) : body;
  if (record.code !== '16') {
    // A field is never split over records: what follows a continuation is the next one.
    record.fields.push(...(content === '' && record.fields.length > 0 ? [] : content.split(',')));
    return;
  }
  let rest: string | undefined = content;
  while (rest !== undefined && (record.fields.length === 0 || record.fields.length < headOf(record.fields))) {
    const comma: number = rest.indexOf(',');
    record.fields.push(comma < 0 ? rest : rest.slice(0, comma));
    rest = comma < 0 ? undefined : rest.slice(comma + 1);
  }
  if (rest !== undefined && rest !== '') record.pieces.push(rest);
}

/** The number of fields before a transaction's text: type, amount, funds type with its own, two references. */
function headOf(fields: readonly string[]): number {
  const fundsFields = { V: 2, S: 3, D: 1 + 2 * Number(fields[3] || '0') }[(fields[2] ?? '').toUpperCase()] ?? 0;
  return 5 + fundsFields;
}

function openAccount(
  record: Record_,
  groupCurrency: string,
  complain: (line: number, reason: string) => void,
): Account {
  const [number = '', currency = '', ...rest] = record.fields;
  const account: Account = {
    number: number.replace(/\s/g, ''),
    currency: currency || groupCurrency,
    record,
    summaries: new Map(),
    transactions: [],
    sum: 0n,
    records: record.count,
  };
  if (account.number === '') complain(record.line, 'the account has no number');
  if (!isCurrency(account.currency)) complain(record.line, `'${account.currency}' is no currency`);
  // Groups of type, amount, item count, funds type, and what the funds type adds.
  for (let at = 0; at < rest.length; ) {
    const [type = '', amount = '', , funds = ''] = rest.slice(at, at + 4);
    if (amount !== '') {
      if (!UNITS.test(amount)) complain(record.line, `'${amount}' is no amount`);
      else {
        account.sum += BigInt(amount);
        account.summaries.set(type, BigInt(amount));
      }
    }
    const extra = { V: 2, S: 3, D: 1 + 2 * Number(rest[at + 4] || '0') }[funds.toUpperCase()] ?? 0;
    at += 4 + extra;
  }
  return account;
}

const UNITS = /^[+-]?\d+$/;

function addTransaction(account: Account, record: Record_, complain: (line: number, reason: string) => void): void {
  const [type = '', amount = '', funds = ''] = record.fields;
  if (!/^\d{3}$/.test(type)) complain(record.line, `'${type}' is no type code`);
  if (!UNITS.test(amount) || BigInt(amount) < 0n) {
    complain(record.line, `'${amount}' is no amount of a transaction`);
    return;
  }
  const head = headOf(record.fields);
  account.sum += BigInt(amount);
  account.transactions.push({
    record,
    type,
    units: BigInt(amount),
    valueOn: funds.toUpperCase() === 'V' ? day(record.fields[3] ?? '') : undefined,
    bankReference: record.fields[head - 2] ?? '',
    customerReference: record.fields[head - 1] ?? '',
  });
}

/** Types 100 to 399 are credits, 400 to 699 debits; others (loans, remarks, a bank's own) move nothing on the account. */
function direction(type: string): 'credit' | 'debit' | undefined {
  if (type >= '100' && type <= '399') return 'credit';
  return type >= '400' && type <= '699' ? 'debit' : undefined;
}

const OPENING = '010';
const CLOSING = '015';
const TOTAL_CREDITS = '100';
const TOTAL_DEBITS = '400';

function statementOf(account: Account, group: Group, totals: Totals): BankStatement {
  const { currency, summaries, number } = account;
  const money = (amount: bigint) => fromUnits(amount, currency);
  const moved = { credit: 0n, debit: 0n };
  const lines = account.transactions.flatMap((transaction): BankLine[] => {
    const way = direction(transaction.type);
    // Amounts of zero are remarks of the bank: they move nothing.
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
  return { account: number, currency, reference: '', opening, closing, lines, pending: 0 };
}

function lineOf(transaction: Transaction, way: 'credit' | 'debit', amount: Amount, asOf: string): BankLine {
  const { record, type } = transaction;
  const text = record.pieces.join(' ').trim();
  const references: ReferenceField[] = [];
  const add = (field: string, content: string | undefined): void => {
    const found = meaningful(content);
    if (found !== undefined) references.push({ field, text: found });
  };
  add('customer reference', transaction.customerReference);
  add('text', text);
  // A number may be cut in two where a record ends.
  if (record.pieces.length > 1) add('text', record.pieces.map((piece) => piece.trim()).join(''));
  add('bank reference', transaction.bankReference);
  const returned = /\bR\d\d\b/.exec(text)?.[0];
  return {
    position: record.line,
    booked_on: asOf,
    value_on: transaction.valueOn,
    direction: way,
    amount,
    bank_reference: meaningful(transaction.bankReference),
    references,
    text,
    payer_name: labelled(text, PAYER_NAME),
    payer_account: labelled(text, PAYER_ACCOUNT)?.split(/\s/)[0],
    type,
    // 555 deposited items returned, 557 individual ACH return item, 561/566 returned items.
    reversal: ['555', '557', '561', '566'].includes(type),
    return_code: way === 'debit' ? returned : undefined,
    raw: record.raw,
  };
}

// Text has no fields of its own; these are the labels of the addenda that ACH and Fedwire lines carry.
const PAYER_NAME = /\b(?:ORIG CO NAME|ORIGINATOR NAME|ORIG NAME|ORIGINATOR|SENDER NAME|B\/O|ORG)\s*[:=]\s*/i;
const PAYER_ACCOUNT = /\b(?:ORIG ID|ORIGINATOR ID|CO ID|COMPANY ID|ORIG ACCT|B\/O ACCT)\s*[:=]\s*/i;
const NEXT_LABEL =
  /\s+(?:ORIG|ORIGINATOR|IND|CO|COMPANY|DESC|OBI|REF|TRN|TRACE|SEC|EFF|ENTRY|DATE|ADDENDA|BNF|RFB|ACCT)(?: [A-Z/]+){0,2}\s*[:=]|[;|\n]/i;

function labelled(text: string, label: RegExp): string | undefined {
  const found = label.exec(text);
  if (found === null) return undefined;
  const rest = text.slice(found.index + found[0].length);
  return meaningful((rest.split(NEXT_LABEL)[0] ?? '').trim());
}

/** A BAI2 amount has no decimal point: its last digits are the currency's minor ones. */
function fromUnits(amount: bigint, currency: string): Amount {
  const digits = minorDigits(currency) ?? 2;
  const sign = amount < 0n ? '-' : '';
  const text = String(amount < 0n ? -amount : amount).padStart(digits + 1, '0');
  return Amount.of(
    digits === 0 ? `${sign}${text}` : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`,
    currency,
  );
}

const units = (text: string | undefined): string =>
  UNITS.test(text ?? '') ? BigInt(text ?? '').toString() : `'${text ?? ''}'`;
const count = (text: string | undefined): string =>
  /^\d+$/.test(text ?? '') ? String(Number(text)) : `'${text ?? ''}'`;

/** `YYMMDD`, as every date of the format. */
function day(text: string): string | undefined {
  const at = DateTime.fromFormat(text, 'yyMMdd', { zone: 'utc' });
  return at.isValid ? at.toFormat('yyyy-MM-dd') : undefined;
}
