/** Secrets of users: 256 random bits. The database stores only the hash. */
import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto';

export const newSecret = () => randomBytes(32).toString('base64url');

/** Text in any other format is never looked up. */
export const SECRET = /^[A-Za-z0-9_-]{43}$/;

export const hashOf = (secret: string) => hash('sha256', secret);

/** The token in a session's forms. It cannot be computed without the secret in the cookie. */
export const formTokenOf = (secret: string) => createHmac('sha256', secret).update('form').digest('base64url');

export function isFormToken(secret: string, given: unknown) {
  const right = Buffer.from(formTokenOf(secret));
  const other = Buffer.from(typeof given === 'string' ? given : '');
  return right.length === other.length && timingSafeEqual(right, other);
}
