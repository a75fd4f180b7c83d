/**
 * The work queue: all items that need a person, each with the action that resolves it. Only the assignee is stored. An
 * item is derived from the current state, and disappears when that state changes.
 */

import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { Finding } from '#findings/finding';
import { readFindings } from '#findings/findings';
import { receiptOf, stateOf } from '#findings/payments';
import { describeExceptions } from '#payments/exceptions';
import { PaymentException, readExceptions } from '#payments/exceptions.sql';
import { Scope } from '#people/scope';
import { Assignment, readAssignments } from '#people/users.sql';
import { Amount, compare } from '#values';

/** An item of the work queue. `assignee` is null if no one is assigned. */
export type WorkItem = Finding &
  Readonly<{
    assignee: Readonly<{ login: string; name: string }> | null;
  }>;

type ListedWork = WorkItem &
  Readonly<{
    /**
     * The data from which `describeWork` finds a receipt's payer and suggestions. Before `describeWork` runs, state and
     * reason are those of the import.
     */
    receipt?: PaymentException;
  }>;

type WorkFinding = Finding & Pick<ListedWork, 'receipt'>;

export type WorkQuestion = Readonly<{
  settings: Settings;
  /** The partners whose items are read. Null reads all partners, and items without a partner. */
  scope: Scope;
  now: number;
  today: string;
}>;

const LISTED = 500;

export const readWork = async (tx: Transaction, question: WorkQuestion): Promise<WorkItem[]> =>
  describeWork(tx, question, await listWork(tx, question));

/**
 * Returns the items, oldest first. Finding a receipt's suggestions takes longer than all other steps, so `describeWork`
 * finds suggestions only for the items that are viewed. Items of one day are sorted by currency code and then by
 * amount, largest first. Items without an amount come last.
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

function oldestMoneyFirst(one: WorkFinding, other: WorkFinding) {
  const byDay = compare(one.since, other.since);
  if (byDay !== 0) return byDay;
  if (one.money === null || other.money === null)
    return Number(one.money === null) - Number(other.money === null) || compare(one.item, other.item);
  const byCurrency = compare(one.money.currency, other.money.currency);
  if (byCurrency !== 0) return byCurrency;
  const difference = sizeOf(one.money).minus(sizeOf(other.money));
  return difference.isZero() ? compare(one.item, other.item) : difference.isNegative() ? 1 : -1;
}

/** Outgoing money is ranked like incoming money. */
const sizeOf = ({ amount, currency }: NonNullable<WorkItem['money']>) => Amount.of(amount.replace('-', ''), currency);

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
