/** Every route of the console, as Fastify hears of them, and the addresses that they have for given objects. */

import { insertTask } from '../../src/audit/tasks.sql.ts';
import { runTask } from '../../src/audit/tasks.ts';
import type { Settings } from '../../src/config/settings.ts';
import { addConsole } from '../../src/console/plugin.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import type { Month } from '../../src/month.ts';
import { askForApproval } from '../../src/people/approvals.ts';
import { identify } from '../../src/people/users.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { ADMINISTRATOR } from './console.ts';
import { type Served, serveWorld } from './service.ts';
import type { World } from './world.ts';

export interface Route {
  readonly method: string;
  /** Below /console. */
  readonly path: string;
}

/** Served to a reader who looks at everything at once. */
export async function serveRoutes(
  world: World,
  settings?: Partial<Settings>,
): Promise<{ served: Served; routes: readonly Route[] }> {
  const routes: Route[] = [];
  const served = await serveWorld(world, {
    settings: { http: { ...world.settings.http, requests_per_minute: 1_000_000 }, ...settings },
    addConsole(app, shared) {
      app.addHook('onRoute', ({ method, url }) => {
        if (!/^\/console(\/|$)/.test(url)) return;
        for (const each of [method].flat()) routes.push({ method: each, path: url.replace(/^\/console/, '') || '/' });
      });
      addConsole(app, shared);
    },
  });
  return { served, routes };
}

/** What stands in addresses, by the name of the parameter. */
export interface Objects {
  readonly number: string;
  readonly partnerId: string;
  readonly exception: string;
  readonly month: string;
  /** Of a pack that was made. */
  readonly task?: string;
  /** Of an approval. */
  readonly requestId: string;
}

/** The address of a route. Throws for a parameter that nobody has given a value: say it here. */
export function addressOf({ path }: Route, { number, partnerId, exception, month, requestId, task }: Objects): string {
  const values: Record<string, string | undefined> = {
    ...{ number, exception, month, task, id: path.startsWith('/approvals') ? requestId : partnerId },
    // Of a seal.
    ...{ kind: 'month', name: month },
    // Of the journal that makePack exports.
    ...{ gl: '1', file: 'gl-2026-07-1-generic.csv' },
  };
  const address = path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`say in addressOf what :${name} of ${path} is`);
    return encodeURIComponent(value);
  });
  return `/console${address}`;
}

/** The administrator asks to release a document. Gives the id of the request. */
export async function askToRelease(world: World, number: string, partnerId: string): Promise<string> {
  const { request_id: id } = await world.database.transaction(async (tx) => {
    const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
    return askForApproval(
      tx,
      { ...world, actor },
      {
        ...{ act: 'invoice.release', input: { number }, subject: number, partnerIds: [partnerId], reason: null },
        ...{ preview: { title: 'Void', changes: [], amounts: [], text: number }, hash: '0'.repeat(64) },
        userId: actor.user?.user_id ?? 0,
      },
    );
  });
  return String(id);
}

/** Whether the address names something that belongs to a partner. */
export const namesObject = ({ path }: Route): boolean => /:(number|id|exception)/.test(path);

/** Reached by whoever is not signed in. */
export const isOpen = ({ path }: Route): boolean => /^\/(assets|sign-in)(\/|$)/.test(path);
/** What only leads to another page. */
export const isMoved = ({ path }: Route): boolean => /^\/(payments\/(import|record))?$/.test(path);

/** A journal for the general ledger, and a pack of an auditor, made as the process of the task makes it. Gives its number. */
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
