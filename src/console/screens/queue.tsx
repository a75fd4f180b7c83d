/** The work queue, oldest item first, with what exit statuses and the command `status` only count. */
import { ACTIONS } from '#actions/loaded';
import { describeWork, listWork, WorkItem, WorkQuestion } from '#actions/work/items';
import { rowClass } from '#console/list-cell';
import {
  actionHref,
  addressOf,
  Chip,
  Column,
  choiceAsked,
  Form,
  Joined,
  Money,
  mayDo,
  None,
  Pager,
  PageUser,
  Screen,
  Seer,
  TableCard,
  Tabs,
  textAsked,
} from '#console/parts';
import { Remedies } from '#console/remedies';
import { Transaction } from '#database/transaction';
import { FINDING_KINDS, QueueKind } from '#findings/finding';
import { scopeOf, User } from '#people/roles';
import { isInScope } from '#people/scope';
import { capitalized, plural } from '#text';
import { approvalHref } from './approvals.tsx';

const WHOSE = ['mine', 'nobody'] as const;
type AssigneeFilter = (typeof WHOSE)[number];
const WHOSE_NAMES: Readonly<Record<AssigneeFilter | 'all', string>> = {
  all: 'All assignees',
  mine: 'Mine',
  nobody: 'Unassigned',
};

export const QUEUE = '/console/queue';
/** The form of the ticked items. Each row has a form of its own. */
const CHOSEN = 'chosen';

type Filter = Readonly<{
  queue: QueueKind | undefined;
  whose: AssigneeFilter | undefined;
}>;

type QueueView = Filter &
  Readonly<{
    items: readonly WorkItem[];
    /** The last item of the previous page, and of this page. */
    after: string | undefined;
    next: string | null;
    counts: Readonly<Record<QueueKind | 'all', number>>;
    byPerson: Readonly<Record<AssigneeFilter | 'all', number>>;
    login: string;
    /** Whether all items of the page are ticked. */
    whole: boolean;
  }>;

type QueueQuestion = Readonly<Partial<Record<'queue' | 'whose' | 'after' | 'tick', string | undefined>>>;

const PAGE = 50;

export async function readQueue(
  tx: Transaction,
  asked: QueueQuestion,
  { user, ...question }: WorkQuestion & { readonly user: Pick<User, 'login' | 'roles'> },
): Promise<QueueView> {
  const filter: Filter = {
    queue: choiceAsked('queue', asked.queue, FINDING_KINDS),
    whose: choiceAsked('whose', asked.whose, WHOSE),
  };
  const found = await listWork(tx, question);
  const approving = scopeOf(user, 'approver');
  const isFirst = ({ kind, partners }: WorkItem) =>
    kind === 'approvals' && approving !== undefined && partners.every(({ id }) => isInScope(approving, id));
  // Nobody else can do what waits for an approver.
  const all = [...found.filter(isFirst), ...found.filter((each) => !isFirst(each))];
  const is = ({ assignee }: WorkItem, whose: AssigneeFilter | undefined) =>
    whose === undefined || (whose === 'mine' ? assignee?.login === user.login : assignee === null);
  const persons = all.filter((item) => is(item, filter.whose));
  const kind = all.filter((item) => filter.queue === undefined || item.kind === filter.queue);
  const counts = FINDING_KINDS.map((each) => [each, persons.filter((item) => item.kind === each).length] as const);
  const listed = kind.filter((item) => is(item, filter.whose));
  const after = textAsked(asked.after);
  // If the item `after` was settled meanwhile, from the beginning.
  const begin = listed.findIndex(({ item }) => item === after) + 1;
  const shown = listed.slice(begin, begin + PAGE);
  return {
    ...filter,
    items: await describeWork(tx, question, shown),
    after,
    next: begin + PAGE < listed.length ? (shown.at(-1)?.item ?? null) : null,
    counts: { ...Object.fromEntries(counts), all: persons.length } as QueueView['counts'],
    byPerson: {
      all: kind.length,
      mine: kind.filter((item) => is(item, 'mine')).length,
      nobody: kind.filter((item) => is(item, 'nobody')).length,
    },
    login: user.login,
    whole: asked.tick === 'page',
  };
}

const whoseOf = (partners: WorkItem['partners']): readonly string[] | null =>
  partners.length === 0 ? null : partners.map(({ id }) => id);

function pageOf({ item, partners }: WorkItem, user: Seer) {
  const at = item.indexOf(':');
  const [prefix, name] = [item.slice(0, at), item.slice(at + 1)];
  switch (prefix) {
    case 'approval':
      return approvalHref(Number(name));
    case 'receipt':
      return `/console/payments/${encodeURIComponent(name)}`;
    case 'email':
      if (mayDo(user, 'email.resend', whoseOf(partners))) return actionHref('email.resend', { emailId: name });
      return partners[0] === undefined ? SETTINGS : `/console/partners/${encodeURIComponent(partners[0].id)}/emails`;
    case 'held':
      return addressOf('/console/queue/rows', { partner: name });
    case 'doubled':
      return addressOf('/console/queue/doubled', { partner: name });
    case 'requested':
    case 'overdue':
      return addressOf('/console/queue/reversals', { status: 'requested', partner: name });
    case 'reversed':
      return addressOf('/console/queue/reversals', { status: 'recorded', ground: 'processor', partner: name });
    case 'stated':
      return addressOf('/console/feeds', { partner: name });
    case 'bank_file':
      return '/console/payments';
    case 'verify':
      return '/console/audit/checks';
    case 'reconcile':
      return addressOf('/console/accounts', { month: name });
    default:
      return `/console/invoices/${encodeURIComponent(name)}`;
  }
}

function titleOf({ kind, title }: WorkItem) {
  if (kind !== 'approvals') return title;
  const [action = '', ...subject] = title.split(' ');
  return `${ACTIONS.get(action)?.title ?? action}: ${subject.join(' ')}`;
}

/** An item with its state, linked to the page where it is decided. */
export const WorkLink = ({ item, user }: { item: WorkItem; user: Seer }) => (
  <>
    <a class={rowClass(titleOf(item))} href={pageOf(item, user)}>
      {titleOf(item)}
    </a>{' '}
    <Chip tone={item.tone}>{item.state}</Chip>
  </>
);

const SETTINGS = '/console/settings';

/** The action that resolves the item, if the user may do it, or else the item's page. */
function Actions({ item, user }: { item: WorkItem; user: Seer }) {
  const remedies = item.remedies.filter((each) => !('command' in each) || each.page !== undefined);
  if (remedies.length === 0) {
    const isMail = item.kind === 'e-mails';
    return (
      <a class="button small" href={isMail ? SETTINGS : pageOf(item, user)}>
        {isMail ? 'Mail' : 'Look'}
      </a>
    );
  }
  return <Remedies remedies={remedies} user={user} partner={whoseOf(item.partners)} tone="small" />;
}

const columnsFor = (
  view: QueueView,
  { reader, user }: { reader: PageUser; user: Seer },
): readonly Column<WorkItem>[] => [
  {
    heading: 'What',
    cell: (item) => (
      <span class="wrap">
        {mayDo(user, 'work.assign', whoseOf(item.partners)) && (
          <input
            type="checkbox"
            class="tick"
            form={CHOSEN}
            name="item"
            value={item.item}
            checked={view.whole}
            aria-label={`Select ${item.item}`}
          />
        )}
        <WorkLink item={item} user={user} />
        <span class="line soft">{item.reason}</span>
      </span>
    ),
  },
  {
    heading: 'Partner',
    cell: ({ partners }) => (
      <Joined>
        {partners.map(({ id, name }) => (
          <a href={`/console/partners/${encodeURIComponent(id)}`}>{name}</a>
        ))}
      </Joined>
    ),
  },
  { heading: 'Since', cell: ({ since }) => <span class="soft day">{since}</span> },
  {
    heading: 'Amount',
    number: true,
    cell: ({ money }) => money !== null && <Money amount={money.amount} currency={money.currency} />,
  },
  { heading: 'Assignee', cell: (item) => <Assignee item={item} view={view} reader={reader} user={user} /> },
  {
    heading: '',
    cell: (item) => <Actions item={item} user={user} />,
  },
];

function Assignee({
  item: { item, assignee, partners },
  view,
  reader,
  user,
}: {
  item: WorkItem;
  view: QueueView;
  reader: PageUser;
  user: Seer;
}) {
  const isMine = assignee?.login === view.login;
  const mayAssign = mayDo(user, 'work.assign', whoseOf(partners));
  const { queue = '', whose = '', after = '' } = view;
  const hidden = { to: isMine ? '' : view.login, queue, whose, after };
  return (
    <div class="assignee">
      {assignee !== null && <span title={assignee.login}>{isMine ? 'you' : assignee.name}</span>}
      {assignee === null && !mayAssign && <None />}
      {mayAssign && (
        <Form action={QUEUE} token={reader.formToken} hidden={{ ...hidden, item }} class="inline">
          <button type="submit" class="small" aria-label={`${isMine ? 'Give back' : 'Take'} ${item}`}>
            {isMine ? 'Give back' : 'Take'}
          </button>
          <a class="small" href={actionHref('work.assign', { item })} aria-label={`Assign ${item}`}>
            Assign
          </a>
        </Form>
      )}
    </div>
  );
}

export const queueHref = ({ queue, whose, after, tick }: QueueQuestion): string =>
  addressOf(QUEUE, { queue, whose, after, tick });

export function queueScreen(view: QueueView, seen: { reader: PageUser; user: Seer }): Screen {
  const { queue, whose, items, after, next, counts, byPerson } = view;
  const listed = queue === undefined ? counts.all : counts[queue];
  return {
    place: 'queue',
    title: 'Work queue',
    actions: (
      <a class="button" href="/console/queue/reversals">
        Reversals
      </a>
    ),
    lead: counts.all === 0 && whose === undefined ? 'nothing to decide' : `${plural(counts.all, 'item')} to decide`,
    content: (
      <>
        <Tabs
          label="Kinds"
          tabs={(['all', ...FINDING_KINDS] as const).map((each) => ({
            name: capitalized(each),
            count: counts[each],
            href: queueHref({ queue: each === 'all' ? '' : each, whose }),
            current: each === (queue ?? 'all'),
          }))}
        />
        <Tabs
          label="Whose"
          tabs={(['all', ...WHOSE] as const).map((each) => ({
            name: WHOSE_NAMES[each],
            count: byPerson[each],
            href: queueHref({ queue, whose: each === 'all' ? '' : each }),
            current: each === (whose ?? 'all'),
          }))}
        />
        <TableCard
          title={plural(listed, 'item')}
          note="oldest first"
          columns={columnsFor(view, seen)}
          rows={items}
          nothing={
            whose === undefined
              ? 'Nothing to do. Items appear here when they need a person.'
              : 'Nothing here. Items assigned to others, or to no one, are in the other lists.'
          }
        >
          {mayDo(seen.user, 'work.assign', []) && items.length > 0 && (
            <form id={CHOSEN} action={actionHref('work.assign')} class="buttons in">
              <a class="button small" href={queueHref({ queue, whose, after, tick: 'page' })}>
                Select this page
              </a>
              <button type="submit" class="small">
                Assign
              </button>
              <button type="submit" class="small" name="to" value={view.login}>
                Take
              </button>
            </form>
          )}
          <Pager
            first={after === undefined ? null : queueHref({ queue, whose })}
            next={next === null ? null : queueHref({ queue, whose, after: next })}
          />
        </TableCard>
      </>
    ),
  };
}
