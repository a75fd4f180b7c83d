/**
 * The work queue: everything that waits for a person, in one list, with the action that ends each item. Nothing is stored of
 * it but who is responsible: an item is there as long as the state that it is made of, and leaves by itself.
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
import { type Assignment, readAssignments } from '../../people/work-assignments.ts';

/** An item of the queue, and who is responsible; null: nobody. */
export interface WorkItem extends Finding {
  readonly assignee: { readonly login: string; readonly name: string } | null;
}

/** An item as a list has it. */
interface ListedWork extends WorkItem {
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
  const receipts = await readExceptions(tx, scope);
  const found: Found[] = [
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
      ...stateOf(found),
      reason: found.reason,
      title: found.payer?.name ?? found.partner_name ?? found.exception,
      partners: item.partners.map(({ id }) => ({ id, name: found.partner_name ?? id })),
    };
  });
}
