/** Requests for approval: `reckoner approval list` and the console's Approvals. */

import { z } from 'zod';
import { RequestStatus, statusOf } from '#approvals/requests';
import { RequestRow, readRequests } from '#approvals/requests.sql';
import { Transaction } from '#database/transaction';
import { Amount, names } from '#values';
import { defineList, flag, ListQuery, Mark } from './list.ts';

export interface ListedRequest extends RequestRow {
  readonly status: RequestStatus;
}

const filters = z.strictObject({
  waiting: flag('Waiting', 'Only pending requests.').optional(),
});

async function readRows(
  tx: Transaction,
  { filter: { waiting = false }, scope, after, limit, context }: ListQuery<z.output<typeof filters>>,
): Promise<ListedRequest[]> {
  const now = context.environment.now();
  const waitingAt = waiting ? now.toISO() : null;
  const requests = await readRequests(tx, { waitingAt, scope, after, limit });
  return requests.map((each) => ({ ...each, status: statusOf(each, now.toMillis()) }));
}

export const requestJson = (request: ListedRequest) => ({
  request_id: request.request_id,
  status: request.status,
  action: request.action,
  subject: request.subject,
  amounts: request.preview.amounts,
  requested_by: request.requester,
  requested_at: request.requested_at,
  reason: request.reason,
  expires_at: request.expires_at,
  decided_by: request.decided_by,
  decided_at: request.decided_at,
  decision_reason: request.decision_reason,
});

const TONES = { waiting: 'warn', expired: 'plain', approved: 'good', rejected: 'bad', withdrawn: 'plain' } as const;
export const requestMark = (status: RequestStatus): Mark => ({ text: status, tone: TONES[status] });

export const approvals = defineList({
  command: 'approval list',
  summary: 'List requests for approval, latest first',
  title: 'Approvals',
  one: 'request',
  none: 'There are no requests for approval.',
  filters,
  views: [
    ['Waiting', { waiting: 'yes' }],
    ['All', {}],
  ],
  sorts: ['-request_id', '-request_id'],
  columns: {
    request_id: { type: 'count', to: ({ request_id }) => ['approvals', String(request_id)] },
    status: {},
    standing: { heading: 'Status', type: 'marks', value: ({ status }) => [requestMark(status)] },
    action: {},
    title: { heading: 'Action', value: ({ preview }) => preview.title },
    subject: { cut: true },
    amounts: {
      cut: true,
      value: ({ preview }) => preview.amounts.map(({ amount, currency }) => Amount.of(amount, currency)),
    },
    requested_by: { cut: true, look: 'soft', value: ({ requester }) => requester },
    requested_at: { heading: 'Asked', type: 'instant' },
    reason: {},
    expires_at: { heading: 'Expires', type: 'instant' },
    decided_by: {},
    decided_at: { heading: 'Decided', type: 'instant' },
    decision_reason: {},
  },
  sheet: names(
    'request_id status action subject amounts requested_by requested_at reason expires_at decided_by',
    'decided_at decision_reason',
  ),
  terminal: names('request_id status action subject amounts requested_by requested_at'),
  page: names('request_id standing title subject requested_by requested_at amounts'),
  key: ({ request_id }) => String(request_id),
  read: readRows,
  json: async (_tx, rows) => rows.map(requestJson),
});
