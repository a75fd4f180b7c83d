/**
 * The work queue: everything that waits for a person, in one list, with the action that resolves each item. Only the
 * assignee is stored: an item exists as long as the state behind it, and disappears with it.
 */

import type { Settings } from '../../config/settings.ts';
import type { Transaction } from '../../database/transaction.ts';
import type { Finding } from '../../findings/finding.ts';
import { readFindings } from '../../findings/findings.ts';
import { receiptOf, stateOf } from '../../findings/payments.ts';
import { Amount } from '../../money.ts';
import { type PaymentException, readExceptions } from '../../payments/exceptions.sql.ts';
import { describeExceptions } from '../../payments/exceptions.ts';
import type { Scope } from '../../people/scope.ts';
import { type Assignment, readAssignments } from '../../people/users.sql.ts';

/** An item of the queue, and its assignee; null: unassigned. */
export interface WorkItem extends Finding {
  readonly assignee: { readonly login: string; readonly name: string } | null;
}

/** An item as a list shows it. */
interface ListedWork extends WorkItem {
  /**
   * For a receipt: the facts by which `describeWork` finds payer and suggestions. Until then its state and reason are
   * the import's.
   */
  readonly receipt?: PaymentException;
}

type WorkFinding = Finding & Pick<ListedWork, 'receipt'>;

export interface WorkQuestion {
  readonly settings: Settings;
  /** The partners whose work is read; null: all partners, and work without a partner. */
  readonly scope: Scope;
  /** In milliseconds. */
  readonly now: number;
  /** `YYYY-MM-DD` */
  readonly today: string;
}

/** How many items of each kind are listed at most. */
const LISTED = 500;

/** Every item, described. */
export const readWork = async (tx: Transaction, question: WorkQuestion): Promise<WorkItem[]> =>
  describeWork(tx, question, await listWork(tx, question));

/**
 * Every item, oldest first, with receipts as they were imported: finding what they may pay takes longer than everything
 * else, so it is done only for items being viewed. Currencies are never converted: within a day, items are sorted by
 * currency code, then larger amounts first; items without an amount come last.
 */
export async function listWork(tx: Transaction, question: WorkQuestion): Promise<ListedWork[]> {
  const { scope } = question;
  const receipts = await readExceptions(tx, scope);
  const found: WorkFinding[] = [
    ...(await readFindings(tx, { ...question, limit: LISTED })),
    ...receipts.map((receipt) => ({ ...receiptOf(receipt), receipt })),
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

function oldestMoneyFirst(one: WorkFinding, other: WorkFinding): number {
  const byDay = order(one.since, other.since);
  if (byDay !== 0) return byDay;
  if (one.money === null || other.money === null)
    return Number(one.money === null) - Number(other.money === null) || order(one.item, other.item);
  const byCurrency = order(one.money.currency, other.money.currency);
  if (byCurrency !== 0) return byCurrency;
  const difference = sizeOf(one.money).minus(sizeOf(other.money));
  return difference.isZero() ? order(one.item, other.item) : difference.isNegative() ? 1 : -1;
}

/** Outgoing money counts like incoming money. */
const sizeOf = ({ amount, currency }: NonNullable<WorkItem['money']>): Amount =>
  Amount.of(amount.replace('-', ''), currency);

/** These items, with today's payer and suggestions for the receipts among them. */
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
      ...stateOf(found),
      reason: found.reason,
      title: found.payer?.name ?? found.partner_name ?? found.exception,
      partners: item.partners.map(({ id }) => ({ id, name: found.partner_name ?? id })),
    };
  });
}
