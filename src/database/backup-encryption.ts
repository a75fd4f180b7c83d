/**
 * Encrypts and decrypts backups in the format of age (age-encryption.org/v1), which `age` and `rage` can read too.
 * Encryption and decryption work in chunks of 64 KiB. Encryption hides the content, but only the signature inside the
 * file shows who wrote the file. Refusals: argument_invalid, environment_invalid, backup_encrypted, backup_invalid.
 */
import { open } from 'node:fs/promises';
import { ReadableStream as WebStream } from 'node:stream/web';
import { readSecretFile } from '#config/secret-files';
import { reasonOf, refuse } from '#errors/refusals';

type Chunks = AsyncIterable<Uint8Array>;
export type Encrypt = (chunks: Chunks) => Chunks;
export type Decrypt = (chunks: Chunks) => Chunks;

/** Matches private keys, so that no message prints a private key. */
const PRIVATE_KEY = /AGE-SECRET-KEY-[0-9A-Z-]*/gi;
const withoutKeys = (text: string) => text.replace(PRIVATE_KEY, 'AGE-SECRET-KEY-…');

/** The backup is encrypted to all of these public keys. Any one of the private keys can decrypt the file. */
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

/** Reads the private keys in a file written by `age-keygen`. */
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
/**
 * The limit in bytes, which is enough for hundreds of recipients. The end of the header is searched for within this
 * length.
 */
const LONGEST_HEADER = 64 * 1024;

/** Returns a decryption for the file, or undefined if the file is not encrypted. */
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
    // A read error is kept apart, because it does not mean that the content is invalid.
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

function problemOf(file: string, error: unknown) {
  if (/no identity matched/.test(reasonOf(error))) {
    return refuse('backup_encrypted', { file, reason: 'none of the keys in the file that --identity names opens it' });
  }
  return invalid(file, 'it is encrypted, and was changed or cut off afterwards', error);
}

const invalid = (file: string, reason: string, cause?: unknown) => refuse('backup_invalid', { file, reason }, cause);

/** The first bytes of a file, or empty if the file cannot be read: the later complete read reports the error. */
async function beginningOf(file: string) {
  const handle = await open(file, 'r').catch(() => undefined);
  try {
    const read = await handle?.read(Buffer.alloc(LONGEST_HEADER), 0, LONGEST_HEADER, 0).catch(() => undefined);
    return read?.buffer.toString('latin1', 0, read.bytesRead) ?? '';
  } finally {
    await handle?.close();
  }
}
