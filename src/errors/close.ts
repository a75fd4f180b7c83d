/** Refusals about the month close and verification. */
import { plural } from '../text.ts';
import { define, EXIT } from './definition.ts';

export const CLOSE = {
  month_not_ended: define<{ month: string; time_zone: string; ends_at: string }>(
    EXIT.refused,
    (f) =>
      `${f.month} has not ended in every time zone: in ${f.time_zone} it ends at ${f.ends_at}. ` +
      'Close it after that. Use --dry-run to preview a month that is still running.',
  ),
  earlier_month_open: define<{ month: string; open: string; entries: number }>(
    EXIT.refused,
    (f) =>
      `${f.month} cannot be closed while ${f.open} is open with ${plural(f.entries, 'ledger row')}. ` +
      `Close ${f.open} first, or run 'reckoner close' without a month to close all due months in order.`,
  ),
  first_month_fixed: define<{ asked: string; fixed: string }>(
    EXIT.refused,
    (f) => `The first close set the first month to ${f.fixed}; it cannot change to ${f.asked}. Omit --first-month.`,
  ),
  before_first_month: define<{ month: string; first: string }>(
    EXIT.refused,
    (f) => `${f.month} is before the first month, ${f.first}. Its rows are billed in ${f.first} or later.`,
  ),
  month_not_closed: define<{ month: string }>(
    EXIT.refused,
    (f) =>
      `${f.month} is not closed. Close it with 'reckoner close ${f.month}'; 'reckoner status' lists closed months.`,
  ),
  nothing_to_verify: define<Record<string, never>>(
    EXIT.refused,
    () => `The ledger is empty, so there is nothing to verify. Import rows with 'reckoner ledger import FILE'.`,
  ),
  clock_behind: define<{ today: string; latest: string; number: string; act: string }>(
    EXIT.refused,
    (f) =>
      `Today is ${f.today} according to this machine's clock, but ${f.number} was ${f.act} on ${f.latest}. ` +
      'Nothing can be dated before an earlier event. Correct the clock and run the command again.',
  ),
} as const;
