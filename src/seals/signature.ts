/**
 * Signatures of seals: the record of a seal as a signed note (https://c2sp.org/signed-note) with an Ed25519 signature of
 * the operator's key. docs/pack-format.md has the format. Refusal: signing_key_missing.
 */

import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Environment } from '../config/environment.ts';
import type { SealKey } from '../config/seal-key.ts';
import { readInstallation } from '../database/installation.sql.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type Actor, recordEvent } from '../people/audit-events.ts';
import {
  insertSignature,
  readLatestKey,
  type SealName,
  type SealSignature,
  type SigningKey,
} from './signatures.sql.ts';

/** A seal's name in a sentence. */
export const sealTitle = ({ kind, name }: SealName): string =>
  ({ month: `seal of ${name}`, books: `seal of the books of ${name}`, checkpoint: `checkpoint ${name}` })[kind];

/** The algorithm byte of Ed25519. */
const ED25519 = Buffer.of(1);
const base64 = (bytes: Buffer): string => bytes.toString('base64');

/** The first 4 bytes of the SHA-256 of the name, LF, the algorithm and the public key. */
function keyId({ key_name, public_key }: SigningKey): Buffer {
  return createHash('sha256')
    .update(`${key_name}\n`)
    .update(ED25519)
    .update(Buffer.from(public_key, 'base64'))
    .digest()
    .subarray(0, 4);
}

/** The verifier key: what an auditor needs to check signatures by this key. */
export function vkeyOf(key: SigningKey): string {
  const { key_name, public_key } = key;
  return `${key_name}+${keyId(key).toString('hex')}+${base64(Buffer.concat([ED25519, Buffer.from(public_key, 'base64')]))}`;
}

/** NAME+KEYID: a verifier key without the key itself, for people. */
export const keyIdOf = (vkey: string): string => vkey.slice(0, vkey.lastIndexOf('+'));

/** The signature line of a note with its line end, which is the content of a `.sig` file. */
export const signatureLine = (each: SealSignature): string =>
  `— ${each.key_name} ${base64(Buffer.concat([keyId(each), Buffer.from(each.signature, 'base64')]))}\n`;

/** The signed note: the record, an empty line, and the signature. */
export const noteOf = (record: string, signature: SealSignature): string => `${record}\n${signatureLine(signature)}`;

/** The name of the operator's key. */
export const keyNameOf = (installationId: string): string => `reckoner-${installationId}`;

const signingKeyOf = ({ publicKey }: SealKey, installationId: string): SigningKey => ({
  key_name: keyNameOf(installationId),
  public_key: base64(publicKey),
});

export const signRecord = (record: string, key: SealKey, installationId: string): SealSignature => ({
  ...signingKeyOf(key, installationId),
  signature: base64(sign(null, Buffer.from(record), key.privateKey)),
});

const SPKI_ED25519 = Buffer.from('302a300506032b6570032100', 'hex');

/** Whether the signature over the record verifies with its public key. */
export function isValid(record: string, { public_key, signature }: SealSignature): boolean {
  let key: KeyObject;
  try {
    const der = Buffer.concat([SPKI_ED25519, Buffer.from(public_key, 'base64')]);
    key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    return false;
  }
  return verify(null, Buffer.from(record), key, Buffer.from(signature, 'base64'));
}

/** A seal that was just made. */
interface NewSeal extends SealName {
  readonly record: string;
  readonly seal: string;
  /** The event that made it. */
  readonly eventId: number;
  /** ISO instant. */
  readonly now: string;
}

/**
 * Signs a seal in the transaction that makes it, if there is a key. Once one seal is signed, every later seal must be
 * signed when it is made, because it cannot be signed afterwards. The first signature by a key records an event with
 * this key and the previous one, so a change of the key is visible.
 */
export async function signSeal(
  tx: Transaction,
  { environment, actor }: { readonly environment: Pick<Environment, 'sealKey'>; readonly actor: Actor },
  { kind, name, record, seal, eventId, now }: NewSeal,
): Promise<void> {
  const before = await readLatestKey(tx);
  if (environment.sealKey === undefined) {
    if (before !== undefined)
      throw refuse('signing_key_missing', { seal: sealTitle({ kind, name }), key: vkeyOf(before) });
    return;
  }
  const { installation_id } = await readInstallation(tx);
  const signature = signRecord(record, environment.sealKey, installation_id);
  if (before?.public_key !== signature.public_key) {
    const details = { key: vkeyOf(signature), previous: before === undefined ? null : vkeyOf(before) };
    await recordEvent(tx, actor, { action: 'signing_key.change', subject: signature.key_name, details, now });
  }
  await insertSignature(tx, { kind, name, seal, ...signature, now, eventId });
}

/** How seals are signed. */
export interface SigningStatus {
  /** The key that signs the next seal; null if there is none. */
  readonly key: string | null;
  /** The key of the latest signature; null before the first. */
  readonly latest: string | null;
}

export async function readSigning(tx: Transaction, { sealKey }: Pick<Environment, 'sealKey'>): Promise<SigningStatus> {
  const latest = await readLatestKey(tx);
  const { installation_id } = await readInstallation(tx);
  return {
    key: sealKey === undefined ? null : vkeyOf(signingKeyOf(sealKey, installation_id)),
    latest: latest === undefined ? null : vkeyOf(latest),
  };
}
