/**
 * The keys that sign access tokens. Each process generates its own and keeps the private keys in memory. The public
 * keys are stored, so that every server can verify a token until it expires.
 */
import { CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, JWK } from 'jose';
import { DateTime } from 'luxon';
import { Database } from '#database/database';
import { insertSigningKey, readSigningKeys } from './server.sql.ts';

export const TOKEN_SECONDS = 3600;
/** A key signs tokens for a day, and is published an hour before it first signs, so that caches have it in time. */
const SIGNS_SECONDS = 24 * 3600;
const AHEAD_SECONDS = 3600;
/** In case clocks differ. */
const SLACK_SECONDS = 300;
/** If a token has an unknown key, the server reads the keys again, but at most once in this time. */
const READ_AGAIN_MILLISECONDS = 1000;

type SigningKey = Readonly<{
  kid: string;
  privateKey: CryptoKey;
  signsFrom: number;
  signsUntil: number;
}>;

type PublishedKey = Readonly<{
  key: CryptoKey;
  jwk: JWK;
  until: number;
}>;

export class KeyStore {
  readonly #database: Database;
  readonly #now: () => DateTime<true>;
  readonly #own: SigningKey[] = [];
  readonly #published = new Map<string, PublishedKey>();
  #creating: Promise<SigningKey> | undefined;
  #reading: Promise<void> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(database: Database, now: () => DateTime<true>) {
    this.#database = database;
    this.#now = now;
  }

  async signing(): Promise<{ kid: string; privateKey: CryptoKey }> {
    const at = this.#seconds();
    const current = this.#own.find((key) => key.signsFrom <= at && at < key.signsUntil);
    if (current === undefined) return this.#createOnce(at);
    const isLast = this.#own.at(-1) === current;
    if (isLast && at >= current.signsUntil - AHEAD_SECONDS) {
      // Published before it is needed. If that fails, the current key continues, and the next token tries again.
      void this.#createOnce(current.signsUntil).catch(() => {});
    }
    return current;
  }

  async verifying(kid: string): Promise<CryptoKey | undefined> {
    if (!this.#published.has(kid)) await this.#refresh();
    const found = this.#published.get(kid);
    return found !== undefined && found.until > this.#seconds() ? found.key : undefined;
  }

  async published() {
    await this.#refresh();
    return [...this.#published.values()].filter(({ until }) => until > this.#seconds()).map(({ jwk }) => jwk);
  }

  #seconds() {
    return this.#now().toSeconds();
  }

  #createOnce(signsFrom: number): Promise<SigningKey> {
    this.#creating ??= this.#create(signsFrom).finally(() => {
      this.#creating = undefined;
    });
    return this.#creating;
  }

  async #create(signsFrom: number): Promise<SigningKey> {
    const { publicKey, privateKey } = await generateKeyPair('ES256');
    const exported = await exportJWK(publicKey);
    const kid = await calculateJwkThumbprint(exported);
    const signsUntil = signsFrom + SIGNS_SECONDS;
    const until = signsUntil + TOKEN_SECONDS + SLACK_SECONDS;
    const jwk = { ...exported, kid, alg: 'ES256', use: 'sig' };
    const row = { kid, jwk: JSON.stringify(jwk), at: this.#seconds(), signsUntil, until };
    await this.#database.transaction((tx) => insertSigningKey(tx, row));
    this.#published.set(kid, { key: publicKey, jwk, until });
    const created = { kid, privateKey, signsFrom, signsUntil };
    this.#own.push(created);
    return created;
  }

  async #refresh() {
    if (performance.now() - this.#readAt <= READ_AGAIN_MILLISECONDS) return;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read() {
    const rows = await this.#database.reading((tx) => readSigningKeys(tx, { at: this.#seconds() }));
    for (const [kid, { until }] of this.#published) if (until <= this.#seconds()) this.#published.delete(kid);
    for (const { public_jwk: jwk, until } of rows) {
      const kid = jwk.kid as string;
      if (this.#published.has(kid)) continue;
      this.#published.set(kid, { key: (await importJWK(jwk, 'ES256')) as CryptoKey, jwk, until });
    }
    this.#readAt = performance.now();
  }
}
