/** The words in which payments are spoken of, on the command line as in the database. Imports nothing. */

export type Method = 'ach' | 'wire' | 'link' | 'other';
export const METHODS: readonly Method[] = ['ach', 'wire', 'link', 'other'];

/** Who told of it. */
export type Source = 'hand' | 'bank' | 'processor';

export type PaymentStatus = 'applied' | 'partly_applied' | 'unapplied' | 'reversed';
export const PAYMENT_STATUSES: readonly PaymentStatus[] = ['applied', 'partly_applied', 'unapplied', 'reversed'];

export type ReversalKind = 'returned' | 'refunded' | 'disputed' | 'mistake' | 'duplicate';
/** Those that a person may say; of disputes the processor tells. */
export const REVERSAL_KINDS: readonly ReversalKind[] = ['returned', 'refunded', 'mistake', 'duplicate'];

export type BankFormat = 'csv' | 'bai2' | 'camt053';
export const BANK_FORMATS: readonly BankFormat[] = ['csv', 'bai2', 'camt053'];
