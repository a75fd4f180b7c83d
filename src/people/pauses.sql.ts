import { query, queryOne, type Transaction } from '../database/transaction.ts';

export type Pause = Readonly<{
  pause_id: number;
  cause: 'command' | 'restore';
  reason: string;
  /** The restored state, after which documents may have been issued. Null unless a restore caused the pause. */
  state_of: string | null;
  paused_at: string;
}>;

/** The open pauses, latest first. There can be two: a restored ledger may have been paused before its backup. */
export const readPauses = (tx: Transaction): Promise<Pause[]> =>
  query(tx, `SELECT pause_id, cause, reason, state_of, paused_at FROM open_pauses ORDER BY pause_id DESC`);

export async function isPaused(tx: Transaction): Promise<boolean> {
  const { paused } = await queryOne<{ paused: boolean }>(tx, `SELECT is_paused() AS paused`);
  return paused;
}

export const insertPause = (
  tx: Transaction,
  pause: { reason: string; stateOf: string | null; now: string; eventId: number },
): Promise<Pause> =>
  queryOne(
    tx,
    `INSERT INTO pauses (cause, reason, state_of, paused_at, event_id)
     VALUES (CASE WHEN :stateOf::timestamptz IS NULL THEN 'command' ELSE 'restore' END, :reason, :stateOf::timestamptz,
             :now::timestamptz, :eventId)
     RETURNING pause_id, cause, reason, state_of, paused_at`,
    pause,
  );

export const insertResumptions = (tx: Transaction, given: { now: string; eventId: number }): Promise<unknown> =>
  query(
    tx,
    `INSERT INTO resumptions (pause_id, resumed_at, event_id)
     SELECT pause_id, :now::timestamptz, :eventId FROM open_pauses`,
    given,
  );
