/**
 * How long acceptances wait for a close, all of whose rows arrived on the last day of the month, so that no checkpoint
 * covers any of them. Its floor is the same close with a tenth of the rows: the wait must not grow with the month.
 */
import pg from 'pg';
import { type Measured, measured } from './measured.ts';
import { emptyLedger, inTurns, MONTH, MORNING_AFTER, type Workbench } from './workbench.ts';

const CONNECTIONS = 8;

export async function measureFlatClose(bench: Workbench): Promise<Measured[]> {
  const whole = await monthOnItsLastDay(bench, bench.rows);
  const tenth = await monthOnItsLastDay(bench, Math.ceil(bench.rows / 10));
  const wait = (name: string) => () => bench.inClone(name, ({ url }) => longestWait(bench, url));
  const { taken } = await inTurns<'ours' | 'floor'>(bench, 'flat close', (turn) =>
    turn({ ours: wait(whole), floor: wait(tenth) }),
  );
  return [measured({ measure: 'wait for a close', ...taken, unit: 's' }, { atMost: 1.5 })];
}

async function monthOnItsLastDay(bench: Workbench, rows: number): Promise<string> {
  const file = await bench.rowsFile(MONTH, rows, bench.partners, { lastDay: true });
  return bench.made(
    `last_day_${rows}`,
    async (url) => {
      await bench.reckoner(url, MORNING_AFTER, ['ledger', 'import', file]);
    },
    await emptyLedger(bench),
  );
}

/** An acceptance of the next month: its event and its row, which waits for the ledger's lock. */
const ACCEPT = `
  WITH e AS (
    INSERT INTO audit_events (occurred_at, action, subject, details, claimed_by, os_user, host, via)
    VALUES (now(), 'quote.accept', $1, '{}', 'bench', 'bench', 'bench', 'http') RETURNING event_id)
  INSERT INTO ledger_rows (
    partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price, partner_cut, invoice_amount,
    time_zone, month, arrangement, recorded_at, event_id)
  SELECT 'partner-00001', '2026-08', 'quote_accepted', $1, 'ticket-protection', 'USD', '2026-08-01T11:00:00Z', 10, 3, 7,
         'America/New_York', '2026-08', 'invoicing', now(), event_id
  FROM e`;

/** Closes the month beside acceptances. The longest of these waited in seconds. */
async function longestWait(bench: Workbench, url: string): Promise<number> {
  const took: number[] = [];
  let isClosed = false;
  const accept = async (_: unknown, worker: number) => {
    const client = new pg.Client(url);
    await client.connect();
    for (let nth = 0; !isClosed; nth += 1) {
      const began = performance.now();
      await client.query(ACCEPT, [`bench-${worker}-${nth}`]);
      took.push(performance.now() - began);
      // Partners accept now and then, not as fast as the server can.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await client.end();
  };
  const accepting = Array.from({ length: CONNECTIONS }, accept);
  const { seconds } = await bench.reckoner(url, MORNING_AFTER, ['close', MONTH, '--no-deliver']).finally(() => {
    isClosed = true;
  });
  await Promise.all(accepting);
  took.sort((one, other) => one - other);
  const at = (share: number) => (took[Math.ceil(took.length * share) - 1] ?? Number.NaN).toFixed(0);
  bench.note(
    `  close ${seconds.toFixed(1)} s; ${took.length} acceptances: median ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`,
  );
  return (took.at(-1) ?? Number.NaN) / 1000;
}
