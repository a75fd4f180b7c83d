/**
 * A streaming replica for commands that only read. A command must see everything that was committed before it began:
 * otherwise a report could lack a close from a minute ago.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { reasonOf, refuse } from '#errors/refusals';
import { connectClient, Queryable, ServerAt } from './session.ts';

/** The longest wait for a replica to catch up. Normally a replica is milliseconds behind. */
const PATIENCE_MILLISECONDS = 10_000;
const POLL_MILLISECONDS = 50;

/** A position in a server's write-ahead log. */
interface Position {
  /** The identifier that initdb chose. A replica has the identifier of its primary. */
  readonly system: string;
  readonly written: string;
}

/**
 * Waits until the replica has replayed everything that the primary has written by now. If the machine has no
 * DATABASE_URL of a primary, the replica is used in its current state.
 */
export async function awaitReplica(
  replica: Queryable,
  name: string,
  primary?: ServerAt,
  patienceMilliseconds = PATIENCE_MILLISECONDS,
) {
  const refused = (reason: string, remedy: string) => refuse('replica_unusable', { database: name, reason, remedy });
  const { system, recovering } = await one<{ system: string; recovering: boolean }>(
    replica,
    'SELECT system_identifier::text AS system, pg_is_in_recovery() AS recovering FROM pg_control_system()',
  );
  if (!recovering) throw refused('is not a replica', 'Point DATABASE_URL_READ at a streaming replica, or unset it.');
  if (primary === undefined) return;
  const there = await positionOf(primary);
  if (there.system !== system) {
    throw refused('is a replica of another server than DATABASE_URL', 'Correct one of the two variables.');
  }
  const deadline = performance.now() + patienceMilliseconds;
  for (;;) {
    // `behind` is NULL until the replica has replayed its first record.
    const { behind } = await one<{ behind: string | null }>(
      replica,
      'SELECT pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn())::text AS behind',
      [there.written],
    );
    if (behind !== null && Number(behind) <= 0) return;
    if (performance.now() > deadline) {
      throw refused(
        `is ${behind ?? 'an unknown number of'} bytes behind and did not catch up in ${patienceMilliseconds / 1000} seconds`,
        'Look at pg_stat_replication on the primary and pg_stat_wal_receiver on the replica.',
      );
    }
    await sleep(POLL_MILLISECONDS);
  }
}

async function one<Row>(replica: Queryable, sql: string, values: string[] = []) {
  return (await replica.query(sql, values)).rows[0] as Row;
}

async function positionOf({ name, connection }: ServerAt) {
  let client: pg.Client | undefined;
  try {
    client = await connectClient(connection);
    const { rows } = await client.query<Position>(
      'SELECT system_identifier::text AS system, pg_current_wal_lsn()::text AS written FROM pg_control_system()',
    );
    return rows[0] as Position;
  } catch (error) {
    throw refuse('database_unreachable', { database: name, reason: reasonOf(error) }, error);
  } finally {
    await client?.end().catch(() => {});
  }
}
