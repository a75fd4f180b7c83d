/** A company whose four hosts share one database and one mail server, and nothing else: each has a home of its own. */
import { type ChildProcess, execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import type { Credentials } from '../../src/partners/clients.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import type { Host, Site } from '../support/hosts.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { compiled } from '../support/program.ts';
import { PRICED } from '../support/service.ts';
import { partner, quote } from '../support/world.ts';

export const PARTNERS = 240;
/** Each has a row of each partner, and none is closed. */
export const MONTHS = ['2026-06', '2026-07', '2026-08'] as const;
export const PUBLIC_URL = 'https://billing.reckoner.example';
export const REQUESTS_PER_MINUTE = 120;
export const WEBHOOK_SECRET = 'whsec_hosts';

/** A program that runs at a host. */
export interface Running {
  readonly host: Host;
  readonly process: ChildProcess;
  /** Everything that it has said so far. */
  readonly said: () => string;
  /** Its exit status, or the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

export class Company {
  readonly site: Site;
  readonly mail: MailServer;
  readonly #folder: string;
  readonly #client: pg.Client;
  readonly #running: Running[] = [];
  /** The path of a link by which the administrator signs in. */
  signInLink = '';

  static async open(openSite: () => Promise<Site>): Promise<Company> {
    const site = await openSite();
    const mail = await startMailServer({ address: site.address });
    const client = new pg.Client(site.databaseUrl);
    const company = new Company(site, mail, client);
    await company.#settle();
    return company;
  }

  private constructor(site: Site, mail: MailServer, client: pg.Client) {
    this.site = site;
    this.mail = mail;
    this.#client = client;
    this.#folder = mkdtempSync(join(tmpdir(), 'reckoner-company-'));
  }

  get hosts(): readonly Host[] {
    return this.site.hosts;
  }

  /** Tables, settings, months of rows, and the same settings at each host. */
  async #settle(): Promise<void> {
    mkdirSync(this.#home('office'));
    await this.office('init');
    const file = join(this.#home('office'), 'settings.json');
    const settings = JSON.parse(readFileSync(file, 'utf8')) as Record<string, object>;
    const http = { ...settings['http'], requests_per_minute: REQUESTS_PER_MINUTE };
    writeFileSync(file, JSON.stringify({ ...settings, public_url: PUBLIC_URL, http, allow_empty: true }));
    for (const { name } of this.hosts) cpSync(this.#home('office'), this.#home(name), { recursive: true });
    const ids = Array.from({ length: PARTNERS }, (_, index) => `p-${index + 1}`);
    const partners = ids.map((partner_id) => partner({ ...PRICED, partner_id, name: `Partner ${partner_id}` }));
    await this.office('partner', 'import', this.#file('partners.json', JSON.stringify(partners)));
    const rows = MONTHS.flatMap((month) =>
      ids.map((partner_id) => JSON.stringify(quote({ partner_id, accepted_at: `${month}-15T12:00:00Z` }))),
    );
    await this.office('ledger', 'import', this.#file('rows.ndjson', rows.join('\n')));
    const { url } = JSON.parse(
      await this.office(
        '--json',
        'user',
        'invite',
        ADMINISTRATOR,
        '--role',
        'finance',
        '--role',
        'administrator',
        '--no-mail',
      ),
    ) as {
      url: string;
    };
    this.signInLink = url;
    await this.#client.connect();
  }

  async close(): Promise<void> {
    for (const { process } of this.#running) if (process.exitCode === null) process.kill('SIGKILL');
    await Promise.all(this.#running.map(({ ended }) => ended));
    await this.#client.end();
    await this.mail.close();
    await this.site.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs a command at no host in particular, and gives what it prints. */
  async office(...args: string[]): Promise<string> {
    const known = this.signInLink !== '' && { RECKONER_USER: ADMINISTRATOR };
    const env = { ...this.#environment('office', '2026-09-01T12:00:00Z'), ...known };
    const ran = await promisify(execFile)(process.execPath, [compiled('src/cli/reckoner.js'), ...args], { env });
    return ran.stdout;
  }

  start(host: Host, script: string, args: readonly string[], now = '2026-09-01T12:00:00Z'): Running {
    const process = host.start(script, args, this.#environment(host.name, now));
    let said = '';
    for (const stream of [process.stdout, process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    const ended = new Promise<number | string | null>((resolve) => {
      process.once('close', (status, signal) => resolve(signal ?? status));
    });
    const running = { host, process, said: () => said, ended };
    this.#running.push(running);
    return running;
  }

  /** A standing worker at each host, ready. */
  async workers(): Promise<Running[]> {
    const started = this.hosts.map((host) => this.start(host, 'src/cli/reckoner.js', ['deliver', '--watch']));
    // Each has a connection of its own by which it claims.
    await this.until(`SELECT count(*) >= ${started.length} AS is FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE '%due AS MATERIALIZED%with_email%' AND pid <> pg_backend_pid()`);
    return started;
  }

  /** A server at each host, and its address. */
  async servers(): Promise<{ running: Running; url: string }[]> {
    return Promise.all(
      this.hosts.map(async (host) => {
        const running = this.start(host, 'src/cli/reckoner.js', ['serve', '--host', host.address, '--port', '0']);
        let url: string | undefined;
        for (let waited = 0; url === undefined; waited += 1) {
          if (waited > 1200 || running.process.exitCode !== null) throw new Error(`no server: ${running.said()}`);
          await sleep(100);
          url = /Listening on (http:\/\/[\d.:]+\d)/.exec(running.said())?.[1];
        }
        return { running, url };
      }),
    );
  }

  async sql<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    return (await this.#client.query<Row>(text, values)).rows;
  }

  /** Waits until a query says that it `is` so. */
  async until(question: string, seconds = 200): Promise<void> {
    const deadline = Date.now() + seconds * 1000;
    while (!(await this.sql<{ is: boolean }>(question))[0]?.is) {
      if (Date.now() > deadline) throw new Error(`not within ${seconds} seconds: ${question}`);
      await sleep(100);
    }
  }

  async credentials(partnerId: string): Promise<Credentials> {
    return JSON.parse(await this.office('--json', 'client', 'create', partnerId)) as Credentials;
  }

  /** What has arrived of each document of a month, by Message-ID: the bytes, as often as they came. */
  async arrivals(month: string): Promise<ReadonlyMap<string, readonly string[]>> {
    const documents = await this.sql<{ message_id: string }>(
      `SELECT message_id FROM emails JOIN documents USING (document_id) WHERE documents.month = $1`,
      [month],
    );
    const found = new Map(documents.map(({ message_id }) => [message_id, [] as string[]]));
    for (const { parsed, raw } of this.mail.mails) found.get(parsed.messageId ?? '')?.push(raw.toString('latin1'));
    return found;
  }

  #home(name: string): string {
    return join(this.#folder, name.replaceAll(' ', '-'));
  }

  #file(name: string, text: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, text);
    return path;
  }

  #environment(name: string, now: string): NodeJS.ProcessEnv {
    const own = Object.entries(process.env).filter(
      ([variable]) => !/^(RECKONER_|STRIPE_|PAYMENT_|SMTP_|DATABASE_)/.test(variable),
    );
    return {
      ...Object.fromEntries(own),
      ...{ RECKONER_HOME: this.#home(name), RECKONER_NOW: now },
      ...{ DATABASE_URL: this.site.databaseUrl, SMTP_URL: this.mail.url, STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET },
    };
  }
}
