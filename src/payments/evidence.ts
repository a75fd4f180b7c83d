/**
 * The types of matching: a receipt, the documents that it may pay, and the evidence and confidence of each match. Pure.
 */
import { Amount } from '#money';
import { ReferenceField } from './bank/statement.ts';
import { FoundReference } from './reference.ts';

export type Receipt = Readonly<{
  amount: Amount;
  references: readonly ReferenceField[];
  payer_name: string | undefined;
  payer_account: string | undefined;
  text: string;
  /** The parties for whom the payer pays, such as the ultimate debtor. */
  behind?: readonly string[] | undefined;
  /** What banks deducted on the way, by the amount that the payer instructed. */
  deducted?: Amount | undefined;
  /** The payer that finance named. A named payer is as certain as a payer known by account. */
  payer?: string | undefined;
}>;

export const accountOf = ({ payer_account, payer_name }: Receipt) => payer_account ?? payer_name ?? '';

export type Evidence = Readonly<{
  rule:
    | 'reference_and_payer'
    /** A reference with check digits, whose amount is exact. */
    | 'checked_reference'
    | 'amount_and_account'
    | 'amount_and_name'
    | 'by_hand'
    | 'processor'
    | 'suggestion'
    | 'reapplied';
  reference?: Readonly<{
    number: string;
    field: string;
    found: string;
    guess?: string;
  }>;
  payer?: Readonly<{
    partner_id: string;
    by: 'account' | 'name' | 'reference';
    found: string;
  }>;
  amount?: 'exact' | 'under' | 'over' | 'one of several';
  less?: readonly string[];
  /** The documents suggested together. One command accepts the whole set. */
  set?: readonly string[];
  /** The fee that the bank may have kept: the balances of the documents, less the amount received. */
  fee?: string;
  /** Whether the amount equals the balance with two neighboring digits swapped. */
  digits_swapped?: true;
  why: string;
}>;

export type Suggestion = Readonly<{
  document: Payable;
  amount: Amount;
  confidence: string;
  evidence: Evidence;
}>;

export type Application = Suggestion &
  Readonly<{
    /** The unpaid part of the document, if it is small enough for bank charges. */
    small_difference: Amount | undefined;
  }>;

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

export type NamedDocument = Readonly<{
  reference: FoundReference;
  document: Payable;
}>;

export type Payer = NonNullable<Evidence['payer']>;

export function comparison(amount: Amount, balance: Amount, documents: number): NonNullable<Evidence['amount']> {
  if (documents > 1) return 'one of several';
  if (amount.equals(balance)) return 'exact';
  return amount.minus(balance).isNegative() ? 'under' : 'over';
}

/** An invoice that a payment may pay: open, or named by the payment. */
export type Payable = Readonly<{
  document_id: number;
  number: string;
  partner_id: string;
  currency: string;
  status: 'open' | 'paid' | 'void';
  balance: Amount;
  written_off?: string;
  due_on: string;
  /** Null for an invoice that an opening carried over. */
  month: string | null;
  replaced_by: string | null;
}>;

export type OpenCredit = Readonly<{
  document_id: number;
  number: string;
  partner_id: string;
  currency: string;
  balance: Amount;
  /** When the credit note was put on hold; null if it is not on hold. Held credit is only suggested. */
  held_at: string | null;
}>;

export type PlacedCredit = Readonly<{
  credit: OpenCredit;
  document: Payable;
  amount: Amount;
}>;

export type Match = Readonly<{
  partner_id: string | undefined;
  applied: readonly Application[];
  credit?: readonly PlacedCredit[];
  suggested: readonly Suggestion[];
  why: string;
  /** Whether finance should read the reason although the payment is applied. */
  remark?: boolean;
}>;
