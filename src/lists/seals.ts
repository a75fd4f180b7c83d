/** Seals with their letters to the auditor: `reckoner seal letters` and the console's Seals. */
import { z } from 'zod';
import { choice } from '../actions/fields.ts';
import type { Transaction } from '../database/transaction.ts';
import { readSealLetters, type SealLetter } from '../reports/seal-letters.sql.ts';
import { sealTitle } from '../seals/signature.ts';
import { emailMark } from './emails.ts';
import { defineList, type ListQuery, pageOf } from './list.ts';

/** A seal with the previous seal of the same kind. The seal's record contains the hash of the previous one. */
export interface ChainedSeal extends SealLetter {
  readonly previous: Pick<SealLetter, 'name' | 'seal'> | null;
}

const filters = z.strictObject({
  kind: choice('Kind', 'Month, books or checkpoint.', ['month', 'books', 'checkpoint']).optional(),
});

export async function readChain(tx: Transaction): Promise<ChainedSeal[]> {
  const latest = new Map<string, SealLetter>();
  return (await readSealLetters(tx)).map((seal) => {
    const previous = latest.get(seal.kind) ?? null;
    latest.set(seal.kind, seal);
    return { ...seal, previous };
  });
}

const keyOf = ({ kind, name }: SealLetter): string => `${kind} ${name}`;

async function readRows(
  tx: Transaction,
  { filter: { kind }, ...asked }: ListQuery<z.output<typeof filters>, '-made_at' | 'made_at'>,
): Promise<ChainedSeal[]> {
  const seals = (await readChain(tx)).filter((each) => kind === undefined || each.kind === kind);
  return pageOf(asked.sort === 'made_at' ? seals : seals.reverse(), asked, keyOf);
}

const ofKind = ({ kind, name }: SealLetter): string => (kind === 'month' ? name : `${kind} ${name}`);
const day = (instant: string): string => instant.slice(0, 10);

export const seals = defineList({
  command: 'seal letters',
  summary: 'List every seal with its letter, signature and time stamp',
  title: 'Letters',
  one: 'seal',
  ofLedger: true,
  none: 'Nothing is sealed yet.',
  first: { label: 'Take a checkpoint', action: 'checkpoint.take', input: {} },
  filters,
  views: [
    ['All', {}],
    ['Months', { kind: 'month' }],
    ['Books', { kind: 'books' }],
    ['Checkpoints', { kind: 'checkpoint' }],
  ],
  sorts: ['-made_at', 'made_at'],
  columns: {
    kind: { heading: 'Kind', type: 'text' },
    name: { heading: 'Name', type: 'text' },
    seal_of: {
      ...{ heading: 'Seal of', type: 'text', value: ofKind },
      to: ({ kind, name }) => [`audit/seals/${kind}`, name],
    },
    about: { heading: 'About', type: 'text', value: sealTitle },
    seal: { heading: 'SHA-256', type: 'text' },
    hash: { heading: 'Seal', type: 'text', value: ({ seal }) => seal.slice(0, 16) },
    follows: {
      ...{ heading: 'Follows', type: 'text', look: 'soft' },
      value: ({ previous }) => (previous === null ? 'the first' : `${previous.seal.slice(0, 16)} ${previous.name}`),
    },
    made_at: { heading: 'Made', type: 'instant' },
    made_on: { heading: 'Made (UTC)', type: 'date', value: ({ made_at }) => made_at },
    letter: { heading: 'Letter', type: 'text' },
    letter_text: {
      ...{ heading: 'Letter', type: 'text' },
      value: ({ sent_at, letter }) => (sent_at === null ? (letter ?? 'none') : day(sent_at)),
    },
    letter_mark: {
      ...{ heading: 'Letter', type: 'marks' },
      value: ({ letter }) => (letter === null ? null : [emailMark(letter)]),
    },
    sent_at: { heading: 'Sent', type: 'instant' },
    to: { heading: 'To', type: 'text', value: ({ to }) => to?.join(' ') ?? null },
    recipients: { heading: 'To', type: 'text', cut: true, value: ({ to }) => to?.join(', ') ?? null },
    message_id: { heading: 'Message-ID', type: 'text' },
    signed_by: { heading: 'Signed by', type: 'text' },
    signed: { heading: 'Sig.', type: 'text', value: ({ signed_by }) => (signed_by === null ? 'no' : 'yes') },
    signed_mark: {
      ...{ heading: 'Signed', type: 'marks' },
      value: ({ signed_by }) =>
        signed_by === null ? [{ text: 'not signed', tone: 'warn' }] : [{ text: 'signed', tone: 'good' }],
    },
    stamped_at: { heading: 'Time stamp', type: 'instant' },
    stamped: { heading: 'Stamp', type: 'text', value: ({ stamped_at }) => (stamped_at === null ? 'no' : 'yes') },
    stamped_by: { heading: 'Stamped by', type: 'text' },
  },
  sheet: [
    ...(['kind', 'name', 'about', 'seal', 'made_at', 'letter', 'sent_at', 'to', 'message_id', 'signed_by'] as const),
    ...(['stamped_at', 'stamped_by'] as const),
  ],
  terminal: ['seal_of', 'hash', 'made_on', 'letter_text', 'recipients', 'signed', 'stamped'],
  page: ['seal_of', 'hash', 'follows', 'made_at', 'signed_mark', 'stamped_at', 'letter_mark'],
  key: keyOf,
  keyed: 'text',
  read: readRows,
  json: async (_tx, rows) => rows.map(({ previous: _previous, ...seal }) => seal),
});
