/**
 * Encrypted backups, in the format of age (age-encryption.org/v1), which `age` and `rage` can read too. Both directions
 * work in chunks of 64 KiB. Encryption hides the content; only the signature inside shows who wrote it.
 * Refusals: argument_invalid, environment_invalid, backup_encrypted, backup_invalid.
 */
import { open } from 'node:fs/promises';
import { ReadableStream as WebStream } from 'node:stream/web';
import { readSecretFile } from '../config/secret-files.ts';
import { type Refusal, reasonOf, refuse } from '../errors/refusals.ts';

type Chunks = AsyncIterable<Uint8Array>;
export type Encrypt = (chunks: Chunks) => Chunks;
export type Decrypt = (chunks: Chunks) => Chunks;

/** A private key is never printed, wherever it was given. */
const PRIVATE_KEY = /AGE-SECRET-KEY-[0-9A-Z-]*/gi;
const withoutKeys = (text: string): string => text.replace(PRIVATE_KEY, 'AGE-SECRET-KEY-…');

/** Encrypts to each of these public keys: any one of their private keys opens the file. */
export async function encryptionTo(argument: string, recipients: readonly string[]): Promise<Encrypt | undefined> {
  if (recipients.length === 0) return undefined;
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  for (const value of recipients) {
    try {
      encrypter.addRecipient(value);
    } catch {
      const reason = 'is not a public key of age (age1…)';
      throw refuse('argument_invalid', { argument, value: withoutKeys(value), reason });
    }
  }
  return async function* encrypted(chunks) {
    yield* await encrypter.encrypt(WebStream.from(chunks) as ReadableStream<Uint8Array>);
  };
}

/** The private keys in a file written by `age-keygen`. */
export async function readIdentities(file: string): Promise<readonly string[]> {
  const variable = '--identity';
  if (withoutKeys(file) !== file) {
    const reason = 'is a key: write it to a file that only you can read, and name the file';
    throw refuse('argument_invalid', { argument: variable, value: withoutKeys(file), reason });
  }
  const { Decrypter } = await import('age-encryption');
  const lines = readSecretFile(variable, file).split(/\r?\n/);
  const identities = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  try {
    for (const identity of identities) new Decrypter().addIdentity(identity);
  } catch {
    identities.length = 0;
  }
  if (identities.length > 0) return identities;
  const reason = 'is not a file of private keys of age (AGE-SECRET-KEY-1…)';
  throw refuse('argument_invalid', { argument: variable, value: file, reason });
}

const FIRST_LINE = 'age-encryption.org/v1\n';
const FIRST_LINE_OF_TEXT = '-----BEGIN AGE ENCRYPTED FILE-----';
/** Room for hundreds of recipients. The end of the header is searched for up to here. */
const LONGEST_HEADER = 64 * 1024;

/** How to decrypt this file; undefined if it is not encrypted. */
export async function decryptionOf(file: string, identities: readonly string[]): Promise<Decrypt | undefined> {
  const start = await beginningOf(file);
  if (start.startsWith(FIRST_LINE_OF_TEXT)) {
    throw invalid(file, "it is encrypted in age's text form: decrypt it with 'age -d' first");
  }
  if (!start.startsWith(FIRST_LINE)) return undefined;
  if (identities.length === 0) {
    throw refuse('backup_encrypted', {
      file,
      reason: 'the file of its private key is missing: name it with --identity',
    });
  }
  if (!/\n--- .*\n/.test(start)) throw invalid(file, 'it is encrypted, and its header is damaged');
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  return async function* decrypted(chunks) {
    // A file that cannot be read may still have valid content.
    let unreadable: unknown;
    const read = async function* () {
      try {
        yield* chunks;
      } catch (error) {
        unreadable = error;
        throw error;
      }
    };
    try {
      yield* await decrypter.decrypt(WebStream.from(read()) as ReadableStream<Uint8Array>);
    } catch (error) {
      if (unreadable !== undefined) throw unreadable;
      throw problemOf(file, error);
    }
  };
}

function problemOf(file: string, error: unknown): Refusal {
  if (/no identity matched/.test(reasonOf(error))) {
    return refuse('backup_encrypted', { file, reason: 'none of the keys in the file that --identity names opens it' });
  }
  return invalid(file, 'it is encrypted, and was changed or cut off afterwards', error);
}

const invalid = (file: string, reason: string, cause?: unknown): Refusal =>
  refuse('backup_invalid', { file, reason }, cause);

/** Empty if the file cannot be read: reading all of it reports why. */
async function beginningOf(file: string): Promise<string> {
  const handle = await open(file, 'r').catch(() => undefined);
  try {
    const read = await handle?.read(Buffer.alloc(LONGEST_HEADER), 0, LONGEST_HEADER, 0).catch(() => undefined);
    return read?.buffer.toString('latin1', 0, read.bytesRead) ?? '';
  } finally {
    await handle?.close();
  }
}
