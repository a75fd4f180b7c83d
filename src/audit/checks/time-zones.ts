/** The check of the first instants of months, by which a rule compares each row with its month. */
import { query, Transaction } from '#database/transaction';
import { Month, monthInterval } from '#month';
import { Finding } from './query.ts';

/** The instants recorded in the log are those of the time zone database. */
export async function findWrongMonthZones(tx: Transaction): Promise<Finding> {
  const zones = await query<{ time_zone: string; month: Month; begins_at: string }>(
    tx,
    'SELECT time_zone, month, begins_at FROM month_zones ORDER BY log_no',
  );
  const differences = zones.flatMap(({ time_zone, month, begins_at }) => {
    const { startsAt } = monthInterval(month, time_zone);
    if (startsAt.toMillis() === Date.parse(begins_at)) return [];
    return [{ subject: `${month} in ${time_zone}`, detail: `began at ${startsAt.toUTC().toISO()}, not ${begins_at}` }];
  });
  return { inspected: zones.length, differences };
}
