/** Items of the work queue and their assignees: `reckoner work list`. The console has a separate page for the queue. */

import { z } from 'zod';
import { remediesJson } from '#actions/remedies';
import { readWork, WorkItem } from '#actions/work/items';
import { Transaction } from '#database/transaction';
import { FINDING_KINDS } from '#findings/finding';
import { Amount, names } from '#values';
import { choice, defineList, flag, ListQuery, text } from './list.ts';

const filters = z.strictObject({
  kind: choice('Kind', `${FINDING_KINDS.join(', ')}.`, FINDING_KINDS).optional(),
  of: text('Assigned to', 'Only items assigned to this user.', { value: 'email' }).optional(),
  nobodys: flag('Unassigned', 'Only unassigned items.').optional(),
});

async function readRows(
  tx: Transaction,
  { filter: { kind, of, nobodys }, scope, today, context }: ListQuery<z.output<typeof filters>>,
) {
  const { settings, environment } = context;
  const all = await readWork(tx, { settings, scope, now: environment.now().toMillis(), today });
  return all.filter(
    (each) =>
      (kind === undefined || each.kind === kind) &&
      (of === undefined || each.assignee?.login === of.toLowerCase()) &&
      (nobodys !== true || each.assignee === null),
  );
}

const amountOf = ({ money }: WorkItem) => (money === null ? null : Amount.of(money.amount, money.currency));

const workJson = (row: WorkItem) => {
  const { tone: _tone, partners, money, assignee, ...item } = row;
  return {
    ...item,
    partner_ids: partners.map(({ id }) => id),
    currency: money?.currency ?? null,
    amount: amountOf(row)?.toString() ?? null,
    assigned_to: assignee?.login ?? null,
  };
};

export const work = defineList({
  command: 'work list',
  summary: 'List items that need a person, oldest first',
  title: 'Work',
  one: 'item',
  none: 'No work is waiting.',
  filters,
  sorts: ['since', 'since'],
  columns: {
    item: {},
    kind: {},
    state: {},
    partner_ids: { heading: 'Partners', value: ({ partners }) => partners.map(({ id }) => id).join(', ') },
    currency: { heading: '', value: ({ money }) => money?.currency ?? null },
    amount: { type: 'amount', value: amountOf },
    since: { type: 'date' },
    assigned_to: { cut: true, value: ({ assignee }) => assignee?.login ?? null },
    reason: { cut: true },
  },
  sheet: names('item kind state partner_ids currency amount since assigned_to reason'),
  terminal: names('item state since amount currency assigned_to reason'),
  read: readRows,
  json: (_tx, rows) =>
    Promise.all(rows.map(async (row) => ({ ...workJson(row), remedies: await remediesJson(row.remedies) }))),
});
