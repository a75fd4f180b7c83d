/**
 * The work queue: everything that waits for a person, in one list, the oldest first, with the act that ends each. What a
 * command's exit or the status only counts, is a line here.
 */
import type { ComponentChildren } from 'preact';
import { actOf } from '../../acts/approve.ts';
import type { Settings } from '../../config/settings.ts';
import type { Transaction } from '../../database/transaction.ts';
import { readLinkTroubles } from '../../delivery/links/queries.ts';
import { isPaid, readOpenDisputes } from '../../documents/disputes.sql.ts';
import { nameOf, readEmails } from '../../mail/log.ts';
import type { ExceptionKind } from '../../payments/exceptions.sql.ts';
import { listExceptions } from '../../payments/exceptions.ts';
import type { Scope } from '../../people/scope.ts';
import { plural } from '../../text.ts';
import { Card, Chip, type Column, DataTable, Money, type Tone } from '../kit.tsx';
import type { Screen } from '../page.tsx';
import { actHref } from './act.tsx';
import { approvalHref, readApprovals } from './approvals.tsx';
import { readFindings, readWaitingDocuments } from './queue.sql.ts';

export const QUEUES = ['approvals', 'receipts', 'e-mails', 'documents', 'disputes', 'links', 'findings'] as const;
export type Queue = (typeof QUEUES)[number];

export interface WorkItem {
  readonly queue: Queue;
  /** `held`, `unknown payer`, … */
  readonly kind: string;
  readonly tone: Tone;
  readonly title: string;
  readonly href: string;
  readonly partner: { readonly id: string; readonly name: string } | null;
  readonly money: { readonly amount: string; readonly currency: string } | null;
  /** `YYYY-MM-DD` */
  readonly since: string;
  readonly says: string;
  /** What ends it. */
  readonly acts: readonly { readonly name: string; readonly href: string }[];
}

export interface QueueView {
  readonly queue: Queue | undefined;
  readonly items: readonly WorkItem[];
  readonly counts: Readonly<Record<Queue, number>>;
}

/** At most so many of each kind are listed. */
const LISTED = 500;

/** `scope`: the partners whose work is shown; null shows all, and what belongs to no partner. `now`: in milliseconds. */
export async function readQueue(
  tx: Transaction,
  { settings, queue, scope, now }: { settings: Settings; queue: Queue | undefined; scope: Scope; now: number },
): Promise<QueueView> {
  const all = [
    ...(await approvals(tx, scope, now)),
    ...(await documents(tx, scope)),
    ...(await receipts(tx, settings)),
    ...(await disputes(tx)),
    ...(await emails(tx)),
    ...(await links(tx)),
    ...(await findings(tx)),
  ].filter(({ partner }) => scope === null || (partner !== null && scope.includes(partner.id)));
  const counts = Object.fromEntries(QUEUES.map((each) => [each, all.filter((item) => item.queue === each).length]));
  return {
    queue,
    items: all
      .filter((item) => queue === undefined || item.queue === queue)
      .sort((one, other) => (one.since < other.since ? -1 : one.since > other.since ? 1 : 0)),
    counts: counts as Record<Queue, number>,
  };
}

async function approvals(tx: Transaction, scope: Scope, now: number): Promise<WorkItem[]> {
  const { requests } = await readApprovals(tx, { scope, waiting: true, now });
  return requests.map((request) => {
    const [amount] = request.preview.amounts;
    const href = approvalHref(request.request_id);
    const [partner] = request.partner_ids ?? [];
    return {
      queue: 'approvals',
      kind: 'to approve',
      tone: 'warn',
      title: `${actOf(request).title}: ${request.subject}`,
      href,
      partner: partner === undefined ? null : { id: partner, name: partner },
      money: amount ?? null,
      since: request.requested_at.slice(0, 10),
      says: `asked by ${request.requester}${request.reason === null ? '' : `: ${request.reason}`}`,
      acts: [{ name: 'Decide', href }],
    };
  });
}

async function documents(tx: Transaction, scope: Scope): Promise<WorkItem[]> {
  const waiting = await readWaitingDocuments(tx, scope, LISTED);
  return waiting
    .filter(({ on_hold }) => !on_hold)
    .map(({ what, number, partner_id, partner_name, currency, amount, since, reason }) => ({
      queue: what === 'gap' ? 'documents' : 'e-mails',
      kind: what === 'gap' ? 'void, not replaced' : what,
      tone: what === 'failed' || what === 'bounced' ? 'bad' : 'warn',
      title: number,
      href: `/console/invoices/${number}`,
      partner: { id: partner_id, name: partner_name },
      money: { amount, currency },
      since,
      says: reason ?? 'its rows are unbilled',
      acts: [
        what === 'gap'
          ? { name: 'Run again', href: actHref('invoice.rerun', { number }) }
          : { name: 'Resend', href: actHref('invoice.resend', { number }) },
      ],
    }));
}

const RECEIPTS: Readonly<Record<ExceptionKind, string>> = {
  unknown_payer: 'unknown payer',
  possible_duplicate: 'possible duplicate',
  digits_swapped: 'digits swapped',
  suggestion: 'suggestion',
  unapplied_cash: 'unapplied cash',
  payout: 'payout',
  bank_line: 'bank line',
  bank_statement: 'bank statement',
  event: 'processor event',
  waiting_event: 'waiting event',
};

async function receipts(tx: Transaction, settings: Settings): Promise<WorkItem[]> {
  const exceptions = await listExceptions(tx, settings);
  return exceptions.map((each) => ({
    queue: 'receipts',
    kind: RECEIPTS[each.kind],
    tone: each.kind === 'suggestion' ? 'good' : 'warn',
    title: each.payer?.name ?? each.partner_name ?? each.exception,
    href: `/console/payments/${each.exception}`,
    partner: each.partner_id === null ? null : { id: each.partner_id, name: each.partner_name ?? each.partner_id },
    money: each.amount === null || each.currency === null ? null : { amount: each.amount, currency: each.currency },
    since: each.since,
    says: each.reason,
    acts: [{ name: 'Decide', href: `/console/payments/${each.exception}` }],
  }));
}

async function disputes(tx: Transaction): Promise<WorkItem[]> {
  const open = await readOpenDisputes(tx);
  return open.map((dispute) => ({
    queue: 'disputes',
    kind: isPaid(dispute) ? 'paid, still in dispute' : 'dispute',
    tone: isPaid(dispute) ? 'good' : 'warn',
    title: dispute.number,
    href: `/console/invoices/${dispute.number}`,
    partner: { id: dispute.partner_id, name: dispute.partner_name },
    money: { amount: dispute.amount, currency: dispute.currency },
    since: dispute.disputed_on,
    says: [
      dispute.reason,
      dispute.promised_on !== null && `answer promised for ${dispute.promised_on}`,
      dispute.owner !== '' && dispute.owner,
    ]
      .filter((each) => typeof each === 'string')
      .join(' · '),
    acts: [{ name: 'Close', href: actHref('dispute.close', { number: dispute.number }) }],
  }));
}

async function emails(tx: Transaction): Promise<WorkItem[]> {
  const unfinished = await readEmails(tx, { unfinished: true, withoutDocument: true, limit: LISTED });
  return unfinished
    .filter(({ status }) => status !== 'queued' && status !== 'sending')
    .map((email) => {
      const id = String(email.email_id);
      return {
        queue: 'e-mails',
        kind: email.status,
        tone: email.status === 'failed' || email.status === 'bounced' ? 'bad' : 'warn',
        title: nameOf(email),
        href: actHref('email.resend', { email: id }),
        partner: email.partner_id === null ? null : { id: email.partner_id, name: email.partner_id },
        money: null,
        since: (email.attempted_at ?? email.queued_at).slice(0, 10),
        says: email.reason ?? '',
        acts: [
          { name: 'Resend', href: actHref('email.resend', { email: id }) },
          { name: 'Dismiss', href: actHref('email.dismiss', { email: id }) },
        ],
      };
    });
}

async function links(tx: Transaction): Promise<WorkItem[]> {
  const troubles = await readLinkTroubles(tx);
  return troubles.map(({ number, active, reason, kind }) => ({
    queue: 'links',
    kind: active ? 'link still active' : 'link missing',
    tone: active ? 'bad' : 'warn',
    title: number,
    href: `/console/invoices/${number}`,
    partner: null,
    money: null,
    since: '',
    says: reason ?? kind ?? '',
    acts: [],
  }));
}

async function findings(tx: Transaction): Promise<WorkItem[]> {
  return (await readFindings(tx)).map(({ job, item, since }) => ({
    queue: 'findings',
    kind: job,
    tone: 'bad',
    title: item,
    href: '/console/audit',
    partner: null,
    money: null,
    since,
    says: 'a check found a difference: do not change the database, find out what did',
    acts: [],
  }));
}

const columns: readonly Column<WorkItem>[] = [
  {
    heading: 'What',
    cell: ({ title, href }) => (
      <a class="row number" href={href}>
        {title}
      </a>
    ),
  },
  { heading: 'Kind', cell: ({ kind, tone }) => <Chip tone={tone}>{kind}</Chip> },
  {
    heading: 'Partner',
    cell: ({ partner }) => partner !== null && <a href={`/console/partners/${partner.id}`}>{partner.name}</a>,
  },
  { heading: 'Why', cell: ({ says }) => <span class="soft">{says}</span> },
  { heading: 'Since', cell: ({ since }) => <span class="soft day">{since}</span> },
  {
    heading: 'Amount',
    number: true,
    cell: ({ money }) => money !== null && <Money amount={money.amount} currency={money.currency} />,
  },
  {
    heading: '',
    cell: ({ acts }): ComponentChildren =>
      acts.map(({ name, href }) => (
        <a class="button small" href={href}>
          {name}
        </a>
      )),
  },
];

export function queueScreen({ queue, items, counts }: QueueView): Screen {
  const total = QUEUES.reduce((sum, each) => sum + counts[each], 0);
  const href = (each: Queue | undefined) => `/console/queue${each === undefined ? '' : `?queue=${each}`}`;
  return {
    place: 'queue',
    title: 'Work queue',
    lead: total === 0 ? 'nothing waits' : `${plural(total, 'thing')} to decide`,
    content: (
      <>
        <ul class="tabs">
          {([undefined, ...QUEUES] as const).map((each) => (
            <li>
              <a href={href(each)} aria-current={each === queue ? 'page' : undefined}>
                {each === undefined ? 'All' : `${each.charAt(0).toUpperCase()}${each.slice(1)}`}{' '}
                <span class="count">{each === undefined ? total : counts[each]}</span>
              </a>
            </li>
          ))}
        </ul>
        <Card title={plural(items.length, 'item')} note="oldest first" flush>
          <DataTable
            columns={columns}
            rows={items}
            nothing="Nothing waits here. What needs a person appears by itself."
            caption="Work queue"
          />
        </Card>
      </>
    ),
  };
}
