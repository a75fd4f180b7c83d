/** Partners' webhooks: `reckoner webhook list`. */

import { z } from 'zod';
import { Transaction } from '#database/transaction';
import { webhookOf } from '#partner-events/webhook';
import { readWebhooks } from '#partner-events/webhooks.sql';
import { names } from '#text';
import { defineList } from './list.ts';

const readRows = async (tx: Transaction) => (await readWebhooks(tx)).map(webhookOf);

export const webhooks = defineList({
  command: 'webhook list',
  summary: 'List all webhooks',
  title: 'Webhooks',
  one: 'webhook',
  ofLedger: true,
  none: 'There are no webhooks.',
  first: { label: 'Set one', action: 'webhook.set', input: {} },
  current: true,
  filters: z.strictObject({}),
  sorts: ['partner_id', 'partner_id'],
  columns: {
    partner_id: { cut: true },
    url: { cut: true },
    state: {},
    acknowledged: { heading: 'Sent to', type: 'count' },
    waiting: { type: 'count' },
    failing_since: { type: 'instant' },
    last_failure: {},
    next_attempt_at: { heading: 'Next attempt', type: 'instant' },
    paused_at: { heading: 'Paused', type: 'instant' },
  },
  sheet: names('partner_id url state acknowledged waiting failing_since last_failure next_attempt_at paused_at'),
  terminal: names('partner_id url state acknowledged waiting last_failure'),
  read: readRows,
});
