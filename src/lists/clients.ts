/** Partners' API clients: `reckoner client list` and the console's API clients. Secrets are not included. */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { readClients } from '#partners/clients.sql';
import { names } from '#text';
import { defineList, ListQuery, pageOf, partner } from './list.ts';

type ClientLine = Readonly<{
  client_id: string;
  partner_id: string;
  created_at: string;
  revoked_at: string | null;
  last_used_at: string | null;
  secrets: readonly Readonly<{ sequence: number; ends_at: string | null }>[];
}>;

const filters = z.strictObject({
  partner: partner('Only the clients of this partner.').optional(),
});

const keyOf = ({ client_id }: ClientLine) => client_id;

async function readRows(tx: Transaction, asked: ListQuery<z.output<typeof filters>>): Promise<ClientLine[]> {
  const now = asked.context.environment.now().toISO();
  const clients = await readClients(tx, { partnerId: asked.filter.partner, now });
  const lines = clients.map(({ client_id, partner_id, created_at, revoked_at, last_used_at, live_secrets }) => ({
    ...{ client_id, partner_id, created_at, revoked_at, last_used_at },
    secrets: live_secrets.map(({ sequence, ends_at }) => ({ sequence, ends_at })),
  }));
  return pageOf(lines, asked, keyOf);
}

const secretsOf = ({ revoked_at, secrets }: ClientLine) =>
  revoked_at !== null
    ? `revoked ${revoked_at.slice(0, 10)}`
    : [
        `${secrets.length} valid`,
        ...secrets.flatMap(({ ends_at }) => (ends_at === null ? [] : `one until ${ends_at.slice(0, 10)}`)),
      ].join(', ');

export const clients = defineList({
  command: 'client list',
  summary: 'List clients and their valid secrets',
  title: 'API clients',
  one: 'API client',
  ofLedger: true,
  none: 'There are no API clients.',
  first: { label: 'Create one', action: 'client.create', input: {} },
  current: true,
  filters,
  words: { arguments: { partner: '[partner]' } },
  sorts: ['partner_id', 'partner_id'],
  columns: {
    client_id: { to: ({ client_id }) => ['audit', { subject: client_id }] },
    partner_id: { to: ({ partner_id }) => [`partners/${encodeURIComponent(partner_id)}`, 'terms'] },
    created_at: { heading: 'Created', type: 'date', look: 'soft' },
    revoked_at: { heading: 'Revoked', type: 'date' },
    last_used_at: { heading: 'Last used', type: 'date' },
    used: { heading: 'Last used', type: 'date', look: 'soft', value: ({ last_used_at }) => last_used_at ?? 'never' },
    valid_secrets: { heading: 'Secrets', type: 'count', value: ({ secrets }) => secrets.length },
    secrets_text: { heading: 'Secrets', value: secretsOf },
    secrets_mark: {
      ...{ heading: 'Secrets', type: 'marks' },
      value: (row) => [
        { text: secretsOf(row), tone: row.revoked_at !== null ? 'plain' : row.secrets.length > 0 ? 'good' : 'warn' },
      ],
    },
  },
  sheet: names('client_id partner_id created_at revoked_at last_used_at valid_secrets'),
  terminal: names('client_id partner_id created_at used secrets_text'),
  page: names('client_id partner_id created_at used secrets_mark'),
  remedies: ({ client_id, partner_id, revoked_at }) =>
    revoked_at === null
      ? [
          { label: 'New secret', action: 'client.rotate', input: { clientId: client_id }, partner: partner_id },
          { label: 'Revoke', action: 'client.revoke', input: { clientId: client_id }, partner: partner_id },
        ]
      : [],
  key: keyOf,
  keyed: 'text',
  read: readRows,
});
