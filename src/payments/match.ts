/**
 * Matching a payment to open items, with evidence. A payment is applied by itself only on a certain document number
 * together with a plausible payer, or on an exact amount that only one open document of a known account has. Credit notes
 * that it deducts are applied with it where the amount is exact. Everything else is suggested, by the five rules at the end. Whether a payment is known already is `duplicates.ts`. Pure.
 */
import { Amount } from '../money.ts';
import type { ReferenceField } from './bank/statement.ts';
import { byDueDate, type OpenItems, type Payable, type PlacedCredit } from './open-items.ts';
import { namePlausible } from './payer-names.ts';
import { type FoundReference, findReferences, type PartialReference } from './reference.ts';
import { lessCredit, namedCredit, netOf, placeCredit } from './remittance-credit.ts';

/** What arrived. */
export interface Receipt {
  readonly amount: Amount;
  readonly references: readonly ReferenceField[];
  readonly payer_name: string | undefined;
  readonly payer_account: string | undefined;
  /** Everything that the bank wrote: it may contain the payer's name. */
  readonly text: string;
}

/** Why: what was found where, who paid and how that is known, how the amounts compare. */
export interface Evidence {
  readonly rule: 'reference_and_payer' | 'amount_and_account' | 'by_hand' | 'processor' | 'suggestion' | 'reapplied';
  readonly reference?: {
    readonly number: string;
    readonly field: string;
    readonly found: string;
    readonly guess?: string;
  };
  readonly payer?: { readonly partner_id: string; readonly by: 'account' | 'name'; readonly found: string };
  readonly amount?: 'exact' | 'under' | 'over' | 'one of several';
  /** Credit notes that the remittance deducts. */
  readonly less?: readonly string[];
  /** One sentence for finance. */
  readonly why: string;
}

export interface Suggested {
  readonly document: Payable;
  readonly amount: Amount;
  readonly confidence: string;
  readonly evidence: Evidence;
}

export interface Applied extends Suggested {
  /** What stays of the document and is small enough to be written to bank charges. */
  readonly small_difference: Amount | undefined;
}

export interface Match {
  /** The partner that paid, where that is certain. */
  readonly partner_id: string | undefined;
  readonly applied: readonly Applied[];
  /** Credit that pays the rest of the documents. */
  readonly credit?: readonly PlacedCredit[];
  readonly suggested: readonly Suggested[];
  /** One sentence on the outcome. */
  readonly why: string;
}

/** How sure each kind of match is, from 0 to 1. Only the first three are applied; finance confirms the others. */
export const CONFIDENCE = {
  reference_and_account: '0.99',
  reference_and_name: '0.95',
  amount_and_account: '0.90',
  reference_alone: '0.80',
  guessed_reference: '0.60',
  partial_number: '0.60',
  amounts_add_up: '0.60',
  amount_and_payer: '0.60',
  possible_duplicate: '0.50',
  reference_of_another: '0.40',
  amount_alone: '0.20',
} as const;

/** A document that the remittance names, certainly or by a guess. */
interface NamedDocument {
  readonly reference: FoundReference;
  readonly document: Payable;
}

type Payer = NonNullable<Evidence['payer']>;

export function match(receipt: Receipt, items: OpenItems): Match {
  const { references, partial } = findReferences(receipt.references);
  const { currency } = receipt.amount;
  const named = references.flatMap((reference): NamedDocument[] => {
    const document = items.byNumber(reference.number);
    return document === undefined ? [] : [{ reference, document }];
  });
  const inCurrency = named.filter(({ document }) => document.currency === currency);
  const certain = inCurrency.filter(({ reference }) => reference.guess === undefined);
  const partners = new Set(certain.map(({ document }) => document.partner_id));
  const partnerId = partners.size === 1 ? ([...partners][0] as string) : undefined;
  const known = items.partnerOfAccount(receipt.payer_account);
  const payer = partnerId === undefined ? undefined : plausiblePayer(receipt, partnerId, items);

  if (payer !== undefined) return applyByReference(receipt, certain, payer, items);
  // A number that is not certain may still contradict the only document of that amount.
  if (known !== undefined && certain.length === 0) {
    const exact = items.openOf(known, currency).filter((each) => each.balance.equals(receipt.amount));
    const only = exact[0];
    const contradicted = inCurrency.some(({ document }) => document.number !== only?.number) || partial.length > 0;
    if (only !== undefined && exact.length === 1 && !contradicted) return applyByAmount(receipt, only, known);
  }
  const suggested = suggest(receipt, { named: inCurrency, partial }, items);
  const why = whyNotApplied(receipt, { named, certain, partners, known }, items);
  const [best] = suggested;
  const end = best === undefined ? '' : `; ${best.document.number} is suggested`;
  return { partner_id: known, applied: [], suggested, why: `${why}${end}` };
}

/** The account of another partner speaks against the reference; the partner's own account, or its name, for it. */
function plausiblePayer(receipt: Receipt, partnerId: string, items: OpenItems): Payer | undefined {
  const known = items.partnerOfAccount(receipt.payer_account);
  if (known === partnerId) return { partner_id: partnerId, by: 'account', found: receipt.payer_account as string };
  if (known !== undefined) return undefined;
  const name = items.nameOf(partnerId);
  const found = [receipt.payer_name, receipt.text].find((text) => text !== undefined && namePlausible(name, text));
  return found === undefined ? undefined : { partner_id: partnerId, by: 'name', found: found.slice(0, 140) };
}

/** Applies a payment to the open documents that it names, as far as that leaves no choice. */
function applyByReference(receipt: Receipt, certain: readonly NamedDocument[], payer: Payer, items: OpenItems): Match {
  const { amount } = receipt;
  const { partner_id } = payer;
  const open = certain
    .filter(({ document }) => document.status === 'open')
    .sort((a, b) => byDueDate(a.document, b.document));
  if (open.length === 0) {
    const state = certain.map(({ document }) => `${document.number} is ${document.status}`).join(', ');
    const suggested = suggest(receipt, { named: certain, partial: [] }, items);
    return { partner_id, applied: [], suggested, why: `${state}: kept as unapplied cash` };
  }
  const apply = (named: NamedDocument, part: Amount, small_difference?: Amount): Applied => ({
    document: named.document,
    amount: part,
    small_difference,
    confidence: payer.by === 'account' ? CONFIDENCE.reference_and_account : CONFIDENCE.reference_and_name,
    evidence: referenceEvidence(named, payer, comparison(amount, named.document.balance, open.length)),
  });
  const matched = (applied: readonly Applied[], why: string): Match => ({ partner_id, applied, suggested: [], why });
  const deducted = applyLessCredit(receipt, open, payer, items);
  if (deducted !== undefined) return deducted;
  const total = open.reduce((sum, { document }) => sum.plus(document.balance), Amount.zero(amount.currency));
  const short = total.minus(amount);
  if (!short.isPositive()) {
    const numbers = open.map(({ document }) => document.number).join(', ');
    const over = short.isNegative() ? `; ${short.negated().forPeople()} more than owed is unapplied cash` : '';
    const applied = open.map((each) => apply(each, each.document.balance));
    return matched(applied, `pays ${numbers}${over}`);
  }
  const last = open.at(-1) as NamedDocument;
  const lastPart = last.document.balance.minus(short);
  if (items.isSmallDifference(short, total) && lastPart.isPositive()) {
    const others = open.slice(0, -1).map((each) => apply(each, each.document.balance));
    const applied = [...others, apply(last, lastPart, short)];
    const numbers = applied.map((each) => each.document.number).join(', ');
    return matched(applied, `pays ${numbers} but for ${short.forPeople()}, written to bank charges`);
  }
  if (open.length === 1) {
    return matched([apply(last, amount)], `pays a part of ${last.document.number}; ${short.forPeople()} stays open`);
  }
  // Only finance knows which of them is to stay open.
  const suggested = distribute(amount, open).map(
    ({ named, part }): Suggested => ({
      document: named.document,
      amount: part,
      confidence: CONFIDENCE.reference_alone,
      evidence: {
        ...apply(named, part).evidence,
        rule: 'suggestion',
        why: `${named.reference.found} stands in ${named.reference.field}, but the documents named there are ${short.forPeople()} more than arrived`,
      },
    }),
  );
  const why = `${open.length} documents are named, and ${short.forPeople()} is missing to pay them`;
  return { partner_id, applied: [], suggested, why };
}

/**
 * A payment that is less than the documents that it names, and names open credit too: certain only if both together pay the
 * documents exactly. Undefined if no credit is deducted.
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
  const credits = namedCredit(references, { partnerId: partner_id, currency }, items);
  if (credits.length === 0) return undefined;
  const less = credits.map((each) => each.number);
  const net = netOf(documents, credits, currency);
  const remittance = lessCredit(documents, credits);
  if (net.equals(amount)) {
    const { placed, left } = placeCredit(documents, credits);
    const applied = open.flatMap((named): Applied[] => {
      const part = left.get(named.document.document_id) as Amount;
      if (!part.isPositive()) return [];
      const evidence = referenceEvidence(named, payer, open.length === 1 ? 'exact' : 'one of several');
      const confidence = payer.by === 'account' ? CONFIDENCE.reference_and_account : CONFIDENCE.reference_and_name;
      const why = `${evidence.why}; with ${less.join(' and ')} the amount is exact`;
      const { document } = named;
      return [
        { document, amount: part, small_difference: undefined, confidence, evidence: { ...evidence, less, why } },
      ];
    });
    return { partner_id, applied, credit: placed, suggested: [], why: `pays ${remittance}` };
  }
  if (items.isSmallDifference(short, gross)) return undefined;
  const why = `${remittance} is ${net.forPeople()}, and ${amount.forPeople()} arrived`;
  const suggested = distribute(amount, open).map(({ named, part }): Suggested => {
    const { number } = named.document;
    const accept = `'reckoner payment apply ID --invoice ${number} --credit ${less.join(' --credit ')}' applies both`;
    const found = { ...referenceEvidence(named, payer, 'under'), less, why: `${why}; ${accept}` };
    const evidence: Evidence = { ...found, rule: 'suggestion' };
    return { document: named.document, amount: part, confidence: CONFIDENCE.reference_alone, evidence };
  });
  return { partner_id, applied: [], suggested, why };
}

const referenceEvidence = (
  { reference: { number, field, found } }: NamedDocument,
  payer: Payer,
  amount: NonNullable<Evidence['amount']>,
): Evidence => ({
  rule: 'reference_and_payer',
  reference: { number, field, found },
  payer,
  amount,
  why: `${found} stands in ${field}, and the payer is known by ${payer.by === 'account' ? 'its account' : 'its name'}`,
});

function comparison(amount: Amount, balance: Amount, documents: number): NonNullable<Evidence['amount']> {
  if (documents > 1) return 'one of several';
  if (amount.equals(balance)) return 'exact';
  return amount.minus(balance).isNegative() ? 'under' : 'over';
}

/** Distributes an amount over the documents in their order, until it is used up. */
function distribute(amount: Amount, documents: readonly NamedDocument[]): { named: NamedDocument; part: Amount }[] {
  let left = amount;
  return documents.flatMap((named) => {
    const { balance } = named.document;
    const part = left.minus(balance).isNegative() ? left : balance;
    left = left.minus(part);
    return part.isPositive() ? [{ named, part }] : [];
  });
}

function applyByAmount({ amount, payer_account }: Receipt, document: Payable, partnerId: string): Match {
  const applied: Applied = {
    document,
    amount,
    small_difference: undefined,
    confidence: CONFIDENCE.amount_and_account,
    evidence: {
      rule: 'amount_and_account',
      payer: { partner_id: partnerId, by: 'account', found: payer_account as string },
      amount: 'exact',
      why: `${document.number} is the only open document of ${partnerId} over ${amount.forPeople()}, and the account has paid for ${partnerId} before`,
    },
  };
  const why = `pays ${document.number}: its exact amount, from a known account`;
  return { partner_id: partnerId, applied: [applied], suggested: [], why };
}

interface Undecided {
  /** In any currency. */
  readonly named: readonly NamedDocument[];
  readonly certain: readonly NamedDocument[];
  readonly partners: ReadonlySet<string>;
  /** The partner of the account. */
  readonly known: string | undefined;
}

function whyNotApplied({ amount, payer_name }: Receipt, undecided: Undecided, items: OpenItems): string {
  const { named, certain, partners, known } = undecided;
  if (partners.size > 1) return `documents of ${[...partners].sort().join(' and ')} are named`;
  const document = certain[0]?.document;
  if (document !== undefined && known !== undefined && known !== document.partner_id) {
    return `${document.number} is named, but the account belongs to ${known}`;
  }
  if (document !== undefined) {
    return `${document.number} is named, but nothing shows that ${items.nameOf(document.partner_id)} paid`;
  }
  const foreign = named.find((each) => !each.reference.guess && each.document.currency !== amount.currency);
  if (foreign !== undefined) {
    const { number, currency } = foreign.document;
    return `${number} is named, but it is in ${currency}, and the payment in ${amount.currency}`;
  }
  if (known !== undefined) return `from ${known}, without a certain reference`;
  return `neither a certain reference nor a known payer${payer_name === undefined ? '' : ` (${payer_name.slice(0, 60)})`}`;
}

// --- Suggestions ------------------------------------------------------------------------------------------------------

interface Question {
  readonly receipt: Receipt;
  readonly named: readonly NamedDocument[];
  readonly partial: readonly PartialReference[];
  readonly items: OpenItems;
  /** The partner of the account that paid. */
  readonly known: string | undefined;
  /** That partner, or else those whose names the receipt mentions. */
  readonly payers: readonly string[];
}

interface Proposal {
  readonly document: Payable | undefined;
  readonly confidence: string;
  readonly evidence: Omit<Evidence, 'rule'>;
  /** Left out: as much of the receipt as the document's balance takes. */
  readonly amount?: Amount;
}

type SuggestionRule = (question: Question, found: ReadonlyMap<number, Suggested>) => readonly Proposal[];

/** For sums of several documents: the first 20 open ones are tried, up to 6 together (60,459 sums at most). */
const SUMMED_DOCUMENTS = 20;
const SUMMED_AT_ONCE = 6;
/** As many suggestions as the largest sum has documents. */
const SUGGESTED_AT_MOST = SUMMED_AT_ONCE;
/** More open documents than this of one amount say nothing about which was paid. */
const EQUAL_AT_MOST = 5;

/** Strongest first: of two rules with the same confidence the earlier one's evidence is kept. */
const SUGGESTION_RULES: readonly SuggestionRule[] = [byReference, byPartOfNumber, byPayerAmount, bySum, byAmountAlone];

function suggest(
  receipt: Receipt,
  { named, partial }: Pick<Question, 'named' | 'partial'>,
  items: OpenItems,
): Suggested[] {
  const { amount } = receipt;
  const known = items.partnerOfAccount(receipt.payer_account);
  const payers = known === undefined ? items.partnersNamedIn(`${receipt.payer_name ?? ''} ${receipt.text}`) : [known];
  const question: Question = { receipt, named, partial, items, known, payers };
  const found = new Map<number, Suggested>();
  for (const rule of SUGGESTION_RULES) {
    for (const { document, confidence, evidence, amount: part } of rule(question, found)) {
      if (document === undefined || document.status !== 'open' || document.currency !== amount.currency) continue;
      const earlier = found.get(document.document_id);
      if (earlier !== undefined && earlier.confidence >= confidence) continue;
      const most = amount.minus(document.balance).isNegative() ? amount : document.balance;
      found.set(document.document_id, {
        document,
        amount: part ?? most,
        confidence,
        evidence: { rule: 'suggestion', ...evidence },
      });
    }
  }
  return [...found.values()]
    .sort((a, b) =>
      a.confidence === b.confidence ? byDueDate(a.document, b.document) : a.confidence > b.confidence ? -1 : 1,
    )
    .slice(0, SUGGESTED_AT_MOST);
}

/** Documents whose number stands in the remittance, with or without a guess, or what replaced them. */
function byReference({ receipt, named, items, known, payers }: Question): Proposal[] {
  const { amount } = receipt;
  return named.map(({ reference: { guess, field, number, found }, document }) => {
    const current = items.current(document);
    const where = `${found} stands in ${field}`;
    const replaced = current === document ? '' : `; ${number} was replaced by ${current?.number}`;
    const proposal = (confidence: string, why: string): Proposal => ({
      document: current,
      confidence,
      evidence: {
        reference: { number, field, found, ...(guess === undefined ? {} : { guess }) },
        ...(current === undefined ? {} : { amount: comparison(amount, current.balance, 1) }),
        why,
      },
    });
    if (guess !== undefined) {
      const agreed = current?.balance.equals(amount) || payers.includes(document.partner_id);
      const confidence = agreed ? CONFIDENCE.guessed_reference : CONFIDENCE.reference_of_another;
      return proposal(confidence, `${where}: ${guess}${replaced}`);
    }
    if (known !== undefined && known !== document.partner_id) {
      return proposal(CONFIDENCE.reference_of_another, `${where}, but the account belongs to ${known}${replaced}`);
    }
    const partner = { partnerId: document.partner_id, currency: amount.currency };
    const credits = current === undefined ? [] : namedCredit(receipt.references, partner, items);
    const less = credits.length === 0 ? '' : `, as ${lessCredit([document], credits)}`;
    return proposal(CONFIDENCE.reference_alone, `${where}${less}${replaced || ', but the payer is not certain'}`);
  });
}

/** The only open document of that amount whose number begins with what stands truncated at the end of a field. */
function byPartOfNumber({ receipt: { amount }, partial, items }: Question): Proposal[] {
  return partial.flatMap(({ beginning, field, found }): Proposal[] => {
    const possible = items
      .startingWith(beginning)
      .filter((each) => each.status === 'open' && each.currency === amount.currency && each.balance.equals(amount));
    const [document] = possible;
    if (document === undefined || possible.length > 1) return [];
    return [
      {
        document,
        confidence: CONFIDENCE.partial_number,
        evidence: {
          reference: { number: document.number, field, found, guess: 'the number is cut off' },
          amount: 'exact',
          why: `${found} at the end of ${field} may be the beginning of its number, and the amount is exact`,
        },
      },
    ];
  });
}

/** Open documents of the likely payers with exactly that amount. */
function byPayerAmount(question: Question): Proposal[] {
  const { receipt, items, payers } = question;
  return payers.flatMap((partnerId) =>
    items
      .openOf(partnerId, receipt.amount.currency)
      .filter((document) => document.balance.equals(receipt.amount))
      .map((document) => ({
        document,
        confidence: CONFIDENCE.amount_and_payer,
        evidence: {
          payer: payerEvidence(question, partnerId),
          amount: 'exact',
          why: `its exact amount, and the payer looks like ${partnerId}`,
        },
      })),
  );
}

/** Open documents of a likely payer of which only one choice adds up to that amount. */
function bySum(question: Question): Proposal[] {
  const { receipt, items, payers } = question;
  return payers.flatMap((partnerId) => {
    const open = items.openOf(partnerId, receipt.amount.currency).slice(0, SUMMED_DOCUMENTS);
    const several = onlySum(receipt.amount, open) ?? [];
    const numbers = several.map((each) => each.number).join(' and ');
    return several.map((document) => ({
      document,
      confidence: CONFIDENCE.amounts_add_up,
      evidence: {
        payer: payerEvidence(question, partnerId),
        amount: 'one of several',
        why: `${numbers} add up to exactly what arrived`,
      },
      amount: document.balance,
    }));
  });
}

/** Where nothing else is suggested: the few open documents of exactly that amount. */
function byAmountAlone({ receipt, items }: Question, found: ReadonlyMap<number, Suggested>): Proposal[] {
  if (found.size > 0) return [];
  const equal = items.withBalance(receipt.amount);
  if (equal.length > EQUAL_AT_MOST) return [];
  return equal.map((document) => ({
    document,
    confidence: CONFIDENCE.amount_alone,
    evidence: { amount: 'exact', why: 'only its amount speaks for it' },
  }));
}

function payerEvidence({ receipt, known }: Question, partnerId: string): Payer {
  const by = known === undefined ? 'name' : 'account';
  const found = (by === 'account' ? receipt.payer_account : receipt.payer_name) ?? receipt.text.slice(0, 140);
  return { partner_id: partnerId, by, found };
}

/** The documents, at least two, that add up to an amount, if there is exactly one such choice. */
export function onlySum(amount: Amount, documents: readonly Payable[]): Payable[] | undefined {
  const found: Payable[][] = [];
  const search = (from: number, left: Amount, chosen: Payable[]): void => {
    if (found.length > 1) return;
    if (left.isZero()) {
      if (chosen.length > 1) found.push(chosen);
      return;
    }
    if (chosen.length === SUMMED_AT_ONCE) return;
    for (let at = from; at < documents.length; at += 1) {
      const document = documents[at] as Payable;
      const rest = left.minus(document.balance);
      if (!rest.isNegative()) search(at + 1, rest, [...chosen, document]);
    }
  };
  search(0, amount, []);
  return found.length === 1 ? found[0] : undefined;
}
