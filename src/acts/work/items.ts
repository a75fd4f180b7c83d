/**
 * The work queue: everything that waits for a person, in one list, with the act that ends each item. Nothing is stored of
 * it but who is responsible: an item is there as long as the state that it is made of, and leaves by itself.
 */

import { readRequests } from '../../approvals/queries.ts';
import { statusOf } from '../../approvals/requests.ts';
import type { Settings } from '../../config/settings.ts';
import type { Transaction } from '../../database/transaction.ts';
import { readLinkTroubles } from '../../delivery/links/queries.ts';
import type { Finding } from '../../findings/finding.ts';
import { readFindings } from '../../findings/findings.ts';
import { type ListedEmail, nameOf, readEmails } from '../../mail/log.ts';
import { Amount, moneyText } from '../../money.ts';
import { type PaymentException, readExceptions } from '../../payments/exceptions.sql.ts';
import { describeExceptions, EXCEPTION_NAMES } from '../../payments/exceptions.ts';
import type { Scope } from '../../people/scope.ts';
import { type Assignment, readAssignments } from '../../people/work-assignments.ts';
import { plural } from '../../text.ts';
import {
  readJobFindings,
  readLinkedDocuments,
  readNamesOf,
  readWaitingDocuments,
  type WaitingDocument,
} from './items.sql.ts';

/** An item of the queue, and who is responsible; null: nobody. */
export interface WorkItem extends Finding {
  readonly assignee: { readonly login: string; readonly name: string } | null;
}

/** An item as a list has it. */
export interface ListedWork extends WorkItem {
  /** Of a receipt: what `describeWork` finds payer and suggestions by. Until then its state and reason are the import's. */
  readonly receipt?: PaymentException;
}

type Found = Finding & Pick<ListedWork, 'receipt'>;

export interface WorkQuestion {
  readonly settings: Settings;
  /** The partners whose work is read; null: all, and what belongs to no partner. */
  readonly scope: Scope;
  /** In milliseconds. */
  readonly now: number;
  /** `YYYY-MM-DD` */
  readonly today: string;
}

/** At most so many of each kind are listed. */
const LISTED = 500;
/** The deliveries run every ten minutes: an e-mail that is queued for longer is one that no mail server takes. */
const QUEUED_TOO_LONG_MS = 60 * 60 * 1000;

/** Every item, described. */
export const readWork = async (tx: Transaction, question: WorkQuestion): Promise<WorkItem[]> =>
  describeWork(tx, question, await listWork(tx, question));

/**
 * Every item, the oldest first, with receipts as they were imported: what they may pay takes longer than everything else,
 * and is for those that are looked at. Amounts of several currencies are never converted: of one day, currencies stand in the order
 * of their codes, the larger amount of a currency before the smaller, and what has no amount comes last.
 */
export async function listWork(tx: Transaction, question: WorkQuestion): Promise<ListedWork[]> {
  const { scope } = question;
  const found = [
    ...(await approvals(tx, question)),
    ...(await readFindings(tx, { scope, today: question.today, limit: LISTED })),
    ...(await documents(tx, question)),
    ...(await receipts(tx, question)),
    ...(await emails(tx, question)),
    ...(await links(tx, question)),
    ...(scope === null ? await jobFindings(tx) : []),
  ];
  const assigned = new Map((await readAssignments(tx)).map((each) => [each.item, each]));
  return found
    .map((each) => ({ ...each, money: inDigits(each.money), assignee: assigneeOf(assigned.get(each.item)) }))
    .sort(oldestMoneyFirst);
}

const inDigits = (money: WorkItem['money']): WorkItem['money'] =>
  money && { ...money, amount: Amount.of(money.amount, money.currency).toString() };

const assigneeOf = (assigned: Assignment | undefined): WorkItem['assignee'] =>
  assigned === undefined ? null : { login: assigned.login, name: assigned.name };

const order = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

function oldestMoneyFirst(one: Found, other: Found): number {
  const byDay = order(one.since, other.since);
  if (byDay !== 0) return byDay;
  if (one.money === null || other.money === null)
    return Number(one.money === null) - Number(other.money === null) || order(one.item, other.item);
  const byCurrency = order(one.money.currency, other.money.currency);
  if (byCurrency !== 0) return byCurrency;
  const difference = sizeOf(one.money).minus(sizeOf(other.money));
  return difference.isZero() ? order(one.item, other.item) : difference.isNegative() ? 1 : -1;
}

/** Money that left counts as money that came. */
const sizeOf = ({ amount, currency }: NonNullable<WorkItem['money']>): Amount =>
  Amount.of(amount.replace('-', ''), currency);

async function approvals(tx: Transaction, { scope, now }: WorkQuestion): Promise<Found[]> {
  const requests = await readRequests(tx, { undecided: true, scope, limit: LISTED });
  const names = await readNamesOf(
    tx,
    requests.flatMap(({ partner_ids }) => partner_ids ?? []),
  );
  return requests
    .filter((request) => statusOf(request, now) === 'waiting')
    .map((request) => {
      const [amount, ...more] = request.preview.amounts;
      const also = more.map((each) => moneyText(each.amount, each.currency)).join(' and ');
      return {
        item: `approval:${request.request_id}`,
        kind: 'approvals',
        state: 'to approve',
        tone: 'warn',
        title: `${request.act} ${request.subject}`,
        partners: (request.partner_ids ?? []).map((id) => ({ id, name: names.get(id) ?? id })),
        money: amount ?? null,
        since: request.requested_at.slice(0, 10),
        reason:
          `${also === '' ? '' : `also ${also}; `}asked by ${request.requester}` +
          (request.reason === null ? '' : `: ${request.reason}`),
        ...{ urgent: null, remedies: [] },
      };
    });
}

const TONES = { held: 'warn', failed: 'bad', bounced: 'bad', uncertain: 'warn', queued: 'bad' } as const;

const queuedBefore = (now: number): string => new Date(now - QUEUED_TOO_LONG_MS).toISOString();

async function documents(tx: Transaction, { scope, now }: WorkQuestion): Promise<Found[]> {
  const waiting = await readWaitingDocuments(tx, { scope, queuedBefore: queuedBefore(now), limit: LISTED });
  return waiting.map(({ what, reason, ...document }) => {
    const { number } = document;
    const isQueued = what === 'queued';
    return {
      ...ofDocument(document),
      ...{ item: `delivery:${number}`, kind: 'e-mails', tone: TONES[what], urgent: null },
      state: isQueued ? 'no server takes it' : what,
      reason: reason ?? (isQueued ? 'not tried yet' : ''),
      remedies: isQueued ? [] : [{ label: 'Resend', action: 'invoice.resend', input: { number } }],
    };
  });
}

const ofDocument = (document: Omit<WaitingDocument, 'what' | 'reason'>) => ({
  title: document.number,
  partners: [{ id: document.partner_id, name: document.partner_name }],
  money: { amount: document.amount, currency: document.currency },
  since: document.since,
});

async function receipts(tx: Transaction, { scope }: WorkQuestion): Promise<Found[]> {
  const exceptions = await readExceptions(tx, scope);
  return exceptions.map((each) => ({
    item: `receipt:${each.exception}`,
    kind: 'receipts',
    ...asReceipt(each),
    title: each.exception,
    partners: each.partner_id === null ? [] : [{ id: each.partner_id, name: each.partner_id }],
    money: each.amount === null || each.currency === null ? null : { amount: each.amount, currency: each.currency },
    since: each.since,
    ...{ urgent: null, remedies: [] },
    receipt: each,
  }));
}

const asReceipt = ({
  kind,
  reason,
}: Pick<PaymentException, 'kind' | 'reason'>): Pick<Found, 'state' | 'tone' | 'reason'> => ({
  state: EXCEPTION_NAMES[kind],
  tone: kind === 'suggestion' ? 'good' : 'warn',
  reason,
});

/** These items with what receipts among them are known by today: the payer, and what they may pay. */
export async function describeWork(
  tx: Transaction,
  question: Pick<WorkQuestion, 'settings' | 'scope'>,
  items: readonly ListedWork[],
): Promise<WorkItem[]> {
  const described = await describeExceptions(
    tx,
    question,
    items.flatMap(({ receipt }) => receipt ?? []),
  );
  const known = new Map(described.map((each) => [each.exception, each]));
  return items.map(({ receipt, ...item }) => {
    const found = known.get(receipt?.exception ?? '');
    if (found === undefined) return item;
    return {
      ...item,
      ...asReceipt(found),
      title: found.payer?.name ?? found.partner_name ?? found.exception,
      partners: item.partners.map(({ id }) => ({ id, name: found.partner_name ?? id })),
    };
  });
}

/** E-mails that carry no document. */
async function emails(tx: Transaction, { scope, now }: WorkQuestion): Promise<Found[]> {
  const unfinished = await readEmails(tx, { unfinished: true, withoutDocument: true, scope, limit: LISTED });
  return unfinished
    .filter((email) => needsWork(email, now))
    .map((email) => {
      const input = { emailId: String(email.email_id) };
      const isQueued = email.status === 'queued';
      return {
        item: `email:${email.email_id}`,
        kind: 'e-mails',
        state: isQueued ? 'no server takes it' : email.status,
        tone: email.status === 'held' || email.status === 'uncertain' ? 'warn' : 'bad',
        title: nameOf(email),
        partners: email.partner_id === null ? [] : [{ id: email.partner_id, name: email.partner_id }],
        money: null,
        since: (email.attempted_at ?? email.queued_at).slice(0, 10),
        reason: email.reason ?? (isQueued ? 'not tried yet' : ''),
        urgent: null,
        remedies: isQueued
          ? []
          : [
              { label: 'Resend', action: 'email.resend', input },
              { label: 'Dismiss', action: 'email.dismiss', input },
            ],
      };
    });
}

const needsWork = ({ status, queued_at }: ListedEmail, now: number): boolean =>
  status === 'queued' ? Date.parse(queued_at) < now - QUEUED_TOO_LONG_MS : status !== 'sending';

async function links(tx: Transaction, { scope }: WorkQuestion): Promise<Found[]> {
  const troubles = await readLinkTroubles(tx);
  const numbers = troubles.map(({ number }) => number);
  const known = new Map((await readLinkedDocuments(tx, { numbers, scope })).map((each) => [each.number, each]));
  return troubles.flatMap(({ number, active, reason, kind }) => {
    const document = known.get(number);
    if (document === undefined) return [];
    return {
      ...ofDocument(document),
      item: `link:${number}`,
      kind: 'links',
      state: active ? 'link still active' : 'link missing',
      tone: active ? 'bad' : 'warn',
      reason: reason ?? kind ?? '',
      ...{ urgent: null, remedies: [] },
    };
  });
}

async function jobFindings(tx: Transaction): Promise<Found[]> {
  return (await readJobFindings(tx)).map(({ job, item, count, since }) => ({
    item: `${job}:${item}`,
    kind: 'findings',
    state: job,
    tone: 'bad',
    title: item,
    partners: [],
    money: null,
    since,
    reason:
      job === 'verify'
        ? `${plural(count, 'difference')}: do not change the database, find out what did`
        : `${count} open with the processor`,
    ...{ urgent: null, remedies: [] },
  }));
}
