/** Backup and restore: of a running system, into every kind of empty database, from every kind of broken file. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { verify } from '../../src/audit/verify.ts';
import { writeBackup } from '../../src/database/backup.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { MIGRATIONS, migrateTo } from '../../src/database/migrate.ts';
import { checkBackup, restoreBackup } from '../../src/database/restore.ts';
import { retryEmails } from '../../src/delivery/retry-emails.ts';
import { bouncesIn } from '../../src/mail/bounce-report.ts';
import { recordBounces } from '../../src/mail/bounces.ts';
import { Publisher } from '../../src/partner-events/publish.ts';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import { closeException } from '../../src/payments/exceptions.ts';
import { report } from '../mail/report.ts';
import { booksOf } from '../payments/books.ts';
import { makeCheckout, stripePayment } from '../payments/stripe-events.ts';
import { billThroughProcessor, sellThroughProcessor } from '../splits/processor-world.ts';
import { makeDatabase } from '../support/databases.ts';
import { withoutEvent } from '../support/guards.ts';
import { pngLogo } from '../support/logos.ts';
import { command, compiled, reckoner } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { tradeByHttp } from '../support/service.ts';
import { SWEEPING, times } from '../support/sweep.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

let folder: string;
let world: World;
/** The backup of the world as it stands after `beforeAll`. */
let backup: string;
/** Databases and connections of the test that runs. */
const opened: (() => Promise<unknown>)[] = [];
const closeOpened = async () => {
  for (const close of opened.splice(0).reverse()) await close();
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-backups-'));
  world = await openWorld();
  await tradeForThreeMonths(world);
  await tradeByHttp(world);
  backup = await backUp(world);
}, 120_000);
afterEach(closeOpened);
afterAll(async () => {
  await world.end();
  rmSync(folder, { recursive: true, force: true });
});

async function anotherWorld(): Promise<World> {
  const another = await openWorld();
  opened.push(() => another.end());
  return another;
}

/** What COPY must escape, and the very line that ends a table in a backup. */
const AWKWARD = 'tab\tno, but "quotes", \\N, \\ and\n\\.\nΕλλάς Ω & Söhne';

/** May's sale, undone in June: a credit note, used in July. PDFs, e-mails, a statement, late rows and requotes. */
async function tradeForThreeMonths(world: World): Promise<void> {
  const { partners, rows, close, deliver, sql, at } = world;
  world.settings = { ...world.settings, issuer: { ...world.settings.issuer, logo: pngLogo() } };
  at('2026-08-01T11:00:00Z');
  const connected = { connected_account_id: 'acct_1', merchant_of_record: 'platform', split: 'real_time' };
  await partners([
    partner({ legal_note: AWKWARD.replaceAll('\t', ' ') }),
    partner({
      partner_id: 'p-2',
      name: 'Kino & Söhne',
      currency: 'KWD',
      tax_id: "O'Neill \\ ?:name",
      price: undefined,
    }),
    partner({ partner_id: 'p-3', arrangement: 'connected_account', ...connected }),
    partner({ partner_id: 'p-4', invoicing_contact: { name: '', email: '', cc: [] } }),
  ]);
  const undone = quote({ accepted_at: '2026-05-10T12:00:00Z', quote_id: 'q-undone' });
  const other = quote({
    partner_id: 'p-2',
    currency: 'KWD',
    spotPrice: '1.005',
    partnerCut: '0.302',
    invoiceAmount: '0.703',
  });
  await rows([
    undone,
    reversal(undone, { accepted_at: '2026-06-10T12:00:00.123456Z' }),
    quote(),
    requote(quote({ quote_id: undone['quote_id'], accepted_at: '2026-07-03T12:00:00Z' })),
    other,
    quote({ partner_id: 'p-3' }),
    quote({ partner_id: 'p-4' }),
  ]);
  await sellThroughProcessor(world, '2026-07-10');
  await close();
  await billThroughProcessor(world, '2026-07');
  await deliver();
  const [sent] = await sql<{ message_id: string }>(`SELECT message_id FROM emails WHERE status = 'sent' LIMIT 1`);
  const reports = await bouncesIn(report({ messageId: sent?.message_id ?? '' }));
  await world.database.transaction((tx) => recordBounces(tx, world, { source: 'mbox', reports }));
  await world.database.transaction((tx) => retryEmails(tx, world, { status: 'bounced' }));
  await deliver();
  await payAndTakeBack(world);
  await rows([quote({ accepted_at: '2026-06-11T12:00:00Z' })]); // late: posts to August
  await sql(`INSERT INTO job_runs (job, started_at, finished_at, exit_status) VALUES ('month-close', now(), now(), 0)`);
  await linkTwice(sql);
  await checkOut(sql);
  await new Publisher(world.database).publish(10_000);
  await sql(
    withoutEvent(
      'webhooks',
      `INSERT INTO webhooks (partner_id, url, secret_version, key_check, acknowledged)
       VALUES ('p-1', 'https://partner.example/in', 1, '0123456789abcdef', 3)`,
    ),
  );
}

/** A payment of all that a partner owes at once, whose debit failed. */
async function checkOut(sql: World['sql']): Promise<void> {
  const open = await sql<{ number: string }>(
    `SELECT d.number FROM documents d JOIN document_balances b USING (document_id)
     WHERE d.document = 'invoice' AND b.status = 'open' AND d.partner_id = 'p-1' AND d.currency = 'USD'`,
  );
  await makeCheckout(
    sql,
    open.map(({ number }) => number),
    'cs_test_backup',
  );
  await sql(`INSERT INTO checkout_orders SELECT checkout_id, '2026-07-30', event_id FROM checkouts`);
}

/** A link that was switched off, the one after it, and a document that waits for its own. */
async function linkTwice(sql: World['sql']): Promise<void> {
  const [row] = await sql<{ id: string; last: number }>(
    `SELECT min(document_id) AS id,
            (SELECT coalesce(max(version), 0) FROM payment_link_intents i WHERE i.document_id = min(d.document_id)) AS last
     FROM documents d WHERE document = 'invoice' AND currency = 'USD' AND invoice_amount > 1`,
  );
  const { id: invoice, last = 0 } = row ?? {};
  const [first, second] = [last + 1, last + 2];
  await sql(`
    INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
      VALUES (${invoice}, ${first}, 'stripe', 1, 'USD', '{"a": ["b"]}', now());
    INSERT INTO payment_link_attempts VALUES (${invoice}, ${first}, 1, 'key-1', now());
    INSERT INTO payment_link_objects VALUES (${invoice}, ${first}, 'plink_1', 'https://buy.example/1', false, now());
    INSERT INTO payment_link_orders
      SELECT ${invoice}, ${first}, '2026-07-30', event_id FROM audit_events LIMIT 1;
    INSERT INTO payment_link_outcomes VALUES (${invoice}, ${first}, 'failed', now());
    INSERT INTO payment_link_closings (document_id, version, why, closed_at)
      VALUES (${invoice}, ${first}, 'amount_changed', now());
    INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
      VALUES (${invoice}, ${second}, 'stripe', 0.5, 'USD', '{}', now());
    INSERT INTO payment_link_attempts VALUES (${invoice}, ${second}, 1, 'key-2', now());
    INSERT INTO payment_link_waits (document_id, kind, reason, wanted) VALUES (${invoice}, 'unavailable', 'down', '')`);
}

/** The same money applied, undone and applied again, so that only all facts together add up; a return, a dispute won. */
async function payAndTakeBack(world: World): Promise<void> {
  const books = booksOf(world);
  const documents = await world.documents({ partnerId: 'p-1' });
  const number = documents.find((each) => each.document === 'invoice' && each.status === 'open')?.number ?? '';
  const { paymentId } = await books.record({ amount: '2', number, receivedOn: '2026-07-30' });
  await books.unapply(paymentId);
  await books.apply(paymentId, number);
  const linked = stripePayment({ invoice: number, amount: 100, on: '2026-07-30' });
  await books.events([linked.completed(), linked.disputed(), linked.closed('won')]);
  const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
  const named = `${number} Harbour Lights Ticketing`;
  const lines = [`2026-07-30,1.00,USD,1,B-1,${named},,`, `2026-07-31,-1.00,USD,1,B-2,RETURN R01 ${named},,`];
  await books.bankText(
    'july.csv',
    `${head}${lines.join('\n')}\n2026-07-31,0.90,USD,1,B-3,STRIPE,,\n2026-07-31,-5,USD,1,B-4,RETURN R01,,\n`,
  );
  const [line] = (await world.database.reading(readExceptions)).filter(({ kind }) => kind === 'bank_line');
  const looked = { exception: line?.exception ?? '', reason: 'not ours' };
  await world.database.transaction((tx) => closeException(tx, books.acting, looked));
}

const FILLED = [
  ...['installation', 'job_runs', 'partners', 'partner_arrangements', 'policies', 'ledger_rows', 'closed_months'],
  ...['logos', 'issuer_versions', 'documents', 'document_lines', 'credit_applications'],
  ...['payment_links', 'instruction_versions', 'document_pdfs', 'emails', 'email_attempts', 'email_bounces'],
  ...['payment_link_intents', 'payment_link_attempts', 'payment_link_objects', 'payment_link_closings'],
  ...['payment_link_orders', 'payment_link_outcomes', 'payment_link_waits'],
  ...['checkouts', 'checkout_invoices', 'checkout_sessions', 'checkout_orders', 'checkout_endings'],
  ...['bank_files', 'bank_statements', 'bank_lines', 'bank_statement_lines', 'bank_line_outcomes', 'payments'],
  ...['payment_sources', 'payment_applications', 'payment_unapplications', 'payment_reversals'],
  ...['payment_reinstatements', 'payouts', 'payout_settlements', 'payout_payments', 'processor_events'],
  ...['processor_event_outcomes', 'disputes', 'dispute_outcomes'],
  ...['api_clients', 'client_secrets', 'client_revocations', 'signing_keys', 'idempotency_keys'],
  ...['quotes', 'quote_acceptances', 'requotes', 'requote_acceptances'],
  ...['settlement_files', 'settlement_lines', 'balance_transactions', 'processor_readings', 'share_allocations'],
  ...['reversal_evidence', 'missing_shares', 'share_payments', 'payment_exception_closings'],
  ...[
    'payout_contents',
    'account_payouts',
    'balance_transaction_closings',
    'partner_events',
    'published_marks',
    'webhooks',
  ],
];

let files = 0;
const newFile = () => join(folder, `${++files}.backup`);

async function backUp({ database, environment }: Pick<World, 'database' | 'environment'>): Promise<string> {
  const file = newFile();
  await writeBackup(database, environment, file);
  return file;
}

async function restore(file: string, database: Database) {
  const checked = await checkBackup(file, { name: 'sandbox' });
  return restoreBackup(database, checked, async (tx) => verify(tx, undefined));
}

/** For tests of what follows: the same without the proof, which takes as long as all the rest. */
const restoreUnproved = async (file: string, database: Database) =>
  restoreBackup(database, await checkBackup(file, { name: 'sandbox' }), async () => undefined);

/** A database without anything in it, and the program's connections to it. */
async function emptyDatabase(
  owner?: string,
): Promise<Pick<World, 'database' | 'environment' | 'sql'> & { url: string }> {
  const own = await makeDatabase('empty', { owner });
  const url = owner === undefined ? own.url : own.url.replace(/\/\/[^@]*@/, `//${owner}:${owner}@`);
  const environment = { ...world.environment, databaseUrl: url };
  const database = await openDatabase(environment, { unmigrated: true });
  const client = new pg.Client(url);
  await client.connect();
  opened.push(async () => {
    await database.close();
    await client.end();
    await own.drop();
  });
  const sql: World['sql'] = async <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) =>
    (await client.query<Row>(text, values)).rows;
  return { database, environment, sql, url };
}

/** Every row of every table as PostgreSQL writes it, the sequences and the migrations: all that a database is. */
async function contentOf({ sql }: Pick<World, 'sql'>): Promise<Record<string, unknown>> {
  const content: Record<string, unknown> = {};
  const tables = await sql<{ name: string }>(
    // Each database records its own schema: a backup has none of it.
    `SELECT tablename AS name FROM pg_tables
     WHERE schemaname = 'public' AND tablename NOT LIKE 'migrations%' AND tablename <> 'schema_records' ORDER BY 1`,
  );
  for (const { name } of tables) {
    const rows = await sql<{ row: string }>(`SELECT t::text AS row FROM "${name}" t ORDER BY t::text COLLATE "C"`);
    content[name] = rows.map(({ row }) => row);
  }
  const sequences = await sql<{ name: string }>(
    `SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'public' AND sequencename NOT LIKE 'migrations%'`,
  );
  for (const { name } of sequences) {
    const [sequence] = await sql(`SELECT last_value + is_called::integer AS next FROM "${name}"`);
    content[name] = sequence?.['next'];
  }
  content['migrations'] = (await sql('SELECT name FROM migrations ORDER BY id')).map((row) => row['name']);
  return content;
}

/** The backup as text, changed, with counts and hash made right again where `forged`; the hash is no signature. */
function changed(file: string, change: (lines: string[]) => string[], forged = false): string {
  const lines = change(gunzipSync(readFileSync(file)).toString('utf8').trimEnd().split('\n'));
  if (forged) {
    const end = JSON.parse(lines.pop() ?? '') as object;
    const sha256 = createHash('sha256')
      .update(`${lines.join('\n')}\n`)
      .digest('hex');
    lines.push(JSON.stringify({ ...end, sha256 }));
  }
  return written(gzipSync(`${lines.join('\n')}\n`));
}

function written(content: string | Buffer): string {
  const file = newFile();
  writeFileSync(file, content);
  return file;
}

const refused = (code: string, reason?: RegExp) => ({
  code,
  ...(reason === undefined ? {} : { message: expect.stringMatching(reason) as string }),
});

describe('a backup of a running system, restored', () => {
  test('has the same rows in every table of an empty database', async () => {
    const target = await emptyDatabase();
    const { rows, leftOut, proof } = await restore(backup, target.database);
    const content = await contentOf(world);
    expect(await contentOf(target)).toEqual(content);
    expect(Object.keys(content)).toEqual(expect.arrayContaining(Object.keys(rows)));
    // The comparison has looked at rows of every kind.
    const filled = Object.keys(rows).filter((table) => (rows[table] ?? 0) > 0);
    expect(filled).toEqual(expect.arrayContaining([...FILLED]));
    expect(leftOut).toEqual([]);
    expect(proof).toMatchObject({ differences: 0 });
    const note = await target.sql(`SELECT legal_note FROM partners WHERE partner_id = 'p-1'`);
    expect(note).toEqual([{ legal_note: AWKWARD.replaceAll('\t', ' ') }]);
  });

  test('has the same rows in a home that was just initialized, and replaces its installation', async () => {
    const target = await anotherWorld();
    await target.sql(
      `INSERT INTO job_runs (job, started_at, finished_at, exit_status) VALUES ('watch', now(), now(), 0)`,
    );
    expect((await restore(backup, target.database)).proof).toMatchObject({ differences: 0 });
    expect(await contentOf(target)).toEqual(await contentOf(world));
    await expect(target.sql('DELETE FROM installation')).rejects.toThrow('append-only');
  });

  test('continues where the original stopped: rows, the next month, its numbers and its deliveries', async () => {
    const target = await anotherWorld();
    await restoreUnproved(backup, target.database);
    target.at('2026-09-01T11:00:00Z');
    const sale = quote({ quote_id: 'q-after', accepted_at: '2026-08-20T12:00:00Z' });
    expect(await target.rows([sale, quote({ quote_id: 'q-undone' })])).toMatchObject({ rejected: 1 });
    expect(await target.rows([sale])).toMatchObject({ accepted: 1 });
    expect(await target.close()).toEqual(['2026-08']);
    const deliveries = await target.deliver();
    const before = (await world.documents()).map(({ number }) => number);
    const after = (await target.documents()).map(({ number }) => number);
    expect(after.filter((number) => !before.includes(number))).toEqual(['INV-2026-000007']);
    expect(before).not.toContain('INV-2026-000007');
    // The one that lacked an address at the time of the backup still waits for it.
    expect(deliveries.map(({ number, status }) => `${number} ${status}`).sort()).toEqual([
      'INV-2026-000004 held',
      'INV-2026-000007 sent',
    ]);
    expect(await target.database.readingBeside((tx, beside) => verify(tx, undefined, { beside }))).toMatchObject({
      differences: 0,
    });
  });

  test('backs up to the same bytes, as does a second backup of the original', async () => {
    const target = await emptyDatabase();
    await restoreUnproved(backup, target.database);
    expect(readFileSync(await backUp(world)).equals(readFileSync(backup))).toBe(true);
    expect(readFileSync(await backUp({ ...target, environment: world.environment })).equals(readFileSync(backup))).toBe(
      true,
    );
  });

  test('is readable by its owner only', () => {
    expect(statSync(backup).mode & 0o777).toBe(0o600);
  });
});

describe('during a backup', () => {
  /** Keeps whoever reads this table waiting, until `release`. */
  async function hold(table: string, { databaseUrl: url, sql }: World) {
    const holder = new pg.Client(url);
    await holder.connect();
    opened.push(() => holder.end());
    await holder.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return {
      async reached() {
        const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
        while ((await sql(waiting)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
      },
      release: () => holder.end(),
    };
  }

  test('a month may close, and the backup contains none of it', async () => {
    const running = await anotherWorld();
    await tradeForThreeMonths(running);
    const content = await contentOf(running);
    const file = newFile();
    await writeBackup(running.database, running.environment, file, {
      onStart: async () => {
        running.at('2026-09-01T11:00:00Z');
        await running.partners([partner({ name: 'A new name' }), partner({ partner_id: 'p-5' })]);
        await running.rows([quote({ partner_id: 'p-5', accepted_at: '2026-08-20T12:00:00Z' })]);
        expect(await running.close()).toEqual(['2026-08']);
      },
    });
    const target = await emptyDatabase();
    expect((await restore(file, target.database)).proof).toMatchObject({ differences: 0 });
    const restored = await contentOf(target);
    expect(restored).toEqual({ ...content, ...sequencesOf(restored) });
    for (const [name, next] of Object.entries(sequencesOf(content))) {
      expect(Number(restored[name])).toBeGreaterThanOrEqual(Number(next));
    }
    expect(await contentOf(running)).not.toEqual(content);
  });

  /** Sequences know no snapshot: in a backup they may be ahead of its rows, and never behind them. */
  const sequencesOf = (content: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(content).filter(([name]) => /_seq$|^log_numbers$/.test(name)));

  test('an import is in the backup as a whole or not at all', async () => {
    const running = await anotherWorld();
    await running.partners([partner()]);
    const rows = Array.from({ length: 3_000 }, () => quote());
    const importing = running.rows(rows);
    let imported = false;
    void importing.finally(() => {
      imported = true;
    });
    const seen: unknown[] = [];
    do {
      seen.push((await checkBackup(await backUp(running), { name: 'sandbox' })).rows['ledger_rows']);
    } while (!imported);
    expect(await importing).toMatchObject({ accepted: 3_000 });
    seen.push((await checkBackup(await backUp(running), { name: 'sandbox' })).rows['ledger_rows']);
    expect([...new Set(seen)]).toEqual([0, 3_000]);
  });

  test('Ctrl-C ends the command and leaves no file', async () => {
    const running = await anotherWorld();
    const held = await hold('emails', running);
    const place = mkdtempSync(join(folder, 'stopped-'));
    const program = compiled('src/cli/reckoner.js');
    const env = { ...process.env, RECKONER_HOME: running.home, DATABASE_URL: running.databaseUrl };
    const child = spawn(process.execPath, [program, 'backup', join(place, 'it')], { env, stdio: 'ignore' });
    const ended = new Promise((resolve) => child.on('close', resolve));
    await held.reached();
    expect(readdirSync(place)).toHaveLength(1);
    child.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(readdirSync(place)).toEqual([]);
    await held.release();
  });
});

describe('from a damaged or foreign file nothing is restored:', () => {
  const bytes = () => readFileSync(backup);
  const sohne = (lines: string[]) => lines.map((line) => line.replace('Söhne', 'Sohne'));
  const refusal = (file: string) =>
    checkBackup(file, { name: 'sandbox' }).then(
      ({ sha256 }) => ({ sha256 }),
      (error: unknown) => error,
    );

  test('a file cut off anywhere is refused as cut off', async () => {
    const { seed, random } = seeded();
    const { length } = bytes();
    const cuts = [
      0,
      1,
      5,
      17,
      length - 1,
      length - 5,
      length - 9,
      ...Array.from({ length: 20 }, () => Math.floor(random() * length)),
    ];
    for (const cut of cuts) {
      const found = await refusal(written(bytes().subarray(0, cut)));
      expect({ seed, cut, found }).toMatchObject({ found: refused('backup_invalid', /ends too early/) });
    }
  });

  const FLIPS = times({ few: 50, short: 150, long: 1_000 });
  test('a file with a flipped bit is refused, unless the bit is not part of its content', async () => {
    const { seed, random } = seeded();
    const { sha256 } = await checkBackup(backup, { name: 'sandbox' });
    let found = 0;
    for (let flip = 0; flip < FLIPS; flip += 1) {
      const flipped = bytes();
      const at = flip < 20 ? flip : Math.floor(random() * flipped.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      const outcome = (await refusal(written(flipped))) as { sha256?: string; code?: string };
      const known = outcome.sha256 === sha256 || outcome.code === 'backup_invalid';
      expect({ seed, at, known }).toEqual({ seed, at, known: true });
      if (outcome.code === 'backup_invalid') found += 1;
    }
    expect(found).toBeGreaterThan(FLIPS * 0.85);
  });

  // Stored without compression, a flipped bit changes one character and nothing else.
  test.each<[where: string, pattern: RegExp]>([
    ['the name of a migration', /"migrations":\["00/],
    ['the version of the format', /"version":/],
    ['the environment', /"environment":"/],
    ['the time of writing', /"created_at":"202/],
  ])('a file with a bit flipped in %s is called damaged, not newer', async (_, pattern) => {
    const stored = gzipSync(gunzipSync(bytes()), { level: 0 });
    const { index, 0: found } = pattern.exec(stored.toString('latin1')) ?? { index: -1, 0: '' };
    expect(index).toBeGreaterThan(0);
    stored.writeUInt8(stored.readUInt8(index + found.length) ^ 2, index + found.length);
    expect(await refusal(written(stored))).toMatchObject(refused('backup_invalid'));
  });

  test.each<[what: string, file: () => string, reason: RegExp]>([
    ['an empty file', () => written(''), /ends too early/],
    ['a PDF', () => written('%PDF-1.7 and so on'), /not a backup of this program/],
    [
      'a dump of somebody else',
      () => written(gzipSync('--\n-- PostgreSQL database dump\n--\n')),
      /not a backup of this program/,
    ],
    ['a long line of somebody else', () => written(gzipSync('x'.repeat(3_000_000))), /not a backup of this program/],
    [
      'JSON of somebody else',
      () => written(gzipSync('{"format":"other","version":1}\n')),
      /not a backup of this program/,
    ],
    ['one without its last line', () => changed(backup, (lines) => lines.slice(0, -1)), /ends too early/],
    ['one with a row changed', () => changed(backup, sohne), /does not match its SHA-256/],
    [
      'one with a row left out',
      () => changed(backup, (lines) => lines.filter((line) => !line.startsWith('p-3\t')), true),
      /not hold all rows of partner_events, partners, partner_arrangements, policies, ledger_rows/,
    ],
    [
      'one with a line too many',
      () => changed(backup, (lines) => lines.toSpliced(-1, 0, 'something')),
      /there is other data between two tables/,
    ],
    ['one with another behind it', () => written(Buffer.concat([bytes(), bytes()])), /there is data after its end/],
    [
      'one with a table twice',
      () => changed(backup, (lines) => lines.toSpliced(-1, 0, '{"table":"job_runs","columns":["job"]}', '\\.'), true),
      /rows of job_runs twice/,
    ],
  ])('%s', async (_, file, reason) => {
    expect(await refusal(file())).toMatchObject(refused('backup_invalid', reason));
  });

  test('a missing file and a folder cannot be read', async () => {
    expect(await refusal(join(folder, 'missing'))).toMatchObject(refused('file_unreadable', /no such file/));
    expect(await refusal(folder)).toMatchObject(refused('file_unreadable', /directory/));
  });

  test('a newer program made it, by its migrations or by its format', async () => {
    const later = (lines: string[]) =>
      lines.map((line) => line.replace('"migrations":[', '"migrations":["999_later",'));
    const newer = changed(backup, later, true);
    expect(await refusal(newer)).toMatchObject({ code: 'backup_newer', exit: 3, facts: { unknown: ['999_later'] } });
    const format = changed(backup, (lines) => lines.map((line) => line.replace('"version":1', '"version":2')));
    expect(await refusal(format)).toMatchObject(refused('backup_newer', /version 2 of the format/));
  });

  test('it belongs to the other environment', async () => {
    await expect(checkBackup(backup, { name: 'production' })).rejects.toMatchObject(
      refused('backup_environment', /sandbox/),
    );
  });

  test.each<[what: string, file: () => Buffer, reason: RegExp]>([
    ['another one', () => readFileSync(changed(backup, sohne, true)), /been replaced since it was checked/],
    ['a part of it', () => bytes().subarray(0, bytes().length * 0.7), /ends too early/],
  ])('one that is exchanged for %s between its check and its loading', async (_, other, reason) => {
    const target = await emptyDatabase();
    const file = written(bytes());
    const checked = await checkBackup(file, { name: 'sandbox' });
    writeFileSync(file, other());
    const loading = restoreBackup(target.database, checked, async () => null);
    await expect(loading).rejects.toMatchObject(refused('backup_invalid', reason));
    expect(await target.sql(`SELECT FROM pg_tables WHERE schemaname = 'public'`)).toEqual([]);
    expect((await restore(backup, target.database)).proof).toMatchObject({ differences: 0 });
  });

  test.each<[what: string, change: (lines: string[]) => string[], reason: RegExp]>([
    [
      'its rows break a rule of the ledger',
      (lines) => lines.map((line) => line.replace('\t1.005\t0.302\t0.703\t', '\t9.005\t0.302\t0.703\t')),
      /refuses its rows of month_totals: .*month_totals_balance/,
    ],
    [
      'one of its rows has another number too',
      (lines) => {
        const at = lines.findIndex((line) => line.startsWith('{"table":"ledger_rows"')) + 1;
        const [first = [], second = []] = lines.slice(at, at + 2).map((line) => line.split('\t'));
        // Without another row, the counts stay right.
        return lines.toSpliced(at + 1, 1, first.toSpliced(2, 1, second[2] as string).join('\t'));
      },
      /refuses its rows of ledger_rows: .*ledger_rows_known_once/,
    ],
  ])('%s, whatever its hash says; the database stays as it was', async (_, change, reason) => {
    const target = await anotherWorld();
    const before = await contentOf(target);
    const loading = restore(changed(backup, change, true), target.database);
    await expect(loading).rejects.toMatchObject(refused('backup_invalid', reason));
    expect(await contentOf(target)).toEqual(before);
    await target.partners([partner()]);
  });

  test('the proof fails', async () => {
    const target = await emptyDatabase();
    const checked = await checkBackup(backup, { name: 'sandbox' });
    const loading = restoreBackup(target.database, checked, async () => {
      throw new Error('no proof');
    });
    await expect(loading).rejects.toThrow('no proof');
    expect(await target.sql(`SELECT FROM pg_tables WHERE schemaname = 'public'`)).toEqual([]);
  });
});

describe('a database', () => {
  test('that contains data is refused and left alone', async () => {
    const target = await anotherWorld();
    await target.partners([partner({ partner_id: 'p-own' })]);
    const before = await contentOf(target);
    await expect(restore(backup, target.database)).rejects.toMatchObject({
      code: 'database_not_empty',
      exit: 3,
      facts: { tables: ['audit_events', 'partners', 'partner_arrangements', 'policies', 'presentation'] },
    });
    expect(await contentOf(target)).toEqual(before);
  });

  test('of the other environment is refused even when empty', async () => {
    const target = await emptyDatabase();
    const production = await openDatabase({ ...target.environment, name: 'production' }, { unmigrated: true });
    await production.migrations.run();
    await production.close();
    await expect(restore(backup, target.database)).rejects.toMatchObject(refused('database_environment'));
    await expect(writeBackup(target.database, target.environment, newFile())).rejects.toMatchObject(
      refused('database_environment'),
    );
  });

  test('accepts one of two restores at the same time', async () => {
    const target = await emptyDatabase();
    const second = await openDatabase(target.environment, { unmigrated: true });
    const outcomes = await Promise.allSettled([
      restoreUnproved(backup, target.database),
      restoreUnproved(backup, second),
    ]);
    await second.close();
    const reasons = outcomes.map((outcome) =>
      outcome.status === 'rejected' ? (outcome.reason as { code: string }).code : 'restored',
    );
    expect(reasons.sort()).toEqual(['database_not_empty', 'restored']);
    expect(await contentOf(target)).toEqual(await contentOf(world));
  });

  test('of an ordinary user, as on hosted servers, is restored and backed up like any other', async () => {
    const user = `user_${randomBytes(6).toString('hex')}`;
    await world.sql(`CREATE ROLE ${user} LOGIN PASSWORD '${user}'`);
    try {
      const target = await emptyDatabase(user);
      expect((await restore(backup, target.database)).proof).toMatchObject({ differences: 0 });
      expect(await contentOf(target)).toEqual(await contentOf(world));
      const again = await backUp({
        database: target.database,
        environment: { ...target.environment, now: world.environment.now },
      });
      expect(readFileSync(again).equals(readFileSync(backup))).toBe(true);
    } finally {
      await closeOpened();
      await world.sql(`DROP ROLE ${user}`);
    }
  });

  test('without any migration has nothing to back up', async () => {
    const target = await emptyDatabase();
    await expect(writeBackup(target.database, target.environment, newFile())).rejects.toMatchObject(
      refused('database_not_migrated'),
    );
  });
});

describe("an older program's backup", () => {
  let older: string;
  let entries: unknown;
  /** What the event of its import says of the partner. */
  const OLD_PARTNER: readonly [field: string, value: unknown][] = [
    ['name', 'Harbour Lights'],
    ...Object.entries({ line1: '1 Quay', city: 'New York', region: 'NY', postal_code: '10004', country: 'US' }).map(
      ([field, value]): [string, string] => [`address.${field}`, value],
    ),
    ['invoicing_contact.name', 'Accounts'],
    ['invoicing_contact.email', 'ap@partner.example'],
    ['invoicing_contact.cc', []],
    ['currency', 'USD'],
    ['time_zone', 'America/New_York'],
    ['payment_terms_days', 30],
    ['active', true],
    ['account_statement', 'none'],
    ['e_invoice', 'none'],
    ['arrangement', 'invoicing'],
    ['policies.parking.name', 'Parking'],
    ['policies.parking.kind', 'insurance'],
    ['policies.parking.active', true],
    ['policies.parking.partner_cut_rate', '0.2'],
  ];
  const OLDER = MIGRATIONS.slice(0, MIGRATIONS.findIndex((id) => id.startsWith('006_log')) + 1);

  beforeAll(async () => {
    const { database, environment, sql } = await emptyDatabase();
    await database.asOwner((tx) => migrateTo(tx, OLDER));
    await sql(`INSERT INTO installation (environment) VALUES ('sandbox')`);
    await sql(
      withoutEvent(
        'partners',
        `INSERT INTO partners VALUES ('p-1', 'Harbour Lights', '1 Quay', '', 'New York', 'NY', '10004', 'US', 'Accounts',
         'ap@partner.example', '{}', DEFAULT, DEFAULT, DEFAULT, 'USD', 'America/New_York', 30, NULL, NULL, '', '', '', NULL, 'none',
         DEFAULT, DEFAULT, DEFAULT, NULL, NULL)`,
      ),
    );
    await sql(
      `INSERT INTO audit_events (occurred_at, action, subject, details, os_user, host, via)
       SELECT '2026-07-20T12:00:00Z', action, subject, details, 'ada', 'desk', 'command'
       FROM (VALUES
         ('partner.create', 'p-1', $1::jsonb),
         ('ledger.import', 'old.csv', '{"totals": {"USD":
           {"rows": 20, "spotPrice": "200", "partnerCut": "40", "invoiceAmount": "160"}}}'))
         AS action (action, subject, details)`,
      [JSON.stringify({ changes: OLD_PARTNER.map(([field, value]) => ({ field, old: null, new: value })) })],
    );
    await sql(
      withoutEvent(
        'partner_arrangements',
        `INSERT INTO partner_arrangements VALUES ('p-1', '0001-01', 'invoicing', NULL, NULL, NULL)`,
      ),
    );
    await sql(
      withoutEvent(
        'policies',
        `INSERT INTO policies VALUES ('p-1', 'parking', 'Parking', 'insurance', 0.2, DEFAULT, NULL, NULL, NULL)`,
      ),
    );
    await sql(
      `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price,
                            partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
       SELECT 'p-1', '2026-07', 'quote_accepted', 'q-old-' || n, 'parking', 'USD', '2026-07-15T12:00:00Z', 10, 2, 8,
              'America/New_York', '2026-07', 'invoicing', '2026-07-20T12:00:00Z', (SELECT max(event_id) FROM audit_events)
       FROM generate_series(1, 20) AS n`,
    );
    await sql(
      `INSERT INTO ledger_receipts (event_id, posted_month, partner_id, currency, entries, spot_price, partner_cut,
         invoice_amount)
       SELECT event_id, posted_month, partner_id, currency, count(*), sum(spot_price), sum(partner_cut),
              sum(invoice_amount)
       FROM ledger_rows GROUP BY event_id, posted_month, partner_id, currency`,
    );
    entries = (await contentOf({ sql }))['ledger_rows'];
    older = await backUp({ database, environment });
    expect((await checkBackup(older, { name: 'sandbox' })).migrations).toEqual(OLDER);
    await closeOpened();
  });

  test.each([
    ['there is nothing', async () => emptyDatabase()],
    ['this program has run its own migrations already', async () => anotherWorld()],
  ])('is migrated while it is restored into a database where %s', async (_, open) => {
    const target = await open();
    const { proof, rows } = await restore(older, target.database);
    expect(proof).toMatchObject({ differences: 0 });
    expect(rows).toMatchObject({ ledger_rows: 20 });
    const content = await contentOf(target);
    expect(content).toMatchObject({
      ledger_rows: entries,
      migrations: [...MIGRATIONS],
      // Of 2 events and 20 rows.
      log_numbers: '24',
    });
    expect(await target.sql(`SELECT nspname FROM pg_namespace WHERE nspname LIKE 'reckoner%'`)).toEqual([]);
  });

  test('continues in the present program: its rows are closed, rendered and sent', async () => {
    const target = await anotherWorld();
    await restoreUnproved(older, target.database);
    target.at('2026-08-01T11:00:00Z');
    await target.partners([partner()]);
    await target.rows([quote()]);
    expect(await target.close()).toEqual(['2026-07']);
    expect(await target.deliver()).toMatchObject([{ number: 'INV-2026-000001', status: 'sent' }]);
    expect((await target.documents())[0]).toMatchObject({ enrollments: 21 });
    expect(await target.database.readingBeside((tx, beside) => verify(tx, undefined, { beside }))).toMatchObject({
      differences: 0,
    });
  });

  test('leaves nothing behind when its rows break a rule', async () => {
    const target = await emptyDatabase();
    const forged = changed(older, (lines) => lines.map((line) => line.replace('\t10\t2\t8\t', '\t10\t2\t9\t')), true);
    await expect(restore(forged, target.database)).rejects.toMatchObject(
      refused('backup_invalid', /ledger_rows_balance/),
    );
    expect(await target.sql(`SELECT FROM pg_namespace WHERE nspname LIKE 'reckoner%'`)).toEqual([]);
    expect(await target.sql(`SELECT FROM pg_tables WHERE schemaname = 'public'`)).toEqual([]);
  });
});

describe('the target file', () => {
  test('is never overwritten', async () => {
    const file = written('precious');
    await expect(writeBackup(world.database, world.environment, file)).rejects.toMatchObject(refused('backup_exists'));
    expect(readFileSync(file, 'utf8')).toBe('precious');
  });

  test('is not overwritten if it appears during the backup', async () => {
    const place = mkdtempSync(join(folder, 'raced-'));
    const file = join(place, 'it');
    const writing = writeBackup(world.database, world.environment, file, {
      onStart: () => writeFileSync(file, 'precious'),
    });
    await expect(writing).rejects.toMatchObject(refused('backup_exists'));
    expect(readFileSync(file, 'utf8')).toBe('precious');
    expect(readdirSync(place)).toEqual(['it']);
  });

  test('is in a missing folder', async () => {
    const file = join(folder, 'no', 'such', 'folder');
    const writing = writeBackup(world.database, world.environment, file);
    await expect(writing).rejects.toMatchObject({
      ...refused('file_unwritable', /no such file or directory/),
      exit: 1,
    });
    expect(await world.documents()).not.toHaveLength(0); // The connection is of use afterwards.
  });

  test('does not fit on the disk: the command fails and leaves nothing half written', async () => {
    const place = mkdtempSync(join(folder, 'full-'));
    const program = compiled('src/cli/reckoner.js');
    const env = { ...process.env, RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl };
    // No file may grow beyond 16 blocks.
    const script = [
      '-c',
      'ulimit -f 16; exec "$@"',
      'sh',
      process.execPath,
      program,
      '--json',
      'backup',
      join(place, 'it'),
    ];
    const child = spawn('sh', script, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    let stdout = '';
    child.stdout.on('data', (text) => {
      stdout += String(text);
    });
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'file_unwritable', file: join(place, 'it') } });
    expect(readdirSync(place)).toEqual([]);
  });
});

describe('the commands', () => {
  const run = (args: string[], env: Record<string, string>) =>
    (env['DATABASE_URL'] ? command : reckoner)(args, { env: { RECKONER_NOW: '2026-08-01T11:00:00Z', ...env } });

  test('print their results as JSON, with the hash that sha256sum prints, and exit 0', async () => {
    const file = newFile();
    // The backup's own event comes after it.
    const before = await contentOf(world);
    const made = await run(['--json', 'backup', file], { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl });
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
    const { rows } = await checkBackup(file, { name: 'sandbox' });
    expect(made).toMatchObject({ status: 0, stderr: '' });
    expect(made.json()).toEqual({ file, bytes: statSync(file).size, rows, sha256 });
    const target = await emptyDatabase();
    const restored = await run(['--json', 'restore', file], { RECKONER_HOME: world.home, DATABASE_URL: target.url });
    expect(restored).toMatchObject({ status: 0, stderr: '' });
    expect(restored.json()).toEqual({
      file,
      rows,
      erased: 0,
      verified: { inspected: expect.any(Number) as number, differences: 0 },
    });
    expect(await contentOf(target)).toEqual(await withRestoreOf(target, before));
  });

  /** The content of the source, with what the restore itself records in the database that it fills: one event and its pause. */
  async function withRestoreOf(
    target: Pick<World, 'sql'>,
    content: Record<string, unknown>,
  ): Promise<Record<string, unknown>> {
    const restores = await target.sql<{ row: string }>(
      `SELECT e::text AS row FROM audit_events e WHERE action = 'database.restore'
         AND event_id = (SELECT max(event_id) FROM audit_events)`,
    );
    expect(restores).toHaveLength(1);
    const pauses = await target.sql<{ row: string }>(`SELECT p::text AS row FROM pauses p WHERE cause = 'restore'`);
    expect(pauses).toHaveLength(1);
    const following = (name: string, by = 1) => String(Number(content[name]) + by);
    return {
      ...content,
      audit_events: [...(content['audit_events'] as string[]), ...restores.map(({ row }) => row)].sort(bytewise),
      audit_events_event_id_seq: following('audit_events_event_id_seq'),
      log_numbers: following('log_numbers', 2),
      pauses: pauses.map(({ row }) => row),
      pauses_pause_id_seq: following('pauses_pause_id_seq'),
    };
  }
  const bytewise = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other));

  test('print what a backup does not contain, what it would send, and that settings are missing', async () => {
    const file = newFile();
    const made = await run(['backup', file], { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl });
    expect(made.stdout).toMatch(/Not in a backup: settings\.json, .*outbox\/ .*secrets/);
    const home = join(folder, 'new-home');
    const target = await emptyDatabase();
    const restored = await run(['restore', file], { RECKONER_HOME: home, DATABASE_URL: target.url });
    expect(restored.status).toBe(0);
    expect(restored.stdout).toMatch(
      /Verified: all \d+ checks pass \([\d,]+ items inspected\)\.\nNot in a backup: settings\.json/,
    );
    expect(restored.stderr).toMatch(/The ledger is paused[\s\S]*No settings in .*new-home yet/);
    const asked = await run(['resume'], { RECKONER_HOME: world.home, DATABASE_URL: target.url });
    expect(asked.status).toBe(3);
    expect(asked.stdout).toContain('1 e-mail unsent here, which may already have been sent');
    for (const name of ['backup', 'restore']) {
      expect((await run([name, '--help'], {})).stdout).toMatch(/settings\.json[\s\S]*outbox[\s\S]*secrets/);
    }
  });

  test('report for an empty ledger that there is nothing to verify', async () => {
    const untouched = await anotherWorld();
    const file = await backUp(untouched);
    const target = await emptyDatabase();
    const ran = await run(['--json', 'restore', file], { RECKONER_HOME: world.home, DATABASE_URL: target.url });
    expect({ status: ran.status, verified: (ran.json() as { verified: unknown }).verified }).toEqual({
      status: 0,
      verified: null,
    });
    expect((await contentOf(target))['installation']).toEqual((await contentOf(untouched))['installation']);
  });

  test('restore a tampered ledger unchanged, and exit 4', async () => {
    const damaged = await anotherWorld();
    await restoreUnproved(backup, damaged.database);
    await damaged.sql(`ALTER TABLE closed_months DISABLE TRIGGER append_only`);
    await damaged.sql(`UPDATE closed_months SET entries = entries + 1 WHERE month = '2026-07'`);
    const file = await backUp(damaged);
    const target = await emptyDatabase();
    const ran = await run(['--json', 'restore', file], { RECKONER_HOME: world.home, DATABASE_URL: target.url });
    expect(ran.status).toBe(4);
    // The count itself, by a rule, and both roots of the checkpoint that covers it.
    expect(ran.json()).toMatchObject({ verified: { differences: 3 } });
    expect(await contentOf(target)).toEqual(await withRestoreOf(target, await contentOf(damaged)));
  });

  test('skip a table of another program, report it, and exit 4', async () => {
    const shared = await anotherWorld();
    await shared.sql('CREATE TABLE "somebody\'s ""table""?" (id integer)');
    await shared.sql('INSERT INTO "somebody\'s ""table""?" VALUES (1), (2)');
    const file = await backUp(shared);
    const target = await emptyDatabase();
    const ran = await run(['restore', file], { RECKONER_HOME: world.home, DATABASE_URL: target.url });
    expect(ran.status).toBe(4);
    expect(ran.stdout).toContain(`Skipped somebody's "table"?: this version has no such table`);
  });

  test.runIf(SWEEPING)(
    'work with the embedded server: from one home to the next, without init',
    { timeout: 60_000 },
    async () => {
      const [home, next] = [join(folder, 'embedded', 'old'), join(folder, 'embedded', 'new')] as const;
      const file = newFile();
      expect((await run(['init'], { RECKONER_HOME: home })).status).toBe(0);
      const partners = join(home, 'partners.json');
      await writeFile(partners, JSON.stringify([partner()]));
      expect((await run(['partner', 'import', partners], { RECKONER_HOME: home })).status).toBe(0);
      expect((await run(['backup', file], { RECKONER_HOME: home })).status).toBe(0);
      expect((await run(['restore', file], { RECKONER_HOME: next })).status).toBe(0);
      expect((await run(['init'], { RECKONER_HOME: next })).status).toBe(0);
      const listed = await run(['--json', 'partner', 'list'], { RECKONER_HOME: next });
      expect(listed.json()).toMatchObject([{ partner_id: 'p-1' }]);
    },
  );
});

describe('data of another PostgreSQL', () => {
  test('under postgres/ are refused with the remedy of backup and restore, and left unchanged', {
    timeout: 60_000,
  }, async () => {
    const directory = join(folder, 'other-major', 'postgres');
    mkdirSync(join(folder, 'other-major'));
    await (await acquireEmbeddedServer(directory)).release();
    const version = join(directory, 'data', 'PG_VERSION');
    const own = readFileSync(version, 'utf8');
    writeFileSync(version, '15\n');
    await expect(acquireEmbeddedServer(directory)).rejects.toMatchObject({
      code: 'embedded_server',
      exit: 1,
      facts: {
        reason: expect.stringContaining('initialized by PostgreSQL version 15') as string,
        remedy: expect.stringMatching(
          /Make a backup with the release .* move .*postgres away, and restore the backup with this one/,
        ) as string,
      },
    });
    expect(existsSync(join(directory, 'postmaster.pid'))).toBe(false);
    writeFileSync(version, own);
    await (await acquireEmbeddedServer(directory)).release();
  });
});
