/** The entries of camt messages: each entry becomes a line, or one line for each part of a batch. */
import { FieldProblem } from '#errors/refusals';
import { Amount, isDate } from '#values';
import { BankLine, compact, joined, meaningful, methodOf, references, Totals } from './statement.ts';
import { attribute, child, EMPTY, Node, nodes, textAt, texts } from './xml.ts';

export type Entry = Readonly<{
  booked: boolean;
  direction: 'credit' | 'debit';
  amount: Amount;
  lines: readonly BankLine[];
  /** The number of transactions in its details. */
  transactions: number;
}>;

export type ReadMoney = (text: string, currency: string, where: string) => Amount;

type Statement = Readonly<{
  /** Names the statement to people. */
  path: string;
  problems: FieldProblem[];
  money: ReadMoney;
  totals: Totals;
  /** The day of entries without a date. */
  day: string;
  /** What the report says of the statement. */
  remarks: string[];
}>;

const STATUSES = ['BOOK', 'PDNG', 'INFO', 'FUTR'];

const DIRECTIONS: Readonly<Record<string, BankLine['direction']>> = { CRDT: 'credit', DBIT: 'debit' };
export const directionOf = (node: Node) => DIRECTIONS[textAt(node, 'CdtDbtInd')];
export const notDirection = (node: Node, title: string) =>
  `${title}: '${textAt(node, 'CdtDbtInd')}' is neither CRDT nor DBIT`;

export class EntryReader {
  private readonly statement: Statement;
  private readonly money: ReadMoney;

  constructor(statement: Statement) {
    this.statement = statement;
    this.money = statement.money;
  }

  read(entry: Node, { position, line }: Readonly<{ position: number; line: number | undefined }>): Entry {
    const { path, day } = this.statement;
    const where = `${path}, entry ${position}${line === undefined ? '' : ` (line ${line})`}`;
    const amount = this.money(textAt(entry, 'Amt'), attribute(entry, ['Amt'], 'Ccy'), where);
    this.refuseNegative(amount, where);
    const direction = directionOf(entry) ?? 'credit';
    if (directionOf(entry) === undefined) this.complain(where, notDirection(entry, 'CdtDbtInd'));
    // Some banks omit the status, because a camt.053 has only booked entries by definition.
    const status =
      entry['Sts'] === undefined
        ? 'BOOK'
        : textAt(entry, 'Sts', 'Cd') || textAt(entry, 'Sts', 'Prtry') || textAt(entry, 'Sts');
    if (!STATUSES.includes(status))
      this.complain(where, `'${status}' is not a status (Sts) that is known: ${STATUSES.join(', ')}`);
    const booked = status === 'BOOK';
    const valueOn = date(child(entry, 'ValDt'));
    const bookedOn = date(child(entry, 'BookgDt')) || valueOn || day;
    if (booked && bookedOn === '') this.complain(where, 'has no date (BookgDt), and its statement has none');
    for (const each of new Set([bookedOn, valueOn])) {
      if (booked && each !== '' && !isDate(each)) this.complain(where, `'${each}' is not a date`);
    }
    const shared = { entry, position, direction, bookedOn } as const;
    // An entry with the amount zero is a remark of the bank.
    const lines = this.lines(shared, amount, where).filter((each) => !each.amount.isZero());
    const transactions = nodes(entry, 'NtryDtls').reduce((sum, each) => sum + nodes(each, 'TxDtls').length, 0);
    const parts = lines.length > 1 ? lines.map((each, index) => ({ ...each, part: index + 1 })) : lines;
    return { booked, direction, amount, lines: parts, transactions };
  }

  private complain(path: string, reason: string) {
    this.statement.problems.push({ path, reason });
  }

  /** A transaction or a charge need not state its direction: it has that of its entry. */
  private checkDirection(node: Node, title: string, where: string) {
    if (textAt(node, 'CdtDbtInd') !== '' && directionOf(node) === undefined)
      this.complain(where, notDirection(node, `CdtDbtInd of ${title}`));
  }

  private refuseNegative(amount: Amount, where: string) {
    if (!amount.isNegative()) return;
    const reason = `'${amount.toString()}' is negative, but an amount has no sign: CRDT or DBIT gives its direction`;
    this.complain(where, reason);
  }

  /** Each part of a batch becomes a line. An entry whose parts have no amounts becomes one line. */
  private lines(shared: EntryFacts, amount: Amount, where: string): BankLine[] {
    const details = nodes(shared.entry, 'NtryDtls');
    const parts = details.flatMap((each) => nodes(each, 'TxDtls'));
    for (const part of parts) this.checkDirection(part, 'a transaction (TxDtls)', where);
    const amounts = parts.map((part) => this.partAmount(part, PART_AMOUNTS, amount.currency, where));
    const known = amounts.filter((each) => each !== undefined);
    const sumOf = (all: readonly Amount[]) => Amount.sum(amount.currency, all, (each) => each);
    const lacking = lackingDetails(details, parts.length);
    if (parts.length === 0 || known.length < parts.length) {
      this.checkBatches(details, amount, undefined, where);
      if (parts.length === 0 && details.some((each) => Number(textAt(each, 'Btch', 'NbOfTxs')) > 1)) {
        this.statement.remarks.push(
          `${where}: it is a batch without details. If the bank has them in a camt.054, import that file, also again.`,
        );
      }
      const why = lacking === undefined ? `has ${parts.length} transactions that state no amount` : `has ${lacking}`;
      return parts.length > 1 || lacking !== undefined
        ? [this.asOne(shared, parts, amount, { why, where })]
        : [lineOf(shared, parts, amount)];
    }
    this.checkBatches(details, amount, new Map(parts.map((part, index) => [part, known[index] as Amount])), where);
    // Some banks repeat in the parts of a reversal the direction of what is reversed.
    const hasSigns = !parts.every((part) => isAgainst(part, shared));
    const signs = parts.map((part) => hasSigns && isAgainst(part, shared));
    const sum = sumOf(known.map((each, index) => (signs[index] ? each.negated() : each)));
    if (lacking !== undefined) {
      // Some banks give one transaction with the amount of all.
      if (sum.equals(amount)) return [this.asOne(shared, parts, amount, { why: `has ${lacking}`, where })];
      this.complain(where, `has ${lacking}`);
    }
    const partLine = (part: Node, index: number) => {
      const direction = signs[index] ? opposite(shared.direction) : shared.direction;
      return lineOf({ ...shared, direction }, [part], known[index] as Amount);
    };
    const stated = [shared.entry, ...parts].flatMap((node) => this.charges(node, amount.currency, where));
    const charges = sumOf(stated);
    // The bank deducts its charges from what it receives for us, and adds them to what it pays for us.
    const taken = shared.direction === 'credit' ? sum.minus(amount) : amount.minus(sum);
    if (taken.isPositive() && taken.equals(charges)) return [...parts.map(partLine), chargesOf(shared, parts, charges)];
    // What banks deducted on the way is in no statement of charges, but the payer's amount shows it.
    const states = (count: number) =>
      parts.some((part) => this.partAmount(part, PART_AMOUNTS.slice(0, count), amount.currency, where) !== undefined);
    const isDeducted = shared.direction === 'credit' && taken.isPositive() && !states(1);
    if (parts.length === 1 && (taken.isZero() || isDeducted))
      return this.lessCharges(shared, parts[0] as Node, amount, { stated: charges, where });
    // An instructed amount need not be the booked one.
    if (!taken.isZero() && (stated.length > 0 || !states(2))) {
      const why = `has transactions of ${sum.toString()} in all, which its charges do not explain`;
      return [this.asOne(shared, parts, amount, { why, where })];
    }
    this.statement.totals.expect(`${where}: its transactions`, amount.toString(), sum.toString());
    return parts.map(partLine);
  }

  /** The whole entry as one line, which names no payer. */
  private asOne(
    shared: EntryFacts,
    parts: readonly Node[],
    amount: Amount,
    { why, where }: Readonly<{ why: string; where: string }>,
  ) {
    this.statement.remarks.push(`${where}: it ${why}, so it is one line, without a payer.`);
    return lineOf(shared, [...parts, EMPTY], amount);
  }

  /** A batch states the total of its own transactions, or of the whole entry if it is the entry's only batch. */
  private checkBatches(
    details: readonly Node[],
    amount: Amount,
    amounts: ReadonlyMap<Node, Amount> | undefined,
    where: string,
  ) {
    for (const batch of details) {
      const total = textAt(batch, 'Btch', 'TtlAmt');
      if (total === '') continue;
      const stated = this.money(total, attribute(batch, ['Btch', 'TtlAmt'], 'Ccy'), `${where}, batch`);
      if (details.length === 1 && stated.equals(amount)) continue;
      const own = amounts && nodes(batch, 'TxDtls').map((part) => amounts.get(part) as Amount);
      if (own === undefined && details.length > 1) continue;
      const found = own === undefined ? amount : Amount.sum(amount.currency, own, (each) => each);
      const path = `${where}: total of the batch (Btch/TtlAmt)`;
      this.statement.totals.expect(path, stated.toString(), found.toString());
    }
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
      this.checkDirection(record, 'charges (Chrgs)', where);
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

/** What a batch says of the number of its transactions, if not all of them have details. Some have no details at all. */
function lackingDetails(details: readonly Node[], all: number) {
  for (const batch of details) {
    const number = textAt(batch, 'Btch', 'NbOfTxs');
    const own = nodes(batch, 'TxDtls').length;
    if (number !== '' && own > 0 && ![own, all].includes(Number(number)))
      return `a batch of ${number} transactions (Btch/NbOfTxs) with the details of ${own}`;
  }
  return undefined;
}

/** Whether a part of an entry goes in the other direction, such as a refund in the settlement of card payments. */
function isAgainst(part: Node, { direction }: EntryFacts) {
  return ![undefined, direction].includes(directionOf(part));
}

const opposite = (direction: EntryFacts['direction']) => (direction === 'credit' ? 'debit' : 'credit');

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
    ...{ ...line, text: `charges of ${joined([payer_name, text])}` },
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

export const date = (node: Node) => (textAt(node, 'Dt') || textAt(node, 'DtTm')).slice(0, 10);

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
    add('MndtId', textAt(refs, 'MndtId'));
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
  const text = joined([...remittance, ...behind, textAt(entry, 'AddtlNtryInf')]);
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
    payer_account: meaningful(compact(textAt(payerAccount, 'IBAN') || textAt(payerAccount, 'Othr', 'Id'))),
    type,
    method: methodOf(type, text, /RCDT/),
    // An xs:boolean is also true as `1`.
    reversal:
      ['true', '1'].includes(textAt(entry, 'RvslInd')) || reason !== '' || /RRTN|RPCR|UPDD|RIMB/.test(code[2] ?? ''),
    return_code: reason || undefined,
    ...(parts.length === 1 && { entry_reference: meaningful(textAt(entry, 'AcctSvcrRef')) }),
    particulars: parts.length > 1 ? [] : particularsOf(only, entry),
    raw: JSON.stringify(parts.length === 1 ? { ...withoutDetails(entry), NtryDtls: parts[0] } : entry),
  };
}

/** The amounts beside the booked amount, as the bank writes them: `120.00 USD`. */
function particularsOf(...at: readonly Node[]) {
  const written = (node: Node, ...path: readonly string[]) =>
    joined([textAt(node, ...path), attribute(node, path, 'Ccy')]);
  return references(
    at.flatMap((node) => {
      const amounts = child(node, 'AmtDtls');
      const charges = child(node, 'Chrgs');
      const records = nodes(charges, 'Rcrd');
      const exchange = ['InstdAmt', 'TxAmt'].map((each) => child(amounts, each, 'CcyXchg'));
      return [
        ['instructed amount', written(amounts, 'InstdAmt', 'Amt')],
        ['transaction amount', written(amounts, 'TxAmt', 'Amt')],
        ...exchange.map((each): [string, string] => [
          'exchange rate',
          ['SrcCcy', 'TrgtCcy', 'XchgRate'].map((name) => textAt(each, name)).join(' '),
        ]),
        ['charges', written(charges, 'TtlChrgsAndTaxAmt')],
        ...(records.length > 0 ? records : [charges]).map((each): [string, string] => [
          'charges',
          written(each, 'Amt'),
        ]),
      ] as const;
    }),
  );
}

const withoutDetails = ({ NtryDtls: _, ...entry }: Node): Node => entry;
