/**
 * Documents delivered by one `reckoner deliver`, each with its link, its PDF and its e-mail into a mail server that runs
 * beside it, against drawing the same documents on all cores and doing nothing else. The database, the mail server and
 * the program share the machine, so that the ratio says what part of it is left for drawing.
 *
 * By itself: npx tsc -p test/bench && node dist/test/bench/delivery.js [documents] [rounds]
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { readEnvironment } from '../../src/config/environment.ts';
import { instructionsFor } from '../../src/config/instructions.ts';
import { readSettings } from '../../src/config/settings.ts';
import { openDatabase } from '../../src/database/database.ts';
import { acquireEmbeddedServer } from '../../src/database/embedded.ts';
import { PdfRendererPool } from '../../src/delivery/pdf-renderer-pool.ts';
import { documentSnapshot } from '../../src/documents/document.ts';
import { readDocuments } from '../../src/documents/documents.sql.ts';
import type { DocumentSnapshot } from '../../src/documents/snapshot.ts';
import { databaseUrl, socketUrl } from '../support/server.ts';
import { isProgram, type Measured, measured, median } from './measured.ts';

export interface DeliveryOptions {
  /** How many are delivered in each round. */
  readonly documents?: number;
  readonly rounds?: number;
  /** How many processes deliver at once. */
  readonly processes?: number;
}

const PROGRAM = fileURLToPath(new URL('../../src/cli/reckoner.js', import.meta.url));
const SINK = new URL('./smtp-sink.js', import.meta.url);

export async function measureDelivery({
  documents = 2000,
  rounds = 5,
  processes = 1,
}: DeliveryOptions = {}): Promise<Measured[]> {
  const bench = await openDeliveries(documents);
  try {
    const took: { ours: number; floor: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      took.push({ floor: await bench.draw(), ours: await bench.deliver(processes) });
    }
    const rate = (of: 'ours' | 'floor') => documents / median(took.map((each) => each[of]));
    return [
      measured(
        {
          measure: processes === 1 ? 'delivery' : `delivery by ${processes} processes`,
          ours: rate('ours'),
          floor: rate('floor'),
          unit: 'documents/s',
        },
        { atLeast: 0.8 },
      ),
    ];
  } finally {
    await bench.close();
  }
}

interface Deliveries {
  /** Seconds to draw all documents on all cores. */
  draw(): Promise<number>;
  /** Seconds to deliver all documents of a fresh copy of the database. */
  deliver(processes: number): Promise<number>;
  close(): Promise<void>;
}

async function openDeliveries(documents: number): Promise<Deliveries> {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-bench-delivery-'));
  const server = await acquireEmbeddedServer(join(folder, 'postgres'));
  const { host, port } = server.connection;
  const serverUrl = socketUrl(host, port, 'postgres');
  const admin = new pg.Client(serverUrl);
  await admin.connect();
  const sink = fork(SINK, { stdio: 'inherit' });
  const [{ port: smtpPort }] = (await once(sink, 'message')) as [{ port: number }];
  const variables = {
    ...Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(RECKONER|STRIPE|PAYMENT|SMTP|PG)/.test(name)),
    ),
    RECKONER_HOME: join(folder, 'home'),
    RECKONER_NOW: '2026-08-01T12:00:00Z',
    SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
  };
  const on = (database: string) => ({ ...variables, DATABASE_URL: databaseUrl(serverUrl, database) });

  await admin.query('CREATE DATABASE closed_month');
  const files = writeMonth(folder, documents);
  for (const args of [
    ['init'],
    ['partner', 'import', files.partners],
    ['ledger', 'import', files.rows],
    ['close', '--no-deliver'],
  ]) {
    await reckoner(on('closed_month'), args);
  }
  const snapshots = await readFaces(on('closed_month'));
  if (snapshots.length !== documents)
    throw new Error(`${snapshots.length} documents were issued instead of ${documents}`);

  let copies = 0;
  return {
    async draw() {
      const renderer = new PdfRendererPool(snapshots.length);
      const began = performance.now();
      await Promise.all(snapshots.map((snapshot) => renderer.render(snapshot)));
      const seconds = (performance.now() - began) / 1000;
      await renderer.close();
      return seconds;
    },
    async deliver(processes) {
      copies += 1;
      const copy = `copy_${copies}`;
      await admin.query(`CREATE DATABASE ${copy} TEMPLATE closed_month STRATEGY file_copy`);
      const before = await taken(sink);
      const began = performance.now();
      await Promise.all(Array.from({ length: processes }, () => reckoner(on(copy), ['--json', 'deliver'])));
      const seconds = (performance.now() - began) / 1000;
      const emails = (await taken(sink)) - before;
      // Besides them the letter to the auditor, the close report, and the notice of the bank details that came into force.
      if (emails !== documents + 3) throw new Error(`${emails} e-mails came for ${documents} documents`);
      await admin.query(`DROP DATABASE ${copy} WITH (FORCE)`);
      return seconds;
    },
    async close() {
      sink.disconnect();
      await admin.end();
      await server.release();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function taken(sink: ChildProcess): Promise<number> {
  const answer = once(sink, 'message') as Promise<[{ taken: number }]>;
  sink.send('how many');
  return (await answer)[0].taken;
}

function writeMonth(folder: string, documents: number): { partners: string; rows: string } {
  const ids = Array.from({ length: documents }, (_, index) => `p-${String(index + 1).padStart(5, '0')}`);
  const policies = [
    { policy_id: 'ticket-protection', name: 'Ticket Protection', kind: 'insurance', partner_cut_rate: '0.30' },
    { policy_id: 'travel-delay', name: 'Travel Delay Cover', kind: 'insurance', partner_cut_rate: '0.20' },
  ];
  const partners = ids.map((partner_id, index) => ({
    partner_id,
    name: `Partner ${index + 1} Events`,
    address: {
      line1: `${index + 1} Quay Street`,
      city: 'Springfield',
      region: 'IL',
      postal_code: '62701',
      country: 'US',
    },
    invoicing_contact: { name: 'Accounts Payable', email: `ap@${partner_id}.example`, cc: [] },
    currency: 'USD',
    time_zone: 'America/New_York',
    payment_terms_days: 30,
    policies,
  }));
  // Five lines a document, as on the invoice of the PDF's measure.
  const rows = ids.flatMap((partner_id) =>
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((number) => {
      const quote_id = `q-${partner_id}-${number <= 5 ? number : number - 5}`;
      const sign = number > 8 ? '-' : '';
      return {
        kind: number <= 5 ? 'quote_accepted' : number > 8 ? 'reversal' : 'requote_accepted',
        ...(number > 8 ? { reversal_id: `rv-${quote_id}` } : number > 5 ? { requote_id: `rq-${quote_id}` } : {}),
        partner_id,
        quote_id,
        enrollment_id: `e-${quote_id}`,
        policy_id: policies[number % 5 === 0 || number % 5 === 3 ? 1 : 0]?.policy_id,
        currency: 'USD',
        accepted_at: `2026-07-${String(number + 10)}T12:00:00Z`,
        spotPrice: `${sign}10.00`,
        partnerCut: `${sign}3.00`,
        invoiceAmount: `${sign}7.00`,
      };
    }),
  );
  const files = { partners: join(folder, 'partners.json'), rows: join(folder, 'rows.ndjson') };
  writeFileSync(files.partners, JSON.stringify(partners));
  writeFileSync(files.rows, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return files;
}

async function readFaces(variables: NodeJS.ProcessEnv): Promise<DocumentSnapshot[]> {
  const environment = readEnvironment(variables);
  const settings = readSettings(environment);
  const database = await openDatabase(environment);
  const documents = await database.reading((tx) => readDocuments(tx, {}));
  await database.close();
  return documents.map((document) =>
    documentSnapshot(document, {
      paymentLink: `${settings.public_url}/pay/Zk3vQ9mXb27LrTn0cYw5HdPe8sUaJf41`,
      instructions: instructionsFor(settings, document.currency) ?? null,
      instructionsChanged: false,
    }),
  );
}

function reckoner(env: NodeJS.ProcessEnv, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const said: Buffer[] = [];
    child.stdout.on('data', (piece: Buffer) => said.push(piece));
    child.stderr.on('data', (piece: Buffer) => said.push(piece));
    child.on('error', reject);
    child.on('close', (status) => {
      if (status === 0) resolve();
      else reject(new Error(`reckoner ${args.join(' ')} ended with ${status}: ${Buffer.concat(said).toString()}`));
    });
  });
}

if (isProgram(import.meta.url)) {
  const [documents, rounds, processes] = process.argv.slice(2).map(Number);
  const options = { ...(documents && { documents }), ...(rounds && { rounds }), ...(processes && { processes }) };
  process.stdout.write(`${JSON.stringify(await measureDelivery(options), null, 2)}\n`);
}
