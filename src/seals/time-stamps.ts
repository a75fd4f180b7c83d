/**
 * Time stamps of seals: requested for each unstamped seal, after the transaction that made it, and recorded one by one.
 * A failure stops nothing: the next run tries again.
 */

import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { LOCKS, takeLock } from '../database/locks.ts';
import type { Transaction } from '../database/transaction.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { sealTitle } from './signature.ts';
import {
  insertTimeStamp,
  readTimeStamp,
  readUnstamped,
  readUnstampedSince,
  type SealName,
  type UnstampedSeal,
} from './signatures.sql.ts';
import { requestTimeStamp, type TimeStamp } from './time-stamp.ts';

/**
 * Requests a stamp for every unstamped seal. Stops after the first failure, so that it waits for a hanging authority
 * only once.
 */
export async function stampSeals(
  { database, ...context }: ActorContext & { readonly database: Database },
  onFailed: (seal: SealName, reason: string) => void = () => {},
): Promise<void> {
  const authority = context.settings.time_stamping_url;
  if (authority === '') return;
  for (const seal of await database.reading(readUnstamped)) {
    const answer = await requestTimeStamp(authority, seal.record);
    if ('problem' in answer) return onFailed(seal, `${authority} ${answer.problem}`);
    await database.transaction((tx) => recordTimeStamp(tx, context, { seal, authority, answer }));
  }
}

async function recordTimeStamp(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { seal: { kind, name, seal }, authority, answer }: { seal: UnstampedSeal; authority: string; answer: TimeStamp },
): Promise<void> {
  // If two runs requested a stamp at once, one records it.
  await takeLock(tx, LOCKS.timeStamps);
  if ((await readTimeStamp(tx, { kind, name })) !== undefined) return;
  const now = environment.now().toISO();
  const { response, stampedAt } = answer;
  const eventId = await recordEvent(tx, actor, {
    action: 'seal.time_stamp',
    subject: sealTitle({ kind, name }),
    details: {
      seal,
      authority,
      stamped_at: stampedAt,
      response_sha256: createHash('sha256').update(response).digest('hex'),
    },
    now,
  });
  await insertTimeStamp(tx, { kind, name, seal, authority, response, stampedAt, now, eventId });
}

/** A seal is normally stamped within minutes. One without a stamp after this long needs attention. */
const LATE_HOURS = 24;

/** The seals that should be stamped already, in the order in which they were made. */
export async function readLateTimeStamps(
  tx: Transaction,
  {
    environment,
    settings,
  }: Pick<ActorContext, 'environment'> & { readonly settings: Pick<Settings, 'time_stamping_url'> },
): Promise<string[]> {
  if (settings.time_stamping_url === '') return [];
  const late = await readUnstampedSince(tx, environment.now().minus({ hours: LATE_HOURS }).toISO());
  return late.map(sealTitle);
}
