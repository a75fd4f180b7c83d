/**
 * Identities of payments and of payment source records. A record that is reported several times has one identity, so it
 * is stored once.
 */
import { normalizeReference } from './bank/statement.ts';

/** `line` identifies the line within its account. */
export const bankIdentity = (account: string, line: string) => `bank|${account}|${line}`;

/** `account` is the connected account, or empty for our own processor account. */
export const processorIdentity = (account: string, id: string) => `processor|${account}|${id}`;

/** The identity of a payment from a share that arrived after its quote was billed. */
export const shareIdentity = (account: string, allocation: number) => processorIdentity(account, `share ${allocation}`);
export const isShareIdentity = (identity: string) => /^processor\|[^|]+\|share \d+$/.test(identity);

type HandEntry = Readonly<{
  partnerId: string;
  number: string | undefined;
  currency: string;
  amount: string;
  reference: string;
  receivedOn: string;
}>;

/** The day distinguishes manual entries only if they name no document. */
export const handIdentity = ({ partnerId, number, currency, amount, reference, receivedOn }: HandEntry) =>
  [
    'hand',
    number ?? partnerId,
    currency,
    amount,
    normalizeReference(reference),
    number === undefined ? receivedOn : '',
  ].join('|');

export const handDuplicateIdentity = (partnerId: string, paymentId: number, reference: string) =>
  ['hand', partnerId, paymentId, normalizeReference(reference)].join('|');
