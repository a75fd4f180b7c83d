/** Small differences: what a payment is short and finance does not pursue. They are written to bank charges. Pure. */
import { Amount } from '../money.ts';

/** The setting `small_difference`: the most by currency, and `percent`, the most of what was owed. */
export type SmallDifferences = Readonly<Record<string, string>>;

/** Where the setting names no percent: an international wire of some size costs less than that. */
const PERCENT = '2';

/** Whether a payment that is `short` of what was `owed` may settle it: within the amount and within the percent. */
export function isSmallDifference(settings: SmallDifferences, short: Amount, owed: Amount): boolean {
  const most = Amount.of(settings[short.currency] ?? '0', short.currency);
  const within = (one: Amount, other: Amount) => !one.minus(other).isPositive();
  return (
    short.isPositive() &&
    within(short, most) &&
    within(short.timesHalfUp('100'), owed.timesHalfUp(settings['percent'] ?? PERCENT))
  );
}
