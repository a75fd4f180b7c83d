/**
 * RECKONER_HOME/erasures: the commitments of all erased texts, one a line. A backup that is older than an erasure still
 * contains the text; a restore erases it again with this file.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Environment } from '#config/environment';
import { Database } from '#database/database';
import { unless, writeWhole } from '#files';
import { readErased } from './erasures.sql.ts';

const fileOf = ({ home }: Pick<Environment, 'home'>) => join(home, 'erasures');

/** The lines of the file; undefined if there is none. */
export function readErasureFile(environment: Pick<Environment, 'home'>) {
  try {
    return readFileSync(fileOf(environment), 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch (error) {
    return unless('ENOENT')(error);
  }
}

/** Adds the erasures of the database that the file does not have. The file also keeps those that the database lost. */
export async function keepErasures(database: Database, environment: Pick<Environment, 'home'>) {
  const kept = readErasureFile(environment) ?? [];
  const known = new Set(kept);
  const added = (await database.reading(readErased)).filter((each) => !known.has(each));
  if (added.length > 0) await writeWhole(fileOf(environment), `${[...kept, ...added].join('\n')}\n`, 'replace');
}
