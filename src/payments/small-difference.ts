/** Small differences are shortfalls of payments that finance does not pursue. They are posted to bank charges. Pure. */
import { Amount } from '#money';

/** The setting `small_difference`: a limit for each currency, and `percent`, a limit relative to the amount owed. */
export type SmallDifferences = Readonly<Record<string, string>>;

/** The default percentage. The fee of a larger international wire is below 2 percent. */
const PERCENT = '2';

export function isSmallDifference(settings: SmallDifferences, short: Amount, owed: Amount) {
  const most = Amount.of(settings[short.currency] ?? '0', short.currency);
  const within = (one: Amount, other: Amount) => !one.minus(other).isPositive();
  return (
    short.isPositive() &&
    within(short, most) &&
    within(short.timesHalfUp('100'), owed.timesHalfUp(settings['percent'] ?? PERCENT))
  );
}
