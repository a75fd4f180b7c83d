/** The last number of each series, assigned or skipped. */
import { executing, querying } from '#database/transaction';

type LastNumber = Readonly<{
  series: string;
  last: number;
}>;

export const readLastNumbers = querying<LastNumber>(`
  SELECT series, max(last) AS last
  FROM (SELECT series, max(sequence) AS last FROM documents GROUP BY series
        UNION ALL SELECT series, last_sequence FROM skipped_numbers) AS numbers
  GROUP BY series ORDER BY series`);

export type SkippedRange = Readonly<{
  series: string;
  first: number;
  last: number;
}>;

export const insertSkippedNumbers = executing<{
  ranges: readonly SkippedRange[];
  pauseId: number;
  now: string;
  eventId: number;
}>(`
  INSERT INTO skipped_numbers (series, first_sequence, last_sequence, pause_id, recorded_at, event_id)
  SELECT series, first, last, :pauseId, :now::timestamptz, :eventId
  FROM json_to_recordset(:ranges::json) AS r (series text, first integer, last integer)`);

/** When and why a number was skipped; empty if the number was not skipped. */
export const readSkipped = querying<{ on: string; reason: string }, { series: string; sequence: number }>(`
  SELECT s.recorded_at::date AS "on", p.reason FROM skipped_numbers s JOIN pauses p USING (pause_id)
  WHERE s.series = :series AND :sequence::integer BETWEEN s.first_sequence AND s.last_sequence`);
