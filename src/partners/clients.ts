/**
 * API clients of partners. A secret is shown once. After a rotation, two can be live for a time. A revocation is
 * permanent. Refusals: partner_unknown, client_unknown, client_revoked, client_secrets_live.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { DateTime } from 'luxon';
import { EnvironmentName } from '#config/environment';
import { CLIENT_LOCKS, takeLockOf } from '#database/locks';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Actor, recordEvent } from '#people/audit-events';
import { insertClient, insertRevocation, insertSecret, partnerExists, readClients } from './clients.sql.ts';
import { IDENTIFIER } from './file.ts';

export type Credentials = Readonly<{
  partner_id: string;
  client_id: string;
  /** It has 256 random bits. Only its hash is stored. */
  client_secret: string;
}>;

export type Action = Readonly<{
  actor: Actor;
  environment: EnvironmentName;
  now: DateTime<true>;
}>;

export type Rotation = Credentials &
  Readonly<{
    previous_ends_at: string;
  }>;

/** Days for which the old secret works after a rotation. */
export const OVERLAP_DAYS = 7;

export async function createClient(
  tx: Transaction,
  partnerId: string,
  { validDays }: { validDays?: number | undefined },
  action: Action,
): Promise<Credentials> {
  if (!(await partnerExists(tx, { partnerId }))) throw refuse('partner_unknown', { partner_id: partnerId });
  const clientId = `c-${randomBytes(12).toString('hex')}`;
  const now = action.now.toISO();
  const eventId = await recordEvent(tx, action.actor, {
    action: 'client.create',
    subject: clientId,
    details: { partner_id: partnerId, valid_days: validDays ?? null },
    now,
  });
  await insertClient(tx, { clientId, partnerId, eventId, now });
  const client_secret = await issueSecret(
    tx,
    { clientId, sequence: 1, previousEndsAt: null, eventId },
    validDays,
    action,
  );
  return { partner_id: partnerId, client_id: clientId, client_secret };
}

/** The previous secret works until the overlap ends. A third live one is refused unless the overlap is zero. */
export async function rotateSecret(
  tx: Transaction,
  clientId: string,
  options: { overlapDays: number; validDays?: number | undefined },
  action: Action,
): Promise<Rotation> {
  await lockClient(tx, clientId);
  const now = action.now.toISO();
  const client = await clientNamed(tx, clientId, now);
  if (client.revoked_at !== null) throw refuse('client_revoked', { client_id: clientId });
  const [, older] = client.live_secrets;
  if (older !== undefined && options.overlapDays > 0) {
    throw refuse('client_secrets_live', { client_id: clientId, ends_at: older.ends_at ?? '' });
  }
  const previousEndsAt = action.now.plus({ days: options.overlapDays }).toUTC().toISO();
  const eventId = await recordEvent(tx, action.actor, {
    action: 'client.rotate',
    subject: clientId,
    details: { previous_ends_at: previousEndsAt, valid_days: options.validDays ?? null },
    now,
  });
  const next = { clientId, sequence: client.last_sequence + 1, previousEndsAt, eventId };
  const client_secret = await issueSecret(tx, next, options.validDays, action);
  return { partner_id: client.partner_id, client_id: clientId, client_secret, previous_ends_at: previousEndsAt };
}

/** Revokes a client at once, with its secrets and tokens. Repeating changes nothing. */
export async function revokeClient(
  tx: Transaction,
  clientId: string,
  action: Action,
): Promise<{ client_id: string; partner_id: string; revoked_at: string }> {
  await lockClient(tx, clientId);
  const now = action.now.toUTC().toISO();
  const client = await clientNamed(tx, clientId, now);
  if (client.revoked_at === null) {
    const eventId = await recordEvent(tx, action.actor, {
      action: 'client.revoke',
      subject: clientId,
      details: { partner_id: client.partner_id },
      now,
    });
    await insertRevocation(tx, { clientId, eventId, now });
  }
  return { client_id: clientId, partner_id: client.partner_id, revoked_at: client.revoked_at ?? now };
}

async function clientNamed(tx: Transaction, clientId: string, now: string) {
  const [client] = await readClients(tx, { clientId, now });
  if (client === undefined) throw refuse('client_unknown', { client_id: clientId });
  return client;
}

/** Concurrent rotations would take the same number. */
const lockClient = (tx: Transaction, clientId: string) => takeLockOf(tx, CLIENT_LOCKS, clientId);

/** The client with these credentials. If anything is wrong, the answer and its timing are always the same. */
export async function authenticate(
  tx: Transaction,
  given: { clientId: string; secret: string; now: DateTime<true> },
): Promise<{ clientId: string; partnerId: string } | undefined> {
  // PostgreSQL cannot store NUL.
  const known = IDENTIFIER.test(given.clientId);
  const [client] = known ? await readClients(tx, { clientId: given.clientId, now: given.now.toISO() }) : [];
  const hash = Buffer.from(secretHash(given.secret), 'hex');
  // Always two hashes, so that the time is the same. For an unknown client, twice one that no secret has.
  const live = client?.live_secrets ?? [];
  const matches = [0, 1].map((index) => timingSafeEqual(hash, Buffer.from(live[index]?.sha256 ?? NO_HASH, 'hex')));
  return client !== undefined && matches.includes(true)
    ? { clientId: client.client_id, partnerId: client.partner_id }
    : undefined;
}

const NO_HASH = '0'.repeat(64);

/** The secret has a prefix of the program and the environment, by which a leaked one can be recognized. */
async function issueSecret(
  tx: Transaction,
  issued: Pick<Parameters<typeof insertSecret>[1], 'clientId' | 'sequence' | 'previousEndsAt' | 'eventId'>,
  validDays: number | undefined,
  { environment, now }: Action,
) {
  const secret = `rk_${environment}_${randomBytes(32).toString('base64url')}`;
  const expiresAt = validDays === undefined ? null : now.plus({ days: validDays }).toUTC().toISO();
  await insertSecret(tx, { ...issued, sha256: secretHash(secret), expiresAt, now: now.toISO() });
  return secret;
}

const secretHash = (secret: string) => createHash('sha256').update(secret).digest('hex');
