/** Opens the cold stores of the settings. Refusal: archive_store_unknown. */
import { join, resolve } from 'node:path';
import type { Environment } from '../config/environment.ts';
import { readSettings } from '../config/settings.ts';
import { readInstallation } from '../database/installation.sql.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { folderStore } from './folder.ts';
import type { Store } from './store.ts';

/** Opens a store. Each installation has its own folder in a folder. */
export async function openStore(tx: Transaction, environment: Environment, store: string): Promise<Store> {
  const { archive } = readSettings(environment);
  const given = archive[store];
  if (given === undefined) throw refuse('archive_store_unknown', { store, known: Object.keys(archive) });
  const folder = resolve(environment.home, given.parquet);
  return folderStore(join(folder, (await readInstallation(tx)).installation_id));
}
