/** The landing page: the position of each currency, what changed, and what waits for the reader. */
import { describeWork, listWork, WorkItem, WorkQuestion } from '#actions/work/items';
import {
  addressOf,
  Card,
  Column,
  DataTable,
  DayInput,
  Downloads,
  dayAsked,
  Figures,
  Money,
  PartnerLink,
  Quiet,
  Screen,
  Seer,
} from '#console/parts';
import { Transaction } from '#database/transaction';
import { Installation } from '#people/audit-events';
import { scopeOf, User } from '#people/roles';
import { DSO_FORMULA } from '#reports/days-sales-outstanding.sql';
import { CurrencyPosition, changeName, Position, readPosition, Week } from '#reports/position';
import { ChangeKind } from '#reports/position.sql';
import { Amount, dateName, plural } from '#values';
import { QUEUE, WorkLink } from './queue.tsx';

const WAITING = 6;

export type TodayView = Readonly<{
  position: Position;
  /** The first items that the reader may decide: approvals, then the oldest. Null for a reader who decides nothing. */
  waiting: Readonly<{ items: readonly WorkItem[]; count: number }> | null;
}>;

export async function readToday(
  tx: Transaction,
  asked: Readonly<{ since?: string }>,
  { context, user, scope, today }: Pick<WorkQuestion, 'scope' | 'today'> & { context: Installation; user: User },
): Promise<TodayView> {
  const { settings, environment } = context;
  const position = await readPosition(tx, context, { since: dayAsked('since', asked.since), today, scope });
  const question = { settings, scope, today, now: environment.now().toMillis() };
  return { position, waiting: await readWaiting(tx, question, user) };
}

async function readWaiting(tx: Transaction, question: WorkQuestion, user: User): Promise<TodayView['waiting']> {
  const approves = scopeOf(user, 'approver') !== undefined;
  const decides = scopeOf(user, 'finance') !== undefined;
  if (!approves && !decides) return null;
  const open = (await listWork(tx, question)).filter(
    ({ kind, assignee }) =>
      (kind === 'approvals' ? approves : decides) && (assignee === null || assignee.login === user.login),
  );
  const isLater = ({ kind }: WorkItem) => Number(kind !== 'approvals');
  const items = open.toSorted((one, other) => isLater(one) - isLater(other)).slice(0, WAITING);
  return { items: await describeWork(tx, question, items), count: open.length };
}

export function todayScreen({ position, waiting }: TodayView, { user }: { user: Seer }): Screen {
  return {
    place: '',
    title: 'Today',
    lead: dateName(position.today),
    actions: <Downloads path="/console/reports/position" question={{}} />,
    content: (
      <div class="stack">
        <div class={waiting === null ? undefined : 'columns even'}>
          {waiting !== null && <Waiting waiting={waiting} user={user} />}
          <Changes position={position} />
        </div>
        {position.currencies.map((each) => (
          <Currency position={each} today={position.today} />
        ))}
        {position.currencies.length === 0 && (
          <p class="nothing">No document is open, and no payment was received in the last eight weeks.</p>
        )}
      </div>
    ),
  };
}

const Waiting = ({ waiting: { items, count }, user }: { waiting: NonNullable<TodayView['waiting']>; user: Seer }) => (
  <Card title="Waiting for you" note={plural(count, 'item')} actions={<a href={QUEUE}>Work queue</a>}>
    {count === 0 && <p class="soft">Nothing waits for you.</p>}
    <ul class="ticks plain">
      {items.map((item) => (
        <li>
          <span>
            <WorkLink item={item} user={user} />
            <br />
            <span class="soft">{[...item.partners.map(({ name }) => name), `since ${item.since}`].join(' · ')}</span>
          </span>
          {item.money !== null && <Money {...item.money} />}
        </li>
      ))}
    </ul>
  </Card>
);

/** The list that has the changes of a kind. */
function listOf(kind: ChangeKind, since: string) {
  switch (kind) {
    case 'received':
    case 'reversed':
      return '/console/payments/all';
    case 'invoice':
    case 'credit_note':
    case 'statement':
      return addressOf('/console/invoices', { from: since });
    case 'held':
      return addressOf(QUEUE, { queue: 'holds' });
    case 'disputed':
      return addressOf(QUEUE, { queue: 'disputes' });
    case 'settings':
      return '/console/audit/settings';
    default:
      return addressOf('/console/audit', { from: since });
  }
}

const Changes = ({ position: { since, changes } }: { position: Position }) => (
  <Card title={`Since ${dateName(since)}`} note="what was recorded">
    <form class="filters" action="/console">
      <DayInput label="Since" name="since" value={since} />
      <button type="submit">Show</button>
    </form>
    {changes.length === 0 && <p class="soft">Nothing changed.</p>}
    <ul class="ticks plain">
      {changes.map((change) => (
        <li>
          <a href={listOf(change.kind, since)}>{changeName(change)}</a>
          <span class="amounts">
            {change.sums.map(({ amount, currency }) => (
              <Money amount={amount} currency={currency} />
            ))}
          </span>
        </li>
      ))}
    </ul>
  </Card>
);

function Currency({ position: each, today }: { position: CurrencyPosition; today: string }) {
  const { currency, received, expected, owing, days_sales_outstanding: days } = each;
  const figures = [
    ['Open invoices', each.open],
    ['Overdue', each.overdue],
    ['Open credit', each.credit],
  ] as const;
  return (
    <Card title={currency} note={plural(each.open_documents, 'open document')}>
      <div class="columns">
        <div class="stack">
          <Figures figures={figures.map(([name, amount]) => [name, <Money amount={amount} currency={currency} />])}>
            <div title={DSO_FORMULA}>
              <dt>
                <abbr title={DSO_FORMULA}>Days sales outstanding</abbr>
              </dt>
              <dd>{days ?? 'nothing billed'}</dd>
            </div>
          </Figures>
          <Bars currency={currency} received={received} expected={expected} />
          <details>
            <summary>{`Weeks in ${currency} as a table`}</summary>
            <DataTable columns={WEEK_COLUMNS(currency)} rows={weeksOf(each)} caption={`Cash in ${currency} by week`} />
          </details>
        </div>
        <DataTable
          columns={OWING(currency, today)}
          rows={owing}
          nothing="No one owes anything."
          caption={`Partners that owe most in ${currency}`}
        />
      </div>
    </Card>
  );
}

type WeekRow = Readonly<{ week: string; received: string; expected: string }>;

function weeksOf({ received, expected }: CurrencyPosition): WeekRow[] {
  const amounts = (weeks: readonly Week[], week: string) => weeks.find((each) => each.week === week)?.amount ?? '0';
  const weeks = [...new Set([...received, ...expected].map(({ week }) => week))];
  return weeks.map((week) => ({ week, received: amounts(received, week), expected: amounts(expected, week) }));
}

const WEEK_COLUMNS = (currency: string): readonly Column<WeekRow>[] => [
  { heading: 'Week of', cell: ({ week }) => <span class="day">{week}</span> },
  { heading: 'Received', number: true, cell: (row) => <Quiet amount={row.received} currency={currency} bare /> },
  { heading: 'Expected', number: true, cell: (row) => <Quiet amount={row.expected} currency={currency} bare /> },
];

const OWING = (currency: string, asOf: string): readonly Column<CurrencyPosition['owing'][number]>[] => [
  { heading: 'Owes most', cell: (row) => <PartnerLink id={row.partner_id}>{row.partner_name}</PartnerLink> },
  {
    ...{ heading: 'Open', number: true },
    cell: ({ partner_id: partner, open }) => (
      <a href={addressOf('/console/aging', { as_of: asOf, partner, currency })}>
        <Money amount={open} currency={currency} bare />
      </a>
    ),
  },
  { heading: 'Overdue', number: true, cell: (row) => <Quiet amount={row.overdue} currency={currency} bare /> },
];

const [HEIGHT, STEP, BAR] = [96, 10, 7];

/** Received and expected cash by week, under the amount of the highest bar. The table below it has all figures. */
function Bars({ currency, received, expected }: Pick<CurrencyPosition, 'currency' | 'received' | 'expected'>) {
  const bars = [
    ...received.map((each) => ({ ...each, tone: 'good', is: 'received' })),
    ...expected.map((each) => ({ ...each, tone: 'due', is: 'expected' })),
  ].map((each) => ({ ...each, value: Amount.of(each.amount, currency) }));
  const most = bars.reduce((max, { value }) => (max.isLessThan(value) ? value : max), Amount.zero(currency));
  const sumOf = (weeks: readonly Week[]) => {
    const sum = weeks.reduce((all, { amount }) => all.plus(Amount.of(amount, currency)), Amount.zero(currency));
    return <Money amount={sum.toString()} currency={currency} />;
  };
  const heightOf = (value: Amount) => (value.isPositive() ? Math.max(1, value.partsOf(most, HEIGHT)) : 0);
  return (
    <figure class="bars">
      <p class="scale">{most.isZero() ? 'no cash' : <Money amount={most.toString()} currency={currency} />}</p>
      <svg viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`} preserveAspectRatio="none" role="img">
        <title>{`Cash in ${currency} by week`}</title>
        <desc>{`The last ${received.length} weeks as received, then ${expected.length} weeks as expected by due date.`}</desc>
        {bars.map((_, at) => (
          <rect class="base" x={at * STEP} y={0} width={BAR} height={HEIGHT} />
        ))}
        {bars.map(({ week, amount, tone, is, value }, at) => (
          <rect class={tone} x={at * STEP} y={HEIGHT - heightOf(value)} width={BAR} height={heightOf(value)}>
            <title>{`Week of ${week}: ${Amount.of(amount, currency).forPeople()} ${is}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption>
        <span>
          <span class="dot good" /> Received by week since {received[0]?.week}: {sumOf(received)}
        </span>
        <span>
          <span class="dot running" /> Expected by due date: {sumOf(expected)}; the last bar has all from{' '}
          {expected.at(-1)?.week}
        </span>
      </figcaption>
    </figure>
  );
}
