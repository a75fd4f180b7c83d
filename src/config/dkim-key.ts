import { refuse } from '#errors/refusals';
import { readPrivateKey } from './log-key.ts';

const MAKE_ONE = "'openssl genrsa -out FILE 2048' makes one";
/** RFC 8301: verifiers refuse keys shorter than 1,024 bits, and signers should use at least 2,048 bits. */
const LEAST_BITS = 2048;

export function readDkimKey(variables: NodeJS.ProcessEnv) {
  const read = readPrivateKey(variables, 'DKIM_PRIVATE_KEY', MAKE_ONE);
  if (read === undefined) return undefined;
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = read.privateKey;
  const bits = details?.modulusLength ?? 0;
  if (type === 'rsa' && bits >= LEAST_BITS) return read.privateKey;
  const found = type === 'rsa' ? `is a key of ${bits} bits` : `is a key of the type ${type}`;
  const reason = `${found}, but must be an RSA key of at least ${LEAST_BITS} bits; ${MAKE_ONE}`;
  throw refuse('environment_invalid', { variable: read.from, reason });
}
