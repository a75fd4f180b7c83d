/**
 * Collects items into batches. Items that arrive while a batch is running form the next batch, which starts when it has
 * as many items as are running. If nothing is running, an item starts at once, unless the caller requires a minimum.
 * Few batches run at the same time, because each new batch is twice as large as the batch before it.
 *
 * Running one batch at a time was slower. Of 16 concurrent clients, one went first while 15 waited, and then the first
 * waited for the 15. Each round therefore cost two commits.
 */

/** A transaction of this many rows locks the ledger for less than a tenth of a second. */
const MAX_BATCH = 500;

type Gathering<Item> = Readonly<{
  add: (item: Item) => void;
  /** Returns items of a failed batch to the front of the queue. */
  putBack: (items: readonly Item[]) => void;
  /** Checks again whether a batch can start. To be called when `least` may have decreased. */
  look: () => void;
}>;

/**
 * Starts batches. `work` reports the result to each item of a batch, and never rejects. A batch has at least `least()`
 * items.
 */
export function gather<Item>(
  work: (items: readonly Item[]) => Promise<void>,
  least: () => number = () => 0,
): Gathering<Item> {
  let waiting: Item[] = [];
  let running = 0;
  let scheduled = false;

  async function startBatch() {
    scheduled = false;
    if (waiting.length === 0 || waiting.length < Math.min(Math.max(running, least()), MAX_BATCH)) return;
    const items = waiting.slice(0, MAX_BATCH);
    waiting = waiting.slice(MAX_BATCH);
    running += items.length;
    await work(items);
    running -= items.length;
    schedule();
  }

  function schedule() {
    if (scheduled) return;
    scheduled = true;
    // Runs after the other requests of this turn of the event loop, so if 16 requests arrive at once, the batch has all
    // 16.
    setImmediate(() => void startBatch());
  }

  return {
    add(item) {
      waiting.push(item);
      schedule();
    },
    putBack(items) {
      waiting = [...items, ...waiting];
      schedule();
    },
    look: schedule,
  };
}
