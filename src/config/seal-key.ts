/** Reads the Ed25519 key that signs seals. Refusal: environment_invalid. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { refuse } from '../errors/refusals.ts';
import { readSecretFile } from './secret-files.ts';

const SEAL_SIGNING_KEY = 'SEAL_SIGNING_KEY';
export const SEAL_SIGNING_KEY_FILE = 'SEAL_SIGNING_KEY_FILE';

/** A KeyObject cannot end up in a log, because Node prints it without its content. */
export interface SealKey {
  readonly privateKey: KeyObject;
  readonly publicKey: Buffer;
}

const MAKE_ONE = "'openssl genpkey -algorithm ed25519 -out FILE' makes one";

/**
 * Reads a private key in PEM form from the variable, or from the file that `<variable>_FILE` names, or undefined if
 * neither variable is set.
 */
export function readPrivateKey(
  variables: NodeJS.ProcessEnv,
  variable: string,
  makeOne: string,
): { readonly privateKey: KeyObject; readonly from: string } | undefined {
  const text = variables[variable];
  const from = `${variable}_FILE`;
  const file = variables[from];
  if (text && file) throw invalid(variable, `and ${from} are both set: keep one of them`);
  // A single-line variable has `\
  // ` in place of line ends.
  if (text) return { privateKey: parse(variable, text.replaceAll('\\n', '\n'), makeOne), from: variable };
  return file ? { privateKey: parse(from, readSecretFile(from, file), makeOne), from } : undefined;
}

export function readSealKey(variables: NodeJS.ProcessEnv): SealKey | undefined {
  const read = readPrivateKey(variables, SEAL_SIGNING_KEY, MAKE_ONE);
  if (read === undefined) return undefined;
  const { privateKey, from } = read;
  const type = privateKey.asymmetricKeyType;
  if (type !== 'ed25519') throw invalid(from, `is a key of the type ${type}, but must be an Ed25519 key; ${MAKE_ONE}`);
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
  return { privateKey, publicKey };
}

const invalid = (variable: string, reason: string) => refuse('environment_invalid', { variable, reason });

function parse(variable: string, pem: string, makeOne: string): KeyObject {
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
