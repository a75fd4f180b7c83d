/**
 * Every checkpoint of the log with its letter to the auditor: `reckoner checkpoint list`, the console's Checkpoints.
 */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { closedBy } from '#log/text';
import { CheckpointLetter, readCheckpointLetters } from '#reports/checkpoint-letters.sql';
import { names } from '#text';
import { emailMark } from './emails.ts';
import { choice, defineList, ListQuery, pageOf } from './list.ts';

const KINDS = ['month', 'books', 'daily'] as const;

const filters = z.strictObject({
  kind: choice('Kind', 'Those that close a month, those that close books, or the others.', KINDS).optional(),
});

const kindOf = ({ closes }: CheckpointLetter) => closes?.split(' ')[0] ?? 'daily';
const keyOf = ({ size }: CheckpointLetter) => String(size);

async function readRows(
  tx: Transaction,
  { filter: { kind }, ...asked }: ListQuery<z.output<typeof filters>, '-size' | 'size'>,
) {
  const found = (await readCheckpointLetters(tx)).filter((each) => kind === undefined || kindOf(each) === kind);
  return pageOf(asked.sort === 'size' ? found : found.reverse(), asked, keyOf);
}

const day = (instant: string) => instant.slice(0, 10);

export const checkpoints = defineList({
  command: 'checkpoint list',
  summary: 'List every checkpoint with its signatures, time stamp and letter',
  title: 'Checkpoints',
  one: 'checkpoint',
  ofLedger: true,
  none: 'There are no checkpoints yet.',
  first: { label: 'Take one', action: 'checkpoint.take', input: {} },
  filters,
  views: [
    ['All', {}],
    ['Months', { kind: 'month' }],
    ['Books', { kind: 'books' }],
    ['Daily', { kind: 'daily' }],
  ],
  sorts: ['-size', 'size'],
  columns: {
    size: { heading: 'Facts', type: 'count', to: ({ size }) => ['audit/checkpoints', String(size)] },
    closes: {},
    closes_text: { heading: 'Closes', value: ({ closes }) => closedBy(closes) },
    root: { look: 'hash' },
    root_start: { heading: 'Root', value: ({ root }) => root.slice(0, 16) },
    taken_at: { heading: 'Taken', type: 'instant' },
    taken_on: { heading: 'Taken (UTC)', type: 'date', value: ({ taken_at }) => taken_at },
    signed: { heading: 'Sig.' },
    signed_mark: {
      ...{ heading: 'Signed', type: 'marks' },
      value: ({ signed }) => [signed ? { text: 'signed', tone: 'good' } : { text: 'not signed', tone: 'warn' }],
    },
    cosigned_by: { value: ({ cosigned_by }) => cosigned_by.join(' ') || null },
    stamped_at: { heading: 'Time stamp', type: 'instant' },
    stamped: { heading: 'Stamp', value: ({ stamped_at }) => (stamped_at === null ? 'no' : 'yes') },
    stamped_by: {},
    letter: {},
    letter_text: {
      heading: 'Letter',
      value: ({ sent_at, letter }) => (sent_at === null ? (letter ?? 'none') : day(sent_at)),
    },
    letter_mark: {
      ...{ heading: 'Letter', type: 'marks' },
      value: ({ letter }) => (letter === null ? null : [emailMark(letter)]),
    },
    sent_at: { heading: 'Sent', type: 'instant' },
    to: { value: ({ to }) => to?.join(' ') ?? null },
    recipients: { heading: 'To', cut: true, value: ({ to }) => to?.join(', ') ?? null },
    message_id: { heading: 'Message-ID' },
  },
  sheet: names('size closes root taken_at signed cosigned_by stamped_at stamped_by letter sent_at to message_id'),
  terminal: names('size closes_text root_start taken_on letter_text recipients signed stamped'),
  page: names('size closes_text root taken_at signed_mark cosigned_by stamped_at letter_mark'),
  key: keyOf,
  read: readRows,
});
