/**
 * The types of matching: a receipt, the documents that it may pay, and the evidence and confidence of each match. Pure.
 */
import type { Amount } from '../money.ts';
import type { ReferenceField } from './bank/statement.ts';
import type { FoundReference } from './reference.ts';

export interface Receipt {
  readonly amount: Amount;
  readonly references: readonly ReferenceField[];
  readonly payer_name: string | undefined;
  readonly payer_account: string | undefined;
  readonly text: string;
  /** The parties for whom the payer pays, such as the ultimate debtor. */
  readonly behind?: readonly string[] | undefined;
  /** What banks deducted on the way, by the amount that the payer instructed. */
  readonly deducted?: Amount | undefined;
  /** The payer that finance named. A named payer is as certain as a payer known by account. */
  readonly payer?: string | undefined;
}

export const accountOf = ({ payer_account, payer_name }: Receipt): string => payer_account ?? payer_name ?? '';

export interface Evidence {
  readonly rule:
    | 'reference_and_payer'
    /** A reference with check digits, whose amount is exact. */
    | 'checked_reference'
    | 'amount_and_account'
    | 'amount_and_name'
    | 'by_hand'
    | 'processor'
    | 'suggestion'
    | 'reapplied';
  readonly reference?: {
    readonly number: string;
    readonly field: string;
    readonly found: string;
    readonly guess?: string;
  };
  readonly payer?: {
    readonly partner_id: string;
    readonly by: 'account' | 'name' | 'reference';
    readonly found: string;
  };
  readonly amount?: 'exact' | 'under' | 'over' | 'one of several';
  readonly less?: readonly string[];
  /** The documents suggested together. One command accepts the whole set. */
  readonly set?: readonly string[];
  /** The fee that the bank may have kept: the balances of the documents, less the amount received. */
  readonly fee?: string;
  /** Whether the amount equals the balance with two neighboring digits swapped. */
  readonly digits_swapped?: true;
  readonly why: string;
}

export interface Suggestion {
  readonly document: Payable;
  readonly amount: Amount;
  readonly confidence: string;
  readonly evidence: Evidence;
}

export interface Application extends Suggestion {
  /** The unpaid part of the document, if it is small enough for bank charges. */
  readonly small_difference: Amount | undefined;
}

/**
 * The confidence of each kind of match, from 0 to 1. Kinds from 0.88 are applied automatically; finance confirms the
 * others.
 */
export const CONFIDENCE = {
  reference_and_account: '0.99',
  checked_reference: '0.97',
  reference_and_name: '0.95',
  partial_number_and_payer: '0.93',
  amount_and_account: '0.90',
  amount_and_name: '0.88',
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

export interface NamedDocument {
  readonly reference: FoundReference;
  readonly document: Payable;
}

export type Payer = NonNullable<Evidence['payer']>;

export function comparison(amount: Amount, balance: Amount, documents: number): NonNullable<Evidence['amount']> {
  if (documents > 1) return 'one of several';
  if (amount.equals(balance)) return 'exact';
  return amount.minus(balance).isNegative() ? 'under' : 'over';
}

/** An invoice that a payment may pay: open, or named by the payment. */
export interface Payable {
  readonly document_id: number;
  readonly number: string;
  readonly partner_id: string;
  readonly currency: string;
  readonly status: 'open' | 'paid' | 'void';
  readonly balance: Amount;
  readonly written_off?: string;
  readonly due_on: string;
  /** Null for an invoice that an opening carried over. */
  readonly month: string | null;
  readonly replaced_by: string | null;
}

export interface OpenCredit {
  readonly document_id: number;
  readonly number: string;
  readonly partner_id: string;
  readonly currency: string;
  readonly balance: Amount;
  /** When the credit note was put on hold; null if it is not on hold. Held credit is only suggested. */
  readonly held_at: string | null;
}

export interface PlacedCredit {
  readonly credit: OpenCredit;
  readonly document: Payable;
  readonly amount: Amount;
}

export interface Match {
  readonly partner_id: string | undefined;
  readonly applied: readonly Application[];
  readonly credit?: readonly PlacedCredit[];
  readonly suggested: readonly Suggestion[];
  readonly why: string;
  /** Whether finance should read the reason although the payment is applied. */
  readonly remark?: boolean;
}
