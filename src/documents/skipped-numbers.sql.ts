/** The last number of each series, assigned or skipped. */
import { execute, query, type Transaction } from '../database/transaction.ts';

type LastNumber = Readonly<{
  series: string;
  last: number;
}>;

export const readLastNumbers = (tx: Transaction): Promise<LastNumber[]> =>
  query(
    tx,
    `SELECT series, max(last) AS last
     FROM (SELECT series, max(sequence) AS last FROM documents GROUP BY series
           UNION ALL SELECT series, last_sequence FROM skipped_numbers) AS numbers
     GROUP BY series ORDER BY series`,
  );

export type SkippedRange = Readonly<{
  series: string;
  first: number;
  last: number;
}>;

export async function insertSkippedNumbers(
  tx: Transaction,
  given: { ranges: readonly SkippedRange[]; pauseId: number; now: string; eventId: number },
): Promise<void> {
  await execute(
    tx,
    `INSERT INTO skipped_numbers (series, first_sequence, last_sequence, pause_id, recorded_at, event_id)
     SELECT series, first, last, :pauseId, :now::timestamptz, :eventId
     FROM json_to_recordset(:ranges::json) AS r (series text, first integer, last integer)`,
    { ...given, ranges: JSON.stringify(given.ranges) },
  );
}

/** When and why a number was skipped; empty if the number was not skipped. */
export const readSkipped = (
  tx: Transaction,
  given: { series: string; sequence: number },
): Promise<{ on: string; reason: string }[]> =>
  query(
    tx,
    `SELECT s.recorded_at::date AS "on", p.reason FROM skipped_numbers s JOIN pauses p USING (pause_id)
     WHERE s.series = :series AND :sequence::integer BETWEEN s.first_sequence AND s.last_sequence`,
    { ...given },
  );
