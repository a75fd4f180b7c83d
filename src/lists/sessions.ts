/** Sessions in the console: `reckoner user sessions`. */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { liveAt } from '#people/sessions';
import { readSessions } from '#people/sign-in.sql';
import { userNamed } from '#people/users';
import { names } from '#text';
import { defineList, ListQuery, text } from './list.ts';

const filters = z.strictObject({ email: text('User', 'Only the sessions of this user.').optional() });

/** Throws user_unknown. */
async function readRows(tx: Transaction, { filter: { email }, context }: ListQuery<z.output<typeof filters>>) {
  if (email !== undefined) await userNamed(tx, context, email);
  return readSessions(tx, { ...liveAt(context), login: email ?? null });
}

export const sessions = defineList({
  command: 'user sessions',
  summary: 'List who is signed in, from where and until when',
  title: 'Sessions',
  one: 'session',
  ofLedger: true,
  none: 'No one is signed in.',
  filters,
  words: { arguments: { email: '[email]' } },
  sorts: ['-last_seen_at', '-last_seen_at'],
  columns: {
    login: { heading: 'User', cut: true },
    method: { heading: 'By' },
    network: { cut: true },
    browser: {},
    created_at: { heading: 'Since', type: 'instant' },
    last_seen_at: { heading: 'Last seen', type: 'instant' },
    seen: { heading: 'Last seen', value: ({ last_seen_at }) => last_seen_at.slice(11, 16) },
    ends_at: { heading: 'Ends', type: 'instant' },
    ends: { value: ({ ends_at }) => ends_at.slice(11, 16) },
  },
  sheet: names('login method network browser created_at last_seen_at ends_at'),
  terminal: names('login method network created_at seen ends'),
  read: readRows,
});
