/**
 * Duplicate detection: whether a reported payment is already recorded. The bank, the processor and finance may all
 * report the same money. `identify` compares a report with the recorded payments by the rules below. Pure.
 */

import { PROCESSORS } from '#processors/processors';
import { Amount, daysApart } from '#values';
import { meaningful, normalizeReference } from './bank/statement.ts';
import { Method, Source } from './enums.ts';
import { leftOn, TakenBack } from './payout-contents.ts';
import { findReferences } from './reference.ts';

export type ReportedPayment = Readonly<{
  source: Source;
  amount: Amount;
  /** `YYYY-MM-DD`: the day of receipt, or the bank's booking day. */
  on: string;
  references: readonly string[];
  /** The numbers of the documents that the report names without a guess. */
  documents: readonly string[];
  /** The partners that certainly sent the payment, by document or account. */
  partners: readonly string[];
  /** The partners that the report mentions by name. Used if no partner is certain. */
  partnersByName: readonly string[];
  /**
   * Payments of bank lines that have the account, day and amount of the reported line, but that occur only in other
   * files. The text of each payment is a clause about its line.
   */
  inOtherFiles?: ReadonlyMap<number, string>;
}>;

export type Candidate = Readonly<{
  payment_id: number;
  method: Method;
  currency: string;
  amount: string;
  reversed: string;
  /**
   * Whether the money stays in the bank: the payment is not completely reversed, or it was booked as money that is not
   * a customer's.
   */
  stays: boolean;
  taken_back: readonly TakenBack[];
  partner_id: string | null;
  received_on: string;
  references: readonly string[];
  documents: readonly string[];
  /** Whether a bank line reported the payment, or reported another payment that was reversed as its duplicate. */
  reported_by_bank: boolean;
  reported_by_processor: boolean;
  reported_by_hand: boolean;
  paid_out: boolean;
}>;

export type RuleName =
  | 'link_payment_paid_out'
  | 'processor_id'
  | 'same_words_same_day'
  | 'document_number'
  | 'reference'
  | 'known_processor_id'
  | 'same_line_in_another_file'
  | 'reference_but_other_partner'
  | 'same_amount_in_bank_line'
  | 'same_amount_by_hand';

type Rule = Readonly<{
  name: RuleName;
  verdict: 'same' | 'possible_duplicate';
  reportedBy: readonly Source[];
  applies: (comparison: Comparison) => boolean;
  evidence: (comparison: Comparison) => string;
}>;

/** Banks and payers reuse references after about a month. Older matches are different payments. */
const REFERENCE_DAYS = 30;
/** A document number recurs with every partial payment of the document. */
const DOCUMENT_NUMBER_DAYS = 7;

/**
 * The rules, strongest first. The first rule with verdict `same` that any candidate meets decides: the report is the
 * oldest candidate that meets this rule. If no candidate meets such a rule, each candidate that meets a rule with
 * verdict `possible_duplicate` is a possible duplicate. If no candidate meets any rule, the payment is new.
 */
export const RULES: readonly Rule[] = [
  {
    // The amounts may differ: a payout contains a link payment less the processor's fee.
    name: 'link_payment_paid_out',
    verdict: 'same',
    reportedBy: ['bank'],
    applies: (c) => c.processorId !== undefined && c.isLink && !c.reachedBank,
    evidence: (c) => `both have ${c.processorId}`,
  },
  {
    name: 'processor_id',
    verdict: 'same',
    reportedBy: ['hand', 'processor'],
    applies: (c) => c.sameAmount && !c.otherPayment && c.processorId !== undefined,
    evidence: (c) => `both have ${c.processorId}`,
  },
  {
    // Words without a digit ("wire transfer") occur with any payment, so they are evidence only on the same day.
    name: 'same_words_same_day',
    verdict: 'same',
    reportedBy: ['hand'],
    applies: (c) => c.sameAmount && !c.otherPayment && c.sameWords && c.days === 0 && (c.sameDocument || c.samePartner),
    evidence: () => 'both have the same day and reference',
  },
  {
    name: 'document_number',
    verdict: 'same',
    reportedBy: ['hand', 'bank'],
    applies: (c) => c.sameAmount && !c.otherPayment && c.documentNumber !== undefined && c.days <= DOCUMENT_NUMBER_DAYS,
    evidence: (c) => `both have ${c.documentNumber}`,
  },
  {
    name: 'reference',
    verdict: 'same',
    reportedBy: ['hand', 'bank'],
    applies: (c) => c.sameAmount && !c.otherPayment && c.reference !== undefined && c.days <= REFERENCE_DAYS,
    evidence: (c) => `both have ${c.reference}`,
  },
  {
    // A line with the processor's id of a known payment is never a new payment.
    name: 'known_processor_id',
    verdict: 'same',
    reportedBy: ['bank'],
    applies: (c) => c.processorId !== undefined && (c.isLink || c.candidate.stays),
    evidence: (c) => `both have ${c.processorId}`,
  },
  {
    // The line may come from a different export or format of the same statement, in which the bank writes a different
    // reference or no reference. Two equal lines in one file are two payments.
    name: 'same_line_in_another_file',
    verdict: 'possible_duplicate',
    reportedBy: ['bank'],
    applies: (c) => c.sameAmount && !c.otherPartnerOrDocument && c.lineInAnotherFile !== undefined,
    evidence: (c) => c.lineInAnotherFile as string,
  },
  {
    name: 'reference_but_other_partner',
    verdict: 'possible_duplicate',
    reportedBy: ['bank'],
    applies: (c) => c.sameAmount && !c.isLink && !c.reachedBank && c.otherPartner && c.sharedReference !== undefined,
    evidence: (c) => `both have ${c.sharedReference}, but the line names another partner`,
  },
  {
    // Money of a link payment reaches the bank in a payout, never directly from the payer.
    name: 'same_amount_in_bank_line',
    verdict: 'possible_duplicate',
    reportedBy: ['bank'],
    applies: (c) =>
      c.sameAmount && !c.isLink && !c.reachedBank && !c.otherPartnerOrDocument && c.days <= REFERENCE_DAYS,
    evidence: (c) => `received on ${c.candidate.received_on} with the same amount, but not in a bank line yet`,
  },
  {
    name: 'same_amount_by_hand',
    verdict: 'possible_duplicate',
    reportedBy: ['hand'],
    applies: (c) =>
      c.sameAmount && !c.otherPartnerOrDocument && (c.days <= REFERENCE_DAYS || c.referenceInCandidate !== undefined),
    evidence: ({ candidate, sameWords }) =>
      `received on ${candidate.received_on} with the same amount${candidate.partner_id === null ? '' : ' and payer'}, ` +
      `and ${sameWords ? 'the same' : 'another'} reference`,
  },
];

export type Finding<Known extends Candidate> = Readonly<{
  payment: Known;
  rule: RuleName;
  evidence: string;
}>;

type Identity<Known extends Candidate> =
  | Readonly<{ verdict: 'same'; of: Finding<Known> }>
  | Readonly<{ verdict: 'possible_duplicate'; of: readonly Finding<Known>[] }>
  | { readonly verdict: 'new' };

/** Compares a report with the candidates, the oldest candidate first. */
export function identify<Known extends Candidate>(
  reported: ReportedPayment,
  candidates: readonly Known[],
): Identity<Known> {
  const compared = candidates.map((payment) => ({ payment, comparison: new Comparison(reported, payment) }));
  const finding = (rule: Rule, { payment, comparison }: (typeof compared)[number]): Finding<Known> => ({
    payment,
    rule: rule.name,
    evidence: rule.evidence(comparison),
  });
  const rules = (verdict: Rule['verdict']) =>
    RULES.filter((rule) => rule.verdict === verdict && rule.reportedBy.includes(reported.source));
  for (const rule of rules('same')) {
    const same = compared.find(({ comparison }) => rule.applies(comparison));
    if (same !== undefined) return { verdict: 'same', of: finding(rule, same) };
  }
  const possible = compared.flatMap((each) => {
    const rule = rules('possible_duplicate').find(({ applies }) => applies(each.comparison));
    return rule === undefined ? [] : [finding(rule, each)];
  });
  return possible.length > 0 ? { verdict: 'possible_duplicate', of: possible } : { verdict: 'new' };
}

/** Whether a payment of an equal line in another file may be the reported payment: nothing says that they are two. */
export function mayBeSameLine(reported: ReportedPayment, payment: Candidate) {
  const comparison = new Comparison(reported, payment);
  return comparison.sameAmount && !comparison.otherPartnerOrDocument;
}

class Comparison {
  readonly reported: ReportedPayment;
  readonly candidate: Candidate;
  /** For a bank line, the amount of a link payment is its remainder on the line's day, after refunds and disputes. */
  readonly sameAmount: boolean;

  constructor(reported: ReportedPayment, candidate: Candidate) {
    this.reported = reported;
    this.candidate = candidate;
    this.sameAmount = candidate.currency === reported.amount.currency && this.isAmountEqual();
  }

  private isAmountEqual() {
    const { candidate, reported } = this;
    const amount =
      this.byBank && this.isLink ? leftOn(candidate, reported.on) : Amount.of(candidate.amount, candidate.currency);
    return amount.equals(reported.amount) && candidate.stays;
  }

  get isLink() {
    return this.candidate.method === 'link';
  }

  get days() {
    return daysApart(this.reported.on, this.candidate.received_on);
  }

  /** Each bank line is separate money. A line cannot report money that already reached the bank. */
  get reachedBank() {
    return this.byBank && (this.candidate.reported_by_bank || this.candidate.paid_out);
  }

  get lineInAnotherFile() {
    return this.reported.inOtherFiles?.get(this.candidate.payment_id);
  }

  get samePartner() {
    const { partner_id } = this.candidate;
    return partner_id !== null && this.reported.partners.includes(partner_id);
  }

  get otherPartner() {
    const { partner_id } = this.candidate;
    const { partners, partnersByName } = this.reported;
    if (partner_id === null) return false;
    if (partners.length > 0) return partners.some((each) => each !== partner_id);
    return partnersByName.length > 0 && !partnersByName.includes(partner_id);
  }

  get sameDocument() {
    return this.candidate.documents.some((number) => this.reported.documents.includes(number));
  }

  get otherPartnerOrDocument() {
    const bothName = this.reported.documents.length > 0 && this.candidate.documents.length > 0;
    return this.otherPartner || (bothName && !this.sameDocument);
  }

  get otherPayment() {
    if (this.byBank) return this.otherPartner || this.reachedBank;
    if (this.reported.source === 'hand') return this.otherPartnerOrDocument;
    // The processor has already reported the candidate, with different ids.
    return this.candidate.reported_by_processor;
  }

  get sameWords() {
    return this.candidate.references.some((known) =>
      this.reported.references.some((given) => normalizeReference(known) === normalizeReference(given)),
    );
  }

  get referenceInCandidate() {
    return this.reported.references.find((given) => containsReference(this.candidate.references, given));
  }

  get processorId() {
    const { candidate, reported } = this;
    const given = this.referenceInCandidate;
    if (reported.source === 'processor') return given;
    if (reported.source === 'hand') {
      return given !== undefined && processorIds([given]).length > 0 ? given : undefined;
    }
    if (candidate.currency !== reported.amount.currency) return undefined;
    return processorIds(reported.references).find((id) => candidate.references.includes(id));
  }

  /** The document number that is the reference of both payments, if both are for that document. */
  get documentNumber() {
    if (this.byBank) {
      return this.candidate.references.find((known) =>
        [this.candidate.documents, this.reported.documents].every((numbers) =>
          numbers.some((number) => normalizeReference(number) === normalizeReference(known)),
        ),
      );
    }
    const given = this.referenceInCandidate;
    return given !== undefined && this.isDocumentNumber(given) && this.sameDocument ? given : undefined;
  }

  /**
   * The shared reference that distinguishes payments: it has a digit and is not a document number. A reference that
   * only people entered is evidence only for the same document, because a partner may reuse a reference.
   */
  get reference() {
    const { candidate, reported } = this;
    if (this.byBank) {
      return candidate.references.find(
        (known) => !this.isDocumentNumber(known) && containsReference(reported.references, known),
      );
    }
    const onlyByHand = candidate.reported_by_hand && !candidate.reported_by_bank && !candidate.reported_by_processor;
    return reported.references.find((given) => {
      if (!isDistinctive(given) || this.isDocumentNumber(given)) return false;
      const contained = containsReference(candidate.references, given);
      return this.sameDocument ? contained || this.sameWords : contained && !onlyByHand;
    });
  }

  get sharedReference() {
    const number = this.days <= DOCUMENT_NUMBER_DAYS ? this.documentNumber : undefined;
    return number ?? (this.days <= REFERENCE_DAYS ? this.reference : undefined);
  }

  /**
   * Our document numbers are recognized by their form. A number of the previous system is recognized if one of the
   * payments is for the document with this number.
   */
  private isDocumentNumber(text: string) {
    const named = [...this.candidate.documents, ...this.reported.documents];
    return isDocumentNumber(text) || named.some((each) => normalizeReference(each) === normalizeReference(text));
  }

  private get byBank() {
    return this.reported.source === 'bank';
  }
}

// --- References ---

export const processorIds = (texts: readonly string[]) => [
  ...new Set(texts.flatMap((text) => PROCESSORS.flatMap(({ events }) => events.paymentIds(text)))),
];

/** A shorter reference may occur in other texts by chance. */
const LEAST_CHARACTERS = 4;
/** The smallest number of characters that a reference within a longer text must have. */
const LEAST_CHARACTERS_INSIDE = 8;

/** Texts without a digit ("wire transfer") occur with any payment. */
const isDistinctive = (text: string) => /\d/.test(text) && meaningful(text) !== undefined;

export function containsReference(texts: readonly string[], reference: string) {
  const wanted = normalizeReference(reference);
  if (wanted.length < LEAST_CHARACTERS || !isDistinctive(reference)) return false;
  return texts.some((text) => {
    const found = normalizeReference(text);
    return found === wanted || (wanted.length >= LEAST_CHARACTERS_INSIDE && found.includes(wanted));
  });
}

const isDocumentNumber = (text: string) =>
  findReferences([{ field: 'reference', text }]).references.some(
    (each) => normalizeReference(each.number) === normalizeReference(text),
  );
