/**
 * OFX 1 (SGML) and OFX 2 (XML), also named QFX and QBO. The format states no sum of its transactions. So each
 * transaction must be whole, its type must not contradict its sign, and none with an id may occur twice.
 */
import { isUtf8 } from 'node:buffer';
import { someOf } from '#errors/definition';
import { FieldProblem } from '#errors/refusals';
import { PROBLEMS_TOLD } from '#reading/limits';
import { isCurrency } from '#values';
import { BankFile, BankFormat, decode, newlines, withSingleBytes } from './format.ts';
import {
  amountIn,
  BankLine,
  BankStatement,
  balanceRemarks,
  compact,
  dayOf,
  invalidFile,
  joined,
  meaningful,
  methodOf,
  references,
  returnCodeIn,
} from './statement.ts';
import { MOST_NESTED, TOO_DEEP } from './xml.ts';

export const ofx: BankFormat = {
  name: 'ofx',
  title: 'OFX',
  matches: ({ head }) => /^(?:OFXHEADER\s*:|(?:(?:<\?xml[^>]*>|<!--[\s\S]*?-->)\s*)*(?:<\?OFX\s|<OFX>))/i.test(head),
  *read(file) {
    const reader = new OfxReader(file.name);
    for (const [text, at] of piecesOf(file)) {
      reader.take(text);
      for (const [of, line] of reader.lines.splice(0)) yield { of, at, line };
      if (reader.problems.length >= PROBLEMS_TOLD) break;
    }
    if (reader.problems.length === 0) reader.end();
    if (reader.problems.length > 0) throw invalidFile(file.name, reader.problems);
    for (const [of, statement] of reader.statements.entries()) yield { of, statement };
  },
};
/** Longer texts are collected late: pieces of 256 KiB took 100 MB more. */
const PIECE_BYTES = 32 * 1024;
/** Of an element: the expression for a tag and its text fails on many times as much. */
const LONGEST_BYTES = 1024 * 1024;
const BEGINS_A_TAG = '<'.charCodeAt(0);

const hasOpenSection = (piece: Buffer) => piece.lastIndexOf('<![CDATA[') > piece.lastIndexOf(']]>');

/** Yields the text in pieces that end before a tag, with the position after each piece. */
function* piecesOf(file: BankFile): Generator<readonly [text: string, at: number]> {
  const declared = /^CHARSET:\s*(?:ISO-)?(8859-\d+|125\d)/m.exec(file.bytes.subarray(0, 1000).toString('latin1'))?.[1];
  const charset = (declared ?? '1252').replace(/^(?=8859)/, 'iso-').replace(/^(?=125)/, 'windows-');
  const { name, bytes } = withSingleBytes(file);
  const encoding = isUtf8(bytes) ? 'utf-8' : charset;
  for (let from = 0; from < bytes.length; ) {
    let to = from;
    let reach = from;
    do {
      reach = Math.min(bytes.length, reach + Math.max(PIECE_BYTES, reach - from));
      if (reach - from > LONGEST_BYTES) {
        throw invalidFile(name, [{ path: '', reason: `has an element of more than ${LONGEST_BYTES} bytes` }]);
      }
      to = reach === bytes.length ? reach : Math.max(bytes.lastIndexOf(BEGINS_A_TAG, reach), from);
      // A tag is longer than a piece, or a character section (CDATA) has not ended.
    } while (to < bytes.length && (to === from || hasOpenSection(bytes.subarray(from, to))));
    yield [decode({ name, bytes: bytes.subarray(from, to) }, encoding), to];
    from = to;
  }
}

/** An element with its text, if it is a field, or with its fields. */
interface Element {
  readonly name: string;
  readonly line: number;
  text: string;
  children: Element[];
}

const STATEMENTS = new Set(['STMTRS', 'CCSTMTRS']);
const TRANSACTION = 'STMTTRN';
/**
 * The types that state a direction. Interest (INT) is earned or paid, and payments and direct debits are made or
 * received, by their signs.
 */
const CREDITS = new Set(['CREDIT', 'DEP', 'DIRECTDEP']);
const FEES = new Set(['FEE', 'SRVCHG']);
/** With a plus sign, a fee was given back or a check was received, if the bank writes minus signs at all. */
const PERHAPS_CREDITS = new Set(['CHECK', ...FEES]);
/** A card's account receives payments, so only other accounts leave the sign in doubt. */
const PERHAPS_RECEIVED = new Set(['PAYMENT', 'DIRECTDEBIT']);
/** Elements that must be closed. A field without text may be left open in SGML. */
const MUST_CLOSE = new Set([
  ...STATEMENTS,
  TRANSACTION,
  'OFX',
  'BANKTRANLIST',
  'LEDGERBAL',
  'BANKACCTFROM',
  'CCACCTFROM',
  'CURRENCY',
  'ORIGCURRENCY',
  'PAYEE',
  'BANKACCTTO',
]);
/** The name is matched once: its shorter beginnings took hours for a name of a million characters. */
const TAG = /<(\/?)([A-Za-z0-9._]+)(?![A-Za-z0-9._])[^<>]*?(\/?)>((?:<!\[CDATA\[[\s\S]*?\]\]>|[^<])*)/g;

/** Keeps a statement's open elements only: a transaction becomes a line when it ends. */
class OfxReader {
  readonly problems: FieldProblem[] = [];
  readonly statements: Omit<BankStatement, 'lines'>[] = [];
  /** The transactions that have ended and were not taken yet. */
  readonly lines: (readonly [statement: number, line: BankLine])[] = [];
  private readonly open: Element[] = [];
  private seen = new Set<string>();
  /** Of the open statement: the transactions of these types with a plus sign, and whether any has a minus sign. */
  private doubtful: Readonly<{ line: number; type: string; title: string }>[] = [];
  private hasMinus = false;
  private line = 1;
  private hasBegun = false;
  private readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  take(text: string) {
    let at = this.hasBegun ? 0 : Math.max(text.search(/<OFX>/i), 0);
    this.hasBegun = true;
    const early = text.slice(0, at).search(/<[^?!]/);
    if (early >= 0) this.complain('has an element before <OFX>', 1 + newlines(text.slice(0, early)));
    this.line += newlines(text.slice(0, at));
    TAG.lastIndex = at;
    for (let tag = TAG.exec(text); tag !== null; tag = TAG.exec(text)) {
      if (tag.index !== at) this.complain('has a character < that begins no element');
      const [whole, closing, name = '', selfClosing, content = ''] = tag;
      if (closing === '/') this.close(name.toUpperCase());
      else this.begin(name.toUpperCase(), plain(content), selfClosing === '/');
      this.line += newlines(whole);
      at = tag.index + whole.length;
    }
    if (at < text.trimEnd().length) this.complain('has a character < that begins no element');
  }

  end() {
    if (this.open.length > 0) this.complain(`has no end of ${this.open.at(-1)?.name}: the file is cut off`);
    else if (this.statements.length === 0) this.complain('has no statement of an account (STMTRS)');
  }

  private complain(reason: string, line = this.line) {
    this.problems.push({ path: `line ${line}`, reason });
    return undefined;
  }

  private begin(name: string, text: string, isEmpty: boolean) {
    const parent = this.open.at(-1);
    if (
      parent !== undefined &&
      (name === TRANSACTION || STATEMENTS.has(name)) &&
      this.open.some((each) => each.name === name)
    ) {
      this.complain(`has a ${name} before the previous one has ended`);
    }
    if (this.open.length === MOST_NESTED) {
      this.complain(TOO_DEEP);
      throw invalidFile(this.file, this.problems);
    }
    const element: Element = { name, line: this.line, text, children: [] };
    parent?.children.push(element);
    if (text === '' && !isEmpty) this.open.push(element);
  }

  private close(name: string) {
    const at = this.open.findLastIndex((each) => each.name === name);
    const parent = this.open.at(-1);
    if (at < 0) {
      // The end of a field that has a text.
      if (parent?.children.at(-1)?.name !== name || parent.children.at(-1)?.text === '')
        this.complain(`ends a ${name} that has not begun`);
      return;
    }
    const [element, ...left] = this.open.splice(at) as [Element, ...Element[]];
    // What follows an empty field that was left open was taken for its fields.
    for (const each of left) {
      if (MUST_CLOSE.has(each.name)) this.complain(`ends a ${name} before its ${each.name} has ended`);
      for (const child of each.children) element.children.push(child);
      each.children = [];
    }
    if (name === TRANSACTION) {
      this.endTransaction(element);
      this.open.at(-1)?.children.pop();
    } else if (STATEMENTS.has(name)) this.endStatement(element);
    else if (name === 'STATUS' && field(element, 'SEVERITY') === 'ERROR') {
      this.complain(`the bank answered with the error ${field(element, 'CODE')} ${field(element, 'MESSAGE')}`.trim());
    }
  }

  private endTransaction(element: Element) {
    const statement = this.open.find((each) => STATEMENTS.has(each.name));
    if (statement === undefined) return this.complain('has a transaction outside a statement');
    const currency = field(statement, 'CURDEF').toUpperCase();
    if (!isCurrency(currency)) return this.complain(`'${currency}' is not a currency (CURDEF)`, statement.line);
    const line = this.transaction(element, currency);
    if (line !== undefined) this.lines.push([this.statements.length, line]);
  }

  private endStatement(statement: Element) {
    const account = bankAccountOf(statement) || field(statement, 'CCACCTFROM', 'ACCTID');
    const currency = field(statement, 'CURDEF').toUpperCase();
    if (account === '') this.complain('the statement names no account (ACCTID)', statement.line);
    if (!isCurrency(currency)) this.complain(`'${currency}' is not a currency (CURDEF)`, statement.line);
    // The balance (LEDGERBAL) may be later than the transactions.
    const balances = { account: compact(account), opening: undefined, closing: undefined };
    const remarks = this.endDoubts(statement.name === 'CCSTMTRS');
    this.statements.push({
      ...{ ...balances, currency, reference: '', closed_on: undefined, pending: pendingOf(statement) },
      remarks: [...remarks, ...balanceRemarks(balances)],
    });
    this.seen = new Set();
    statement.children = [];
  }

  /** A bank that writes minus signs means a plus sign. Otherwise, it may write no signs. */
  private endDoubts(ofCard: boolean) {
    const { doubtful, hasMinus } = this;
    [this.doubtful, this.hasMinus] = [[], false];
    const credits = doubtful.filter(({ type }) => PERHAPS_CREDITS.has(type));
    if (!hasMinus) {
      for (const { line, title } of ofCard ? credits : doubtful) {
        this.complain(
          `${title} has no minus sign. Was it received or given back? If so, import a longer period, in which the ` +
            'bank writes a minus sign to a debit; otherwise, the bank writes no signs: import its CSV or camt.053',
          line,
        );
      }
    }
    const named = someOf(credits.map(({ line, title }) => `${title} (line ${line})`));
    return credits.length === 0 ? [] : [`Read as credits, because they have no minus sign: ${named}.`];
  }

  private transaction(element: Element, currency: string): BankLine | undefined {
    const { line } = element;
    const of = (...path: readonly string[]) => field(element, ...path);
    const [type, id, written] = [of('TRNTYPE').toUpperCase(), of('FITID'), of('TRNAMT')];
    for (const name of ['TRNTYPE', 'DTPOSTED', 'TRNAMT', 'FITID']) {
      if (of(name) === '') return this.complain(`the transaction has no ${name}`, line);
      if (element.children.filter((each) => each.name === name).length > 1) {
        return this.complain(`the transaction has two ${name}`, line);
      }
    }
    const bookedOn = day(of('DTPOSTED'));
    if (bookedOn === undefined) return this.complain(`'${of('DTPOSTED')}' is not a date (DTPOSTED)`, line);
    const stated = of('CURRENCY', 'CURSYM').toUpperCase() || currency;
    if (stated !== currency) return this.complain(`is in ${stated}, but the account is in ${currency}`, line);
    const amount = amountIn(currency, written);
    if (typeof amount === 'string') return this.complain(`${amount} (TRNAMT)`, line);
    // A transaction with the amount zero is a remark of the bank.
    if (amount.isZero()) return undefined;
    const direction = written.startsWith('-') ? 'debit' : 'credit';
    this.hasMinus ||= direction === 'debit';
    if (direction === 'credit' && (PERHAPS_CREDITS.has(type) || PERHAPS_RECEIVED.has(type))) {
      this.doubtful.push({ line, type, title: `the ${type} of ${written}` });
    } else if (direction === 'debit' ? CREDITS.has(type) : type === 'DEBIT') {
      return this.complain(`the amount ${written} contradicts the type ${type}`, line);
    }
    const name = of('NAME') || of('PAYEE', 'NAME');
    const memo = of('MEMO');
    // A copy: a part of the text would keep the whole piece of the file in memory.
    const same = JSON.stringify([id, bookedOn, direction, amount.toString(), name, memo]);
    if (this.seen.has(same)) return this.complain(`the transaction ${id} occurs twice`, line);
    // Some banks number no transactions: all have the id 0.
    if (meaningful(id) !== undefined) this.seen.add(same);
    const text = joined([name, of('EXTDNAME'), memo]);
    const corrects = of('CORRECTFITID');
    return {
      ...{ position: line, booked_on: bookedOn, value_on: day(of('DTAVAIL')), direction, amount, text },
      bank_reference: meaningful(id),
      references: references([
        ['customer reference', of('REFNUM')],
        ['text', memo],
        ['text', text],
        ['check number', of('CHECKNUM')],
        ['server id', of('SRVRTID')],
      ]),
      particulars: references([
        ['exchange rate', joined([of('ORIGCURRENCY', 'CURSYM'), of('ORIGCURRENCY', 'CURRATE')])],
      ]),
      payer_name: meaningful(name),
      payer_account: meaningful(compact(of('BANKACCTTO', 'ACCTID'))),
      type,
      method: methodOf(type, text),
      ...{ reversal: direction === 'credit' && FEES.has(type), return_code: returnCodeIn(direction, text) },
      ...(corrects !== '' && { held: `the bank corrects its transaction ${corrects}` }),
      raw: rawOf(element),
    };
  }
}

const pendingOf = (statement: Element) =>
  statement.children
    .filter(({ name }) => name === 'BANKTRANLISTP')
    .reduce((sum, { children }) => sum + children.filter(({ name }) => name === 'STMTTRNP').length, 0);

/** The account. In Germany, it is the bank code and the number. A number of another country names no bank. */
function bankAccountOf(statement: Element) {
  const [bank, number] = ['BANKID', 'ACCTID'].map((name) => compact(field(statement, 'BANKACCTFROM', name)));
  return /^\d{8}\/\d{1,10}$/.test(`${bank}/${number}`) ? `${bank}/${number}` : (number as string);
}

function field(element: Element, ...path: readonly string[]) {
  let at: Element | undefined = element;
  for (const name of path) at = at?.children.find((each) => each.name === name);
  return at?.text ?? '';
}

const rawOf = ({ children }: Element): string =>
  children
    .map((each) => `<${each.name}>${each.text}${each.children.length > 0 ? `${rawOf(each)}</${each.name}>` : ''}`)
    .join('\n');

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', nbsp: ' ', quot: '"', apos: "'" };

const plain = (content: string) =>
  content
    .replace(/<!\[CDATA\[([\s\S]*?)\]\]>/g, (_, text: string) => text.replaceAll('&', '&amp;'))
    .replace(/&(?:#(\d{1,6})|#x([0-9a-f]{1,5})|(\w+));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal);
      return code > 0 && code < 0x110000 ? String.fromCodePoint(code) : whole;
    })
    .replace(/\s+/g, ' ')
    .trim();

/** `20261007`, `20261007120000.000[-5:EST]`: the day as the bank writes it. */
function day(text: string) {
  const [, year, month, at] = /^(\d{4})(\d{2})(\d{2})(?:\d{2,6}(?:\.\d*)?)?\s*(?:\[[^\]]*\])?$/.exec(text) ?? [];
  return dayOf(year, month, at);
}
