/**
 * Counts requests by key, in windows of a minute, for all servers of a database, without a query for each request.
 * Every second, each process adds its counts to `request_counts` in one statement and gets the totals back. So a limit
 * is shared within a second. While the database is unavailable, each process counts for itself.
 */
import type { Database } from '../database/database.ts';
import { addRequestCounts } from './server.sql.ts';

const WINDOW_MS = 60_000;
const EVERY_MS = 1000;
/** The number of remembered keys. Beyond that, a new key replaces the oldest. */
const MOST_KEYS = 20_000;
/** A key's count is shared once it has used this fraction of its limit. Most never do, and cost nothing. */
const SHARED_FROM = 1 / 20;

interface Window {
  count: number;
  /** Counts that the other servers do not know yet. */
  unsent: number;
  /** By the clock of performance.now(). */
  endsAt: number;
  most: number;
}

interface WindowCount {
  /** The count; it is above the limit for a request that exceeds it. */
  readonly count: number;
  readonly millisecondsLeft: number;
}

export class SharedCounts {
  readonly #database: Pick<Database, 'transaction'>;
  readonly #failed: (error: unknown) => void;
  readonly #windows = new Map<string, Window>();
  readonly #timer: NodeJS.Timeout;
  #sending = false;
  #failing = false;

  /** `failed` is called once when the database does not accept the counts, and not again until it has. */
  constructor(database: Pick<Database, 'transaction'>, failed: (error: unknown) => void) {
    this.#database = database;
    this.#failed = failed;
    this.#timer = setInterval(() => void this.share(), EVERY_MS).unref();
  }

  /** Counts one more, or returns a count above `most` without counting. */
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

  /** A key's count in its window, without counting. */
  peek(key: string): { readonly used: number; readonly millisecondsLeft: number } {
    const now = performance.now();
    const window = this.#windows.get(key);
    if (window === undefined || window.endsAt <= now) return { used: 0, millisecondsLeft: 0 };
    return { used: window.count, millisecondsLeft: window.endsAt - now };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #windowOf(key: string, now: number): Window {
    const known = this.#windows.get(key);
    if (known !== undefined && known.endsAt > now) return known;
    this.#windows.delete(key);
    // In order of their start, so the first are the oldest.
    for (const [old, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < MOST_KEYS) break;
      this.#windows.delete(old);
    }
    const begun = { count: 0, unsent: 0, endsAt: now + WINDOW_MS, most: 1 };
    this.#windows.set(key, begun);
    return begun;
  }

  /** One round with the database. */
  async share(): Promise<void> {
    if (this.#sending) return;
    const due = [...this.#windows].filter(
      ([, { unsent, count, most }]) => unsent > 0 && count >= Math.floor(most * SHARED_FROM),
    );
    if (due.length === 0) return;
    this.#sending = true;
    const sent = new Map(due.map(([key, { unsent }]) => [key, unsent]));
    for (const [, window] of due) window.unsent = 0;
    try {
      const rows = { keys: [...sent.keys()], requests: [...sent.values()], seconds: WINDOW_MS / 1000 };
      const totals = await this.#database.transaction((tx) => addRequestCounts(tx, rows));
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
