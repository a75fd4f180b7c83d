/**
 * The time stamps of seals: requested for each seal that has none, after the transaction that made it, and recorded one by
 * one. A failure stops nothing: the next run asks again.
 */
import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { LOCKS } from '../database/locks.ts';
import { execute, query, type Transaction } from '../database/transaction.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { type SealName, sealTitle } from './signature.ts';
import { requestTimeStamp, type TimeStamp } from './time-stamp.ts';

interface UnstampedSeal extends SealName {
  readonly seal: string;
  readonly record: string;
}

/** Of many seals without a stamp, a run asks for so many, the oldest first. */
const AT_ONCE = 50;

const UNSTAMPED = `FROM every_seal m
  WHERE NOT EXISTS (SELECT FROM seal_time_stamps s WHERE s.kind = m.kind AND s.name = m.name)`;

const readUnstamped = (tx: Transaction): Promise<UnstampedSeal[]> =>
  query(tx, `SELECT kind, name, seal, record ${UNSTAMPED} ORDER BY facts_to LIMIT ${AT_ONCE}`);

/** Has every seal stamped that is not. After the first failure it asks no more: an authority that hangs is waited for once. */
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
  // Of two runs that asked at once, one records its stamp.
  await execute(tx, `SELECT pg_advisory_xact_lock(${LOCKS.timeStamps})`);
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
  await execute(
    tx,
    `INSERT INTO seal_time_stamps (kind, name, seal, authority, response, stamped_at, recorded_at, event_id)
     VALUES (:kind, :name, :seal, :authority, :response, :stampedAt::timestamptz, :now::timestamptz, :eventId)`,
    { kind, name, seal, authority, response, stampedAt, now, eventId },
  );
}

/** The authority's answer for a seal; undefined if it has no stamp. */
export async function readTimeStamp(tx: Transaction, { kind, name }: SealName): Promise<Buffer | undefined> {
  const [stamp] = await query<{ response: Buffer }>(
    tx,
    `SELECT response FROM seal_time_stamps WHERE kind = :kind AND name = :name`,
    { kind, name },
  );
  return stamp?.response;
}

/** A seal is stamped within minutes: one that has waited this long needs attention. */
const LATE_HOURS = 24;

/** The seals that should have been stamped by now, in the order in which they were made. */
export async function readLateTimeStamps(
  tx: Transaction,
  {
    environment,
    settings,
  }: Pick<ActorContext, 'environment'> & { readonly settings: Pick<Settings, 'time_stamping_url'> },
): Promise<string[]> {
  if (settings.time_stamping_url === '') return [];
  const late = await query<SealName>(
    tx,
    `SELECT kind, name ${UNSTAMPED} AND sealed_at < :since::timestamptz ORDER BY facts_to`,
    { since: environment.now().minus({ hours: LATE_HOURS }).toISO() },
  );
  return late.map(sealTitle);
}
