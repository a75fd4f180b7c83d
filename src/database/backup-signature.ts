/**
 * The signature of a backup, made with the key that signs seals. The hash in the file only detects damage, since anyone
 * who changes the file can recompute it.
 */
import { createPublicKey, sign, verify } from 'node:crypto';
import type { SealKey } from '../config/seal-key.ts';
import { refuse } from '../errors/refusals.ts';

/** No note of a seal begins with this text. */
const signedText = (sha256: string): Buffer => Buffer.from(`reckoner-backup\n${sha256}\n`);

export const signatureOf = (sha256: string, { privateKey }: SealKey): string =>
  sign(null, signedText(sha256), privateKey).toString('base64');

/** Refusal: backup_invalid, unless this key signed it. */
export function refuseUnlessSigned(
  file: string,
  { sha256, signature }: { readonly sha256: string; readonly signature?: string | undefined },
  { privateKey }: SealKey,
): void {
  const isOurs =
    signature !== undefined &&
    verify(null, signedText(sha256), createPublicKey(privateKey), Buffer.from(signature, 'base64'));
  if (isOurs) return;
  const fault = signature === undefined ? 'it is not signed' : 'it was not signed with the key that signs seals';
  const reason =
    `${fault}, so anyone who could write the file may have changed it. If it is older than the key, restore it without ` +
    'SEAL_SIGNING_KEY_FILE';
  throw refuse('backup_invalid', { file, reason });
}
