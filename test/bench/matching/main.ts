/**
 * How well the program matches bank lines: it makes a ledger with the program, imports the bank files of a generated
 * set (generate.ts), and compares what was applied and what was suggested with the truth.
 *
 *   npm run bench:matching -- [--seed 1] [--references] [--keep FOLDER] [--program FILE] [--list] [--json]
 *
 * Exits with 1 if anything was applied wrongly, or a first suggestion names another payer.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { table } from '../../../src/cli/output.ts';
import { acquireEmbeddedServer } from '../../../src/database/embedded.ts';
import { packageRoot } from '../../../src/package.ts';
import { databaseUrl, socketUrl } from '../../support/server.ts';
import { type Benchmark, generate } from './generate.ts';
import { decimal, MONTH_INDEXES, MONTHS } from './ledger.ts';
import { CALENDAR } from './receipts.ts';
import { count, type Facts, type Judged, judge, type Outcome } from './score.ts';

const USAGE = 'npm run bench:matching -- [--seed N] [--references] [--keep FOLDER] [--program FILE] [--list] [--json]';

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        seed: { type: 'string', default: '1' },
        // Every third receipt that could carry a printed ISO 11649 reference carries it.
        references: { type: 'boolean', default: false },
        // Where the files and the truth are written, too.
        keep: { type: 'string' },
        // Another build of the program.
        program: { type: 'string', default: join(packageRoot, 'dist', 'src', 'cli', 'reckoner.js') },
        // Every receipt that was not applied right, on stderr.
        list: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    });
    if (/^\d{1,9}$/.test(values.seed)) return values;
    throw new Error('--seed takes a whole number');
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    process.exit(2);
  }
}

const options = readOptions();
const note = (text: string): void => void process.stderr.write(`${text}\n`);

/** Variables of this machine that would change what the program does. */
const ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(RECKONER_|STRIPE_|PAYMENT_|SMTP_|DATABASE_|PG)/.test(name)),
);

type Reckoner = (now: string, ...args: readonly string[]) => Promise<unknown>;

/** Runs a command and gives its JSON. Status 4 says that something needs a person, as it should here. */
const reckonerIn =
  (home: string, url: string): Reckoner =>
  (now, ...args) => {
    const own = { RECKONER_HOME: home, DATABASE_URL: url, RECKONER_NOW: now, RECKONER_ENVIRONMENT: 'sandbox' };
    const child = spawn(process.execPath, [options.program, '--json', ...args], { env: { ...ENVIRONMENT, ...own } });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    return new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (status) => {
        if (status === 0 || status === 4) resolve(JSON.parse(stdout));
        else reject(new Error(`reckoner ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`));
      });
    });
  };

interface Imported {
  readonly new_lines: readonly {
    readonly bank_reference: string;
    readonly outcome: string;
    readonly payment_id: number | null;
  }[];
}
interface Closed {
  readonly months?: readonly { readonly status: string }[];
}
interface Exception {
  readonly payment_id: number | null;
  readonly commands: readonly string[];
}
interface Payment {
  readonly payment_id: number;
  readonly partner_id: string | null;
  readonly reference: string;
  readonly reversed: string;
  readonly applications: readonly {
    readonly number: string;
    readonly amount: string;
    readonly unapplied_on: string | null;
  }[];
}
interface Issued {
  readonly number: string;
  readonly partner_id: string;
  readonly month: string;
  readonly invoiceAmount: string;
  readonly balance: string;
}

/** The invoices that a command of a suggestion pays; none if it leaves the number to the person. */
const invoicesOf = (command: string | undefined): string[] =>
  [...(command ?? '').matchAll(/--invoice (\S+)/g)]
    .map(([, number]) => number as string)
    .filter((number) => number !== 'NUMBER');

async function makeLedgerAndImport(benchmark: Benchmark, home: string, reckoner: Reckoner): Promise<Facts> {
  const file = (name: string, content: string): string => {
    const path = join(home, name);
    writeFileSync(path, content);
    return path;
  };
  const started = '2026-07-01T06:00:00Z';
  await reckoner(started, 'init');
  const settings = JSON.parse(readFileSync(join(home, 'settings.json'), 'utf8')) as object;
  file('settings.json', JSON.stringify({ ...settings, ...benchmark.settings }));
  await reckoner(started, 'partner', 'import', file('partners.json', JSON.stringify(benchmark.partners)));

  /** Lines by the payment that they became, and the payments that were read when their file was imported. */
  const lines: { reference: string; paymentId: number | null; outcome: string }[] = [];
  const suggested = new Map<string, string[]>();
  const before = new Map<string, Payment>();
  for (const month of MONTH_INDEXES) {
    const closes = `${CALENDAR[month]}-01T13:00:00Z`;
    const imports = `${CALENDAR[month]}-29T18:00:00Z`;
    await reckoner(closes, 'ledger', 'import', file(`rows-${month}.csv`, benchmark.rows[month]));
    const first = month === 0 ? ['--first-month', MONTHS[0]] : [];
    const closed = (await reckoner(closes, 'close', MONTHS[month], ...first, '--no-deliver')) as Closed;
    if (closed.months?.at(-1)?.status !== 'closed') throw new Error(`not closed: ${JSON.stringify(closed)}`);
    note(`${MONTHS[month]} is closed`);
    const references = new Map<number, string>();
    for (const { name, content } of benchmark.files.filter((each) => each.month === month)) {
      const map = name.endsWith('.csv') ? ['--map', 'jp'] : [];
      const imported = (await reckoner(imports, 'payment', 'import', file(name, content), ...map)) as Imported;
      for (const { bank_reference: reference, payment_id: paymentId, outcome } of imported.new_lines) {
        lines.push({ reference, paymentId, outcome });
        if (paymentId !== null && outcome === 'payment') references.set(paymentId, reference);
      }
      note(`${name}: ${imported.new_lines.length} lines`);
    }
    for (const { payment_id: id, commands } of (await reckoner(imports, 'payment', 'exceptions')) as Exception[]) {
      const reference = id === null ? undefined : references.get(id);
      if (reference !== undefined) suggested.set(reference, invoicesOf(commands[0]));
    }
    for (const payment of (await reckoner(imports, 'payment', 'list')) as Payment[])
      if (references.has(payment.payment_id)) before.set(references.get(payment.payment_id) as string, payment);
  }

  const end = `${CALENDAR[2]}-29T19:00:00Z`;
  const issued = (await reckoner(end, 'invoice', 'list')) as Issued[];
  compareDocuments(benchmark, issued);
  const reversed = new Map(
    ((await reckoner(end, 'payment', 'list')) as Payment[])
      .filter((payment) => Number(payment.reversed) > 0)
      .map((payment) => [payment.payment_id, payment.reference]),
  );
  const owners = new Map(issued.map(({ number, partner_id: owner }) => [number, owner]));
  return {
    balances: new Map(issued.map(({ number, balance }) => [number, balance])),
    ownerOf: (number) => owners.get(number),
    outcomes: new Map(
      lines.map(({ reference, paymentId, outcome }): [string, Outcome] => {
        const payment = before.get(reference);
        const applied = (payment?.applications ?? []).filter(({ unapplied_on: until }) => until === null);
        return [
          reference,
          {
            payer: payment?.partner_id ?? null,
            applications: applied.map(({ number, amount }) => ({ number, amount })),
            suggested: suggested.get(reference) ?? [],
            reversed: outcome === 'payment' || paymentId === null ? null : (reversed.get(paymentId) ?? null),
          },
        ];
      }),
    ),
  };
}

/** The truth names invoices by numbers that the generator has foreseen: they must be those of the program. */
function compareDocuments({ documents }: Benchmark, issued: readonly Issued[]): void {
  const actual = new Map(issued.map((each) => [each.number, each]));
  for (const { number, partner, month, currency, amount } of documents) {
    const found = actual.get(number);
    const foreseen = `${partner.id} ${MONTHS[month]} ${decimal(Math.abs(amount), currency)}`;
    const is = found && `${found.partner_id} ${found.month} ${found.invoiceAmount.replace('-', '')}`;
    if (is !== foreseen) throw new Error(`${number} is ${is ?? 'not issued'}, and ${foreseen} was foreseen`);
  }
  if (actual.size !== documents.length) throw new Error(`${actual.size} documents, ${documents.length} foreseen`);
}

const percent = (share: number): string => `${share.toFixed(1)} %`;

function described({ rows, totals }: ReturnType<typeof count>): string {
  const dash = (number: number) => (number === 0 ? '' : number);
  const HEADINGS = ['receipts', '>n', '>right', '>part', '>wrong', '>held', '>first', '>payer', '>left'];
  const cells = rows.map((row) => [
    row.title,
    row.receipts,
    ...[row.right, row.part, row.wrong, row.heldRightly, row.suggestedRight, row.suggestedWrongPayer, row.left].map(
      dash,
    ),
  ]);
  const { precision, touchless, right, part, wrong, suggested, suggestedRight, suggestedWrongPayer } = totals;
  return [
    table(HEADINGS, cells),
    '',
    'right, part, wrong: applied without a person. held: must be held, and was.',
    'first: the first suggestion is right. payer: it names another payer.',
    'left: other suggestions, or none.',
    '',
    `Precision ${percent(precision)}: ${right + part} of ${right + part + wrong} applied.`,
    `Touchless ${percent(touchless)}: ${right} of ${totals.receipts}.`,
    `First suggestions: ${suggestedRight} of ${suggested} right, ${suggestedWrongPayer} with another payer.`,
    `Seed ${options.seed}${options.references ? ', with references on every third receipt that can carry one' : ''}.`,
  ].join('\n');
}

function listed(judged: readonly Judged[], facts: Facts): string {
  return judged
    .filter(({ verdict }) => verdict !== 'right')
    .map(({ receipt: { category, payer, line, allocation, takesBack }, verdict, suggestion }) => {
      const truth = { payer, allocation, takesBack };
      const done = facts.outcomes.get(line.reference);
      return JSON.stringify({ category, verdict, suggestion, truth, done, line });
    })
    .join('\n');
}

const benchmark = generate(Number(options.seed), { references: options.references });
if (options.keep !== undefined) {
  mkdirSync(options.keep, { recursive: true });
  for (const { name, content } of benchmark.files) writeFileSync(join(options.keep, name), content);
  writeFileSync(join(options.keep, 'truth.json'), JSON.stringify(benchmark.receipts, null, 2));
}
const folder = mkdtempSync(join(tmpdir(), 'reckoner-matching-'));
const home = join(folder, 'home');
mkdirSync(home);
const server = await acquireEmbeddedServer(join(folder, 'postgres'));
let facts: Facts;
try {
  const serverUrl = socketUrl(server.connection.host, server.connection.port, 'postgres');
  const admin = new pg.Client(serverUrl);
  await admin.connect();
  await admin.query('CREATE DATABASE matching');
  await admin.end();
  facts = await makeLedgerAndImport(benchmark, home, reckonerIn(home, databaseUrl(serverUrl, 'matching')));
} finally {
  await server.release();
  rmSync(folder, { recursive: true, force: true });
}
const judged = judge(benchmark.receipts, facts);
const result = count(judged);
if (options.list) note(listed(judged, facts));
const json = { seed: benchmark.seed, references: options.references, ...result };
process.stdout.write(`${options.json ? JSON.stringify(json, null, 2) : described(result)}\n`);
if (result.totals.wrong + result.totals.suggestedWrongPayer > 0) process.exitCode = 1;
