/**
 * Covering sets: the open documents of a payer whose balances add up to the amount received, or to that amount and a
 * bank fee. The smallest set is chosen. Among sets of equal size, the set with the oldest documents is chosen.
 *
 * The search is bounded. With 40 documents, at most 91,390 sets of four are tried, and the fifth document is looked up.
 * Amounts are whole minor units below 2^53 / 5, so that every sum is exact. Larger amounts are left to finance. Pure.
 */
import type { Amount } from '../money.ts';
import type { Payable } from './evidence.ts';

const DOCUMENTS_TRIED = 40;
const SET_AT_MOST = 5;
const LARGEST = Math.floor(Number.MAX_SAFE_INTEGER / SET_AT_MOST);

interface CoveringSet {
  readonly documents: readonly Payable[];
  readonly fee: Amount;
}

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

const minorUnits = (amount: Amount): number => Number(amount.toString().replace('.', ''));

interface Range {
  readonly least: number;
  readonly most: number;
}

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
