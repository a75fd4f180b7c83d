/**
 * Claims let any number of processes deliver items (documents, other e-mails, partners' events) in batches, without
 * delivering an item twice. A claim is an advisory lock on a connection of its process. A claim ends with its
 * connection, so the items of a dead process are free at once.
 */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { CLAIM_LOCKS } from './locks.ts';
import { connectClient } from './session.ts';
import { Bindings, query, queryOne, Transaction } from './transaction.ts';

export type DueItems = Readonly<{
  kind: 'document' | 'email' | 'webhook' | 'late_requests';
  /**
   * Returns the query for the keys of the next `:most` items. The query locks the rows of these items, so that no other
   * transaction changes an item while the item is claimed. `free(key)` is the condition that the item is not claimed.
   */
  due: (free: (key: string) => string) => string;
  bindings?: () => Bindings;
}>;

/** SQL for the hash by which an item is locked. */
export const itemHash = (kind: DueItems['kind'], key: string) => `hashtext('${kind}:' || ${key})`;

/** The claimed items and the server process ids of their holders. */
export const CLAIMED = `
  SELECT l.pid AS holder, l.objid::bigint::bit(32)::integer AS item
  FROM pg_locks l JOIN pg_database b ON b.oid = l.database
  WHERE b.datname = current_database() AND l.locktype = 'advisory' AND l.classid = ${CLAIM_LOCKS} AND l.objsubid = 2`;

const claimOf = ({ kind, due }: DueItems) => {
  const free = (key: string) =>
    `${itemHash(kind, key)} NOT IN (SELECT item FROM claimed) AND ${key}::text <> ALL (:except::text[])`;
  return `
  WITH claimed AS MATERIALIZED (${CLAIMED}), due AS MATERIALIZED (${due(free)})
  SELECT key::text, pg_try_advisory_lock(${CLAIM_LOCKS}, ${itemHash(kind, 'key')}) AS got FROM due`;
};

/**
 * A claim takes milliseconds. A server that takes longer than this is treated as lost, because it has ended our claims
 * or will end them.
 */
const ANSWER_MILLISECONDS = 30_000;

/** The claims of one process. */
export class Claims {
  /** Rejects when the connection and with it every claim is lost. */
  readonly lost: Promise<never>;
  /** The server's process id for the connection. */
  readonly holder: number;
  private readonly client: pg.Client;
  private readonly tx: Transaction;
  private readonly done: string[] = [];
  private ended = false;

  static async open(connection: pg.ClientConfig) {
    const client = await connectClient({ ...connection, query_timeout: ANSWER_MILLISECONDS }, 'app');
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    return new Claims(client, rows[0]?.pid as number);
  }

  private constructor(client: pg.Client, holder: number) {
    this.client = client;
    this.holder = holder;
    this.tx = { ask: (statement) => client.query(statement) } as Transaction;
    this.lost = new Promise((_, reject) => {
      client.on('error', reject);
      client.on('end', () => this.ended || reject(new Error('the connection was lost')));
    });
    this.lost.catch(() => {}); // Avoids an unhandled rejection. `workOn` also waits for this promise.
  }

  /**
   * Tries to claim up to `most` of these items, except those whose keys are in `except`. Returns each item that it
   * tried, and whether it got it. A call fails to get an item if another process claims the item at the same time.
   */
  async claim(
    items: DueItems,
    most: number,
    except: readonly string[] = [],
  ): Promise<Readonly<{ key: string; got: boolean }>[]> {
    await this.free();
    return query(this.tx, claimOf(items), { ...items.bindings?.(), most, except });
  }

  /** Ends a claim. The unlock is sent with the next statement. */
  release({ kind }: Pick<DueItems, 'kind'>, key: string) {
    this.done.push(`${kind}:${key}`);
  }

  /** Throws if the connection is lost. */
  async check() {
    await this.client.query('SELECT');
  }

  async end() {
    this.ended = true;
    await this.client.end().catch(() => {});
  }

  private async free() {
    const items = this.done.splice(0);
    if (items.length === 0) return;
    await queryOne(
      this.tx,
      `SELECT count(pg_advisory_unlock(${CLAIM_LOCKS}, hashtext(item))) FROM unnest(:items::text[]) AS item`,
      { items },
    );
  }
}

type Work = Readonly<{
  atOnce: number;
  /**
   * How many items are claimed in advance, so that no worker waits for a claim. No other process can claim these items.
   */
  ahead?: number;
  /**
   * Resolves to false if the item is not finished. The item is then not tried again until the end of the run, or for a
   * minute if the run `stays`. A rejection of this promise ends all work.
   */
  work: (key: string) => Promise<boolean>;
  /** After this signal, no further item is started. */
  stop?: AbortSignal | undefined;
  /** If true, the run looks for new items until `stop`. */
  stays?: boolean;
}>;

const LOOK_AGAIN_MILLISECONDS = 500;
const LEFT_ALONE_MILLISECONDS = 60_000;

/** Works on items until none is due, or until `stop` if it stays. Throws when its claims are lost. */
export async function workOn(claims: Claims, items: DueItems, options: Work) {
  const { atOnce, ahead = 0, work, stop, stays = false } = options;
  const claimed: string[] = [];
  const leftAlone = new Map<string, number>();
  let asking = 0;
  let over = false;
  let claiming: Promise<boolean> | undefined;
  const isOver = () => over || stop?.aborted === true;

  /** Resolves to false if there is nothing more to do. */
  const claimMore = async () => {
    await nextTurn(); // All workers that ask in this turn of the event loop share one claim.
    if (stays) {
      for (const [key, until] of leftAlone) if (until < performance.now()) leftAlone.delete(key);
    }
    const found = await claims.claim(items, asking + 2 * ahead - claimed.length, [...leftAlone.keys()]);
    claimed.push(...found.filter(({ got }) => got).map(({ key }) => key));
    if (found.length === 0 && stays) await wait(LOOK_AGAIN_MILLISECONDS, undefined, { signal: stop }).catch(() => {});
    return found.length > 0 || stays;
  };
  const more = () => {
    claiming ??= claimMore().finally(() => {
      claiming = undefined;
    });
    return claiming;
  };
  const next = async () => {
    asking += 1;
    try {
      while (!isOver()) {
        if (claimed.length < ahead) more().catch(() => {}); // The next worker that waits for a claim gets the error.
        const key = claimed.shift();
        if (key !== undefined) return key;
        if (!(await more()) && claimed.length === 0) return undefined;
      }
      return undefined;
    } finally {
      asking -= 1;
    }
  };
  const worker = async () => {
    try {
      for (let key = await next(); key !== undefined; key = await next()) {
        const finished = await work(key);
        if (!finished) leftAlone.set(key, performance.now() + LEFT_ALONE_MILLISECONDS);
        claims.release(items, key);
      }
    } catch (error) {
      over = true;
      throw error;
    }
  };
  // If one worker fails, the other workers finish their items. If the claims ended at once, another process could take
  // items that are still being delivered.
  const all = Promise.allSettled(Array.from({ length: atOnce }, worker)).then((ended) => {
    for (const each of ended) if (each.status === 'rejected') throw each.reason;
  });
  try {
    await Promise.race([all, claims.lost]);
  } finally {
    over = true;
  }
}
