/** Small differences: shortfalls of payments that finance does not pursue. They are written to bank charges. Pure. */
import { Amount } from '../money.ts';

/** The setting `small_difference`: the limit by currency, and `percent`, the limit relative to what was owed. */
export type SmallDifferences = Readonly<Record<string, string>>;

/** The default if the setting has no percentage. Larger international wires cost less than that. */
const PERCENT = '2';

/** Whether a payment that is `short` of what was `owed` may settle it: within the amount and the percentage. */
export function isSmallDifference(settings: SmallDifferences, short: Amount, owed: Amount): boolean {
  const most = Amount.of(settings[short.currency] ?? '0', short.currency);
  const within = (one: Amount, other: Amount) => !one.minus(other).isPositive();
  return (
    short.isPositive() &&
    within(short, most) &&
    within(short.timesHalfUp('100'), owed.timesHalfUp(settings['percent'] ?? PERCENT))
  );
}
