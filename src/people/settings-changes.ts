/**
 * Records changes of the settings in force. Users edit settings.json outside the program, so each command and job that
 * may change something first compares what is in force with the last recorded state, and records differences as
 * `settings.change`. Adopted sections change only by `settings.adopt`.
 */

import { statSync } from 'node:fs';
import { SECTION_NAMES, Settings, settingsFile } from '#config/settings';
import { Database } from '#database/database';
import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { readChangeEvents } from './audit-events.sql.ts';
import { ActorContext, recordEvent } from './audit-events.ts';
import { applyChanges, changesBetween, fieldsOf, Value } from './field-changes.ts';

const SUBJECT = 'settings.json';
const ACTION = 'settings.change';
export const ADOPTION = 'settings.adopt';

/** All recorded changes of the settings in force, oldest first. The first one contains all fields. */
export const readSettingsChanges = (tx: Transaction) =>
  readChangeEvents(tx, { subjects: [SUBJECT, ...SECTION_NAMES], actions: [ACTION, ADOPTION] });

/** Takes the settings in force. */
export async function recordSettingsChanges(database: Database, context: ActorContext) {
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

/** The fields of the settings in force, as the history has them. */
export async function readRecorded(tx: Transaction) {
  const recorded = new Map<string, Value>();
  for (const { changes } of await readSettingsChanges(tx)) applyChanges(recorded, changes);
  return recorded;
}

async function unrecordedChanges(tx: Transaction, settings: Settings) {
  const { sections: _, ...inForce } = settings;
  const { logo } = settings.issuer;
  const issuer = { ...settings.issuer, logo: logo === null ? null : `sha256 ${logo.sha256}` };
  return changesBetween(await readRecorded(tx), fieldsOf({ ...inForce, issuer }));
}

/** Recorded because the event names only the user whose command found the change. */
function fileFacts(file: string): object {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? {} : { file_modified_at: stat.mtime.toISOString(), file_owner_uid: stat.uid };
}
