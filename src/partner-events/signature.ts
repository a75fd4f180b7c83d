/**
 * Webhook secrets and signatures, by the Standard Webhooks specification (standardwebhooks.com). A secret is derived
 * from a key of the environment, so that neither the database nor a backup reveals the secret.
 */
import { createHmac } from 'node:crypto';
import { Environment, WEBHOOK_SIGNING_KEY } from '#config/environment';
import { refuse } from '#errors/refusals';

type SecretOf = Readonly<{
  installationId: string;
  partnerId: string;
  version: number;
}>;

/** A webhook secret of 256 bits, with HMAC-SHA256 as the expansion of HKDF. */
export function secretOf(key: string, { installationId, partnerId, version }: SecretOf): Buffer {
  return hmac(key, `webhook secret\n${installationId}\n${partnerId}\n${version}`);
}

/** A secret in the format that partners configure. */
export const secretText = (secret: Buffer) => `whsec_${secret.toString('base64')}`;

/** Identifies a key without revealing it. */
export const keyCheck = (key: string) => hmac(key, 'webhook key check').toString('hex').slice(0, 16);

type Keys = Pick<Environment, 'webhookKey' | 'webhookKeyBefore'>;

/** The keys of the environment by their checks: the present one first, then the previous one during a rotation. */
export const keysByCheck = ({ webhookKey, webhookKeyBefore }: Keys): ReadonlyMap<string, string> =>
  new Map([webhookKey, webhookKeyBefore].flatMap((key) => (key === undefined ? [] : [[keyCheck(key), key]])));

/** The key of the environment. */
export function requiredKey({ webhookKey }: Keys) {
  if (webhookKey !== undefined) return webhookKey;
  throw refuse('webhook_key_unusable', { variable: WEBHOOK_SIGNING_KEY, reason: 'is not set' });
}

/**
 * The headers of one event. The event is signed with each secret, so that the receiver can check any of the signatures.
 */
export function signedHeaders(
  secrets: readonly Buffer[],
  { eventId, seconds, body }: Readonly<{ eventId: string; seconds: number; body: string }>,
): Record<string, string> {
  const signed = secrets.map((secret) => `v1,${hmac(secret, `${eventId}.${seconds}.${body}`).toString('base64')}`);
  return {
    'webhook-id': eventId,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signed.join(' '),
  };
}

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
