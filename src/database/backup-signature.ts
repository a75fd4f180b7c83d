/**
 * Signs backups with the key that signs checkpoints. The hash in a file only detects damage, because anyone who changes the
 * file can recompute the hash.
 */
import { createPublicKey, sign, verify } from 'node:crypto';
import { LogKey } from '#config/log-key';
import { refuse } from '#errors/refusals';

/** No signed note of a checkpoint begins with this text, so neither signature is valid for the other. */
const signedText = (sha256: string) => Buffer.from(`reckoner-backup\n${sha256}\n`);

export const signatureOf = (sha256: string, { privateKey }: LogKey) =>
  sign(null, signedText(sha256), privateKey).toString('base64');

/** Refuses a backup that this key did not sign (backup_invalid). */
export function refuseUnlessSigned(
  file: string,
  { sha256, signature }: Readonly<{ sha256: string; signature?: string | undefined }>,
  { privateKey }: LogKey,
) {
  const isOurs =
    signature !== undefined &&
    verify(null, signedText(sha256), createPublicKey(privateKey), Buffer.from(signature, 'base64'));
  if (isOurs) return;
  const fault = signature === undefined ? 'it is not signed' : 'it was not signed with the key that signs checkpoints';
  const reason =
    `${fault}, so anyone who could write the file may have changed it. If it is older than the key, restore it without ` +
    'LOG_SIGNING_KEY_FILE';
  throw refuse('backup_invalid', { file, reason });
}
