/**
 * Resuming a paused ledger. After a restore, documents may have been issued that are not in it: their numbers are skipped
 * for good, with a fact that explains the gap, so that no number stands for two documents.
 * Refusals: not_paused, numbers_not_ahead, numbers_implausible.
 */
import { todayOf } from '../config/today.ts';
import { lockLedgerWhole } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { insertResumptions, readPauses } from '../people/pauses.ts';
import { insertSkippedNumbers, readLastNumbers, type SkippedRange } from './skipped-numbers.sql.ts';

/** More are rather a typing error than a month that was lost. */
const MOST_SKIPPED = 100_000;

/** A number such as INV-2026-000176, read into its parts. */
export interface NumberParts {
  readonly series: string;
  readonly sequence: number;
}

/** INV-2026-000176. */
export const numberOf = ({ series, sequence }: NumberParts): string => `${series}-${String(sequence).padStart(6, '0')}`;

/** The parts of a document's number; undefined for anything else. */
export function partsOf(number: string): NumberParts | undefined {
  const [, series, digits] = /^((?:INV|CN|ST)-\d{4})-(\d{6,9})$/.exec(number) ?? [];
  const parts = series === undefined ? undefined : { series, sequence: Number(digits) };
  return parts !== undefined && parts.sequence > 0 && numberOf(parts) === number ? parts : undefined;
}

/** Ends every open pause and skips the numbers up to those given. Returns the ranges that it skipped. */
export async function resumeLedger(
  tx: Transaction,
  { environment, settings, actor }: ActorContext,
  { numbersAfter }: { numbersAfter: readonly NumberParts[] },
): Promise<SkippedRange[]> {
  await lockLedgerWhole(tx);
  const [pause] = await readPauses(tx);
  if (pause === undefined) throw refuse('not_paused', {});
  const last = new Map((await readLastNumbers(tx)).map((each) => [each.series, each.last]));
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
  failpoint('resume.recorded');
  if (ranges.length > 0) await insertSkippedNumbers(tx, { ranges, pauseId: pause.pause_id, now, eventId });
  failpoint('resume.skipped');
  return ranges;
}

/** What is skipped so that the next number follows this one; nothing if it does already. */
function rangeTo({ series, sequence }: NumberParts, last: number, year: string): SkippedRange[] {
  const number = numberOf({ series, sequence });
  if (sequence === last) return [];
  if (sequence < last) throw refuse('numbers_not_ahead', { number, last: numberOf({ series, sequence: last }) });
  if (series.slice(-4) > year) {
    throw refuse('numbers_implausible', { number, reason: `its year is after ${year}` });
  }
  if (sequence - last > MOST_SKIPPED) {
    const reason = `that would skip ${(sequence - last).toLocaleString('en')} numbers at once`;
    throw refuse('numbers_implausible', { number, reason });
  }
  return [{ series, first: last + 1, last: sequence }];
}
