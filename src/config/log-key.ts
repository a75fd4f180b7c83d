/**
 * The key that signs checkpoints: Ed25519, from LOG_SIGNING_KEY or LOG_SIGNING_KEY_FILE. Refusal: environment_invalid.
 */
import { createPrivateKey, createPublicKey, KeyObject } from 'node:crypto';
import { refuse } from '#errors/refusals';
import { readSecretFile } from './secret-files.ts';

export const LOG_SIGNING_KEY_FILE = 'LOG_SIGNING_KEY_FILE';

/** Node prints a KeyObject without its content, so no log can get it. */
export interface LogKey {
  readonly privateKey: KeyObject;
  readonly publicKey: Buffer;
}

const MAKE_ONE = "'openssl genpkey -algorithm ed25519 -out FILE' makes one";

/** A private key in PEM form from the variable, or from the file that `<variable>_FILE` names. */
export function readPrivateKey(
  variables: NodeJS.ProcessEnv,
  variable: string,
  makeOne: string,
): Readonly<{ privateKey: KeyObject; from: string }> | undefined {
  const text = variables[variable];
  const from = `${variable}_FILE`;
  const file = variables[from];
  if (text && file) throw invalid(variable, `and ${from} are both set: keep one of them`);
  // A variable of one line has `\n` in place of line ends.
  if (text) return { privateKey: parse(variable, text.replaceAll('\\n', '\n'), makeOne), from: variable };
  return file ? { privateKey: parse(from, readSecretFile(from, file), makeOne), from } : undefined;
}

export function readLogKey(variables: NodeJS.ProcessEnv, variable: string): LogKey | undefined {
  const read = readPrivateKey(variables, variable, MAKE_ONE);
  if (read === undefined) return undefined;
  const { privateKey, from } = read;
  const type = privateKey.asymmetricKeyType;
  if (type !== 'ed25519') throw invalid(from, `is a key of the type ${type}, but must be an Ed25519 key; ${MAKE_ONE}`);
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
  return { privateKey, publicKey };
}

const invalid = (variable: string, reason: string) => refuse('environment_invalid', { variable, reason });

function parse(variable: string, pem: string, makeOne: string) {
  if (!/^\s*-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    throw invalid(
      variable,
      `must be a private key in PEM form, which begins with -----BEGIN PRIVATE KEY-----; ${makeOne}`,
    );
  }
  if (pem.includes('ENCRYPTED'))
    throw invalid(variable, 'is an encrypted key, and Reckoner cannot ask for its password');
  try {
    return createPrivateKey(pem);
  } catch {
    // The error has no cause, so that no part of the key can reach a log.
    throw invalid(variable, `is damaged: it is not a private key in PEM form; ${makeOne}`);
  }
}
