import { query, querying, queryingOne, queryingValue, Transaction } from '#database/transaction';

export type Pause = Readonly<{
  pause_id: number;
  cause: 'command' | 'restore';
  reason: string;
  /** The restored state, after which documents may have been issued. Null unless a restore caused the pause. */
  state_of: string | null;
  paused_at: string;
}>;

/** The open pauses, latest first. There can be two: a restored ledger may have been paused before its backup. */
export const readPauses = querying<Pause>(
  `SELECT pause_id, cause, reason, state_of, paused_at FROM open_pauses ORDER BY pause_id DESC`,
);

export const isPaused = queryingValue<boolean>(`SELECT is_paused() AS paused`);

export const insertPause = queryingOne<
  Pause,
  { reason: string; stateOf: string | null; now: string; eventId: number }
>(`
  INSERT INTO pauses (cause, reason, state_of, paused_at, event_id)
  VALUES (CASE WHEN :stateOf::timestamptz IS NULL THEN 'command' ELSE 'restore' END, :reason, :stateOf, :now, :eventId)
  RETURNING pause_id, cause, reason, state_of, paused_at`);

export const insertResumptions = (tx: Transaction, given: { now: string; eventId: number }): Promise<unknown> =>
  query(
    tx,
    `INSERT INTO resumptions (pause_id, resumed_at, event_id)
     SELECT pause_id, :now, :eventId FROM open_pauses`,
    given,
  );
