/**
 * Access tokens: JWTs by RFC 9068, with an issuer, an audience and keys of this environment alone. Refusal: token_invalid.
 */
import { hash, randomUUID } from 'node:crypto';
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose';
import type { DateTime } from 'luxon';
import type { EnvironmentName } from '../config/environment.ts';
import { refuse } from '../errors/refusals.ts';
import type { Caller } from '../quotes/queries.ts';
import { type Keyring, TOKEN_SECONDS } from './keys.ts';

export interface TokenOffice {
  readonly issuer: string;
  readonly issue: (caller: Caller) => Promise<string>;
  /** Whose token it is. That its client is not revoked is asked by whoever serves the request. */
  readonly verify: (token: string) => Promise<Caller>;
}

const LONGEST_TOKEN = 4096;

/** Of a token whose signature, issuer and audience were found good: none of these can change. */
interface Verified {
  readonly caller: Caller;
  readonly kid: string;
  /** In seconds since 1970. */
  readonly expiresAt: number;
}

// A partner's token is sent with each of its requests for an hour. Its signature takes 0.26 ms to verify, a quarter of
// what an acceptance took of this process, and its hash a few µs. What can change is asked each time: the clock, the key
// and, by whoever serves the request, the client.
const MOST_VERIFIED = 10_000;

export function openTokenOffice(
  keyring: Keyring,
  { issuer, environment, now }: { issuer: string; environment: EnvironmentName; now: () => DateTime<true> },
): TokenOffice {
  const audience = `reckoner:${environment}`;
  const verified = new Map<string, Verified>();
  const expired = (cause?: unknown) => refuse('token_invalid', { reason: 'it has expired' }, cause);
  const unknownKey = () => refuse('token_invalid', { reason: 'it was not signed here, or too long ago' });

  /** The caller of a token that was verified before, as long as it and its key are good; undefined for any other. */
  async function remembered(sha256: string): Promise<Caller | undefined> {
    const found = verified.get(sha256);
    if (found === undefined) return undefined;
    if (found.expiresAt <= Math.floor(now().toSeconds())) throw expired();
    if ((await keyring.verifying(found.kid)) === undefined) throw unknownKey();
    return found.caller;
  }

  function remember(sha256: string, facts: Verified): void {
    const [oldest] = verified.keys();
    if (verified.size >= MOST_VERIFIED && oldest !== undefined) verified.delete(oldest);
    verified.set(sha256, facts);
  }

  return {
    issuer,
    async issue({ partnerId, clientId }) {
      const { kid, privateKey } = await keyring.signing();
      const at = Math.floor(now().toSeconds());
      return new SignJWT({ client_id: clientId, partner_id: partnerId })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(clientId)
        .setJti(randomUUID())
        .setIssuedAt(at)
        .setExpirationTime(at + TOKEN_SECONDS)
        .sign(privateKey);
    },
    async verify(token) {
      if (token.length > LONGEST_TOKEN) throw refuse('token_invalid', { reason: 'it is too long' });
      const sha256 = hash('sha256', token, 'base64');
      const known = await remembered(sha256);
      if (known !== undefined) return known;
      try {
        const { kid } = decodeProtectedHeader(token);
        const key = typeof kid === 'string' ? await keyring.verifying(kid) : undefined;
        if (key === undefined || kid === undefined) throw unknownKey();
        const { payload } = await jwtVerify(token, key, {
          algorithms: ['ES256'],
          typ: 'at+jwt',
          issuer,
          audience,
          requiredClaims: ['exp', 'iat', 'sub', 'jti'],
          currentDate: now().toJSDate(),
        });
        const { client_id: clientId, partner_id: partnerId, exp: expiresAt } = payload;
        if (typeof clientId === 'string' && typeof partnerId === 'string' && expiresAt !== undefined) {
          const caller = { clientId, partnerId };
          remember(sha256, { caller, kid, expiresAt });
          return caller;
        }
      } catch (error) {
        if (error instanceof errors.JWTExpired) throw expired(error);
        if (!(error instanceof errors.JOSEError || error instanceof TypeError)) throw error;
      }
      throw refuse('token_invalid', { reason: 'it is not a token of this service and environment' });
    },
  };
}
