/**
 * Suggestions: the documents that a payment may pay. Each rule proposes documents with evidence, and finance confirms a
 * proposal. Pure.
 */
import { Amount } from '#money';
import { bearerOf } from './bank-fee.ts';
import { coveringRun, coveringSet } from './covering-sets.ts';
import { CONFIDENCE, comparison, Evidence, NamedDocument, Payable, Payer, Receipt, Suggestion } from './evidence.ts';
import { byDueDate, OpenItems } from './open-items.ts';
import { PartialReference, ShortReference, WITHOUT_YEAR } from './reference.ts';
import { lessCredit, namedCredit } from './remittance-credit.ts';

type Question = Readonly<{
  receipt: Receipt;
  named: readonly NamedDocument[];
  partial: readonly PartialReference[];
  short: readonly ShortReference[];
  items: OpenItems;
  known: string | undefined;
  payers: readonly string[];
  /** Whether the text contradicts a match, so that documents are also suggested by amount alone. */
  doubted: boolean;
}>;

type Proposal = Readonly<{
  document: Payable | undefined;
  confidence: string;
  evidence: Omit<Evidence, 'rule'>;
  /** The default amount is as much of the receipt as the document's balance allows. */
  amount?: Amount;
}>;

type SuggestionRule = (question: Question, found: ReadonlyMap<number, Suggestion>) => readonly Proposal[];

const SUGGESTED_AT_MOST = 5;
/** If more open documents have the same amount, the amount identifies none. */
const EQUAL_AT_MOST = 5;
/** If a text names several payers, sums are not tried. */
const PAYERS_AT_MOST = 5;

/** The rules, strongest first. If two suggestions have equal confidence, the evidence of the earlier rule is kept. */
const SUGGESTION_RULES: readonly SuggestionRule[] = [
  ...[byReference, byShortReferences, byPartOfNumber, byPayerAmount, byCoveringSet, byAmountAlone],
];

export function likelyPayers(receipt: Receipt, items: OpenItems) {
  const known = items.knownPayer(receipt);
  return known === undefined ? mentioned(receipt, items) : [known];
}

function mentioned(receipt: Receipt, items: OpenItems) {
  const named = items.namesIn(receipt).flatMap(({ ids }) => [...ids]);
  const possible = named.length > 0 ? named : items.partnersNamedIn(`${receipt.payer_name ?? ''} ${receipt.text}`);
  return [...new Set(possible)].sort().slice(0, PAYERS_AT_MOST);
}

/**
 * Suggests documents for a receipt. `doubted`: a rule would have applied the receipt, but the text contradicts the
 * rule. In this case, every payer with any evidence is considered.
 */
export function suggest(
  receipt: Receipt,
  found: Pick<Question, 'named' | 'partial' | 'short'>,
  items: OpenItems,
  doubted?: 'doubted',
): Suggestion[] {
  const known = items.knownPayer(receipt);
  const likely = likelyPayers(receipt, items);
  const payers = doubted ? [...new Set([...likely, ...mentioned(receipt, items)])] : likely;
  return suggestBy({ ...found, receipt, items, known, payers, doubted: doubted !== undefined });
}

function suggestBy(question: Question) {
  const { amount } = question.receipt;
  const found = new Map<number, Suggestion>();
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
  const sorted = [...found.values()].sort((a, b) =>
    a.confidence === b.confidence ? byDueDate(a.document, b.document) : a.confidence > b.confidence ? -1 : 1,
  );
  // A set is suggested as a whole.
  const nameOf = ({ document, evidence }: Suggestion) => evidence.set?.join() ?? document.number;
  const most = new Set([...new Set(sorted.map(nameOf))].slice(0, SUGGESTED_AT_MOST));
  return sorted.filter((each) => most.has(nameOf(each)));
}

/** A replaced document is suggested by its replacement. */
function byReference({ receipt, named, items, known, payers }: Question): Proposal[] {
  const { amount } = receipt;
  const mentions = [...new Set(items.namesIn(receipt).flatMap(({ ids }) => [...ids]))].sort();
  return named.map(({ reference: { guess, field, number, found }, document }) => {
    const current = items.current(document);
    const where = `${found} is in ${field}`;
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
      const agreed = current?.balance.equals(amount) || payers.some((each) => items.paysFor(each, document.partner_id));
      const confidence = agreed ? CONFIDENCE.guessed_reference : CONFIDENCE.reference_of_another;
      return proposal(confidence, `${where}: ${guess}${replaced}`);
    }
    if (known !== undefined && !items.paysFor(known, document.partner_id)) {
      return proposal(CONFIDENCE.reference_of_another, `${where}, but the account belongs to ${known}${replaced}`);
    }
    if (mentions.length > 0 && !mentions.some((each) => items.paysFor(each, document.partner_id))) {
      return proposal(
        CONFIDENCE.reference_of_another,
        `${where}, but the text names ${mentions.join(' and ')}${replaced}`,
      );
    }
    const { balance } = current ?? document;
    if (
      !balance.equals(amount) &&
      items.withBalance(amount).some((each) => payers.some((payer) => items.paysFor(payer, each.partner_id)))
    ) {
      return proposal(CONFIDENCE.reference_not_amount, `${where}, but ${balance.forPeople()} is open${replaced}`);
    }
    const partner = { partnerId: document.partner_id, currency: amount.currency };
    const credits = current === undefined ? [] : namedCredit(receipt.references, partner, items);
    const less = credits.length === 0 ? '' : `, as ${lessCredit([document], credits)}`;
    return proposal(CONFIDENCE.reference_alone, `${where}${less}${replaced || ', but the payer is not certain'}`);
  });
}

/** The only open document with exactly that amount whose number begins with the truncated text. */
function byPartOfNumber({ receipt: { amount }, partial, items }: Question): Proposal[] {
  return partial.flatMap(({ beginning, field, found }): Proposal[] => {
    const possible = items.withBalance(amount).filter((each) => each.number.replaceAll('-', '').startsWith(beginning));
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

function byPayerAmount(question: Question): Proposal[] {
  const { receipt, items, payers } = question;
  return payers.flatMap((partnerId) =>
    items
      .openPaidBy(partnerId, receipt.amount.currency)
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

/**
 * The set of a likely payer's open documents that adds up to the amount received, or to that amount and a bank fee
 * (covering-sets.ts).
 */
function byCoveringSet(question: Question): Proposal[] {
  const { receipt, items, payers } = question;
  const { amount } = receipt;
  return payers.flatMap((partnerId) => {
    const open = items.openPaidBy(partnerId, amount.currency);
    const smallest = coveringSet(amount, open, items.largestSmallDifference(amount.currency));
    const run = coveringRun(amount, open);
    // Of many documents, a few add up to almost any amount by chance.
    const isPair = smallest?.fee.isZero() === true && smallest.documents.length <= 2;
    const set = run === undefined || isPair ? smallest : { documents: run, fee: Amount.zero(amount.currency) };
    if (set === undefined) return [];
    if (!set.fee.isZero() && !items.isSmallDifference(set.fee, amount.plus(set.fee))) return [];
    const numbers = set.documents.map(({ number }) => number);
    // byPayerAmount finds a single document of exactly that amount.
    if (numbers.length === 1 && set.fee.isZero()) return [];
    const sum = numbers.length === 1 ? `${numbers[0]} is` : `${numbers.join(' and ')} add up to`;
    const why = set.fee.isZero()
      ? `${sum} exactly the amount received`
      : `${sum} the amount received plus ${set.fee.forPeople()}, which may be a bank fee`;
    return set.documents.map((document, index): Proposal => {
      const bearsFee = index === set.documents.length - 1;
      return {
        document,
        confidence: set.fee.isZero() ? CONFIDENCE.amounts_add_up : CONFIDENCE.amounts_less_a_fee,
        evidence: {
          payer: payerEvidence(question, partnerId),
          amount: numbers.length === 1 ? 'under' : 'one of several',
          ...(numbers.length === 1 ? {} : { set: numbers }),
          why,
        },
        amount: bearsFee ? document.balance.minus(set.fee) : document.balance,
      };
    });
  });
}

/**
 * Documents of a likely payer that the text names only by their sequences ("000012, 000020"), together with documents
 * that the text names in full. If no payer is likely, every named sequence must be found, and the documents must add up
 * to the amount received.
 */
function byShortReferences({ receipt: { amount }, named, short, items, payers }: Question): Proposal[] {
  const isTheirs = ({ partner_id }: Payable) => payers.some((each) => items.paysFor(each, partner_id));
  const found = items.namedBySequence(short, amount.currency, (each) => payers.length === 0 || isTheirs(each));
  const whole = named.flatMap(({ reference: { number, field, found: written, guess: doubt }, document }) =>
    doubt === undefined && document.status === 'open' && isTheirs(document)
      ? [{ document, reference: { number, field, found: written } }]
      : [],
  );
  const all = found.length === 0 ? [] : [...whole, ...found];
  const numbers = all.map(({ document }) => document.number);
  const fee = Amount.sum(amount.currency, all, ({ document }) => document.balance).minus(amount);
  const isComplete = found.length === short.length;
  const isExact = isComplete && fee.isZero();
  const mayBeFee = fee.isPositive() && !items.largestSmallDifference(fee.currency).isLessThan(fee);
  const isLessFee = isComplete && all.length > 1 && mayBeFee;
  if (payers.length === 0 && !isExact) return [];
  // Who names several invoices pays a part of each, so that a sum of other invoices is less likely.
  const difference = fee.isNegative() ? fee.negated() : fee;
  const isNear = isComplete && all.every(({ document }) => difference.isLessThan(document.balance));
  const isSet = all.length > 1 && (isExact || isLessFee || isNear);
  const surest = whole.length > 0 ? CONFIDENCE.numbers_add_up : CONFIDENCE.short_references;
  const bearer = isSet && fee.isPositive() ? bearerOf(all, ({ document }) => document.balance)?.document : undefined;
  const ends = isExact
    ? ', and the amount is exact'
    : isLessFee
      ? `, and together they exceed the payment by ${fee.forPeople()}, which may be a bank fee`
      : isSet
        ? `, and together they are ${difference.forPeople()} ${fee.isPositive() ? 'more' : 'less'} than the payment`
        : '';
  return (isSet ? all : found).map(({ document, reference }) => ({
    document,
    confidence: isExact || isSet ? surest : CONFIDENCE.guessed_reference,
    evidence: {
      reference,
      amount: comparison(amount, document.balance, all.length),
      ...(isSet && { set: numbers, ...(isLessFee && { fee: fee.toString() }) }),
      why: isSet
        ? `${all.map((each) => each.reference.found).join(' and ')} are named${ends}`
        : `${reference.found} is in ${reference.field}: ${WITHOUT_YEAR}${ends}`,
    },
    ...(document === bearer && { amount: document.balance.minus(fee) }),
  }));
}

/**
 * The open documents of exactly that amount, if there are few. This rule is used if no other rule finds a document, or
 * if the text is doubtful.
 */
function byAmountAlone({ receipt, items, doubted }: Question, found: ReadonlyMap<number, Suggestion>): Proposal[] {
  if (found.size > 0 && !doubted) return [];
  const equal = items.withBalance(receipt.amount);
  if (equal.length > EQUAL_AT_MOST) return [];
  return equal.map((document) => ({
    document,
    confidence: CONFIDENCE.amount_alone,
    evidence: { amount: 'exact', why: 'only the amount matches' },
  }));
}

function payerEvidence({ receipt, known }: Question, partnerId: string): Payer {
  const by = known === partnerId ? 'account' : 'name';
  const found = (by === 'account' ? receipt.payer_account : receipt.payer_name) ?? receipt.text.slice(0, 140);
  return { partner_id: partnerId, by, found };
}
