import { ActionContext, defineAction, text } from '#actions/action';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { assignWork } from '#people/work-assignments';
import { describeWork, listWork, WorkItem } from './items.ts';

export const workAssign = defineAction({
  name: 'work.assign',
  title: 'Assign an item of the work queue',
  command: {
    summary: 'Assign an item to a user; without --to, unassign it',
    arguments: { item: '<item>' },
  },
  role: 'finance',
  input: {
    item: text('Item', "The item's name in the work queue, such as dispute:INV-2026-000003."),
    to: text('To', 'The e-mail address of a user. Default: unassigned.', { value: 'email' }).optional(),
  },
  subject: ({ item }) => item,
  async partners(tx, { item }, context) {
    const ids = idsOf(await itemNamed(tx, context, item));
    return ids.length === 0 ? 'all' : ids;
  },
  async perform(tx, context, { item, to }) {
    await assignWork(tx, context, { item, to, partnerIds: idsOf(await itemNamed(tx, context, item)) });
  },
  facts: async (tx, { item }, _result, context) => ({
    [item]: { 'assigned to': (await itemNamed(tx, context, item)).assignee?.login ?? null },
  }),
  async report({ input: { item } }, context, tx) {
    const named = await itemNamed(tx, context, item);
    const { assignee } = named;
    return {
      json: named,
      text: assignee === null ? `${item} is now unassigned.` : `${item} is assigned to ${assignee.login}.`,
    };
  },
});

const idsOf = ({ partners }: WorkItem) => partners.map(({ id }) => id);

async function itemNamed(tx: Transaction, context: ActionContext, item: string) {
  const { settings, environment } = context;
  const question = { settings, scope: null, now: environment.now().toMillis(), today: todayOf(context) };
  const named = (await listWork(tx, question)).filter((each) => each.item === item);
  const [described] = await describeWork(tx, question, named);
  if (described === undefined) throw refuse('work_item_unknown', { item });
  return described;
}
