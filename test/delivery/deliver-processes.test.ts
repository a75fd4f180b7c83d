/** Workers in processes of their own at one database, as on several hosts. They are compiled by `npm test`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { CLAIMED } from '../../src/database/claims.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { compiled } from '../support/program.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const PROGRAM = compiled('src/cli/reckoner.js');

interface Worker {
  readonly process: ChildProcess;
  /** What it writes to stdout, and to stderr. */
  readonly answer: () => string;
  readonly said: () => string;
  /** The numbers of the documents that it says it sent. */
  readonly sent: () => string[];
  readonly ended: Promise<number | null>;
}

const workers: Worker[] = [];
afterEach(async () => {
  for (const { process } of workers) process.kill('SIGKILL');
  await Promise.all(workers.splice(0).map(({ ended }) => ended));
});

function start(databaseUrl = world.databaseUrl): Worker {
  const child = spawn(process.execPath, [PROGRAM, '--json', 'deliver', '--watch'], {
    env: {
      ...process.env,
      RECKONER_HOME: world.home,
      DATABASE_URL: databaseUrl,
      SMTP_URL: server.url,
      RECKONER_NOW: '2026-08-01T10:00:00Z',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  let answer = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    answer += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const worker = {
    process: child,
    answer: () => answer,
    said: () => said,
    sent: () =>
      [...said.matchAll(/^\{.*"msg":"delivery".*\}$/gm)]
        .map(([line]) => JSON.parse(line) as { number: string; status: string })
        .filter(({ status }) => status === 'sent')
        .map(({ number }) => number),
    ended: new Promise<number | null>((resolve) => child.on('close', resolve)),
  };
  workers.push(worker);
  return worker;
}

async function until(happened: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 100_000;
  while (!(await happened())) {
    if (Date.now() > deadline) throw new Error(`${what} did not happen within 100 seconds`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function closeJuly(invoices: number): Promise<void> {
  const ids = Array.from({ length: invoices }, (_, index) => `p-${index + 1}`);
  await world.partners(ids.map((partner_id) => partner({ partner_id })));
  await world.rows(ids.map((partner_id) => quote({ partner_id })));
  await world.close();
}

const count = async (status: string): Promise<number> =>
  (await world.documents()).filter(({ email }) => email?.status === status).length;

const invoiceEmails = () => server.mails.filter(({ parsed }) => /INV-/.test(parsed.subject ?? ''));

/** Who stands ready: each has a connection of its own by which it claims. */
const standing = async (): Promise<number> => {
  const [row] = await world.sql<{ standing: string }>(
    `SELECT count(*) AS standing FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE '%due AS MATERIALIZED%with_email%' AND pid <> pg_backend_pid()`,
  );
  return Number(row?.standing);
};

/** Documents that a process has in hand. */
const claimed = (): Promise<{ holder: number }[]> => world.sql<{ holder: number }>(CLAIMED);

/** A process takes 24 at a time: fewer than six times that might leave one process none. */
const INVOICES = 150;

test('three processes share a month: each has a part of it, and no e-mail is sent twice', async () => {
  const three = [start(), start(), start()];
  await until(async () => (await standing()) === 3, 'that all stand ready');
  await closeJuly(INVOICES);
  await until(async () => (await count('sent')) === INVOICES, 'that all is sent');
  for (const { process } of three) process.kill('SIGTERM');
  expect(await Promise.all(three.map(({ ended }) => ended))).toEqual([0, 0, 0]);
  expect(new Set(invoiceEmails().map(({ parsed }) => parsed.messageId)).size).toBe(INVOICES);
  expect(invoiceEmails()).toHaveLength(INVOICES);
  const shares = three.map(({ sent }) => sent());
  expect(shares.flat().sort()).toEqual((await world.documents()).map(({ number }) => number).sort());
  const runs = await world.sql<{ runs: number }>(
    `SELECT count(*)::int AS runs FROM job_runs WHERE job = 'worker' AND exit_status = 0`,
  );
  expect(runs).toEqual([{ runs: 6 }]); // Each at its start and at its end.
  // Nobody stood idle while others had work: what lies ready at one is no more than it has hands.
  for (const share of shares) expect(share.length).toBeGreaterThan(INVOICES / 15);
});

test('what a killed process had in hand is sent by another as soon as it starts', async () => {
  server.behaviour = 'hang_before_data';
  const first = start();
  await until(async () => (await standing()) === 1, 'that it stands ready');
  await closeJuly(30);
  await until(async () => (await claimed()).length >= 24, 'that it has its hands full');
  expect(new Set((await claimed()).map(({ holder }) => holder)).size).toBe(1);
  first.process.kill('SIGKILL');
  await first.ended;
  await until(async () => (await claimed()).length === 0, 'that nobody has them');
  server.dropConnections();
  server.behaviour = 'accept';
  start();
  await until(async () => (await count('sent')) === 30, 'that all is sent');
  expect(new Set(invoiceEmails().map(({ parsed }) => parsed.messageId)).size).toBe(30);
  // None had got as far as its text when the process was killed.
  expect(invoiceEmails()).toHaveLength(30);
});

/** A worker stands until it has done this, and is killed. */
async function killedAfter(happened: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const worker = start();
  await until(happened, what);
  worker.process.kill('SIGKILL');
  await worker.ended;
  server.dropConnections();
  await until(async () => (await claimed()).length === 0, 'that nobody has its documents');
}

test('of two kills with a mail server that falls silent, only e-mails that were offered to it are uncertain', async () => {
  await closeJuly(30);
  server.behaviour = 'hang_before_data';
  for (const _ of [1, 2]) {
    const before = server.connections;
    await killedAfter(() => server.connections >= before + 4, 'that all connections wait for the mail server');
  }
  expect(await world.sql(`SELECT FROM document_emails WHERE status <> 'queued' OR attempts > 0`)).toEqual([]);

  server.behaviour = 'hang_after_data';
  for (const _ of [1, 2]) {
    const before = invoiceEmails().length;
    await killedAfter(() => invoiceEmails().length >= before + 4, 'that all connections wait for an answer');
  }
  const offered = invoiceEmails().map(({ parsed }) => parsed.messageId);
  expect(offered).toHaveLength(8);

  server.behaviour = 'accept';
  start();
  const unfinished = `SELECT FROM document_emails WHERE status NOT IN ('sent', 'uncertain')`;
  await until(async () => (await world.sql(unfinished)).length === 0, 'that no e-mail waits');
  const emails = await world.sql<{ message_id: string; status: string }>(
    'SELECT message_id, status FROM document_emails',
  );
  const copies = (id: string) => server.mails.filter(({ parsed }) => parsed.messageId === id);
  for (const { message_id: id, status } of emails) {
    const before = offered.filter((each) => each === id).length;
    // Offered once, it is repeated with the same bytes; offered twice, nobody knows; never offered, it is sent once.
    expect({ id, status, copies: copies(id).length }).toEqual({
      ...{ id, status: before === 2 ? 'uncertain' : 'sent', copies: Math.min(before + 1, 2) },
    });
    expect(new Set(copies(id).map(({ raw }) => raw.toString('base64'))).size).toBe(1);
  }
  expect(emails).toHaveLength(30);
}, 900_000);

test('a worker whose link to the database is cut ends with one line that says so, and with exit 1', async () => {
  const link = await openLink(world.databaseUrl);
  const worker = start(link.url);
  await until(async () => (await standing()) === 1, 'that it stands ready');
  server.behaviour = 'hang_before_data';
  await closeJuly(30);
  await until(async () => (await claimed()).length >= 24, 'that it has its hands full');
  link.cut();
  expect(await worker.ended).toBe(1);
  expect(JSON.parse(worker.answer())).toMatchObject({ error: { code: 'database_failed' } });
  expect(worker.said()).not.toMatch(/"level":"(error|warn)"|^ {4}at /m);
  expect(await world.sql(`SELECT FROM document_emails WHERE status <> 'queued'`)).toEqual([]);
});

/** A link to a database that can be cut. */
async function openLink(databaseUrl: string): Promise<{ url: string; cut: () => void }> {
  const { host, port, user, password, database } = new pg.Client(databaseUrl);
  const sockets: Socket[] = [];
  const link = createServer((near) => {
    const far = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const socket of [near, far]) sockets.push(socket.on('error', () => {}));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((listening) => link.listen(0, '127.0.0.1', listening));
  const at = `127.0.0.1:${(link.address() as AddressInfo).port}`;
  return {
    url: `postgres://${user}${password ? `:${password}` : ''}@${at}/${database}`,
    cut() {
      link.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

test('a standing worker sends the letter to the auditor and the report of the close too', async () => {
  await closeJuly(1);
  start();
  await until(() => server.mails.length === 3, 'that all three e-mails are sent');
  expect(server.mails.map(({ to }) => to[0]).sort()).toEqual([
    'ap@partner.example',
    world.settings.auditor_email,
    world.settings.finance_email,
  ]);
});
