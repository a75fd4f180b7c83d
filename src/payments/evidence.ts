/**
 * The types that matching uses: the receipt, the documents that it may pay, and each match's evidence and confidence.
 * Pure.
 */
import type { Amount } from '../money.ts';
import type { ReferenceField } from './bank/statement.ts';
import type { FoundReference } from './reference.ts';

/** The receipt as it arrived. */
export interface Receipt {
  readonly amount: Amount;
  readonly references: readonly ReferenceField[];
  readonly payer_name: string | undefined;
  readonly payer_account: string | undefined;
  /** Everything that the bank wrote: it may contain the payer's name. */
  readonly text: string;
  /** The payer that finance named. It is as certain as one known by its account. */
  readonly payer?: string | undefined;
}

/** The reasons: what was found and where, who paid and how that is known, and how the amounts compare. */
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
  /** The documents suggested together. One command accepts all of them. */
  readonly set?: readonly string[];
  /** How much the documents exceed the amount received, if a bank kept the difference. */
  readonly fee?: string;
  /** Whether the amount is the balance with two neighboring digits swapped. */
  readonly digits_swapped?: true;
  /** One sentence for finance. */
  readonly why: string;
}

export interface Suggestion {
  readonly document: Payable;
  readonly amount: Amount;
  readonly confidence: string;
  readonly evidence: Evidence;
}

export interface Application extends Suggestion {
  /** The unpaid rest of the document, if it is small enough to be written to bank charges. */
  readonly small_difference: Amount | undefined;
}

/** How sure each kind of match is, from 0 to 1. Only the first three are applied; finance confirms the others. */
export const CONFIDENCE = {
  reference_and_account: '0.99',
  reference_and_name: '0.95',
  amount_and_account: '0.90',
  numbers_add_up: '0.85',
  reference_alone: '0.80',
  short_references: '0.70',
  guessed_reference: '0.60',
  partial_number: '0.60',
  amounts_add_up: '0.60',
  amounts_less_a_fee: '0.55',
  amount_and_payer: '0.60',
  reference_not_amount: '0.50',
  possible_duplicate: '0.50',
  reference_of_another: '0.40',
  told_by_metadata: '0.30',
  amount_alone: '0.20',
} as const;

/** A document that the remittance names, certainly or as a guess. */
export interface NamedDocument {
  readonly reference: FoundReference;
  readonly document: Payable;
}

export type Payer = NonNullable<Evidence['payer']>;

/** How an amount compares with the balance of a document that it may pay. */
export function comparison(amount: Amount, balance: Amount, documents: number): NonNullable<Evidence['amount']> {
  if (documents > 1) return 'one of several';
  if (amount.equals(balance)) return 'exact';
  return amount.minus(balance).isNegative() ? 'under' : 'over';
}

/** An invoice that a payment may be for: open, or named by the payment. */
export interface Payable {
  readonly document_id: number;
  readonly number: string;
  readonly partner_id: string;
  readonly currency: string;
  readonly status: 'open' | 'paid' | 'void';
  readonly balance: Amount;
  readonly written_off?: string;
  readonly due_on: string;
  /** The number of the document that replaces a void one. */
  readonly replaced_by: string | null;
}

/** A credit note that a payment names and may deduct. */
export interface OpenCredit {
  readonly document_id: number;
  readonly number: string;
  readonly partner_id: string;
  readonly currency: string;
  readonly balance: Amount;
}

/** Open credit that a payment's remittance places on an invoice. */
export interface PlacedCredit {
  readonly credit: OpenCredit;
  readonly document: Payable;
  readonly amount: Amount;
}

export interface Match {
  /** The partner that paid, if certain. */
  readonly partner_id: string | undefined;
  readonly applied: readonly Application[];
  /** The credit that pays the rest of the documents. */
  readonly credit?: readonly PlacedCredit[];
  readonly suggested: readonly Suggestion[];
  /** One sentence on the outcome. */
  readonly why: string;
  /** Whether finance should read the sentence although the payment is applied. */
  readonly remark?: boolean;
}
