/** Refusals about the month close and verification. */
import { EXIT, entry } from './definition.ts';

export const CLOSE = {
  month_not_ended: entry<{ month: string; time_zone: string; ends_at: string }>(
    EXIT.refused,
    (f) =>
      `${f.month} has not ended everywhere: in ${f.time_zone} it runs until ${f.ends_at}. ` +
      'Close it after that; --dry-run previews a running month.',
  ),
  earlier_month_open: entry<{ month: string; open: string; entries: number }>(
    EXIT.refused,
    (f) =>
      `${f.month} cannot close while ${f.open} is open and has ${f.entries} ledger row(s). ` +
      `Close ${f.open} first, or run 'reckoner close' without a month to close all that are due in order.`,
  ),
  first_month_fixed: entry<{ asked: string; fixed: string }>(
    EXIT.refused,
    (f) => `The first month is ${f.fixed} since the first close and cannot become ${f.asked}. Leave --first-month out.`,
  ),
  before_first_month: entry<{ month: string; first: string }>(
    EXIT.refused,
    (f) =>
      `${f.month} lies before the first month ${f.first}; its rows post to ${f.first} or later. Close a later month.`,
  ),
  month_not_closed: entry<{ month: string }>(
    EXIT.refused,
    (f) => `${f.month} is not closed. 'reckoner close ${f.month}' closes it; 'reckoner status' shows which months are.`,
  ),
  nothing_to_verify: entry<Record<string, never>>(
    EXIT.refused,
    () => `The ledger is empty: there is nothing to verify. Import rows with 'reckoner ledger import FILE' first.`,
  ),
  clock_behind: entry<{ today: string; latest: string; number: string; act: string }>(
    EXIT.refused,
    (f) =>
      `Today is ${f.today} by this machine's clock, but ${f.number} was ${f.act} on ${f.latest}: ` +
      'nothing may be dated before what happened already. Correct the clock and run again.',
  ),
} as const;
