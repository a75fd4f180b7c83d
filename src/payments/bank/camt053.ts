/**
 * camt.053, the ISO 20022 bank statement with booked entries (versions camt.053.001.02 to .08). The opening balance and
 * the entries must add up to the closing balance. Sums and numbers of entries and totals of batches are checked too.
 */
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { FieldProblem } from '#errors/refusals';
import { Method } from '#payments/enums';
import { Amount, amountProblem, isCurrency, isDate, minorDigits } from '#values';
import { methodOfCode } from './bai2.ts';
import { BankFormat, decode } from './format.ts';
import { BankLine, BankStatement, invalidFile, meaningful, methodInWords, references, Totals } from './statement.ts';

type Node = { readonly [name: string]: Node | readonly Node[] | string | undefined };

const LISTS = new Set(['Stmt', 'Ntry', 'NtryDtls', 'TxDtls', 'Ustrd', 'Strd', 'Bal', 'RfrdDocInf', 'Rcrd']);

const MOST_NESTED = 100;
const TOO_DEEP = `tags are nested deeper than ${MOST_NESTED}`;

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  removeNSPrefix: true,
  parseTagValue: false,
  parseAttributeValue: false,
  // Also decodes numeric character references (&#252;). A file with a document type is refused, because a document type
  // can define entities.
  htmlEntities: true,
  isArray: (name) => LISTS.has(name),
  maxNestedTags: MOST_NESTED,
});

export const camt053: BankFormat = {
  name: 'camt053',
  matches: ({ head }) => head.startsWith('<'),
  read: (file) => readDocument(decode(file, declaredEncoding(file.bytes)), file.name),
};

const declaredEncoding = (bytes: Buffer) =>
  /^<\?xml[^>]*encoding=["']([A-Za-z0-9._-]+)["']/.exec(bytes.subarray(0, 200).toString('latin1').trimStart())?.[1] ??
  'utf-8';

/** A tag with 200,000 attributes took the validator 10 s. */
const LONG_TAG = /<[^<>]{100000}/;

function readDocument(text: string, file: string): BankStatement[] {
  if (/<!DOCTYPE|<!ENTITY/i.test(text)) {
    throw invalidFile(file, [{ path: '', reason: 'has a document type (DOCTYPE), which is not allowed' }]);
  }
  if (LONG_TAG.test(text)) throw invalidFile(file, [{ path: '', reason: 'has a tag of more than 100000 characters' }]);
  const valid = XMLValidator.validate(text);
  if (valid !== true) {
    throw invalidFile(file, [{ path: `line ${valid.err.line}`, reason: faultOf(valid.err.msg) }]);
  }
  const document = child(parseXml(text, file), 'Document');
  const statements = nodes(child(document, 'BkToCstmrStmt'), 'Stmt');
  if (statements.length === 0) throw invalidFile(file, [{ path: '', reason: 'has no camt.053 statement (Stmt)' }]);
  const problems: FieldProblem[] = [];
  const totals = new Totals();
  const read = statements.map((statement, index) =>
    readStatement(statement, `statement ${index + 1}`, problems, totals),
  );
  if (problems.length > 0) throw invalidFile(file, problems);
  totals.refuse(file);
  return read;
}

/** Lists of unclosed tags come from the validator as JSON: `Invalid '["Document", …]' found.` */
function faultOf(message: string) {
  const open = /^Invalid '(\[.*\])' found/s.exec(message)?.[1];
  if (open === undefined) return `is not XML: ${message}`;
  return open.split('",').length > MOST_NESTED ? TOO_DEEP : 'is not XML: has tags that are not closed';
}

/** The parser throws at names such as __proto__, deep nesting and too many entities. */
function parseXml(text: string, file: string) {
  try {
    return parser.parse(text) as Node;
  } catch (error) {
    const { message } = error as Error;
    const reason = /nested tags/.test(message) ? TOO_DEEP : `is XML that cannot be parsed: ${message}`;
    throw invalidFile(file, [{ path: '', reason }]);
  }
}

// --- Reading nodes ---

const EMPTY: Node = {};

function child(node: Node | undefined, ...path: readonly string[]) {
  let at: Node = node ?? EMPTY;
  for (const name of path) {
    const next = at[name];
    const one = Array.isArray(next) ? (next as readonly Node[])[0] : next;
    at = typeof one === 'object' && one !== null ? (one as Node) : EMPTY;
  }
  return at;
}

function nodes(node: Node, name: string) {
  const found = node[name];
  return Array.isArray(found) ? (found as readonly Node[]) : [];
}

function textAt(node: Node, ...path: readonly string[]) {
  const parent = child(node, ...path.slice(0, -1));
  const found = parent[path.at(-1) as string];
  const one = Array.isArray(found) ? (found[0] as Node | string | undefined) : found;
  if (typeof one === 'string') return one.trim();
  const text = (one as Node | undefined)?.['#text'];
  return typeof text === 'string' ? text.trim() : '';
}

function texts(node: Node, name: string) {
  const found = node[name];
  const all = (Array.isArray(found) ? found : found === undefined ? [] : [found]) as readonly (Node | string)[];
  return all
    .map((one) => (typeof one === 'string' ? one : String(one['#text'] ?? '')).trim())
    .filter((one) => one !== '');
}

function attribute(node: Node, path: readonly string[], name: string) {
  const found = child(node, ...path)[`@${name}`];
  return typeof found === 'string' ? found.trim() : '';
}

// --- Statements ---

function readStatement(statement: Node, name: string, problems: FieldProblem[], totals: Totals): BankStatement {
  const id = child(statement, 'Acct', 'Id');
  const account = (textAt(id, 'IBAN') || textAt(id, 'Othr', 'Id')).replace(/\s/g, '');
  const path = `${name} of ${account || 'no account'}`;
  if (account === '') problems.push({ path, reason: 'names no account (Acct/Id)' });
  const balances = nodes(statement, 'Bal');
  const currency =
    textAt(statement, 'Acct', 'Ccy') ||
    attribute(balances[0] ?? EMPTY, ['Amt'], 'Ccy') ||
    attribute(nodes(statement, 'Ntry')[0] ?? EMPTY, ['Amt'], 'Ccy');
  if (!isCurrency(currency)) {
    problems.push({ path, reason: `'${currency}' is not a currency` });
    const unread = { reference: '', opening: undefined, closing: undefined, closed_on: undefined };
    return { account, currency, ...unread, lines: [], pending: 0 };
  }
  const money: ReadMoney = (text, stated, where) => {
    if (stated !== '' && stated !== currency) {
      problems.push({ path: where, reason: `is in ${stated}, but the account is in ${currency}` });
    } else if (amountProblem(text, minorDigits(currency) as number) === undefined) return Amount.of(text, currency);
    else problems.push({ path: where, reason: `'${text}' is not an amount in ${currency}` });
    return Amount.zero(currency);
  };
  const entry = new EntryReader(path, problems, money, totals);
  const entries = nodes(statement, 'Ntry').map((node, index) => entry.read(node, index + 1));
  const booked = entries.filter((each) => each.booked);

  const balance = (...codes: readonly string[]) => {
    for (const code of codes) {
      const found = balances.find((each) => textAt(each, 'Tp', 'CdOrPrtry', 'Cd') === code);
      if (found === undefined) continue;
      const amount = money(textAt(found, 'Amt'), attribute(found, ['Amt'], 'Ccy'), `${path}, balance ${code}`);
      return textAt(found, 'CdtDbtInd') === 'DBIT' ? amount.negated() : amount;
    }
    return undefined;
  };
  const opening = balance('OPBD', 'PRCD');
  const closing = balance('CLBD');
  const only = (of: readonly Entry[], way: Entry['direction']) => of.filter((each) => each.direction === way);
  const sum = (of: readonly Entry[]) => Amount.sum(currency, of, ({ amount }) => amount);
  if (opening !== undefined) {
    const found = opening.plus(sum(only(booked, 'credit'))).minus(sum(only(booked, 'debit')));
    totals.expect(`${path}: closing balance (CLBD)`, closing?.toString(), found.toString());
  }
  const summary = child(statement, 'TxsSummry');
  for (const [block, of] of [
    ['TtlNtries', entries],
    ['TtlCdtNtries', only(entries, 'credit')],
    ['TtlDbtNtries', only(entries, 'debit')],
  ] as const) {
    const number = textAt(child(summary, block), 'NbOfNtries');
    const stated = textAt(child(summary, block), 'Sum');
    if (number !== '') {
      totals.expect(`${path}: number of entries (${block})`, String(Number(number)), String(of.length));
    }
    if (stated !== '') {
      const amount = money(stated, '', `${path}, ${block}`);
      totals.expect(`${path}: sum (${block})`, amount.toString(), sum(of).toString());
    }
  }
  return {
    ...{ account, currency, opening, closing },
    reference: textAt(statement, 'Id'),
    closed_on: closedOn(balances),
    lines: booked.flatMap((each) => each.lines),
    pending: entries.length - booked.length,
  };
}

type Entry = Readonly<{
  booked: boolean;
  direction: 'credit' | 'debit';
  amount: Amount;
  lines: readonly BankLine[];
}>;

type ReadMoney = (text: string, currency: string, where: string) => Amount;

function closedOn(balances: readonly Node[]) {
  const closing = balances.find((each) => textAt(each, 'Tp', 'CdOrPrtry', 'Cd') === 'CLBD');
  const day = closing === undefined ? '' : date(child(closing, 'Dt'));
  return isDate(day) ? day : undefined;
}

class EntryReader {
  private readonly statement: string;
  private readonly problems: FieldProblem[];
  private readonly money: ReadMoney;
  private readonly totals: Totals;

  constructor(statement: string, problems: FieldProblem[], money: ReadMoney, totals: Totals) {
    this.statement = statement;
    this.problems = problems;
    this.money = money;
    this.totals = totals;
  }

  read(entry: Node, position: number): Entry {
    const where = `${this.statement}, entry ${position}`;
    const amount = this.money(textAt(entry, 'Amt'), attribute(entry, ['Amt'], 'Ccy'), where);
    this.refuseNegative(amount, where);
    const indicator = textAt(entry, 'CdtDbtInd');
    if (indicator !== 'CRDT' && indicator !== 'DBIT') {
      this.problems.push({ path: where, reason: `'${indicator}' is neither CRDT nor DBIT` });
    }
    const direction = indicator === 'DBIT' ? 'debit' : 'credit';
    // Some banks omit the status, because a camt.053 has only booked entries by definition.
    const booked = entry['Sts'] === undefined || (textAt(entry, 'Sts', 'Cd') || textAt(entry, 'Sts')) === 'BOOK';
    const bookedOn = date(child(entry, 'BookgDt')) || date(child(entry, 'ValDt'));
    if (booked && bookedOn === '') this.problems.push({ path: where, reason: 'has no booking date (BookgDt)' });
    for (const day of new Set([bookedOn, date(child(entry, 'ValDt'))])) {
      if (booked && day !== '' && !isDate(day)) this.problems.push({ path: where, reason: `'${day}' is not a date` });
    }
    const shared = { entry, position, direction, bookedOn } as const;
    // An entry with the amount zero is a remark of the bank.
    const lines = this.lines(shared, amount, where).filter((line) => !line.amount.isZero());
    return { booked, direction, amount, lines };
  }

  private refuseNegative(amount: Amount, where: string) {
    if (!amount.isNegative()) return;
    const reason = `'${amount.toString()}' is negative, but an amount has no sign: CRDT or DBIT gives its direction`;
    this.problems.push({ path: where, reason });
  }

  /** Each part of a batch becomes a line. An entry whose parts have no amounts becomes one line. */
  private lines(shared: EntryFacts, amount: Amount, where: string): BankLine[] {
    const details = nodes(shared.entry, 'NtryDtls');
    const parts = details.flatMap((each) => nodes(each, 'TxDtls'));
    for (const batch of details) {
      const total = textAt(batch, 'Btch', 'TtlAmt');
      if (total === '') continue;
      const stated = this.money(total, attribute(batch, ['Btch', 'TtlAmt'], 'Ccy'), `${where}, batch`);
      this.totals.expect(`${where}: total of the batch (Btch/TtlAmt)`, stated.toString(), amount.toString());
    }
    const amounts = parts.map((part) => this.partAmount(part, PART_AMOUNTS, amount.currency, where));
    const known = amounts.filter((each) => each !== undefined);
    if (parts.length === 0 || known.length < parts.length) return [lineOf(shared, parts, amount)];
    const zero = Amount.zero(amount.currency);
    const sum = known.reduce((total, each) => total.plus(each), zero);
    const stated = [shared.entry, ...parts].flatMap((node) => this.charges(node, amount.currency, where));
    const charges = stated.reduce((total, each) => total.plus(each), zero);
    // The bank deducts its charges from what it receives for us, and adds them to what it pays for us.
    const taken = shared.direction === 'credit' ? sum.minus(amount) : amount.minus(sum);
    if (taken.isPositive() && taken.equals(charges)) {
      return [
        ...parts.map((part, index) => lineOf(shared, [part], known[index] as Amount)),
        chargesOf(shared, parts, charges),
      ];
    }
    if (parts.length === 1) return this.lessCharges(shared, parts[0] as Node, amount, { stated: charges, where });
    // Charges that do not explain the difference: the entry becomes one line.
    if (!taken.isZero() && stated.length > 0) return [lineOf(shared, parts, amount)];
    this.totals.expect(`${where}: its ${parts.length} transactions`, amount.toString(), sum.toString());
    return parts.map((part, index) => lineOf(shared, [part], known[index] as Amount));
  }

  /**
   * A receipt from which banks deducted charges: the payer paid the instructed amount. Only charges that our bank states
   * are a line of their own.
   */
  private lessCharges(
    shared: EntryFacts,
    part: Node,
    amount: Amount,
    { stated, where }: Readonly<{ stated: Amount; where: string }>,
  ): BankLine[] {
    const gross = this.partAmount(part, GROSS_AMOUNTS, amount.currency, where) ?? amount;
    const deducted = gross.minus(amount);
    if (shared.direction !== 'credit' || !deducted.isPositive()) return [lineOf(shared, [part], amount)];
    if (deducted.equals(stated)) return [lineOf(shared, [part], gross), chargesOf(shared, [part], stated)];
    return [{ ...lineOf(shared, [part], amount), ...(stated.isZero() && { deducted }) }];
  }

  /** The charges that a node states in the account's currency. A credit is a charge that is given back. */
  private charges(node: Node, currency: string, where: string) {
    const charges = child(node, 'Chrgs');
    const records = nodes(charges, 'Rcrd');
    return (records.length > 0 ? records : [charges]).flatMap((record) => {
      const text = textAt(record, 'Amt') || (record === charges ? textAt(charges, 'TtlChrgsAndTaxAmt') : '');
      const path = textAt(record, 'Amt') === '' ? ['TtlChrgsAndTaxAmt'] : ['Amt'];
      if (text === '' || attribute(record, path, 'Ccy') !== currency || textAt(record, 'CdtDbtInd') === 'CRDT')
        return [];
      const amount = this.money(text, currency, where);
      this.refuseNegative(amount, where);
      return amount.isPositive() ? [amount] : [];
    });
  }

  /** The amount in the account's currency. An amount in a different currency was instructed, not received. */
  private partAmount(part: Node, paths: readonly (readonly string[])[], currency: string, where: string) {
    for (const path of paths) {
      const text = textAt(part, ...path);
      if (text === '' || attribute(part, path, 'Ccy') !== currency) continue;
      const amount = this.money(text, currency, where);
      this.refuseNegative(amount, where);
      return amount;
    }
    return undefined;
  }
}

type EntryFacts = Readonly<{
  entry: Node;
  position: number;
  direction: 'credit' | 'debit';
  bookedOn: string;
}>;

const GROSS_AMOUNTS = [
  ['AmtDtls', 'InstdAmt', 'Amt'],
  ['AmtDtls', 'TxAmt', 'Amt'],
];
const PART_AMOUNTS = [['Amt'], ...GROSS_AMOUNTS.toReversed()];

const bankCode = (entry: Node) => {
  const domain = child(entry, 'BkTxCd', 'Domn');
  return [textAt(domain, 'Cd'), textAt(domain, 'Fmly', 'Cd'), textAt(domain, 'Fmly', 'SubFmlyCd')];
};

/**
 * The charges of an entry, as a debit of their own with the ISO code of charges. Without a reference of the bank, they
 * are the same charges wherever the text of the entry comes again.
 */
function chargesOf(shared: EntryFacts, parts: readonly Node[], amount: Amount): BankLine {
  const { text, payer_name, type, ...line } = lineOf({ ...shared, direction: 'debit' }, parts, amount);
  return {
    ...{ ...line, text: `charges of ${[payer_name, text].filter((each) => each !== undefined).join(' ')}` },
    ...{ references: [], payer_name: undefined, payer_account: undefined, reversal: false, return_code: undefined },
    type: [
      ...bankCode(shared.entry)
        .slice(0, 2)
        .filter((each) => each !== ''),
      'CHRG',
    ].join('/'),
    method: 'other',
    raw: JSON.stringify(withoutDetails(shared.entry)),
  };
}

const date = (node: Node) => (textAt(node, 'Dt') || textAt(node, 'DtTm')).slice(0, 10);

function lineOf(
  { entry, position, direction, bookedOn }: EntryFacts,
  parts: readonly Node[],
  amount: Amount,
): BankLine {
  const fields: [field: string, text: string, amount?: string][] = [];
  const add = (...field: (typeof fields)[number]) => fields.push(field);
  const remittance: string[] = [];
  for (const part of parts) {
    const refs = child(part, 'Refs');
    add('EndToEndId', textAt(refs, 'EndToEndId'));
    for (const structured of nodes(child(part, 'RmtInf'), 'Strd')) {
      add('creditor reference', textAt(structured, 'CdtrRefInf', 'Ref'));
      const referred = nodes(structured, 'RfrdDocInf');
      const remitted = ['RfrdDocAmt', 'RmtdAmt'];
      const isAllocated = referred.length === 1 && attribute(structured, remitted, 'Ccy') === amount.currency;
      for (const each of referred)
        add('referred document', textAt(each, 'Nb'), ...(isAllocated ? [textAt(structured, ...remitted)] : []));
      for (const line of texts(structured, 'AddtlRmtInf')) remittance.push(line);
    }
    const lines = texts(child(part, 'RmtInf'), 'Ustrd');
    for (const line of lines) remittance.push(line);
    add('Ustrd', lines.join(' '));
    // A document number may continue on the next line, because a line has at most 140 characters.
    if (lines.length > 1) add('Ustrd', lines.join(''));
    add('InstrId', textAt(refs, 'InstrId'));
    add('TxId', textAt(refs, 'TxId'));
    add('AddtlTxInf', textAt(part, 'AddtlTxInf'));
  }
  add('AddtlNtryInf', textAt(entry, 'AddtlNtryInf'));
  const only = parts.length === 1 ? (parts[0] as Node) : EMPTY;
  const payer = child(only, 'RltdPties', 'Dbtr');
  const payerAccount = child(only, 'RltdPties', 'DbtrAcct', 'Id');
  const reason = textAt(only, 'RtrInf', 'Rsn', 'Cd') || textAt(only, 'RtrInf', 'Rsn', 'Prtry');
  const code = bankCode(entry);
  const type = code.filter((each) => each !== '').join('/') || textAt(entry, 'BkTxCd', 'Prtry', 'Cd');
  const nameOf = (party: Node) => textAt(party, 'Nm') || textAt(party, 'Pty', 'Nm');
  // The sender of the money, or the ultimate payer if the sender is a payment provider.
  const behind = ['UltmtDbtr', 'InitgPty'].flatMap((role) => meaningful(nameOf(child(only, 'RltdPties', role))) ?? []);
  const text = [...remittance, ...behind, textAt(entry, 'AddtlNtryInf')].filter((each) => each !== '').join(' ');
  return {
    position,
    booked_on: bookedOn,
    value_on: date(child(entry, 'ValDt')) || undefined,
    direction,
    amount,
    bank_reference: meaningful(textAt(only, 'Refs', 'AcctSvcrRef')) ?? meaningful(textAt(entry, 'AcctSvcrRef')),
    references: references(fields),
    text,
    payer_name: meaningful(nameOf(payer)),
    behind,
    payer_account: meaningful((textAt(payerAccount, 'IBAN') || textAt(payerAccount, 'Othr', 'Id')).replace(/\s/g, '')),
    type,
    method: methodOf(type, text),
    // An xs:boolean is also true as `1`.
    reversal:
      ['true', '1'].includes(textAt(entry, 'RvslInd')) || reason !== '' || /RRTN|RPCR|UPDD|RIMB/.test(code[2] ?? ''),
    return_code: reason || undefined,
    raw: JSON.stringify(parts.length === 1 ? { ...withoutDetails(entry), NtryDtls: parts[0] } : entry),
  };
}

/** A received credit transfer (RCDT) is a wire unless the bank calls it ACH. */
function methodOf(type: string, text: string): Method {
  const named = methodOfCode(type) ?? methodInWords(type, text);
  return named === 'other' && /RCDT/.test(`${type} ${text}`.toUpperCase()) ? 'wire' : named;
}

const withoutDetails = ({ NtryDtls: _, ...entry }: Node): Node => entry;
