/**
 * Records changes of settings.json, including bank accounts. Users edit the file outside the program, so each command
 * and job that may change something first compares it with the last recorded state, and records differences as
 * `settings.change`.
 */

import { statSync } from 'node:fs';
import { type Settings, settingsFile } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { LOCKS, takeLock } from '../database/locks.ts';
import type { Transaction } from '../database/transaction.ts';
import { type ChangeEvent, readChangeEvents } from './audit-events.sql.ts';
import { type ActorContext, recordEvent } from './audit-events.ts';
import { applyChanges, changesBetween, fieldsOf, type Value } from './field-changes.ts';

const SUBJECT = 'settings.json';
const ACTION = 'settings.change';

/** All recorded changes of the settings, oldest first. The first one contains all fields. */
export const readSettingsChanges = (tx: Transaction): Promise<ChangeEvent[]> =>
  readChangeEvents(tx, { subject: SUBJECT, actions: [ACTION] });

export async function recordSettingsChanges(database: Database, context: ActorContext): Promise<void> {
  const { environment, settings, actor } = context;
  if ((await database.reading((tx) => unrecordedChanges(tx, settings))).length === 0) return;
  await database.transaction(async (tx) => {
    // If two commands find the same change, only one records it.
    await takeLock(tx, LOCKS.settings);
    const changes = await unrecordedChanges(tx, settings);
    if (changes.length === 0) return;
    const details = { changes, ...fileFacts(settingsFile(environment)) };
    await recordEvent(tx, actor, { action: ACTION, subject: SUBJECT, details, now: environment.now().toISO() });
  });
}

async function unrecordedChanges(tx: Transaction, settings: Settings) {
  const recorded = new Map<string, Value>();
  for (const { changes } of await readSettingsChanges(tx)) applyChanges(recorded, changes);
  const { logo } = settings.issuer;
  const issuer = { ...settings.issuer, logo: logo === null ? null : `sha256 ${logo.sha256}` };
  return changesBetween(recorded, fieldsOf({ ...settings, issuer }));
}

/** Recorded because the event names only the user whose command found the change. */
function fileFacts(file: string): object {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? {} : { file_modified_at: stat.mtime.toISOString(), file_owner_uid: stat.uid };
}
