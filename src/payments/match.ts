/**
 * Matches a payment to open items, with evidence.
 *
 * A payment that no fact contradicts (contradictions.ts) is applied automatically if it names a certain document number
 * and its payer is plausible, if a reference with check digits names a document of exactly its amount, or if its payer
 * is certain and its amount is exact (match-by-payer.ts). Every other match is a suggestion (suggest.ts).
 *
 * A payer pays for itself and for the partners below it. Credit notes that a payer deducts are applied with the payment
 * if the amount is exact. Pure.
 */
import { howSettled } from '#documents/correctable';
import { Amount, amountProblem, minorDigits } from '#money';
import { balanceOf, contradictionOf, isOfAnother } from './contradictions.ts';
import {
  Application,
  accountOf,
  CONFIDENCE,
  comparison,
  Evidence,
  Match,
  NamedDocument,
  OpenCredit,
  Payable,
  Payer,
  Receipt,
  Suggestion,
} from './evidence.ts';
import { matchByPayer, shortNamed } from './match-by-payer.ts';
import { byDueDate, OpenItems } from './open-items.ts';
import { findAllocations, MISSPELLED, ShortReference } from './reference.ts';
import { lessCredit, namedCredit, netOf, placeCredit } from './remittance-credit.ts';
import { likelyPayers, suggest } from './suggest.ts';

export function match(receipt: Receipt, items: OpenItems): Match {
  const { references, partial, short } = items.references(receipt.references);
  const { currency } = receipt.amount;
  const named = references.flatMap((reference): NamedDocument[] => {
    const document = items.byNumber(reference.number);
    return document === undefined ? [] : [{ reference, document }];
  });
  const inCurrency = named.filter(({ document }) => document.currency === currency);
  const certain = inCurrency.filter(({ reference }) => reference.guess === undefined);
  const partners = new Set(certain.map(({ document }) => document.partner_id));
  const known = items.knownPayer(receipt);
  const payer =
    partners.size === 0
      ? undefined
      : (plausiblePayer(receipt, certain, items) ?? checkedPayer(receipt, certain, items));
  const unknown = references.filter(({ number, guess }) => guess === undefined && items.byNumber(number) === undefined);
  const found = { named, certain, partial, short, unknown };
  const question = { named: inCurrency, partial, short };

  const decided =
    payer === undefined
      ? matchByPayer(receipt, found, items)
      : applyByReference(receipt, { certain, short }, payer, items);
  if (decided !== undefined) {
    const contradiction = contradictionOf(receipt, decided, found, items);
    if (contradiction === undefined) return decided;
    const { why, payerIsCertain } = contradiction;
    const suggested = suggest(receipt, question, items, 'doubted');
    return {
      ...{ partner_id: payerIsCertain ? decided.partner_id : undefined, applied: [], suggested },
      why: `${why}${inWords(suggested)}`,
    };
  }
  const suggested = suggest(receipt, question, items);
  const why = whyNotApplied(receipt, { named, certain, partners, known }, items);
  const partner_id = known === undefined || isOfAnother(receipt, known, items) ? undefined : known;
  return { partner_id, applied: [], suggested, why: `${why}${inWords(suggested)}` };
}

function inWords([best]: readonly Suggestion[]) {
  if (best === undefined) return '';
  const together = best.evidence.set ?? [best.document.number];
  return `; ${together.join(' and ')} ${together.length > 1 ? 'are' : 'is'} suggested`;
}

/**
 * Returns the partner that pays for all of these documents, with the evidence in the receipt: the payer's account or
 * name. A different partner's account is evidence against the reference. A name in the receipt that is longer than the
 * payer's name is evidence only if the amount is exact.
 */
function plausiblePayer(receipt: Receipt, certain: readonly NamedDocument[], items: OpenItems): Payer | undefined {
  const known = items.knownPayer(receipt);
  const documents = certain.map(({ document }) => document);
  const possible = items.payersOfAll([...new Set(documents.map(({ partner_id }) => partner_id))]);
  if (known !== undefined) {
    return possible.includes(known) ? { partner_id: known, by: 'account', found: accountOf(receipt) } : undefined;
  }
  const isExact = balanceOf(documents, receipt.amount.currency).equals(receipt.amount);
  for (const { ids, fit, found } of items.namesIn(receipt)) {
    if (fit === 'longer' && !isExact) continue;
    const fits = [...ids].every((id) => possible.includes(id));
    if (fits) return { partner_id: possible.find((id) => ids.has(id)) as string, by: 'name', found };
  }
  return undefined;
}

/**
 * Returns the partner that owns documents whose numbers have check digits, if the amount is exact. Such a number cannot
 * be mistyped, so that a payment by anybody pays them.
 */
function checkedPayer(receipt: Receipt, certain: readonly NamedDocument[], items: OpenItems): Payer | undefined {
  const documents = certain.map(({ document }) => document);
  const [partner_id] = items.payersOfAll([...new Set(documents.map((each) => each.partner_id))]);
  const isExact = balanceOf(documents, receipt.amount.currency).equals(receipt.amount);
  const [first] = certain;
  if (partner_id === undefined || first === undefined || !isExact || receipt.payer !== undefined) return undefined;
  if (!certain.every(({ reference }) => reference.checked) || items.knownPayer(receipt) !== undefined) return undefined;
  return { partner_id, by: 'reference', found: first.reference.found };
}

const standingOf = ({ status, written_off = '0' }: Payable) =>
  status === 'paid' ? howSettled({ written_off }) : `is ${status}`;

/** Applies a payment to the open documents that it names, if only one distribution is possible. */
function applyByReference(
  receipt: Receipt,
  { certain, short: shortened }: { certain: readonly NamedDocument[]; short: readonly ShortReference[] },
  payer: Payer,
  items: OpenItems,
): Match {
  const { amount } = receipt;
  const { partner_id } = payer;
  const certainlyOpen = certain.filter(({ document }) => document.status === 'open');
  const sumOf = (documents: readonly NamedDocument[]) =>
    balanceOf(
      documents.map(({ document }) => document),
      amount.currency,
    );
  // Sequences without a year are believed only if the documents together explain the amount.
  const all = [...certainlyOpen, ...(shortNamed(shortened, certain, payer, amount.currency, items) ?? [])];
  const isExplained = sumOf(all).equals(amount) || items.isSmallDifference(sumOf(all).minus(amount), sumOf(all));
  const open = (isExplained ? all : certainlyOpen).sort((a, b) => byDueDate(a.document, b.document));
  if (certainlyOpen.length === 0) {
    const state = certain.map(({ document }) => `${document.number} ${standingOf(document)}`).join(', ');
    const suggested = suggest(receipt, { named: certain, partial: [], short: shortened }, items);
    return { partner_id, applied: [], suggested, why: `${state}: kept as unapplied cash` };
  }
  const apply = applyingTo(receipt, open, payer);
  const matched = (applied: readonly Application[], why: string): Match => ({
    ...{ partner_id, applied, suggested: [], why },
  });
  const shares = allocationOf(receipt, certainlyOpen, items);
  if (shares !== undefined) {
    const applied = certainlyOpen.map((each) => apply(each, shares.get(each.document.number) as Amount));
    return matched(applied, `pays what the payer states: ${applied.map(inShort).join(', ')}`);
  }
  const deducted = applyLessCredit(receipt, open, payer, items) ?? applyLessOpenCredit(receipt, open, payer, items);
  if (deducted !== undefined) return deducted;
  const total = sumOf(open);
  const short = total.minus(amount);
  if (!short.isPositive()) {
    const numbers = open.map(({ document }) => document.number).join(', ');
    const over = short.isNegative() ? `; ${short.negated().forPeople()} more than owed is unapplied cash` : '';
    const applied = open.map((each) => apply(each, each.document.balance));
    return matched(applied, `pays ${numbers}${over}`);
  }
  const last = open.at(-1) as NamedDocument;
  const lastPart = last.document.balance.minus(short);
  const isDeducted =
    receipt.deducted?.equals(short) === true && !items.largestSmallDifference(short.currency).isLessThan(short);
  if ((isDeducted || items.isSmallDifference(short, total)) && lastPart.isPositive()) {
    const others = open.slice(0, -1).map((each) => apply(each, each.document.balance));
    const applied = [...others, apply(last, lastPart, short)];
    const numbers = applied.map((each) => each.document.number).join(', ');
    return matched(applied, `pays ${numbers} except ${short.forPeople()}, written to bank charges`);
  }
  return applyPart(receipt, open, payer, short);
}

const applyingTo =
  ({ amount }: Receipt, open: readonly NamedDocument[], payer: Payer) =>
  (named: NamedDocument, part: Amount, small_difference?: Amount): Application => ({
    document: named.document,
    amount: part,
    small_difference,
    confidence: confidenceIn(payer),
    evidence: referenceEvidence(named, payer, comparison(amount, named.document.balance, open.length)),
  });

/** Pays a part of one document. Of several documents, only finance knows which should stay open. */
function applyPart(receipt: Receipt, open: readonly NamedDocument[], payer: Payer, short: Amount): Match {
  const { amount } = receipt;
  const { partner_id } = payer;
  const apply = applyingTo(receipt, open, payer);
  const [only, another] = open;
  if (only !== undefined && another === undefined) {
    const applied = apply(only, amount);
    const why = `pays a part of ${only.document.number}; ${short.forPeople()} stays open`;
    const part = { partner_id, applied: [applied], suggested: [], why };
    if (!areDigitsSwapped(amount, only.document.balance)) return part;
    const swapped = `${only.document.balance.forPeople()} was owed: digits may be swapped`;
    const evidence: Evidence = {
      ...applied.evidence,
      digits_swapped: true,
      why: `${applied.evidence.why}; ${swapped}`,
    };
    return { ...part, applied: [{ ...applied, evidence }], why: `${why}; ${swapped}`, remark: true };
  }
  const suggested = distribute(amount, open).map(
    ({ named, part }): Suggestion => ({
      document: named.document,
      amount: part,
      confidence: CONFIDENCE.reference_alone,
      evidence: {
        ...apply(named, part).evidence,
        rule: 'suggestion',
        why: `${named.reference.found} is in ${named.reference.field}, but the documents named there exceed the payment by ${short.forPeople()}`,
      },
    }),
  );
  const why = `${open.length} documents are named, but the payment is ${short.forPeople()} short`;
  return { partner_id, applied: [], suggested, why };
}

const confidenceIn = ({ by }: Payer): string =>
  by === 'account'
    ? CONFIDENCE.reference_and_account
    : by === 'name'
      ? CONFIDENCE.reference_and_name
      : CONFIDENCE.checked_reference;

const inShort = ({ document, amount }: Application) => `${amount.forPeople()} of ${document.number}`;

/**
 * Returns the payer's own allocation by number, if it names each of the open documents, is within their balances, and
 * adds up to the payment. ISO 20022 calls it the remitted amount (RmtdAmt), EDI 820 the segment RMR.
 */
function allocationOf(
  { amount, references }: Receipt,
  open: readonly NamedDocument[],
  items: OpenItems,
): ReadonlyMap<string, Amount> | undefined {
  const shares = new Map<string, Amount>();
  for (const { field, amount: stated } of findAllocations(references)) {
    const [found, ...others] = items.references([field]).references.filter(({ guess }) => guess === undefined);
    if (
      found === undefined ||
      others.length > 0 ||
      amountProblem(stated, minorDigits(amount.currency) as number) !== undefined
    )
      return undefined;
    const share = Amount.of(stated, amount.currency);
    if (!share.isPositive() || !(shares.get(found.number) ?? share).equals(share)) return undefined;
    shares.set(found.number, share);
  }
  const total = [...shares.values()].reduce((sum, each) => sum.plus(each), Amount.zero(amount.currency));
  const fits = ({ document: { number, balance } }: NamedDocument) => {
    const share = shares.get(number);
    return share !== undefined && !share.minus(balance).isPositive();
  };
  return shares.size === open.length && open.every(fits) && total.equals(amount) ? shares : undefined;
}

/**
 * Applies a payment together with a credit note of the payer that its remittance does not name, if the documents less
 * exactly this credit, or less all open credit, are the payment, and no open document has exactly its amount.
 */
function applyLessOpenCredit(
  { amount }: Receipt,
  open: readonly NamedDocument[],
  payer: Payer,
  items: OpenItems,
): Match | undefined {
  const documents = open.map(({ document }) => document);
  const [owner, ...others] = [...new Set(documents.map((each) => each.partner_id))];
  if (owner === undefined || others.length > 0) return undefined;
  if (items.withBalance(amount).length > 0) return undefined;
  const credits = items.openCreditOf(owner, amount.currency);
  const possible = [...credits.map((each) => [each]), ...(credits.length > 1 ? [credits] : [])].filter((each) =>
    netOf(documents, each, amount.currency).equals(amount),
  );
  const [only, ...more] = possible;
  return only === undefined || more.length > 0 ? undefined : lessExactly(open, only, payer);
}

function lessExactly(open: readonly NamedDocument[], credits: readonly OpenCredit[], payer: Payer): Match {
  const documents = open.map(({ document }) => document);
  const less = credits.map(({ number }) => number);
  const { placed, left } = placeCredit(documents, credits);
  const applied = open.flatMap((named): Application[] => {
    const part = left.get(named.document.document_id) as Amount;
    if (!part.isPositive()) return [];
    const evidence = referenceEvidence(named, payer, open.length === 1 ? 'exact' : 'one of several');
    const why = `${evidence.why}; with ${less.join(' and ')} the amount is exact`;
    const common = { document: named.document, amount: part, small_difference: undefined };
    return [{ ...common, confidence: confidenceIn(payer), evidence: { ...evidence, less, why } }];
  });
  const why = `pays ${lessCredit(documents, credits)}`;
  return { partner_id: payer.partner_id, applied, credit: placed, suggested: [], why };
}

/**
 * Applies a payment together with credit that its remittance names, if the documents exceed the payment. The match is
 * certain only if payment and credit equal the documents exactly, and no credit is on hold. Undefined if no credit is
 * named.
 */
function applyLessCredit(
  { amount, references }: Receipt,
  open: readonly NamedDocument[],
  payer: Payer,
  items: OpenItems,
): Match | undefined {
  const [{ partner_id }, { currency }] = [payer, amount];
  const documents = open.map(({ document }) => document);
  const gross = netOf(documents, [], currency);
  const short = gross.minus(amount);
  if (!short.isPositive()) return undefined;
  // Credit pays only invoices of its own partner, so all documents must belong to one partner.
  const [owner, ...others] = [...new Set(documents.map((each) => each.partner_id))];
  if (owner === undefined || others.length > 0) return undefined;
  const credits = namedCredit(references, { partnerId: owner, currency }, items);
  if (credits.length === 0) return undefined;
  const less = credits.map((each) => each.number);
  const net = netOf(documents, credits, currency);
  const remittance = lessCredit(documents, credits);
  const held = credits.filter(({ held_at }) => held_at !== null).map((each) => each.number);
  if (net.equals(amount) && held.length === 0) return lessExactly(open, credits, payer);
  if (held.length === 0 && items.isSmallDifference(short, gross)) return undefined;
  const why = net.equals(amount)
    ? `pays ${remittance}; ${held.join(' and ')} must be released first`
    : `${remittance} is ${net.forPeople()}, and ${amount.forPeople()} arrived`;
  const suggested = distribute(amount, open).map(({ named, part }): Suggestion => {
    const found = { ...referenceEvidence(named, payer, 'under'), less, why: `${why}; to accept it, apply both` };
    const evidence: Evidence = { ...found, rule: 'suggestion' };
    return { document: named.document, amount: part, confidence: CONFIDENCE.reference_alone, evidence };
  });
  return { partner_id, applied: [], suggested, why };
}

const referenceEvidence = (
  { reference: { number, field, found }, document }: NamedDocument,
  payer: Payer,
  amount: NonNullable<Evidence['amount']>,
): Evidence => ({
  rule: payer.by === 'reference' ? 'checked_reference' : 'reference_and_payer',
  reference: { number, field, found },
  payer,
  amount,
  why:
    `${found} is in ${field}, and ${payer.by === 'reference' ? 'its check digits are right' : `the payer is known by its ${payer.by}`}` +
    forAnother(payer.partner_id, document),
});

const forAnother = (payerId: string, { partner_id }: Payable) =>
  payerId === partner_id ? '' : `; ${payerId} pays for ${partner_id}`;

/** Whether two amounts differ by two swapped neighboring digits, such as 548.46 and 584.46. */
export function areDigitsSwapped(one: Amount, other: Amount): boolean {
  const [a, b] = [one.toString(), other.toString()];
  if (a.length !== b.length) return false;
  const differing = [...a].flatMap((digit, index) => (digit === b[index] ? [] : [index]));
  const [first = 0, second = 0] = differing;
  const areNeighbors = second - first === 1 || (second - first === 2 && a[first + 1] === '.');
  return differing.length === 2 && areNeighbors && a[first] === b[second] && a[second] === b[first];
}

function distribute(amount: Amount, documents: readonly NamedDocument[]): { named: NamedDocument; part: Amount }[] {
  let left = amount;
  return documents.flatMap((named) => {
    const { balance } = named.document;
    const part = left.minus(balance).isNegative() ? left : balance;
    left = left.minus(part);
    return part.isPositive() ? [{ named, part }] : [];
  });
}

type UndecidedMatch = Readonly<{
  named: readonly NamedDocument[];
  certain: readonly NamedDocument[];
  partners: ReadonlySet<string>;
  known: string | undefined;
}>;

function whyNotApplied(receipt: Receipt, undecided: UndecidedMatch, items: OpenItems) {
  const { amount, payer_name } = receipt;
  const { named, certain, partners, known } = undecided;
  if (partners.size > 1) {
    const none = items.payersOfAll([...partners]).length === 0 ? ', and no partner pays for all of them' : '';
    return `documents of ${[...partners].sort().join(' and ')} are named${none}`;
  }
  const document = certain[0]?.document;
  if (document !== undefined && known !== undefined && !items.paysFor(known, document.partner_id)) {
    return `${document.number} is named, but the account belongs to ${known}`;
  }
  if (document !== undefined) {
    const writers = payer_name === undefined ? [] : items.namesIn({ payer_name, text: '' });
    const [writer, ...others] = writers.flatMap(({ ids, fit }) => (fit === 'longer' ? [] : [...ids]));
    if (writer !== undefined && others.length === 0 && !items.paysFor(writer, document.partner_id)) {
      return `${document.number} of ${document.partner_id} is named, but the payer's name is that of ${writer}`;
    }
    return `${document.number} is named, but nothing shows that ${items.nameOf(document.partner_id)} paid`;
  }
  const foreign = named.find((each) => !each.reference.guess && each.document.currency !== amount.currency);
  if (foreign !== undefined) {
    const { number, currency } = foreign.document;
    return `${number} is named, but it is in ${currency}, and the payment in ${amount.currency}`;
  }
  const [guessed] = named;
  const number =
    guessed === undefined
      ? 'no invoice number is recognized'
      : `invoice number ${guessed.reference.guess === MISSPELLED ? 'misspelled' : 'incomplete'} (${guessed.reference.found})`;
  if (known !== undefined) {
    const under = isOfAnother(receipt, known, items) ? `an account of ${known}, but another name is given` : known;
    return `from ${under}; ${number}`;
  }
  const likely = likelyPayers(receipt, items);
  const payer = payer_name === undefined ? '' : ` (${payer_name.slice(0, 60)})`;
  if (likely.length > 0) return `${number}; payer looks like ${likely.join(' or ')}${payer}`;
  return guessed === undefined
    ? `${number}, and the payer is not known${payer}`
    : `${number}; the payer is not known${payer}`;
}
