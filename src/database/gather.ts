/**
 * Work that is done for many at once: what arrives while others are under way is gathered, and done together as soon as
 * it is as many as they are. Nobody waits for company: with nothing under way, work begins at once; a few that are under
 * way do not hold up many; and what is under way is never more than a few pieces of work, each twice the one before.
 *
 * One piece at a time made a turn of it: of 16 that answer each other, one went ahead by itself and 15 waited for it, then
 * it for them, and each turn paid its commit twice.
 */

/** In one transaction at most: so many rows hold the ledger for less than a tenth of a second. */
const MOST = 500;

export interface Gathering<Item> {
  readonly add: (item: Item) => void;
  /** Puts back what was taken and could not be done, before all others. */
  readonly putBack: (items: readonly Item[]) => void;
}

/** `work` tells each of its items what became of it and never rejects. */
export function gather<Item>(work: (items: readonly Item[]) => Promise<void>): Gathering<Item> {
  let waiting: Item[] = [];
  let underWay = 0;
  let called = false;

  async function goOn(): Promise<void> {
    called = false;
    if (waiting.length === 0 || waiting.length < Math.min(underWay, MOST)) return;
    const items = waiting.slice(0, MOST);
    waiting = waiting.slice(MOST);
    underWay += items.length;
    await work(items);
    underWay -= items.length;
    call();
  }

  function call(): void {
    if (called) return;
    called = true;
    // After what this turn of the event loop still brings in: of 16 connections that are heard at once, all 16.
    setImmediate(() => void goOn());
  }

  return {
    add(item) {
      waiting.push(item);
      call();
    },
    putBack(items) {
      waiting = [...items, ...waiting];
      call();
    },
  };
}
