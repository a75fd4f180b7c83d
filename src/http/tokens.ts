/**
 * Access tokens: JWTs by RFC 9068, with an issuer, an audience and keys of this environment alone. Refusal: token_invalid.
 */
import { randomUUID } from 'node:crypto';
import { decodeProtectedHeader, errors, jwtVerify, SignJWT } from 'jose';
import type { DateTime } from 'luxon';
import type { EnvironmentName } from '../config.ts';
import { refuse } from '../errors.ts';
import type { Caller } from '../quotes/queries.ts';
import { type Keyring, TOKEN_SECONDS } from './keys.ts';

export interface TokenOffice {
  readonly issuer: string;
  readonly issue: (caller: Caller) => Promise<string>;
  /** Whose token it is. That its client is not revoked is asked by whoever serves the request. */
  readonly verify: (token: string) => Promise<Caller>;
}

const LONGEST_TOKEN = 4096;

export function openTokenOffice(
  keyring: Keyring,
  { issuer, environment, now }: { issuer: string; environment: EnvironmentName; now: () => DateTime<true> },
): TokenOffice {
  const audience = `reckoner:${environment}`;
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
      try {
        const { kid } = decodeProtectedHeader(token);
        const key = typeof kid === 'string' ? await keyring.verifying(kid) : undefined;
        if (key === undefined) throw refuse('token_invalid', { reason: 'it was not signed here, or too long ago' });
        const { payload } = await jwtVerify(token, key, {
          algorithms: ['ES256'],
          typ: 'at+jwt',
          issuer,
          audience,
          requiredClaims: ['exp', 'iat', 'sub', 'jti'],
          currentDate: now().toJSDate(),
        });
        const { client_id: clientId, partner_id: partnerId } = payload;
        if (typeof clientId === 'string' && typeof partnerId === 'string') return { clientId, partnerId };
      } catch (error) {
        if (error instanceof errors.JWTExpired) throw refuse('token_invalid', { reason: 'it has expired' }, error);
        if (!(error instanceof errors.JOSEError || error instanceof TypeError)) throw error;
      }
      throw refuse('token_invalid', { reason: 'it is not a token of this service and environment' });
    },
  };
}
