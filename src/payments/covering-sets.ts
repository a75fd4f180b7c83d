/**
 * Covering sets: the open documents of a payer whose balances add up to the amount received, or to that amount and a
 * bank fee. A set of any size that people pay is found first: consecutive months or due dates, of one partner or of the
 * payer's family. Otherwise the smallest set is chosen. Among sets of equal size, the set with the oldest documents is
 * chosen.
 *
 * The search for the smallest set is bounded. With 40 documents, at most 91,390 sets of four are tried, and the fifth document is looked up.
 * Amounts are whole minor units below 2^53 / 5, so that every sum is exact. Larger amounts are left to finance. Pure.
 */
import { Amount } from '#money';
import { Payable } from './evidence.ts';

const DOCUMENTS_TRIED = 40;
const SET_AT_MOST = 5;
const LARGEST = Math.floor(Number.MAX_SAFE_INTEGER / SET_AT_MOST);

type CoveringSet = Readonly<{
  documents: readonly Payable[];
  fee: Amount;
}>;

/**
 * Returns the covering set of an amount. `documents` are the payer's open documents, oldest first. An exact set is
 * preferred to a set with a fee, which is at most `mostFee`.
 */
export function coveringSet(amount: Amount, documents: readonly Payable[], mostFee: Amount): CoveringSet | undefined {
  const target = minorUnits(amount);
  const fee = minorUnits(mostFee);
  if (target > LARGEST) return undefined;
  const tried = documents.filter(({ balance }) => minorUnits(balance) <= LARGEST).slice(0, DOCUMENTS_TRIED);
  const balances = tried.map(({ balance }) => minorUnits(balance));
  const found =
    smallestSet(balances, { least: target, most: target }) ??
    (fee > 0 ? smallestSet(balances, { least: target + 1, most: target + fee }) : undefined);
  if (found === undefined) return undefined;
  const chosen = found.map((index) => tried[index] as Payable);
  const total = chosen.map(({ balance }) => balance).reduce((sum, balance) => sum.plus(balance));
  return { documents: chosen, fee: total.minus(amount) };
}

/**
 * Returns the documents of consecutive months or due dates that add up to exactly the amount: a month, a statement, or
 * all that is open, of one partner or of all.
 */
export function coveringRun(amount: Amount, documents: readonly Payable[]): readonly Payable[] | undefined {
  const owners = new Set(documents.map(({ partner_id }) => partner_id));
  const groups = [documents, ...[...owners].map((owner) => documents.filter((each) => each.partner_id === owner))];
  for (const group of groups) {
    for (const keyOf of [
      ({ month, due_on }: Payable) => month ?? due_on.slice(0, 7),
      ({ due_on }: Payable) => due_on,
    ]) {
      const found = exactRun(amount, group, keyOf);
      if (found !== undefined && found.length > 1) return found;
    }
  }
  return undefined;
}

/** Balances are positive, so that no two sums from the first document on are equal. */
function exactRun(
  amount: Amount,
  documents: readonly Payable[],
  keyOf: (document: Payable) => string,
): readonly Payable[] | undefined {
  const sorted = documents.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  const before = new Map<bigint, number>();
  let sum = 0n;
  for (const [index, document] of sorted.entries()) {
    const [key, next] = [keyOf(document), sorted[index + 1]];
    if (index === 0 || keyOf(sorted[index - 1] as Payable) !== key) before.set(sum, index);
    sum += document.balance.minorUnits();
    const first = before.get(sum - amount.minorUnits());
    if (first !== undefined && (next === undefined || keyOf(next) !== key)) return sorted.slice(first, index + 1);
  }
  return undefined;
}

const minorUnits = (amount: Amount) => Number(amount.minorUnits());

type Range = Readonly<{
  least: number;
  most: number;
}>;

/** Returns the indices of a smallest set. If there are several, the first set is returned. */
function smallestSet(balances: readonly number[], range: Range): number[] | undefined {
  const smallest = balances.map((_, from) => Math.min(...balances.slice(from)));
  const largest = balances.map((_, from) => Math.max(...balances.slice(from)));
  const search = (from: number, size: number, { least, most }: Range): number[] | undefined => {
    for (let at = from; at <= balances.length - size; at += 1) {
      if (size * (largest[at] as number) < least || size * (smallest[at] as number) > most) return undefined;
      const balance = balances[at] as number;
      if (balance > most) continue;
      if (size === 1) {
        if (balance >= least) return [at];
        continue;
      }
      const rest = search(at + 1, size - 1, { least: least - balance, most: most - balance });
      if (rest !== undefined) return [at, ...rest];
    }
    return undefined;
  };
  for (let size = 1; size <= Math.min(SET_AT_MOST, balances.length); size += 1) {
    const found = search(0, size, range);
    if (found !== undefined) return found;
  }
  return undefined;
}
