/**
 * Resumes a paused ledger. After a restore, documents may exist that are not in the ledger. Their numbers are skipped
 * for good, so that none identifies two documents; a fact explains the gap. Refusals: not_paused, numbers_missing,
 * numbers_not_ahead, numbers_implausible.
 */
import { DateTime } from 'luxon';
import { todayOf } from '#config/today';
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Continuation, continueLog } from '#log/head';
import { TreeHead } from '#log/note';
import { ActorContext, Installation, recordEvent } from '#people/audit-events';
import { insertResumptions, Pause, readPauses } from '#people/pauses.sql';
import { counted } from '#text';
import { insertServer } from './last-seen.sql.ts';
import { insertSkippedNumbers, readLastNumbers, SkippedRange } from './skipped-numbers.sql.ts';

/** A gap larger than this is more likely a typing error than a lost month. */
const MOST_SKIPPED = 100_000;

/** The parts of a number such as INV-2026-000176. */
export type NumberParts = Readonly<{
  series: string;
  sequence: number;
}>;

export const numberOf = ({ series, sequence }: NumberParts) => `${series}-${String(sequence).padStart(6, '0')}`;

const KINDS = ['INV', 'CN', 'ST'];
const NUMBER = new RegExp(`^((?:${KINDS.join('|')})-\\d{4})-(\\d{6,9})$`);

/** The parts of a document's number, or of 000000 before the first one; undefined for other texts. */
export function partsOf(number: string): NumberParts | undefined {
  const [, series, digits] = NUMBER.exec(number) ?? [];
  const parts = series === undefined ? undefined : { series, sequence: Number(digits) };
  return parts !== undefined && numberOf(parts) === number ? parts : undefined;
}

/** The series in which a restored ledger may lack issued numbers; none for any other pause. */
export function seriesInDoubt(pauses: readonly Pause[], { environment, settings }: Installation) {
  const states = pauses.flatMap(({ state_of: at }) => (at === null ? [] : [DateTime.fromISO(at)]));
  if (states.length === 0) return [];
  const first = DateTime.min(...states)?.setZone(settings.time_zone).year ?? 0;
  const last = Number(todayOf({ environment, settings }).slice(0, 4));
  const years = Array.from({ length: Math.max(0, last - first) + 1 }, (_, index) => first + index);
  return years.flatMap((year) => KINDS.map((kind) => `${kind}-${year}`));
}

/**
 * Ends every open pause and skips all numbers up to those in the request. After a restore, it must have one for each
 * series in doubt, or none if no document was issued. `seen` is the last checkpoint known outside. Returns the skipped
 * ranges, and the log's successor if the database does not continue that checkpoint.
 */
export async function resumeLedger(
  tx: Transaction,
  { environment, settings, actor }: ActorContext,
  { numbersAfter, seen }: { numbersAfter: readonly NumberParts[]; seen?: TreeHead | undefined },
): Promise<Readonly<{ skipped: SkippedRange[]; log: Continuation | undefined }>> {
  await lockLedgerWhole(tx);
  const pauses = await readPauses(tx);
  const [pause] = pauses;
  if (pause === undefined) throw refuse('not_paused', {});
  const last = new Map((await readLastNumbers(tx)).map((each) => [each.series, each.last]));
  // The numbers of an omitted series would be used again.
  const missing = seriesInDoubt(pauses, { environment, settings })
    .filter((series) => !numbersAfter.some((each) => each.series === series))
    .map((series) => numberOf({ series, sequence: last.get(series) ?? 0 }));
  if (numbersAfter.length > 0 && missing.length > 0) throw refuse('numbers_missing', { last: missing });
  const year = todayOf({ environment, settings }).slice(0, 4);
  const ranges = numbersAfter.flatMap((number) => rangeTo(number, last.get(number.series) ?? 0, year));
  const now = environment.now().toISO();
  const details = {
    paused_at: pause.paused_at,
    reason: pause.reason,
    skipped: ranges.map(({ series, first, last: to }) => ({
      from: numberOf({ series, sequence: first }),
      to: numberOf({ series, sequence: to }),
    })),
  };
  const eventId = await recordEvent(tx, actor, { action: 'ledger.resume', subject: 'ledger', details, now });
  await insertResumptions(tx, { now, eventId });
  await insertServer(tx);
  failpoint('resume.recorded');
  if (ranges.length > 0) await insertSkippedNumbers(tx, { ranges, pauseId: pause.pause_id, now, eventId });
  failpoint('resume.skipped');
  const log = seen && (await continueLog(tx, seen, { reason: pause.reason, now, eventId }));
  return { skipped: ranges, log };
}

/** What to skip so that the next number follows the given one; empty if it already does. */
function rangeTo({ series, sequence }: NumberParts, last: number, year: string) {
  const number = numberOf({ series, sequence });
  if (sequence === last) return [];
  if (sequence < last) throw refuse('numbers_not_ahead', { number, last: numberOf({ series, sequence: last }) });
  if (series.slice(-4) > year) {
    throw refuse('numbers_implausible', { number, reason: `its year is after ${year}` });
  }
  if (sequence - last > MOST_SKIPPED) {
    const reason = `that would skip ${counted(sequence - last)} numbers at once`;
    throw refuse('numbers_implausible', { number, reason });
  }
  return [{ series, first: last + 1, last: sequence }];
}
