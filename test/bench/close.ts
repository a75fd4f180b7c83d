/**
 * `close --no-deliver` of a month. Its floor: the rows grouped as documents have them by one CREATE TABLE AS, and one
 * SHA-256 of each row.
 */
import type pg from 'pg';
import { type Measured, measured } from './measured.ts';
import { cpuInWords, inTurns, MONTH, MORNING_AFTER, openMonth, timed, type Workbench } from './workbench.ts';

export async function measureClose(bench: Workbench): Promise<Measured[]> {
  const open = await openMonth(bench);
  const { taken, cpu } = await inTurns<'ours' | 'floor'>(bench, 'close', (turn) =>
    bench.inClone(open, ({ url, client }) =>
      turn({ ours: () => closeMonth(bench, url, client, MONTH, MORNING_AFTER), floor: () => closeFloor(client) }),
    ),
  );
  return [measured({ measure: 'close', ...taken, unit: 's', cpu: cpuInWords(cpu) }, { atMost: 1.1 })];
}

/** The seconds that closing a month takes, process and all. */
export async function closeMonth(
  bench: Workbench,
  url: string,
  client: pg.Client,
  month: string,
  now: string,
): Promise<number> {
  await client.query('CHECKPOINT');
  return (await bench.reckoner(url, now, ['close', month, '--no-deliver'])).seconds;
}

/** The seconds of the floor, which `verify` is held against too. */
export function closeFloor(client: pg.Client): Promise<number> {
  return timed(client, async () => {
    await client.query(
      `CREATE TABLE floor_lines AS
       SELECT partner_id, currency, arrangement, policy_id, kind, month, count(*) AS count, sum(spot_price) AS spot_price,
              sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
       FROM ledger_rows GROUP BY partner_id, currency, arrangement, policy_id, kind, month`,
    );
    await client.query(`SELECT count(sha256(convert_to(e::text, 'UTF8'))) FROM ledger_rows e`);
    await client.query('DROP TABLE floor_lines');
  });
}
