/**
 * The keys that sign access tokens. Each process makes its own and keeps the private half in memory: what is written
 * down is public, and verifies tokens on every machine until the last of them has expired.
 */
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import type { DateTime } from 'luxon';
import type { Database } from '../database/database.ts';
import { execute, query } from '../database/transaction.ts';

export const TOKEN_SECONDS = 3600;
/** A key signs for a day. The next one is published this long before it signs, so that caches have it by then. */
const SIGNS_SECONDS = 24 * 3600;
const AHEAD_SECONDS = 3600;
/** Beyond its last token's life: for clocks that disagree. */
const SLACK_SECONDS = 300;
/** Tokens with an unknown key make the keys be read again, at most so often. */
const READ_AGAIN_MILLISECONDS = 1000;

interface SigningKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
  readonly signsFrom: number;
  readonly signsUntil: number;
}

interface PublishedKey {
  readonly key: CryptoKey;
  readonly jwk: JWK;
  readonly until: number;
}

export interface Keyring {
  /** The key to sign with now. */
  readonly signing: () => Promise<{ kid: string; privateKey: CryptoKey }>;
  /** The published key of that name; undefined where there is none, or no longer. */
  readonly verifying: (kid: string) => Promise<CryptoKey | undefined>;
  readonly published: () => Promise<JWK[]>;
}

export function openKeyring(database: Database, now: () => DateTime<true>): Keyring {
  const own: SigningKey[] = [];
  const known = new Map<string, PublishedKey>();
  let making: Promise<SigningKey> | undefined;
  let reading: Promise<void> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const seconds = () => now().toSeconds();

  async function make(signsFrom: number): Promise<SigningKey> {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const jwk = await exportJWK(publicKey);
    const kid = await calculateJwkThumbprint(jwk);
    const signsUntil = signsFrom + SIGNS_SECONDS;
    const until = signsUntil + TOKEN_SECONDS + SLACK_SECONDS;
    const publicJwk = { ...jwk, kid, alg: 'ES256', use: 'sig' };
    await database.transaction((tx) =>
      execute(
        tx,
        `INSERT INTO signing_keys (kid, public_jwk, published_at, signs_until, published_until)
         VALUES (:kid, :jwk::jsonb, to_timestamp(:at), to_timestamp(:signsUntil), to_timestamp(:until))`,
        { kid, jwk: JSON.stringify(publicJwk), at: seconds(), signsUntil, until },
      ),
    );
    known.set(kid, { key: publicKey, jwk: publicJwk, until });
    const made = { kid, privateKey, signsFrom, signsUntil };
    own.push(made);
    return made;
  }

  /** One at a time: many requests at once must not make many keys. */
  function makeOnce(signsFrom: number): Promise<SigningKey> {
    making ??= make(signsFrom).finally(() => {
      making = undefined;
    });
    return making;
  }

  async function read(): Promise<void> {
    const rows = await database.reading((tx) =>
      query<{ public_jwk: JWK; until: number }>(
        tx,
        `SELECT public_jwk, extract(epoch FROM published_until)::float8 AS until FROM signing_keys
         WHERE published_until > to_timestamp(:at)`,
        { at: seconds() },
      ),
    );
    for (const [kid, { until }] of known) if (until <= seconds()) known.delete(kid);
    for (const { public_jwk: jwk, until } of rows) {
      const kid = jwk.kid as string;
      if (!known.has(kid)) known.set(kid, { key: (await importJWK(jwk, 'ES256')) as CryptoKey, jwk, until });
    }
    readAt = performance.now();
  }

  function readOnce(): Promise<void> {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  return {
    async signing() {
      const at = seconds();
      const current = own.find((key) => key.signsFrom <= at && at < key.signsUntil);
      if (current === undefined) return makeOnce(at);
      const last = own.at(-1) as SigningKey;
      if (last === current && at >= current.signsUntil - AHEAD_SECONDS) {
        // The next one is published ahead; should that fail, this one goes on and the next token tries again.
        void makeOnce(current.signsUntil).catch(() => {});
      }
      return current;
    },
    async verifying(kid) {
      if (!known.has(kid) && performance.now() - readAt > READ_AGAIN_MILLISECONDS) await readOnce();
      const found = known.get(kid);
      return found !== undefined && found.until > seconds() ? found.key : undefined;
    },
    async published() {
      if (performance.now() - readAt > READ_AGAIN_MILLISECONDS) await readOnce();
      return [...known.values()].filter(({ until }) => until > seconds()).map(({ jwk }) => jwk);
    },
  };
}
