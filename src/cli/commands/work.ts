/** `reckoner work list`: everything that waits for a person, and who is responsible for it. */
import { readWork, type WorkItem } from '../../acts/work/items.ts';
import { todayOf } from '../../config/today.ts';
import { FINDING_KINDS, type QueueKind } from '../../findings/finding.ts';
import { Amount } from '../../money.ts';
import type { Sheet } from '../../sheet.ts';
import { plural } from '../../text.ts';
import { choiceArgument } from '../arguments.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { amount, printable, table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (group, act) => {
  group
    .command('list')
    .description('List what waits for a person, the oldest first')
    .option('--kind <kind>', FINDING_KINDS.join(', '), choiceArgument('--kind', FINDING_KINDS))
    .option('--of <email>', 'only what is assigned to this user')
    .option('--nobodys', 'only what is assigned to nobody')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(workList)));
};

interface Filter {
  readonly kind?: QueueKind;
  readonly of?: string;
  readonly nobodys?: boolean;
}

async function workList(
  context: CommandContext,
  { kind, of, nobodys = false, ...options }: PresentOptions & Filter,
): Promise<void> {
  const { database, output, settings, environment } = context;
  const question = { settings, scope: null, now: environment.now().toMillis(), today: todayOf(context) };
  const all = await database.reading((tx) => readWork(tx, question));
  const items = all.filter(
    (each) =>
      (kind === undefined || each.kind === kind) &&
      (of === undefined || each.assignee?.login === of.toLowerCase()) &&
      (!nobodys || each.assignee === null),
  );
  await present(
    output,
    options,
    items.map(workJson),
    () => sheetOf(items),
    () => (items.length === 0 ? 'Nothing waits.' : described(items)),
  );
}

const workJson = ({ tone: _tone, partners, money, assignee, ...item }: WorkItem) => ({
  ...item,
  partner_ids: partners.map(({ id }) => id),
  currency: money?.currency ?? null,
  amount: money === null ? null : Amount.of(money.amount, money.currency).toString(),
  assigned_to: assignee?.login ?? null,
});

const sheetOf = (items: readonly WorkItem[]): Sheet => ({
  name: 'Work',
  columns: {
    item: 'text',
    kind: 'text',
    state: 'text',
    partner_ids: 'text',
    currency: 'text',
    amount: 'amount',
    since: 'date',
    assigned_to: 'text',
    reason: 'text',
  },
  rows: items.map((each) => {
    const { remedies: _remedies, urgent: _urgent, title: _title, ...row } = workJson(each);
    return { ...row, partner_ids: row.partner_ids.join(', ') };
  }),
});

const described = (items: readonly WorkItem[]): string =>
  [
    table(
      ['item', 'state', 'since', '>amount', '', '~assigned to', '~reason'],
      items.map(({ item, state, since, money, assignee, reason }) => [
        printable(item),
        state,
        since,
        money === null ? '' : amount(money.amount, money.currency),
        money?.currency ?? '',
        assignee?.login ?? '',
        printable(reason),
      ]),
    ),
    `${plural(items.length, 'item')}. Assign one with 'reckoner work assign ITEM --to EMAIL'.`,
  ].join('\n\n');
