/**
 * RECKONER_LOGS=FOLDER keeps the log of every world when it ends or begins again, as a log.tsv. The logs of
 * test/audit/mutations were made this way: `RECKONER_LOGS=/tmp/logs npx vitest run test/property test/payments`. A log
 * whose last rows came after the last checkpoint lacks the time zones of their months.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect } from 'vitest';
import { readLastNumber } from '../../src/log/checkpoints.sql.ts';
import { linesTo } from './log-lines.ts';
import type { World } from './world.ts';

const FOLDER = process.env['RECKONER_LOGS'];

export async function keepLog({ database }: Pick<World, 'database'>): Promise<void> {
  if (FOLDER === undefined) return;
  const lines = await database.reading(async (tx) => linesTo(tx, await readLastNumber(tx)));
  if (lines.length === 0) return;
  const text = lines.map((line) => `${line}\n`).join('');
  const test = basename(expect.getState().testPath ?? 'world', '.test.ts');
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${test}-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.tsv`), text);
}
