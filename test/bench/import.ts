/**
 * `ledger import` of a month as NDJSON. Its floor: the same bytes by COPY into an unlogged table, and one INSERT … SELECT
 * from there into a table with the indexes of the ledger, in one transaction.
 */
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type Measured, measured } from './measured.ts';
import { cpuInWords, emptyLedger, inTurns, MONTH, MORNING_AFTER, timed, type Workbench } from './workbench.ts';

export async function measureImport(bench: Workbench): Promise<Measured[]> {
  const empty = await emptyLedger(bench);
  const file = await bench.rowsFile(MONTH, bench.rows);
  const { taken, cpu } = await inTurns<'ours' | 'floor'>(bench, 'import', (turn) =>
    bench.inClone(empty, ({ url, client }) =>
      turn({
        ours: async () => {
          await client.query('CHECKPOINT');
          return (await bench.reckoner(url, MORNING_AFTER, ['ledger', 'import', file])).seconds;
        },
        floor: () => timed(client, () => importBare(client, file)),
      }),
    ),
  );
  return [measured({ measure: 'import', ...taken, unit: 's', cpu: cpuInWords(cpu) }, { atMost: 1.25 })];
}

async function importBare(client: pg.Client, file: string): Promise<void> {
  await client.query('BEGIN');
  await client.query('CREATE UNLOGGED TABLE floor_lines (line json)');
  // JSON has no control characters: with these for quote and delimiter a line is taken as it is.
  const copy = copyFrom(`COPY floor_lines FROM STDIN (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')`);
  await pipeline(createReadStream(file, { highWaterMark: 256 * 1024 }), client.query(copy));
  await client.query('CREATE TABLE floor_entries (LIKE ledger_rows INCLUDING INDEXES INCLUDING IDENTITY)');
  await client.query(
    `INSERT INTO floor_entries (
       partner_id, posted_month, kind, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency,
       accepted_at, spot_price, partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
     SELECT r.partner_id, '${MONTH}', r.kind, r.quote_id, r.requote_id, r.reversal_id, r.enrollment_id, r.policy_id,
            r.currency, r.accepted_at, r."spotPrice", r."partnerCut", r."invoiceAmount", 'America/New_York', '${MONTH}',
            'invoicing', now(), 1
     FROM floor_lines
     CROSS JOIN LATERAL json_to_record(line) AS r (
       kind text, partner_id text, quote_id text, requote_id text, reversal_id text, enrollment_id text, policy_id text,
       currency text, accepted_at timestamptz, "spotPrice" numeric, "partnerCut" numeric, "invoiceAmount" numeric)`,
  );
  await client.query('COMMIT');
}
