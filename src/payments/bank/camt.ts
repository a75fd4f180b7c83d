/**
 * The ISO 20022 messages camt.053 (statements), camt.052 (interim reports) and camt.054 (notifications with the details
 * of entries), in versions 2 to 13. The opening balance and the entries must add up to the closing balance. Sums and
 * numbers of entries and totals of batches are checked too. Each entry is parsed on its own, so that the memory needed
 * does not grow with the file.
 */
import { createHash, randomUUID } from 'node:crypto';
import { FieldProblem } from '#errors/refusals';
import { PROBLEMS_TOLD } from '#reading/limits';
import { Amount, isCurrency, isDate } from '#values';
import { date, directionOf, Entry, EntryReader, notDirection, ReadMoney } from './camt-entries.ts';
import { BankFile, BankFormat, decode, HEAD_BYTES, markedEncoding, newlines } from './format.ts';
import {
  BankPart,
  BankStatement,
  balanceRemarks,
  compact,
  decimalIn,
  invalidFile,
  signed,
  Totals,
} from './statement.ts';
import { attribute, child, EMPTY, Namespaces, Node, nodes, parseXml, textAt, XmlFault } from './xml.ts';

type Message = Readonly<{
  name: string;
  title: string;
  /** The element of the message, and the element in it that corresponds to a statement. */
  element: string;
  statement: string;
  only?: BankStatement['only'];
}>;

const format = (message: Message): BankFormat => ({
  name: message.name,
  title: message.title,
  matches: ({ head }) =>
    head.startsWith('<') &&
    // The most common message, and the only one that is tried on other XML.
    (message.only === undefined ||
      new RegExp(`<(?:[^\\s<>/:]+:)?${message.element}[\\s>/]|tech:xsd:${message.title}\\.`).test(head)),
  read: (file) => readMessage(file, message),
});

export const camt053 = format({ name: 'camt053', title: 'camt.053', element: 'BkToCstmrStmt', statement: 'Stmt' });
export const camt052 = format({
  ...{ name: 'camt052', title: 'camt.052', element: 'BkToCstmrAcctRpt', statement: 'Rpt', only: 'interim' },
});
export const camt054 = format({
  ...{ name: 'camt054', title: 'camt.054', element: 'BkToCstmrDbtCdtNtfctn', statement: 'Ntfctn', only: 'details' },
});

/** Encodings in which `<` is never a part of another character. */
const SINGLE_BYTE = /^(?:utf-8|us-ascii|iso-?8859-\d+|latin-?1|windows-125\d)$/i;

function* readMessage(file: BankFile, message: Message): Generator<BankPart> {
  const document = new EntriesApart(file);
  const { skeleton } = document;
  const messages = messagesOf(skeleton);
  const other = messages.find(({ name }) => name !== message.element);
  const statements = messages.flatMap(({ name, content }) =>
    name !== message.element
      ? []
      : nodes(content, message.statement).map((statement) => ({
          statement,
          created: date({ Dt: textAt(content, 'GrpHdr', 'CreDtTm') }),
        })),
  );
  if (statements.length > 0 && other !== undefined) {
    const reason = `has a message ${other.name} beside ${message.title} (${message.element}): import each in a file of its own`;
    throw invalidFile(file.name, [{ path: '', reason }]);
  }
  if (statements.length === 0) {
    const root = Object.keys(skeleton).find((name) => !name.startsWith('?')) ?? '';
    const reason = `has no ${message.title} statement (${message.statement}): it begins with the element ${root}`;
    throw invalidFile(file.name, [{ path: '', reason }]);
  }
  const problems: FieldProblem[] = [];
  const totals = new Totals();
  const entries = { count: 0, apart: 0 };
  const read: Omit<BankStatement, 'lines'>[] = [];
  for (const [index, { statement, created }] of statements.entries()) {
    const name = `statement ${index + 1}`;
    const source = { statement, message, index, name, created, document, problems, totals, entries };
    read.push(yield* readStatement(source));
  }
  if (problems.length === 0 && entries.apart < document.size)
    problems.push({ path: '', reason: `has an entry (Ntry) outside a statement (${message.statement})` });
  if (problems.length > 0) throw invalidFile(file.name, problems);
  totals.refuse(file.name);
  const only = message.only === undefined ? {} : { only: message.only };
  for (const [of, statement] of read.entries()) yield { of, statement: { ...statement, ...only } };
}

/** The messages of all documents. */
const messagesOf = (skeleton: Node) =>
  documentsIn(skeleton).flatMap((document) =>
    namesIn(document).flatMap((name) => all(document, name).map((content) => ({ name, content }))),
  );

/** Documents may be in envelopes at any level, which also have the application header. */
const documentsIn = (node: Node): Node[] =>
  namesIn(node).flatMap((name) =>
    all(node, name).flatMap((each) => (name === 'Document' ? [each] : documentsIn(each))),
  );

const namesIn = (node: Node) => Object.keys(node).filter((name) => !/^[@#?]/.test(name));

/** The elements with a name. The parser makes a list of them if there are several. */
const all = (node: Node, name: string) =>
  [node[name] ?? []].flat().filter((each): each is Node => typeof each === 'object');

/** An XML file whose entries (`Ntry`) are parsed one by one when they are read. */
class EntriesApart {
  readonly skeleton: Node;
  /** The attribute that names entries. No file can have it. */
  private readonly mark = `of-${randomUUID()}`;
  private readonly name: string;
  private readonly bytes: Buffer;
  private readonly encoding: string;
  /** An entry has the prefix of its message. */
  private readonly namespaces: Namespaces;
  /** For each entry: the first byte, the byte after the last, and the line of the file. */
  private readonly places: number[] = [];

  constructor(file: BankFile) {
    this.name = file.name;
    const declared = declaredEncoding(file.bytes);
    const isPlain = markedEncoding(file.bytes) === undefined && SINGLE_BYTE.test(declared);
    this.bytes = isPlain ? file.bytes : Buffer.from(decode(file, declared));
    this.encoding = isPlain ? declared : 'utf-8';
    const pieces: string[] = [];
    const tag = /<((?:[^\s<>/:]+:)?)BkToCstmr\w+[\s>]/.exec(this.bytes.toString('latin1', 0, HEAD_BYTES))?.[1] ?? '';
    this.namespaces = { '': tag && 'another', [tag.slice(0, -1)]: '' };
    let line = 1;
    let at = 0;
    // Entries that follow each other are one element of the skeleton, which says which entries they are.
    let run: { first: number; lines: number } | undefined;
    const endRun = () => {
      const to = this.size;
      if (run !== undefined) pieces.push(`<Ntry ${this.mark}="${run.first} ${to}"/>${'\n'.repeat(run.lines)}`);
      run = undefined;
    };
    for (;;) {
      const from = this.nextTag(`<${tag}Ntry`, at);
      const end = from < 0 ? -1 : this.nextTag(`</${tag}Ntry`, from);
      const before = this.text(at, end < 0 ? this.bytes.length : from);
      if (end < 0 || before.trim() !== '') {
        endRun();
        pieces.push(before);
      } else if (run !== undefined) run.lines += newlines(before);
      if (end < 0) break;
      line += newlines(before);
      const to = this.bytes.indexOf('>', end) + 1;
      run ??= { first: this.size, lines: 0 };
      this.places.push(from, to, line);
      const lines = this.newlinesIn(from, to);
      run.lines += lines;
      line += lines;
      at = to;
    }
    this.skeleton = this.parse(pieces.join(''), 1);
  }

  /** The number of entries that are parsed on their own. */
  get size() {
    return this.places.length / 3;
  }

  /** Yields the entries that the nodes of the skeleton stand for, with their lines in the file. */
  *entries(stubs: readonly Node[]): Generator<Readonly<{ node: Node; line: number | undefined; at: number }>> {
    for (const stub of stubs) {
      // An entry that is empty or has another prefix was parsed with the skeleton.
      const range = stub[`@${this.mark}`];
      if (range === undefined) yield { node: stub, line: undefined, at: this.bytes.length };
      const [first = 0, end = 0] = String(range ?? '')
        .split(' ')
        .map(Number);
      for (let index = first; index < end; index += 1) {
        const [from = 0, to = 0, line = 0] = this.places.slice(index * 3, index * 3 + 3);
        const entry = this.parse(this.text(from, to), line, this.namespaces);
        yield { node: nodes(entry, 'Ntry')[0] ?? EMPTY, line, at: to };
      }
    }
  }

  private newlinesIn(from: number, to: number) {
    let count = 0;
    for (let at = this.bytes.indexOf(NEWLINE, from); at >= 0 && at < to; at = this.bytes.indexOf(NEWLINE, at + 1))
      count += 1;
    return count;
  }

  private nextTag(tag: string, at: number) {
    let from = this.bytes.indexOf(tag, at);
    while (from >= 0 && !ENDS_A_NAME.has(this.bytes[from + tag.length])) from = this.bytes.indexOf(tag, from + 1);
    return from;
  }

  private text(from: number, to: number) {
    return decode({ name: this.name, bytes: this.bytes.subarray(from, to) }, this.encoding);
  }

  private parse(text: string, firstLine: number, namespaces?: Namespaces) {
    try {
      return parseXml(text, namespaces);
    } catch (error) {
      if (!(error instanceof XmlFault)) throw error;
      const path = error.line === undefined && firstLine === 1 ? '' : `line ${firstLine + (error.line ?? 1) - 1}`;
      throw invalidFile(this.name, [{ path, reason: error.message }]);
    }
  }
}

const NEWLINE = 0x0a;
const ENDS_A_NAME = new Set<number | undefined>([...'> \t\r\n'].map((each) => each.charCodeAt(0)));
const declaredEncoding = (bytes: Buffer) =>
  /^<\?xml[^>]*encoding=["']([A-Za-z0-9._-]+)["']/.exec(bytes.subarray(0, 200).toString('latin1').trimStart())?.[1] ??
  'utf-8';

type StatementSource = Readonly<{
  statement: Node;
  message: Message;
  index: number;
  name: string;
  /** The day on which the bank wrote the file. */
  created: string;
  document: EntriesApart;
  problems: FieldProblem[];
  totals: Totals;
  /** The entries of the file that were read, and those of them that were parsed on their own. */
  entries: { count: number; apart: number };
}>;

function* readStatement(source: StatementSource): Generator<BankPart, Omit<BankStatement, 'lines'>> {
  const { statement, message, index, name, created, document, problems, totals, entries } = source;
  const id = child(statement, 'Acct', 'Id');
  const account = compact(textAt(id, 'IBAN') || textAt(id, 'Othr', 'Id'));
  const path = `${name} of ${account || 'no account'}`;
  if (account === '') problems.push({ path, reason: 'names no account (Acct/Id)' });
  const balances = nodes(statement, 'Bal');
  const stubs = nodes(statement, 'Ntry');
  const currency =
    textAt(statement, 'Acct', 'Ccy') ||
    attribute(balances[0] ?? EMPTY, ['Amt'], 'Ccy') ||
    attribute(document.entries(stubs).next().value?.node ?? EMPTY, ['Amt'], 'Ccy');
  if (!isCurrency(currency)) {
    problems.push({ path, reason: `'${currency}' is not a currency` });
    const unread = { reference: '', opening: undefined, closing: undefined, closed_on: undefined };
    return { account, currency, ...unread, pending: 0 };
  }
  const money: ReadMoney = (written, stated, where) => {
    const isOther = stated !== '' && stated !== currency;
    const amount = isOther
      ? `is in ${stated}, but the account is in ${currency}`
      : decimalIn(currency, written, XS_DECIMAL);
    if (typeof amount !== 'string') return amount;
    problems.push({ path: where, reason: amount });
    return Amount.zero(currency);
  };
  const remarks: string[] = [];
  const seen = new Map<string, number>();
  const { opening, closing, closedOn } = balancesOf(balances, path, source, money);
  const day =
    closedOn ?? (date(child(statement, 'FrToDt', 'ToDtTm')) || textAt(statement, 'CreDtTm').slice(0, 10) || created);
  /** Balances would show an entry that occurs twice. Without them, its reference does. */
  const refuseTwice = (node: Node, { lines }: Entry, position: number) => {
    const [reference] = lines.flatMap((each) => each.bank_reference ?? []);
    if (reference === undefined) return;
    const digest = createHash('sha256').update(JSON.stringify(node)).digest('base64');
    const first = seen.get(digest);
    if (first !== undefined)
      problems.push({ path: `${path}, entry ${position}`, reason: `is entry ${first} (${reference}) again` });
    seen.set(digest, position);
  };
  const reader = new EntryReader({ path, problems, money, totals, day, remarks });
  const sums = new EntrySums(currency);
  for (const { node, line, at } of document.entries(stubs)) {
    entries.count += 1;
    if (line !== undefined) entries.apart += 1;
    const entry = reader.read(node, { position: entries.count, line });
    sums.add(entry, entry.booked);
    if (opening === undefined || closing === undefined) refuseTwice(node, entry, entries.count);
    if (entry.booked) for (const each of entry.lines) yield { of: index, at, line: each };
    if (problems.length >= PROBLEMS_TOLD) break;
  }

  if (opening !== undefined) {
    const at = `${path}: closing balance (CLBD)`;
    totals.expect(at, closing?.toString(), opening.plus(sums.booked).toString());
  }
  const isSummed = checkSummary(child(statement, 'TxsSummry'), sums, source, path, money);
  if (message.only === undefined)
    remarks.push(
      ...balanceRemarks({ account, opening, closing }, isSummed ? 'the totals of its entries (TxsSummry)' : ''),
    );
  return {
    ...{ account, currency, opening, closing, closed_on: closedOn, remarks },
    reference: textAt(statement, 'Id'),
    pending: sums.pending,
  };
}

/** A page of a statement begins or ends with an interim balance (ITBD). An interim report states it for other entries. */
function balancesOf(all: readonly Node[], path: string, { message, problems }: StatementSource, money: ReadMoney) {
  const complain = (reason: string) => problems.push({ path, reason });
  const coded = all.map((node) => {
    const kind = child(node, 'Tp', 'CdOrPrtry');
    const code = textAt(kind, 'Cd');
    if (code === '' && textAt(kind, 'Prtry') === '') complain('has a balance that does not say which it is (Bal/Tp)');
    return { code, node };
  });
  const named = (code: string) => coded.find((each) => each.code === code);
  const interim = message.only === undefined ? coded.filter(({ code }) => code === 'ITBD') : [];
  const amount = (of: (typeof coded)[number] | undefined) => {
    if (of === undefined) return undefined;
    const title = `balance ${of.code}`;
    const read = money(textAt(of.node, 'Amt'), attribute(of.node, ['Amt'], 'Ccy'), `${path}, ${title}`);
    const direction = directionOf(of.node);
    if (direction === undefined) complain(notDirection(of.node, title));
    return direction === 'debit' ? read.negated() : read;
  };
  for (const code of ['OPBD', 'CLBD']) {
    const [first, other] = new Set(coded.flatMap((each) => (each.code === code ? [amount(each)?.toString()] : [])));
    if (other !== undefined) complain(`has two balances ${code}: ${first} and ${other}`);
  }
  const opening = amount(named('OPBD') ?? named('PRCD') ?? interim.shift());
  const last = named('CLBD');
  const closedOn = date(child(last?.node, 'Dt'));
  if (closedOn !== '' && !isDate(closedOn)) complain(`'${closedOn}' is not a date (balance CLBD)`);
  return { opening, closing: amount(last ?? interim.pop()), closedOn: closedOn || undefined };
}

/** Whether the bank states the sum of the entries. */
function checkSummary(
  of: Node,
  { all, credit, debit }: EntrySums,
  { totals }: StatementSource,
  path: string,
  money: ReadMoney,
) {
  const isSum = (title: string, text: string, found: Amount) => {
    if (text !== '')
      totals.expect(`${path}: sum (${title})`, money(text, '', `${path}, ${title}`).toString(), found.toString());
    return text !== '';
  };
  const isStated = (block: string, found: EntrySum) => {
    const number = textAt(of, block, 'NbOfNtries');
    // Some banks count the transactions in the entries.
    if (number !== '' && Number(number) !== found.transactions)
      totals.expect(`${path}: number of entries (${block})`, String(Number(number)), String(found.entries));
    return isSum(block, textAt(of, block, 'Sum'), found.sum);
  };
  const total = child(of, 'TtlNtries');
  const net = child(total, 'TtlNetNtry');
  const sum = credit.sum.minus(debit.sum);
  const isNet = isSum(
    'TtlNetNtry',
    textAt(net, 'Amt') || textAt(total, 'TtlNetNtryAmt'),
    (directionOf(net) ?? directionOf(total)) === 'debit' ? sum.negated() : sum,
  );
  const sides = [isStated('TtlCdtNtries', credit), isStated('TtlDbtNtries', debit)];
  return isStated('TtlNtries', all) || isNet || sides.every(Boolean);
}

class EntrySums {
  readonly all: EntrySum;
  readonly credit: EntrySum;
  readonly debit: EntrySum;
  booked: Amount;
  pending = 0;

  constructor(currency: string) {
    const none = () => ({ entries: 0, transactions: 0, sum: Amount.zero(currency) });
    [this.all, this.credit, this.debit, this.booked] = [none(), none(), none(), Amount.zero(currency)];
  }

  add({ direction, amount, transactions }: Pick<Entry, 'direction' | 'amount' | 'transactions'>, isBooked: boolean) {
    for (const each of [this.all, this[direction]]) {
      each.entries += 1;
      each.transactions += transactions;
      each.sum = each.sum.plus(amount);
    }
    if (!isBooked) this.pending += 1;
    else this.booked = this.booked.plus(signed({ direction, amount }));
  }
}

interface EntrySum {
  entries: number;
  transactions: number;
  sum: Amount;
}

/** An xs:decimal may have a sign, and no digits before or after its point. */
const XS_DECIMAL = /^\+?(-?\d*)(?:\.(\d*))?$/;
