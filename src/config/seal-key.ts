/** The key that signs seals: Ed25519, from SEAL_SIGNING_KEY or SEAL_SIGNING_KEY_FILE. Refusal: environment_invalid. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { refuse } from '../errors/refusals.ts';
import { readSecretFile } from './secret-files.ts';

export const SEAL_SIGNING_KEY = 'SEAL_SIGNING_KEY';
export const SEAL_SIGNING_KEY_FILE = 'SEAL_SIGNING_KEY_FILE';

/** Node prints a KeyObject without its content, so that the key cannot end up in a log. */
export interface SealKey {
  readonly privateKey: KeyObject;
  /** 32 bytes. */
  readonly publicKey: Buffer;
}

const MAKE_ONE = "'openssl genpkey -algorithm ed25519 -out FILE' makes one";

export function readSealKey(variables: NodeJS.ProcessEnv): SealKey | undefined {
  const text = variables[SEAL_SIGNING_KEY];
  const file = variables[SEAL_SIGNING_KEY_FILE];
  if (text && file) throw invalid(SEAL_SIGNING_KEY, `and ${SEAL_SIGNING_KEY_FILE} are both set: keep one of them`);
  // Where a variable has one line only, line ends are written as \n.
  if (text) return parse(SEAL_SIGNING_KEY, text.replaceAll('\\n', '\n'));
  return file ? parse(SEAL_SIGNING_KEY_FILE, readSecretFile(SEAL_SIGNING_KEY_FILE, file)) : undefined;
}

const invalid = (variable: string, reason: string) => refuse('environment_invalid', { variable, reason });

function parse(variable: string, pem: string): SealKey {
  if (!/^\s*-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)) {
    throw invalid(
      variable,
      `must be a private key in PEM form, which begins with -----BEGIN PRIVATE KEY-----; ${MAKE_ONE}`,
    );
  }
  if (pem.includes('ENCRYPTED'))
    throw invalid(variable, 'is an encrypted key, and nobody is there to type its password');
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    // Without the cause: no part of the key may reach a log.
    throw invalid(variable, `is damaged: it is not a private key in PEM form; ${MAKE_ONE}`);
  }
  const type = privateKey.asymmetricKeyType;
  if (type !== 'ed25519')
    throw invalid(variable, `is a key of the type ${type}, but must be an Ed25519 key; ${MAKE_ONE}`);
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
  return { privateKey, publicKey };
}
