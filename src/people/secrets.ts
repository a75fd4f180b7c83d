/** Secrets of people: 256 random bits, of which the database has only the hash. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

export const newSecret = (): string => randomBytes(32).toString('base64url');

/** What a secret looks like. Nothing else is looked up. */
export const SECRET = /^[A-Za-z0-9_-]{43}$/;

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** What the forms of a session carry: it cannot be made without the secret of the session's cookie. */
export const formTokenOf = (secret: string): string => createHmac('sha256', secret).update('form').digest('base64url');

export function isFormToken(secret: string, given: unknown): boolean {
  const right = Buffer.from(formTokenOf(secret));
  const other = Buffer.from(typeof given === 'string' ? given : '');
  return right.length === other.length && timingSafeEqual(right, other);
}
