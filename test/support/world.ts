/**
 * A sandbox for one test file: a separate database, a home in a temporary folder and a clock that the test moves. Its
 * actions are the program's own functions, without the command line.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import pg from 'pg';
import { inject } from 'vitest';
import { type Verification, verify } from '../../src/audit/verify.ts';
import { runCloseBooks } from '../../src/close/books.ts';
import type { FeedDecision } from '../../src/close/feeds.ts';
import { type MonthFacts, readMonthFacts } from '../../src/close/months.sql.ts';
import { closeMonths, previewClose } from '../../src/close/run.ts';
import type { Environment } from '../../src/config/environment.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { LogKey } from '../../src/config/log-key.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { type Database, openDatabase } from '../../src/database/database.ts';
import type { SchemaComparison } from '../../src/database/schema.ts';
import { deliverPending } from '../../src/delivery/deliver.ts';
import type { Delivery } from '../../src/delivery/document.ts';
import { type DocumentJson, documentJson } from '../../src/documents/document.ts';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import { OUTSIDE_TERMS } from '../../src/ledger/cancellation.ts';
import type { Control } from '../../src/ledger/control.ts';
import { grantReversal } from '../../src/ledger/held.ts';
import { type ImportReport, importRows } from '../../src/ledger/import.ts';
import type { Month } from '../../src/month.ts';
import { parsePartners } from '../../src/partners/file.ts';
import { importPartners, type PartnerImport } from '../../src/partners/import.ts';
import type { Actor, ActorContext } from '../../src/people/audit-events.ts';
import { emptyTables } from '../close/start-over.ts';
import { CATALOG } from './catalog.ts';
import { makeDatabase } from './databases.ts';
import { keepLog } from './kept-logs.ts';

export interface World {
  readonly home: string;
  readonly databaseUrl: string;
  environment: Environment;
  settings: Settings;
  /** What comparing the schema of its template gave. A test that changes the schema sets it to undefined. */
  schema: SchemaComparison | undefined;
  readonly actor: Actor;
  readonly database: Database;
  /** Moves the clock to an instant, `2026-08-01T10:00:00Z`. */
  readonly at: (instant: string) => void;
  readonly partners: (partners: readonly object[]) => Promise<PartnerImport>;
  readonly rows: (rows: readonly object[], options?: RowOptions) => Promise<ImportReport>;
  readonly file: (name: string, text: string) => string;
  readonly importFiles: (names: readonly string[], options?: RowOptions) => Promise<ImportReport>;
  /** Expects no feed, unless the settings or `FeedDecision` say otherwise. */
  readonly close: (month?: string, options?: { firstMonth?: string } & FeedDecision) => Promise<Month[]>;
  /** Closes the books of these months, in this order. */
  readonly closeBooks: (...months: string[]) => Promise<void>;
  readonly preview: (month?: string) => ReturnType<typeof previewClose>;
  readonly months: (...months: string[]) => Promise<MonthFacts[]>;
  readonly deliver: () => Promise<Delivery[]>;
  readonly verify: (month?: string) => Promise<Verification>;
  readonly documents: (filter?: { months?: Month[]; partnerId?: string }) => Promise<DocumentJson[]>;
  /** Runs any query as the owner, to inspect or damage stored data without the program. */
  readonly sql: <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>;
  /** The same for frequent queries, which are planned once. */
  readonly prepared: <Row extends pg.QueryResultRow>(name: string, text: string) => Promise<Row[]>;
  /** Ends it, but keeps its state for worlds that continue from there. */
  readonly keep: () => Promise<KeptWorld>;
  readonly end: () => Promise<void>;
}

/** A world's database and home, with no connections. */
export interface KeptWorld {
  readonly name: string;
  readonly home: string;
  readonly discard: () => Promise<void>;
}

export interface RowOptions {
  readonly skipInvalid?: boolean;
  readonly acceptDiffering?: boolean;
  readonly rejects?: string;
  readonly control?: Control;
  readonly preview?: boolean;
  /** Reversals outside the cancellation terms wait. Otherwise a person grants them at once. */
  readonly holds?: boolean;
  /** No reversal is judged, as if the processor had taken back each share. */
  readonly allowed?: boolean;
}

export interface WorldOptions {
  readonly smtpUrl?: string;
  readonly stripe?: string;
  readonly environment?: 'sandbox' | 'production';
  readonly from?: KeptWorld;
  readonly citusUrl?: string;
  /** Signs the checkpoints. */
  readonly logKey?: LogKey;
  /** A new database, whose statements are planned as for a server: for tests of many rows, and of what is read of them. */
  readonly fresh?: boolean;
}

/** A database with its connections. */
interface Place {
  readonly database: Database;
  /** What the database was opened with; its home and its instant are the world's. */
  readonly environment: { -readonly [name in keyof Environment]: Environment[name] };
  readonly name: string;
  readonly url: string;
  readonly owner: pg.Client;
  readonly connect: () => Promise<pg.Client>;
  /** A session of its own: one whose guards are switched off, to empty tables, forgets its plans. */
  preparing: Promise<pg.Client> | undefined;
  now: DateTime<true>;
  readonly close: () => Promise<void>;
  readonly drop: () => Promise<void>;
}

/**
 * Places whose world has ended, emptied. To make a database and to warm its connections up takes half a second, to empty
 * one takes milliseconds. Files that run in one process after each other share them.
 */
const spare: Place[] = [];

async function makePlace(template: string, environment: Environment['name'], fresh: boolean): Promise<Place> {
  const { name, url, drop } = await makeDatabase(inject('template'), { template });
  const connect = async () => {
    const client = new pg.Client(url);
    await client.connect();
    return client;
  };
  const owner = await connect();
  if (fresh) await owner.query(`ALTER DATABASE ${name} SET plan_cache_mode TO auto`);
  const place: Omit<Place, 'database'> = {
    environment: {
      name: environment,
      home: '',
      databaseUrl: url,
      smtpUrl: undefined,
      stripeKey: undefined,
      connectedKeys: new Map(),
      stripeBase: undefined,
      stripeWebhookSecrets: new Map(),
      logKey: undefined,
      now: () => place.now,
      clockIsSet: true,
    },
    ...{ name, url, drop, now: FIRST_INSTANT, preparing: undefined },
    owner,
    connect,
    async close() {
      await made.database.close();
      await made.owner.end();
      await (await made.preparing)?.end();
    },
  };
  const made: Place = Object.assign(place, { database: await openDatabase(place.environment) });
  return made;
}

/** A new database has 20 MB. */
const MOST_BYTES = 60e6;

/** Whether a place is as a new one again: nobody else is in it, its schema is the template's, and its tables are empty. */
async function isTidied(place: Place): Promise<boolean> {
  const pools = Object.values(place.database.pools());
  const ours = pools.reduce((sum, { used, free }) => sum + used + free, 1 + (place.preparing ? 1 : 0));
  const sql = async (text: string) => (await place.owner.query(text)).rows;
  const others = async () =>
    (
      await sql(
        `SELECT count(*)::int - ${ours} AS count FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend'`,
      )
    )[0]?.count as number;
  if (pools.some(({ used }) => used > 0)) return false;
  // A client that has just ended is there for a moment longer.
  for (let look = 0; (await others()) !== 0; look += 1) {
    if (look === 10) return false;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await place.database.checkWritable();
  if ((await sql(CATALOG))[0]?.catalog !== inject('catalog')) return false;
  // Nobody clears away what was deleted.
  if ((await sql('SELECT pg_database_size(current_database())::float8 AS bytes'))[0]?.bytes > MOST_BYTES) return false;
  await emptyTables({ sql: sql as World['sql'] });
  // Those of the migrations go on: their tables are as they were.
  await sql(
    `SELECT setval(format('%I.%I', schemaname, sequencename), start_value, false) FROM pg_sequences
     WHERE last_value IS NOT NULL AND sequencename NOT LIKE 'migrations%'`,
  );
  return true;
}

const FIRST_INSTANT = DateTime.fromISO('2026-08-01T10:00:00Z', { zone: 'utc' }) as DateTime<true>;

export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const { environment: name = 'sandbox', from, fresh = false } = options;
  const isPlain = name === 'sandbox' && from === undefined && !fresh;
  const place = (isPlain ? spare.pop() : undefined) ?? (await makePlace(from?.name ?? inject('template'), name, fresh));
  const home = mkdtempSync(join(tmpdir(), 'reckoner-world-'));
  if (from) {
    cpSync(from.home, home, { recursive: true });
  } else {
    mkdirSync(join(home, 'outbox'));
    writeFileSync(join(home, 'settings.json'), JSON.stringify({ ...firstSettings('sandbox'), allow_empty: true }));
  }
  place.now = FIRST_INSTANT;
  const environment: Environment = Object.assign(place.environment, {
    home,
    citusUrl: options.citusUrl,
    smtpUrl: options.smtpUrl,
    stripeKey: options.stripe && 'sk_test_world',
    stripeBase: options.stripe,
    logKey: options.logKey,
  });
  const { database, owner } = place;
  let hasEnded = false;

  const world: World = {
    home,
    databaseUrl: place.url,
    environment: { ...environment },
    settings: readSettings(environment),
    schema: inject('schema'),
    actor: { claimedBy: 'Ada', osUser: 'ada', host: 'desk', via: 'command' },
    database,
    at(instant) {
      const moved = DateTime.fromISO(instant, { zone: 'utc' });
      if (!moved.isValid) throw new Error(`${instant} is no instant`);
      place.now = moved;
    },
    async partners(partners) {
      const file = 'partners.json';
      const text = JSON.stringify(partners);
      const sha256 = createHash('sha256').update(text).digest('hex');
      const { changes: _, ...counts } = await database.transaction((tx) =>
        importPartners(tx, parsePartners(text, file), {
          event: { action: 'partner.import', subject: file, details: { file, sha256 } },
          actor: world.actor,
          now: place.now,
          settings: world.settings,
        }),
      );
      return counts;
    },
    file(file, text) {
      const path = join(home, file);
      writeFileSync(path, text);
      return path;
    },
    rows(rows, given) {
      const path = world.file('rows.ndjson', rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      return world.importFiles([path], given);
    },
    async importFiles(names, given = {}) {
      const files = names.map((each) => ({ name: each, format: each.endsWith('.csv') ? 'csv' : 'ndjson' }) as const);
      const work = given.preview ? database.preview : database.transaction;
      const report = await work((tx) =>
        importRows(tx, files, {
          ...{ skipInvalid: given.skipInvalid ?? false, rejects: given.rejects },
          acceptDiffering: given.acceptDiffering ?? false,
          ...(given.control && { control: given.control }),
          ...(given.allowed && { allowedBy: 'processor' as const }),
          ...{ now: place.now, actor: world.actor, ceilings: world.settings.reversals, environment: world.environment },
        }),
      );
      return given.preview || given.holds ? report : granted(database, world, report);
    },
    close: (month, given = {}) =>
      closeMonths(database, world, { ...given, month: month as Month, firstMonth: given.firstMonth as Month }),
    async closeBooks(...months) {
      for (const month of months) await runCloseBooks(database, world, { month: month as Month });
    },
    preview: (month) => previewClose(database, world, { month: month as Month }),
    months: (...months) => database.reading((tx) => readMonthFacts(tx, { months: months as Month[] })),
    async deliver() {
      const deliveries: Delivery[] = [];
      await deliverPending({ ...world, onDelivery: (delivery) => deliveries.push(delivery) });
      return deliveries;
    },
    verify: (month) =>
      database.readingBeside((tx, beside) =>
        verify(tx, month as Month | undefined, { beside, schema: world.schema, environment: world.environment }),
      ),
    documents: async (filter = {}) => (await database.reading((tx) => readDocuments(tx, filter))).map(documentJson),
    sql: async <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) =>
      (await owner.query<Row>(text, values)).rows,
    async prepared<Row extends pg.QueryResultRow>(name: string, text: string) {
      place.preparing ??= place.connect();
      return (await (await place.preparing).query<Row>({ name, text })).rows;
    },
    async keep() {
      await place.close();
      return {
        name: place.name,
        home,
        async discard() {
          await place.drop();
          rmSync(home, { recursive: true, force: true });
        },
      };
    },
    async end() {
      if (hasEnded) throw new Error('this world has ended');
      hasEnded = true;
      await keepLog(world);
      if (isPlain && (await isTidied(place).catch(() => false))) {
        rmSync(home, { recursive: true, force: true });
        spare.push(place);
      } else {
        await (await world.keep()).discard();
      }
    },
  };
  return world;
}

// --- Building partners and rows --------------------------------------------------------------------------------------

/** A complete partner of the contract's shape. Give only the fields that matter to the test. */
export function partner(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    partner_id: 'p-1',
    name: 'Harbour Lights Ticketing',
    address: { line1: '1 Quay', line2: '', city: 'New York', region: 'NY', postal_code: '10004', country: 'US' },
    invoicing_contact: { name: 'Accounts Payable', email: 'ap@partner.example', cc: [] },
    currency: 'USD',
    time_zone: 'America/New_York',
    payment_terms_days: 30,
    policies: [
      { policy_id: 'ticket-protection', name: 'Ticket Protection', kind: 'non_insurance', partner_cut_rate: '0.30' },
      { policy_id: 'parking', name: 'Parking Refund', kind: 'non_insurance', partner_cut_rate: '0.20' },
    ],
    ...overrides,
  };
}

/** The policies of a partner whose reversals are recorded whenever they come. */
export const lenientPolicies = (): object[] =>
  (partner()['policies'] as object[]).map((policy) => ({ ...policy, cancellation: { window_days: 366 } }));

let counter = 0;

/** An accepted quote over 10.00 = 3.00 + 7.00, with an id of its own. */
export function quote(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  counter += 1;
  return {
    kind: 'quote_accepted',
    partner_id: 'p-1',
    quote_id: `q-${counter}`,
    enrollment_id: `e-${counter}`,
    policy_id: 'ticket-protection',
    currency: 'USD',
    accepted_at: '2026-07-15T12:00:00Z',
    spotPrice: '10.00',
    partnerCut: '3.00',
    invoiceAmount: '7.00',
    ...overrides,
  };
}

/** An accepted requote of a quote, 5.00 = 1.50 + 3.50 more. */
export function requote(of: Record<string, unknown>, overrides: Record<string, unknown> = {}): Record<string, unknown> {
  counter += 1;
  const amounts = { spotPrice: '5.00', partnerCut: '1.50', invoiceAmount: '3.50' };
  return { ...of, kind: 'requote_accepted', requote_id: `rq-${counter}`, ...amounts, ...overrides };
}

/** A full reversal of a quote over 10.00. */
export function reversal(
  of: Record<string, unknown>,
  overrides: Record<string, unknown> = {},
): Record<string, unknown> {
  counter += 1;
  const amounts = { spotPrice: '-10.00', partnerCut: '-3.00', invoiceAmount: '-7.00' };
  return { ...of, kind: 'reversal', reversal_id: `rv-${counter}`, ...amounts, ...overrides };
}

/** The settings of an issuer that is not the sandbox's: real to production, and otherwise the same. */
export function realSettings(settings: Settings): Settings {
  const text = JSON.stringify(settings)
    .replaceAll('Sandbox Protection Services', 'Fathom Protection')
    .replaceAll('protection.example', 'fathom.example')
    .replaceAll('http://127.0.0.1:8080', 'https://billing.fathom.example');
  return JSON.parse(text) as Settings;
}

/** Grants the reversals that an import held, and reports all of its rows. */
async function granted(database: Database, context: ActorContext, report: ImportReport): Promise<ImportReport> {
  const asked = report.refused ? [] : report.held_rows.filter(({ code }) => code in OUTSIDE_TERMS);
  let [rows, late] = [0, 0];
  for (const { held_row_id } of asked) {
    const amounts = { amounts: undefined, reason: 'as the partner asked' };
    const decided = await database.transaction((tx) =>
      grantReversal(tx, context, { id: held_row_id as number, ...amounts }),
    );
    rows += decided.rows.length;
    late += decided.late;
  }
  return { ...report, accepted: report.accepted + rows, held: report.held - rows, late: report.late + late };
}
