/**
 * The ledger that the console is measured on: months of many partners, in five currencies, about one document
 * for each partner and month; the last month is open, and so are the books of the month before. Months are imported, closed
 * and paid by the program's own commands, set-based; what commands do one at a time (e-mails, disputes, holds, write-offs, balance transactions, acceptances over HTTP) is recorded by SQL under every
 * constraint and trigger. It is made once in a folder and used again. The same rows give the same ledger.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { acquireEmbeddedServer, type EmbeddedServer } from '../../src/database/embedded.ts';
import { packageRoot } from '../../src/package.ts';
import { acceptances, BANK_LINES, corrections, deliveries, shares } from './console-ledger.sql.ts';
import { writePartners, writeRows } from './rows.ts';

/** The day on which the console is looked at. */
export const NOW = '2026-11-30T15:00:00Z';
/** Who runs the commands, once there are users. */
export const ADMINISTRATOR = 'ada@bench.example';

const PROGRAM = join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js');

/** Runs a command in the ledger's home and gives what it printed. Status 4 is a finding, and no failure. */
export function reckoner(home: string, now: string, args: readonly string[]): Promise<string> {
  const { DATABASE_URL: _database, SMTP_URL: _smtp, ...inherited } = process.env;
  const own = { RECKONER_HOME: home, RECKONER_NOW: now, RECKONER_ENVIRONMENT: 'sandbox', RECKONER_USER: ADMINISTRATOR };
  const env = { ...inherited, ...own };
  const child = spawn(process.execPath, [PROGRAM, '--json', ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.on('error', reject);
    child.on('close', (status) =>
      status === 0 || status === 4 ? resolve(stdout) : reject(new Error(`${args.join(' ')}: ${stdout}`)),
    );
  });
}

/** The months from the first to the open one, with a day by which each has ended, and one by which its invoices were paid. */
function monthsOf(count: number) {
  return Array.from({ length: count }, (_, index) => {
    const first = new Date(Date.UTC(2026, 11 - count + index, 1));
    const at = (month: number, day: number) =>
      new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + month, day, 12)).toISOString();
    return { month: at(0, 1).slice(0, 7), closes: at(1, 1), paid: at(1, 18), isOpen: index === count - 1 };
  });
}

export interface ConsoleLedger {
  readonly home: string;
  readonly server: EmbeddedServer;
  readonly client: pg.Client;
}

export interface Size {
  readonly rows: number;
  readonly partners: number;
  /** An odd number, so that the first month is odd too: what seasonal sellers sell then, they take back in the next. */
  readonly months: number;
}

/** Opens the ledger of a folder; makes it there unless it is whole. */
export async function openConsoleLedger(
  folder: string,
  size: Size,
  note: (text: string) => void,
): Promise<ConsoleLedger> {
  const home = join(folder, `console-${size.rows}-${size.partners}-${size.months}`);
  const whole = join(home, 'whole');
  const made = existsSync(whole) && readFileSync(whole, 'utf8') === NOW;
  if (!made) {
    rmSync(home, { recursive: true, force: true });
    mkdirSync(home, { recursive: true });
  }
  const server = await acquireEmbeddedServer(join(home, 'postgres'));
  const client = new pg.Client(server.connection);
  if (!made) await make(home, client, size, note);
  else await client.connect();
  if (!made) writeFileSync(whole, NOW);
  return { home, server, client };
}

async function make(home: string, client: pg.Client, size: Size, note: (text: string) => void): Promise<void> {
  const months = monthsOf(size.months);
  const partners = join(home, 'partners.json');
  const file = join(home, 'rows.ndjson');
  const bank = join(home, 'bank.csv');
  await reckoner(home, months[0]?.closes ?? NOW, ['init']);
  const settings = join(home, 'settings.json');
  const written = JSON.parse(readFileSync(settings, 'utf8')) as Record<string, unknown>;
  // One reader asks for everything at once.
  writeFileSync(settings, JSON.stringify({ ...written, http: { requests_per_minute: 1_000_000 } }));
  await client.connect();
  await client.query(`SET TIME ZONE 'UTC'`);
  await writePartners(partners, size.partners);
  await reckoner(home, months[0]?.closes ?? NOW, ['partner', 'import', partners]);
  for (const { month, closes, paid, isOpen } of months) {
    const began = performance.now();
    await writeRows(file, month, Math.round(size.rows / size.months), size.partners);
    await reckoner(home, isOpen ? NOW : closes, ['ledger', 'import', file]);
    if (!isOpen) {
      await reckoner(home, closes, ['close', month, '--allow-empty', '--no-deliver']);
      for (const statement of deliveries(month)) await client.query(statement);
      const lines = await client.query<{ line: string }>(BANK_LINES, [month]);
      writeFileSync(
        bank,
        ['date,amount,currency,account,bank_reference,text,payer,payer_account']
          .concat(lines.rows.map(({ line }) => line))
          .join('\n'),
      );
      await reckoner(home, paid, ['payment', 'import', bank]);
    }
    note(`${month}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
  for (const statement of [...corrections(NOW), ...shares(NOW), ...acceptances(NOW)]) {
    const began = performance.now();
    await client.query(statement);
    note(`${statement.trim().slice(0, 60)}: ${((performance.now() - began) / 1000).toFixed(1)} s`);
  }
  // What the statements above record is dated in its own month, so the books close at the end.
  for (const { month } of months.slice(0, -2)) {
    await reckoner(home, NOW, ['books', 'close', month, '--no-deliver']);
    note(`books of ${month}`);
  }
  for (const each of [partners, file, bank]) rmSync(each);
  await client.query('VACUUM ANALYZE');
}
