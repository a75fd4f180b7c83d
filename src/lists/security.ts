/** Refused callers and changes of access: `reckoner security list`. */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { readSecurityEvents } from '#reports/security.sql';
import { names } from '#text';
import { date, defineList, ListQuery } from './list.ts';

const filters = z.strictObject({ since: date('Since', 'From this day on (UTC).').optional() });

const readRows = (tx: Transaction, { filter: { since }, limit }: ListQuery<z.output<typeof filters>>) =>
  readSecurityEvents(tx, { since: since === undefined ? null : `${since}T00:00:00Z`, limit });

export const securityEvents = defineList({
  command: 'security list',
  summary: 'List refused callers and access changes, latest last',
  help: `Refused token exchanges, webhooks with a bad signature and callers over a limit
are counted per hour by network and client. Changes of clients, webhooks,
settings and keys, and backups and restores, are audit events.`,
  most: 500,
  title: 'Security',
  one: 'security event',
  ofLedger: true,
  none: 'Nothing was refused or changed.',
  filters,
  sorts: ['at', 'at'],
  columns: {
    at: { type: 'instant' },
    event: {},
    subject: {},
    network: {},
    client_id: {},
    of: {
      cut: true,
      value: ({ subject, network, client_id }) => subject ?? [network, client_id].filter(Boolean).join(' '),
    },
    tries: { type: 'count' },
    by: { cut: true },
    host: {},
  },
  sheet: names('at event subject network client_id tries by host'),
  terminal: names('at event of tries by'),
  read: readRows,
});
