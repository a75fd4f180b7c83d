/** Partners' webhooks: `reckoner webhook list`. */
import { z } from 'zod';
import type { Transaction } from '../database/transaction.ts';
import { type Webhook, webhookOf } from '../partner-events/webhook.ts';
import { readWebhooks } from '../partner-events/webhooks.sql.ts';
import { defineList } from './list.ts';

const readRows = async (tx: Transaction): Promise<Webhook[]> => (await readWebhooks(tx)).map(webhookOf);

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
    partner_id: { heading: 'Partner', type: 'text', cut: true },
    url: { heading: 'Url', type: 'text', cut: true },
    state: { heading: 'State', type: 'text' },
    acknowledged: { heading: 'Sent to', type: 'count' },
    waiting: { heading: 'Waiting', type: 'count' },
    failing_since: { heading: 'Failing since', type: 'instant' },
    last_failure: { heading: 'Last failure', type: 'text' },
    next_attempt_at: { heading: 'Next attempt', type: 'instant' },
    paused_at: { heading: 'Paused', type: 'instant' },
  },
  sheet: [
    ...(['partner_id', 'url', 'state', 'acknowledged', 'waiting', 'failing_since', 'last_failure'] as const),
    ...(['next_attempt_at', 'paused_at'] as const),
  ],
  terminal: ['partner_id', 'url', 'state', 'acknowledged', 'waiting', 'last_failure'],
  read: readRows,
});
