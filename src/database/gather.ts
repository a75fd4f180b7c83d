/**
 * Work that is done for many at once: what arrives while the work before is under way is gathered, and done together as
 * soon as that has ended. Nobody waits for company: with nothing under way, work begins at once.
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
  let underWay = false;

  async function goOn(): Promise<void> {
    while (waiting.length > 0) {
      const items = waiting.slice(0, MOST);
      waiting = waiting.slice(MOST);
      await work(items);
    }
    underWay = false;
  }

  function begin(): void {
    if (underWay) return;
    underWay = true;
    // After what this turn of the event loop still brings in: of 16 connections that are heard at once, all 16.
    setImmediate(() => void goOn());
  }

  return {
    add(item) {
      waiting.push(item);
      begin();
    },
    putBack(items) {
      waiting = [...items, ...waiting];
      begin();
    },
  };
}
