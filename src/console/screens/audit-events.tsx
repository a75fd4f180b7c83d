import { ComponentChildren } from 'preact';
import { ACTIONS } from '#actions/loaded';
import {
  addressOf,
  Column,
  DayInput,
  dayAsked,
  Instant,
  idAsked,
  inWords,
  Pager,
  Screen,
  sourceOf,
  TableCard,
  textAsked,
} from '#console/parts';
import { Visit } from '#console/route';
import { Transaction } from '#database/transaction';
import { fieldWords } from '#field-names';
import { periodGiven } from '#lists/list';
import { lastDay } from '#month';
import { capitalized, plural } from '#text';
import { Filter, ListedEvent, readActions, readEvents } from './audit-events.sql.ts';

export type AuditQuestion = Readonly<Partial<Record<'action' | 'by' | 'subject' | 'from' | 'to' | 'before', string>>>;

type AuditEventsView = Readonly<{
  filter: Filter;
  events: readonly ListedEvent[];
  actions: readonly string[];
  next: number | null;
}>;

const PATH = '/console/audit';
const PAGE = 50;

/**
 * A page of events, latest first. A user limited to some partners sees only events about them and their documents;
 * others can reveal other partners. A user
 * limited to some months sees their events.
 */
export async function readAuditEvents(
  tx: Transaction,
  asked: AuditQuestion,
  { scope, period }: Pick<Visit, 'scope' | 'period'>,
): Promise<AuditEventsView> {
  const filter: Filter = {
    action: textAsked(asked.action) ?? null,
    by: textAsked(asked.by) ?? null,
    subject: textAsked(asked.subject) ?? null,
    from: later(dayAsked('from', asked.from), period && `${period.from}-01`),
    to: earlier(dayAsked('to', asked.to), period && lastDay(period.to)),
    before: idAsked('before', asked.before) ?? null,
  };
  const actions = await readActions(tx);
  const events = await readEvents(tx, { ...filter, ...periodGiven({ period }), actions, scope, limit: PAGE + 1 });
  const shown = events.slice(0, PAGE);
  return {
    filter,
    events: shown,
    actions: scope === null ? actions : [],
    next: events.length > PAGE ? (shown.at(-1)?.event_id ?? null) : null,
  };
}

const later = (day: string | undefined, least: string | null) =>
  day === undefined || (least !== null && day < least) ? least : day;
const earlier = (day: string | undefined, most: string | null) =>
  day === undefined || (most !== null && day > most) ? most : day;

export function auditEventsScreen({ filter, events, actions, next }: AuditEventsView): Screen {
  const { action, by, subject, from, to, before } = filter;
  const question = { action, by, subject, from, to };
  return {
    place: 'audit',
    tab: PATH,
    title: 'Audit',
    content: (
      <>
        <form class="filters" action={PATH}>
          <label class="field">
            Action
            <input name="action" value={action ?? ''} list="actions" placeholder="invoice.void" />
            <datalist id="actions">
              {actions.map((each) => (
                <option value={each}>{titleOf(each)}</option>
              ))}
            </datalist>
          </label>
          <label class="field">
            Subject
            <input name="subject" value={subject ?? ''} placeholder="INV-2026-000001" />
          </label>
          <label class="field">
            By
            <input name="by" value={by ?? ''} size={12} />
          </label>
          <DayInput label="From (UTC)" name="from" value={from ?? ''} />
          <DayInput label="To" name="to" value={to ?? ''} />
          <button type="submit">Filter</button>
        </form>
        <TableCard
          title={plural(events.length, 'event')}
          note="latest first"
          columns={COLUMNS}
          rows={events}
          nothing="No events match."
        >
          <Pager
            first={before === null ? null : addressOf(PATH, question)}
            next={next === null ? null : addressOf(PATH, { ...question, before: next })}
            names={['Newest', 'Older']}
          />
        </TableCard>
      </>
    ),
  };
}

/** The title of the action, or the words of its name. */
const titleOf = (action: string) => ACTIONS.get(action)?.title ?? capitalized(action.replaceAll(/[._]/g, ' '));

const COLUMNS: readonly Column<ListedEvent>[] = [
  {
    heading: 'At',
    cell: ({ event_id, occurred_at }) => (
      <span title={`event ${event_id}`}>
        <Instant at={occurred_at} />
      </span>
    ),
  },
  {
    heading: 'Action',
    cell: ({ action }) => <a href={addressOf(PATH, { action })}>{titleOf(action)}</a>,
  },
  { heading: 'Subject', cell: (event) => <Subject event={event} /> },
  {
    heading: 'By',
    cell: ({ by, os_user, host, via }) => (
      <>
        <a href={addressOf(PATH, { by })}>{by === os_user ? sourceOf({ via }) : by}</a>
        <details class="small">
          <summary>Technical</summary>
          {`${os_user} on ${host}, by ${via}`}
        </details>
      </>
    ),
  },
  { heading: 'Details', cell: ({ details }) => <Details details={details} /> },
];

function Subject({ event: { subject, of } }: { event: ListedEvent }) {
  const href =
    of === 'document'
      ? `/console/invoices/${subject}`
      : of === 'partner'
        ? `/console/partners/${subject}`
        : addressOf(PATH, { subject });
  return (
    <a class="row wrap" href={href}>
      {withoutFolder(subject)}
    </a>
  );
}

/** More values, or long ones, are collapsed. */
const PLAIN = 2;

function Details({ details }: { details: ListedEvent['details'] }): ComponentChildren {
  const entries = Object.entries(details).filter(([, value]) => value !== null);
  if (entries.length === 0) return null;
  const facts = (
    <dl class="facts small">
      {entries.map(([name, value]) => (
        <>
          <dt>{fieldWords(name)}</dt>
          <dd>{shown(value)}</dd>
        </>
      ))}
    </dl>
  );
  const isPlain = entries.length <= PLAIN && entries.every(([, value]) => shown(value).length <= 24);
  if (isPlain) return facts;
  return (
    <details>
      <summary>{entries.length === 1 ? fieldWords(entries[0]?.[0] ?? '') : plural(entries.length, 'detail')}</summary>
      {facts}
    </details>
  );
}

/** A file that a command read is named without its place on the server. */
const withoutFolder = (text: string) => (text.startsWith('/') ? text.replace(/^(\/[^/\n]+)+\//, '') : text);

/** The export of events is complete. */
const LONGEST = 2000;

function shown(value: unknown) {
  const text = withoutFolder(inWords(value));
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
