/** Every route of the console, as registered with Fastify, and its address for given objects. */

import { askForApproval } from '../../src/approvals/requests.ts';
import { insertTask } from '../../src/audit/tasks.sql.ts';
import { runTask } from '../../src/audit/tasks.ts';
import type { Settings } from '../../src/config/settings.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import type { BoundName } from '../../src/http/gates.ts';
import type { Month } from '../../src/month.ts';
import { identify } from '../../src/people/users.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { ADMINISTRATOR, addPages } from './console.ts';
import { type Served, serveWorld } from './service.ts';
import type { World } from './world.ts';

export interface Route {
  readonly method: string;
  /** Below /console or /place. */
  readonly path: string;
  /** Its gate (http/gates.ts). */
  readonly bound: BoundName | undefined;
}

/** Completes the seller's data for e-invoices, for partners with `e_invoice`. */
export function completeSeller(world: World): void {
  const noTax = { category: 'O', reason: 'Not subject to VAT', reason_code: 'VATEX-EU-O' } as const;
  const eInvoice = { contact_name: '', electronic_address: '', registration_id: '12345', no_tax: noTax };
  world.settings = { ...world.settings, issuer: { ...world.settings.issuer, e_invoice: eInvoice } };
}

/** Served to a reader who looks at everything at once; `below`: /console, or the partner's place. */
export async function serveRoutes(
  world: World,
  settings?: Partial<Settings>,
  below: '/console' | '/place' = '/console',
): Promise<{ served: Served; routes: readonly Route[] }> {
  const routes: Route[] = [];
  const served = await serveWorld(world, {
    settings: { http: { ...world.settings.http, requests_per_minute: 1_000_000 }, ...settings },
    addPages(app, shared) {
      app.addHook('onRoute', ({ method, url, config }) => {
        if (url !== below && !url.startsWith(`${below}/`)) return;
        const path = url.slice(below.length) || '/';
        for (const each of [method].flat()) routes.push({ method: each, path, bound: config?.bound });
      });
      addPages(app, shared);
    },
  });
  return { served, routes };
}

/** The values of parameters in addresses, by the parameter's name. */
export interface Objects {
  readonly number: string;
  readonly partnerId: string;
  readonly exception: string;
  readonly month: string;
  /** The task of a pack that was made. */
  readonly task?: string;
  /** Of an approval. */
  readonly requestId: string;
  /** Of a checkpoint. */
  readonly size: string;
}

/** The size of the first checkpoint. */
export async function sizeIn(world: Pick<World, 'sql'>): Promise<string> {
  const [first] = await world.sql<{ size: string }>('SELECT min(size)::text AS size FROM log_checkpoints');
  return first?.size ?? '';
}

/** The address of a route. Throws for a parameter without a value, which must be added here. */
export function addressOf(
  { path }: Route,
  { number, partnerId, exception, month, requestId, size, task }: Objects,
): string {
  const values: Record<string, string | undefined> = {
    ...{ number, exception, month, task, id: path.startsWith('/approvals') ? requestId : partnerId },
    size,
    // Of the journal that makePack exports.
    ...{ gl: '1', file: 'gl-2026-07-1-generic.csv' },
  };
  const address = path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`say in addressOf what :${name} of ${path} is`);
    return encodeURIComponent(value);
  });
  return `/console${address}${path === '/invoices/pdfs.zip' ? `?number=${encodeURIComponent(number)}` : ''}`;
}

/** The administrator requests the release of a document. Returns the id of the request. */
export async function askToRelease(world: World, number: string, partnerId: string): Promise<string> {
  const { request_id: id } = await world.database.transaction(async (tx) => {
    const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
    return askForApproval(
      tx,
      { ...world, actor },
      {
        ...{ action: 'invoice.release', input: { number }, subject: number, partnerIds: [partnerId], reason: null },
        ...{ preview: { title: 'Void', changes: [], amounts: [], text: number }, hash: '0'.repeat(64) },
        userId: actor.user?.user_id ?? 0,
      },
    );
  });
  return String(id);
}

/** Whether the address names something that belongs to a partner. */
export const namesObject = ({ path }: Route): boolean => /:(number|id|exception)|\/pdfs\.zip$/.test(path);

/** Whether the route can be reached without signing in. */
export const isOpen = ({ path }: Route): boolean => /^\/(assets|sign-in)(\/|$)/.test(path);
/** Whether the route only redirects to a different page. */
export const isMoved = ({ path }: Route): boolean => /^\/payments\/(import|record)$/.test(path);

/**
 * Makes a journal for the general ledger and an auditor's pack, in the same way as the task's process. Returns the
 * task's number.
 */
export async function makePack(world: World): Promise<string> {
  const { database, environment } = world;
  writeAccounts(world, everyAccount());
  const journal = { month: '2026-07' as Month, format: 'generic', preliminary: true } as const;
  await database.transaction((tx) => exportGl(tx, world, journal));
  const input = { kind: 'invoices', from: '2026-07', to: '2026-07', format: 'csv' };
  const now = environment.now().toISO();
  const task = { kind: 'export', input, userId: null, host: 'desk', now } as const;
  const taskId = await database.transaction((tx) => insertTask(tx, task));
  await runTask({ database, environment }, 'export', taskId as number);
  return String(taskId);
}

/** A hash of the content of each table, except tables in which a request may be counted. */
export async function contentOf(
  { sql }: Pick<World, 'sql'>,
  counted: readonly string[],
): Promise<Record<string, string>> {
  const names = await sql<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1`,
  );
  const hashes: [string, string][] = [];
  for (const { name } of names.filter((each) => !counted.includes(each.name))) {
    const [row] = await sql<{ hash: string }>(
      `SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) AS hash FROM ${name} t`,
    );
    hashes.push([name, row?.hash ?? '']);
  }
  if (hashes.length < 50) throw new Error(`only ${hashes.length} tables were read`);
  return Object.fromEntries(hashes);
}
