/**
 * Covering sets: which open documents of a payer add up exactly to the amount received, or to that and a bank fee.
 * Finds the smallest set. If several sets have that size, it finds the one with the oldest documents.
 *
 * The search is bounded. Of 40 documents, at most 91,390 choices of four are tried, and the fifth is looked up. Amounts
 * are whole minor units below 2^53 / 5, so that every sum is exact; larger amounts are left to finance. Pure.
 */
import type { Amount } from '../money.ts';
import type { Payable } from './evidence.ts';

/** How many of a payer's oldest open documents are tried. */
const DOCUMENTS_TRIED = 40;
const SET_AT_MOST = 5;
const LARGEST = Math.floor(Number.MAX_SAFE_INTEGER / SET_AT_MOST);

interface CoveringSet {
  /** Oldest first. */
  readonly documents: readonly Payable[];
  /** The amount that the bank kept; zero if the sum is exact. */
  readonly fee: Amount;
}

/** `documents` are the payer's open ones, oldest first. An exact set comes before one less a fee of at most `mostFee`. */
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

const minorUnits = (amount: Amount): number => Number(amount.toString().replace('.', ''));

interface Range {
  readonly least: number;
  readonly most: number;
}

/**
 * The indices of the smallest set whose sum is in the range. If several have that size, it is the first in the given
 * order.
 */
function smallestSet(balances: readonly number[], range: Range): number[] | undefined {
  // The smallest and largest balances from each index on. They rule out sums that cannot be reached.
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
