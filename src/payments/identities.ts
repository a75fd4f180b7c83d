/**
 * Identities of payments and of their source records. Records with the same identity are one record. It is stored once,
 * however often it is reported.
 */
import { normalizeReference } from './bank/statement.ts';

/** `line` is the identity of the line within its account. */
export const bankIdentity = (account: string, line: string): string => `bank|${account}|${line}`;

/** `account` is the connected account; empty for our own processor account. */
export const processorIdentity = (account: string, id: string): string => `processor|${account}|${id}`;

/** For a payment made from a share that arrived after its quote was billed. */
export const shareIdentity = (account: string, allocation: number): string =>
  processorIdentity(account, `share ${allocation}`);
export const isShareIdentity = (identity: string): boolean => /^processor\|[^|]+\|share \d+$/.test(identity);

interface HandEntry {
  readonly partnerId: string;
  /** The document that the payment is for, if one is named. */
  readonly number: string | undefined;
  readonly currency: string;
  readonly amount: string;
  readonly reference: string;
  readonly receivedOn: string;
}

/** A manual entry is identified by its document, amount and reference; without a document, also by its day. */
export const handIdentity = ({ partnerId, number, currency, amount, reference, receivedOn }: HandEntry): string =>
  [
    'hand',
    number ?? partnerId,
    currency,
    amount,
    normalizeReference(reference),
    number === undefined ? receivedOn : '',
  ].join('|');

/** A manual entry of a payment already recorded. */
export const handDuplicateIdentity = (partnerId: string, paymentId: number, reference: string): string =>
  ['hand', partnerId, paymentId, normalizeReference(reference)].join('|');
