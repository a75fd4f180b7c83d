import { ActionContext, defineAction, oneOrMore, text } from '#actions/action';
import { todayOf } from '#config/today';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { assignWork } from '#people/work-assignments';
import { inShort, plural } from '#text';
import { describeWork, listWork, WorkItem } from './items.ts';

export const workAssign = defineAction({
  name: 'work.assign',
  title: 'Assign an item of the work queue',
  command: {
    summary: 'Assign items to a user; without --to, unassign them',
    arguments: { item: '<item...>' },
  },
  role: 'finance',
  input: {
    item: oneOrMore(text('Item', "The item's name in the work queue, such as dispute:INV-2026-000003.")),
    to: text('To', 'The e-mail address of a user. Default: unassigned.', { value: 'email' }).optional(),
  },
  subject: ({ item }) => inShort([item].flat()),
  async partners(tx, { item }, context) {
    const ids = (await itemsNamed(tx, context, item)).map(idsOf);
    return ids.some((each) => each.length === 0) ? 'all' : [...new Set(ids.flat())];
  },
  async perform(tx, context, { item, to }) {
    const named = await itemsNamed(tx, context, item);
    const present = (each: WorkItem) => each.assignee?.login ?? null;
    // Of several items, those of the same user stay as they are.
    const others = named.filter((each) => present(each) !== (to?.toLowerCase() ?? null));
    for (const each of others.length === 0 ? named : others) {
      await assignWork(tx, context, { item: each.item, to, partnerIds: idsOf(each) });
    }
  },
  facts: async (tx, { item }, _result, context) =>
    Object.fromEntries(
      (await itemsNamed(tx, context, item)).map((each) => [each.item, { 'assigned to': each.assignee?.login ?? null }]),
    ),
  async report({ input: { item, to } }, context, tx) {
    const named = await itemsNamed(tx, context, item);
    const [first] = named as [WorkItem];
    const what = typeof item === 'string' ? item : plural(named.length, 'item');
    const is = named.length === 1 ? 'is' : 'are';
    return {
      json: typeof item === 'string' ? first : named,
      text: to === undefined ? `${what} ${is} now unassigned.` : `${what} ${is} assigned to ${first.assignee?.login}.`,
    };
  },
});

const idsOf = ({ partners }: WorkItem) => partners.map(({ id }) => id);

/** Refusal: work_item_unknown. */
async function itemsNamed(tx: Transaction, context: ActionContext, item: string | readonly string[]) {
  const { settings, environment } = context;
  const question = { settings, scope: null, now: environment.now().toMillis(), today: todayOf(context) };
  const items = [...new Set([item].flat())];
  const listed = new Map((await listWork(tx, question)).map((each) => [each.item, each]));
  const named = items.map((each) => {
    const found = listed.get(each);
    if (found === undefined) throw refuse('work_item_unknown', { item: each });
    return found;
  });
  return describeWork(tx, question, named);
}
