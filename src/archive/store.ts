/** A cold store is a folder of the settings. Each installation has its own folder in it. Refusal: archive_store_unknown. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join, resolve } from 'node:path';
import { readInstallation } from '../database/installation.sql.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import type { Installation } from '../people/audit-events.ts';

export function storeFolder({ environment, settings }: Installation, store: string): string {
  const given = settings.archive[store];
  if (given === undefined) throw refuse('archive_store_unknown', { store, known: Object.keys(settings.archive) });
  return resolve(environment.home, given.parquet);
}

/** The folder of this installation's files. */
export async function folderOf(tx: Transaction, context: Installation, store: string): Promise<string> {
  const folder = storeFolder(context, store);
  return join(folder, (await readInstallation(tx)).installation_id);
}

export async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
