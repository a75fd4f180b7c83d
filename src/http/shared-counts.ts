/**
 * Counts requests by key and minute for all servers of a database. Every second, each process adds its counts to
 * `request_counts` and reads the totals, so a limit covers all servers without a query for each request. While the
 * database is unavailable, each process counts alone.
 */
import { Database } from '#database/database';
import { addCounts } from './server.sql.ts';

const WINDOW_MS = 60_000;
const EVERY_MS = 1000;
/** In memory. Beyond that, a new key replaces the oldest. */
const MOST_KEYS = 20_000;
/** A count is shared once it reaches this fraction of its limit, which most never do. */
const SHARED_FROM = 1 / 20;

interface Window {
  count: number;
  /** The count that is not in the database yet. */
  unsent: number;
  /** A time as performance.now() returns it. */
  endsAt: number;
  most: number;
}

type WindowCount = Readonly<{
  /** Above the limit if the request exceeds it. */
  count: number;
  millisecondsLeft: number;
}>;

export class SharedCounts {
  readonly #database: Pick<Database, 'transaction'>;
  readonly #failed: (error: unknown) => void;
  readonly #windows = new Map<string, Window>();
  readonly #timer: NodeJS.Timeout;
  #sending = false;
  #failing = false;

  /** `failed` is called when the database first refuses the counts, and again only after it accepted some. */
  constructor(database: Pick<Database, 'transaction'>, failed: (error: unknown) => void) {
    this.#database = database;
    this.#failed = failed;
    this.#timer = setInterval(() => void this.share(), EVERY_MS).unref();
  }

  /** A request above `most` is not counted, but returns a count above it. */
  add(key: string, most: number): WindowCount {
    const now = performance.now();
    const window = this.#windowOf(key, now);
    window.most = most;
    const millisecondsLeft = window.endsAt - now;
    if (window.count >= most) return { count: window.count + 1, millisecondsLeft };
    window.count += 1;
    window.unsent += 1;
    return { count: window.count, millisecondsLeft };
  }

  peek(key: string): Readonly<{ used: number; millisecondsLeft: number }> {
    const now = performance.now();
    const window = this.#windows.get(key);
    if (window === undefined || window.endsAt <= now) return { used: 0, millisecondsLeft: 0 };
    return { used: window.count, millisecondsLeft: window.endsAt - now };
  }

  close() {
    clearInterval(this.#timer);
  }

  #windowOf(key: string, now: number) {
    const known = this.#windows.get(key);
    if (known !== undefined && known.endsAt > now) return known;
    this.#windows.delete(key);
    // Sorted by their start, so the oldest come first.
    for (const [old, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < MOST_KEYS) break;
      this.#windows.delete(old);
    }
    const begun = { count: 0, unsent: 0, endsAt: now + WINDOW_MS, most: 1 };
    this.#windows.set(key, begun);
    return begun;
  }

  async share() {
    if (this.#sending) return;
    const due = [...this.#windows].filter(
      ([, { unsent, count, most }]) => unsent > 0 && count >= Math.floor(most * SHARED_FROM),
    );
    if (due.length === 0) return;
    this.#sending = true;
    const sent = new Map(due.map(([key, { unsent }]) => [key, unsent]));
    for (const [, window] of due) window.unsent = 0;
    try {
      const rows = { keys: [...sent.keys()], requests: [...sent.values()], seconds: WINDOW_MS / 1000, now: null };
      const totals = await this.#database.transaction((tx) => addCounts(tx, rows));
      const now = performance.now();
      for (const { key, requests, milliseconds } of totals) {
        const window = this.#windows.get(key);
        if (window === undefined) continue;
        window.count = requests + window.unsent;
        window.endsAt = now + milliseconds;
      }
      this.#failing = false;
    } catch (error) {
      for (const [key, window] of due) window.unsent += sent.get(key) ?? 0;
      if (!this.#failing) this.#failed(error);
      this.#failing = true;
    } finally {
      this.#sending = false;
    }
  }
}
