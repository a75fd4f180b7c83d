/** A cold store is a folder of the settings. Each installation has its own folder in it. Refusal: archive_store_unknown. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Environment } from '../config/environment.ts';
import { readSettings } from '../config/settings.ts';
import { readInstallation } from '../database/installation.sql.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';

export function storeFolder(environment: Environment, store: string): string {
  const { archive } = readSettings(environment);
  const given = archive[store];
  if (given === undefined) throw refuse('archive_store_unknown', { store, known: Object.keys(archive) });
  return resolve(environment.home, given.parquet);
}

/** The folder of this installation's files. */
export async function folderOf(tx: Transaction, environment: Environment, store: string): Promise<string> {
  const folder = storeFolder(environment, store);
  return join(folder, (await readInstallation(tx)).installation_id);
}

/** The files that this process has hashed, with what tells that they did not change since. */
const HASHED = new Map<string, { readonly seen: string; readonly sha256: string }>();

/** The SHA-256 of a file. A file of the same time and size is not read again. */
export async function sha256Of(path: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(path);
  const seen = `${mtimeMs} ${size} ${ino}`;
  const known = HASHED.get(path);
  if (known?.seen === seen) return known.sha256;
  const sha256 = await hashed(path);
  HASHED.set(path, { seen, sha256 });
  return sha256;
}

async function hashed(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

export type Take = (piece: Buffer) => Promise<void>;

export async function writeFile(path: string, write: (take: Take) => Promise<void>): Promise<void> {
  const file = await open(path, 'w');
  try {
    await write(async (piece) => {
      await file.writeFile(piece);
    });
  } finally {
    await file.close();
  }
}
