/**
 * MT940 (customer statements of SWIFT) and MT942 (interim reports). Each statement's opening balance and entries must
 * add up to its closing balance; an interim report's entries must give its numbers and sums. The text of an entry
 * (`:86:`) is read in the forms of banks in Germany and Austria (`?20`), of banks in the Netherlands (`/NAME/`), and as
 * plain text.
 */
import { FieldProblem } from '#errors/refusals';
import { PROBLEMS_TOLD } from '#reading/limits';
import { Amount, isCurrency } from '#values';
import { BankFile, BankFormat, linesOf } from './format.ts';
import { readEntryText } from './mt940-text.ts';
import {
  amountIn,
  BankLine,
  BankPart,
  BankStatement,
  compact,
  invalidFile,
  joined,
  meaningful,
  methodOf,
  references,
  shortDay,
  Totals,
} from './statement.ts';

const BEGINS = /^:20:/m;
const ACCOUNT = /^:(?:25P?|28C?):/m;
const INTERIM_HEADER = /\{2:[IO]942/;
const INTERIM = /^:34F:|^\{1:[^}]*\}\{2:[IO]942/m;

const format = (title: string, isInterim: boolean): BankFormat => ({
  ...{ name: title.toLowerCase(), title, read: readMessages },
  matches: ({ head }) => BEGINS.test(head) && ACCOUNT.test(head) && INTERIM.test(head) === isInterim,
});

export const mt940 = format('MT940', false);
export const mt942 = format('MT942', true);

/** A field of a message, such as `:61:`, with its continuation lines. */
type Field = Readonly<{ tag: string; line: number; text: string[] }>;

const TAG = /^:(\d{2}[A-Z]?|NS):(.*)$/;
/** Fields of statements and interim reports. Others are refused, so that nothing that they say is lost. */
const KNOWN = /^(?:13D?|2[01]|25P?|28C?|34F|6[02][FM]|6[145]|86|90[CD]|NS)$/;
const ONCE = /^(?:25|28|6[02]|90[CD])/;
/** Fields after the closing balance. */
const AFTER_CLOSING = new Set(['64', '65', '86', '13D', 'NS']);
/** The blocks of SWIFT around the text of a message. One line may have several. */
const BLOCKS = /(?<=\{4:)|(?=-\}(?:\{|$)|\{1:)/;

/** A file may have statements and interim reports. */
function* readMessages(file: BankFile): Generator<BankPart> {
  const problems: FieldProblem[] = [];
  const totals = new Totals();
  const statements: Omit<BankStatement, 'lines'>[] = [];
  let message: MessageReader | undefined;
  let isEnveloped = false;
  let isHeadedInterim = false;
  let line = 0;
  function* end(isWhole: boolean): Generator<BankPart> {
    if (message === undefined) return;
    for (const each of message.end()) yield { of: statements.length, line: each };
    statements.push({ ...message.statement(isWhole), ...(message.isInterim && { only: 'interim' as const }) });
    message = undefined;
  }
  function* take(content: string, at: number): Generator<BankPart> {
    const complain = (reason: string) => problems.push({ path: `line ${line}`, reason });
    if (/^\{[1-4]:/.test(content)) {
      isEnveloped ||= content.startsWith('{1:');
      if (content.includes('{2:')) isHeadedInterim = INTERIM_HEADER.test(content);
      return;
    }
    const [, tag, rest = ''] = TAG.exec(content) ?? [];
    if (tag === '20') {
      if (message !== undefined && isEnveloped)
        complain('begins a message (:20:) before the previous one has ended (-})');
      yield* end(false);
      message = new MessageReader(line, problems, totals, isHeadedInterim);
    }
    if (/^-(?:\}|$)/.test(content)) yield* end(true);
    else if (message === undefined && tag !== undefined) complain(`the field :${tag}: is outside a message (:20:)`);
    else if (tag === undefined) message?.continue(content);
    else {
      const lines = (message as MessageReader).begin({ tag, line, text: [rest] });
      for (const each of lines) yield { of: statements.length, at, line: each };
    }
  }
  for (const [written, at] of linesOf(file, 'utf-8', 'windows-1252')) {
    line += 1;
    for (const content of written.includes('}') ? written.split(BLOCKS) : [written]) yield* take(content.trimEnd(), at);
    if (problems.length >= PROBLEMS_TOLD) break;
  }
  if (isEnveloped && message !== undefined)
    problems.push({ path: 'end', reason: 'has no end (-}): the file is cut off' });
  yield* end(false);
  if (problems.length > 0) throw invalidFile(file.name, problems);
  totals.refuse(file.name);
  for (const [of, statement] of statements.entries()) yield { of, statement };
}

/** Value date, booking day, mark, funds code, amount, type, customer's reference and bank's reference. */
const ENTRY =
  /^(\d{6})(\d{4})?(RC|RD|EC|ED|C|D)([A-Z])?((?=[,.]?\d)\d{0,15}(?:[,.]\d*)?)(?:([A-Z][A-Z0-9]{3})|(?!\s*\d))(.*?)(?:\/\/(.*))?$/;
const BALANCE = /^([CD])(\d{6})([A-Z]{3})((?=[,.]?\d)\d{0,15}(?:[,.]\d*)?)$/;
const SUM = /^(\d{1,9})([A-Z]{3})((?=[,.]?\d)\d{0,15}(?:[,.]\d*)?)$/;

/** Reads a message field by field. An entry is complete when the field after it and its text has begun. */
class MessageReader {
  private readonly begins: number;
  private readonly problems: FieldProblem[];
  private readonly totals: Totals;
  private readonly isHeadedInterim: boolean;
  /** The fields that occur once. */
  private readonly fields = new Map<string, Field>();
  private readonly counts = { credit: 0, debit: 0 };
  private readonly sums = new Map<BankLine['direction'], Amount>();
  /** The last entry, and the fields that tell of it. */
  private booked: Field | undefined;
  private told: Field[] = [];
  /** What the bank writes of the whole statement. */
  private readonly notes: string[] = [];
  /** Where the next line without a tag belongs. */
  private target: string[] = this.notes;
  private closed = false;
  private currency = '';
  private pending = 0;

  constructor(begins: number, problems: FieldProblem[], totals: Totals, isHeadedInterim: boolean) {
    [this.begins, this.problems, this.totals] = [begins, problems, totals];
    this.isHeadedInterim = isHeadedInterim;
  }

  /** Whether it is an interim report (MT942), by the SWIFT header or by the field that only interim reports have. */
  get isInterim() {
    return this.isHeadedInterim || this.field('34F') !== undefined;
  }

  continue(content: string) {
    this.target.push(content);
  }

  /** Returns the entry before this field, if it is complete. */
  begin(field: Field): BankLine[] {
    const { tag, line } = field;
    const once = ONCE.exec(tag)?.[0] ?? tag;
    const isAgain = ONCE.test(tag) && [...this.fields.keys()].some((each) => each.startsWith(once));
    if (!KNOWN.test(tag)) this.complain(line, `the field :${tag}: is not one of a statement: its text would be lost`);
    else if (this.closed && !AFTER_CLOSING.has(tag)) {
      this.complain(line, `the field :${tag}: is after the closing balance: a message (:20:) must begin before it`);
    } else if (isAgain) this.complain(line, `the field :${tag}: occurs twice in its message`);
    this.closed ||= /^62[FM]$/.test(tag);
    const isText = tag === '86' || tag === 'NS';
    if (isText && this.booked !== undefined) {
      this.told.push(field);
      this.target = field.text;
      return [];
    }
    const lines = this.end();
    this.target = tag === '61' ? field.text : this.notes;
    if (tag === '61') this.booked = field;
    else if (isText) this.notes.push(...field.text);
    else if (!this.fields.has(tag)) this.fields.set(tag, field);
    return lines;
  }

  /** Returns the last entry. */
  end(): BankLine[] {
    const { booked, told } = this;
    this.booked = undefined;
    this.told = [];
    if (booked === undefined) return [];
    this.currency ||= this.statedCurrency();
    // A currency that is missing is reported with the statement.
    const line = isCurrency(this.currency) ? this.entry(booked, told) : undefined;
    if (line === undefined) return [];
    this.counts[line.direction] += 1;
    this.sums.set(line.direction, (this.sums.get(line.direction) ?? Amount.zero(this.currency)).plus(line.amount));
    return [line];
  }

  /** `isWhole`: whether the message has its last line (`-`). */
  statement(isWhole: boolean): Omit<BankStatement, 'lines'> {
    const { begins } = this;
    const [account] = accountOf(this.text('25', '25P'));
    const currency = this.currency || this.statedCurrency();
    this.currency = currency;
    const name = `message at line ${begins}, account ${account || 'none'}`;
    if (account === '') this.complain(begins, 'the message names no account (:25:)');
    if (!isCurrency(currency)) {
      this.complain(begins, `'${currency}' is not a currency`);
      return { account, currency, ...NOTHING };
    }
    const { isInterim } = this;
    if (isInterim && !isWhole && ['90C', '90D'].some((tag) => this.field(tag) === undefined)) {
      this.complain(begins, 'the message has neither an end (-) nor its sums (:90C:, :90D:): it is cut off');
    }
    const sum = (direction: BankLine['direction']) => this.sums.get(direction) ?? Amount.zero(currency);
    const opening = this.balance(['60F', '60M'], isInterim);
    const closing = this.balance(['62F', '62M'], isInterim);
    if (opening !== undefined && closing !== undefined) {
      const found = opening.amount.plus(sum('credit')).minus(sum('debit'));
      this.totals.expect(`${name}: closing balance (:62F:)`, closing.amount.toString(), found.toString());
    }
    this.checkSum(name, '90C', this.counts.credit, sum('credit'));
    this.checkSum(name, '90D', this.counts.debit, sum('debit'));
    return {
      ...{ account, currency, pending: this.pending, closed_on: closing?.on },
      ...{ reference: this.text('28C', '28'), opening: opening?.amount, closing: closing?.amount },
      remarks: joined(this.notes) === '' ? [] : [`The bank writes of ${account}: ${joined(this.notes)}`],
    };
  }

  private statedCurrency() {
    const balances = ['60F', '60M', '62F', '62M'].flatMap((tag) => BALANCE.exec(this.text(tag))?.[3] ?? []);
    const stated = balances[0] ?? /^[A-Z]{3}/.exec(this.text('34F'))?.[0];
    return stated ?? accountOf(this.text('25', '25P'))[1] ?? '';
  }

  private field(...tags: readonly string[]) {
    return tags.map((tag) => this.fields.get(tag)).find((field) => field !== undefined);
  }

  private text(...tags: readonly string[]) {
    return (this.field(...tags)?.text[0] ?? '').trim();
  }

  private complain(line: number, reason: string) {
    this.problems.push({ path: `line ${line}`, reason });
    return undefined;
  }

  private money(written: string, line: number) {
    const amount = amountIn(this.currency, written);
    return typeof amount === 'string' ? this.complain(line, amount) : amount;
  }

  private balance(tags: readonly string[], isOptional: boolean) {
    const field = this.field(...tags);
    if (field === undefined) {
      return isOptional
        ? undefined
        : this.complain(this.begins, `the message has no balance (:${tags[0]}:): it is cut off`);
    }
    const [, mark, on = '', currency, written = ''] = BALANCE.exec(field.text[0]?.trim() ?? '') ?? [];
    const closedOn = shortDay(on);
    if (mark === undefined || closedOn === undefined)
      return this.complain(field.line, `'${field.text[0]}' is not a balance`);
    if (currency !== this.currency)
      return this.complain(field.line, `is in ${currency}, but the account is in ${this.currency}`);
    const amount = this.money(written, field.line);
    return amount && { amount: mark === 'D' ? amount.negated() : amount, on: closedOn };
  }

  /** An interim report states the number and the sum of its credits and debits. */
  private checkSum(name: string, tag: string, count: number, total: Amount) {
    const field = this.field(tag);
    if (field === undefined) return;
    const [, stated, , written = ''] = SUM.exec(field.text[0]?.trim() ?? '') ?? [];
    if (stated === undefined) return void this.complain(field.line, `'${field.text[0]}' is not a number and a sum`);
    const sum = this.money(written, field.line);
    this.totals.expect(`${name}: number of entries (:${tag}:)`, String(Number(stated)), String(count));
    this.totals.expect(`${name}: sum (:${tag}:)`, sum?.toString(), total.toString());
  }

  private entry({ line, text: [written = '', ...supplementary] }: Field, told: readonly Field[]) {
    const found = ENTRY.exec(written.trim());
    if (found === null) return this.complain(line, `'${written}' is not an entry (:61:)`);
    const [, valued = '', booked, mark = '', , digits = '', type = '', customer = '', bank] = found;
    const valueOn = shortDay(valued);
    const bookedOn = booked === undefined ? valueOn : nearest(booked, valued);
    if (valueOn === undefined || bookedOn === undefined)
      return this.complain(line, `'${valued}${booked ?? ''}' is not a date`);
    const amount = this.money(digits, line);
    if (mark.startsWith('E')) this.pending += 1;
    // An entry with the amount zero is a remark of the bank.
    if (amount === undefined || amount.isZero() || mark.startsWith('E')) return undefined;
    const textsOf = (tag: string) => told.flatMap((each) => (each.tag === tag ? each.text : []));
    const information = readEntryText(textsOf('86'), supplementary);
    const text = information.text || supplementary.join(' ').trim();
    const isReversal = mark.startsWith('R');
    const direction = mark === 'C' || mark === 'RD' ? 'credit' : 'debit';
    return {
      ...{ position: line, booked_on: bookedOn, value_on: valueOn, direction, amount, text },
      bank_reference: meaningful(bank),
      references: references([
        ...information.references,
        ...[['customer reference', customer] as const, ['text', supplementary.join(' ')] as const],
        ...textsOf('NS').map((each) => ['text', each] as const),
      ]),
      particulars: references(information.particulars),
      payer_name: information.name,
      behind: information.behind,
      payer_account: information.account,
      type: joined([type, information.code]).replace(' ', '/'),
      // A received credit transfer of SWIFT.
      method: methodOf(type, text, /^[A-Z](?:TRF|051|103)/),
      reversal: isReversal || information.isReturn,
      return_code: information.returnCode,
      raw: [`:61:${written}`, ...supplementary, ...told.map((each) => `:${each.tag}:${each.text.join('\n')}`)]
        .join('\n')
        .trimEnd(),
    } satisfies BankLine;
  }
}

const NOTHING = { reference: '', opening: undefined, closing: undefined, closed_on: undefined, pending: 0 };

/** Returns the account without spaces, and the currency after it: `NL69INGB0123456789EUR`, `12345678 EUR`. */
function accountOf(written: string): [account: string, currency?: string] {
  const plain = compact(written);
  const [, account, currency] = /^(.*\d)([A-Z]{3})$/.exec(plain) ?? [];
  return account !== undefined && currency !== undefined && isCurrency(currency) ? [account, currency] : [plain];
}

/** A booking day has no year. It is near the value date. */
function nearest(monthAndDay: string, valued: string) {
  const year = Number(valued.slice(0, 2));
  const distance = (on: string) => Math.abs(Date.parse(on) - Date.parse(shortDay(valued) ?? on));
  return [year - 1, year, year + 1]
    .flatMap((each) => shortDay(`${String(each).padStart(2, '0')}${monthAndDay}`) ?? [])
    .sort((one, other) => distance(one) - distance(other))[0];
}
