/** Keys that sign checkpoints in tests. */
import { generateKeyPairSync } from 'node:crypto';
import { type LogKey, readLogKey } from '../../src/config/log-key.ts';

/** The key of the test vector in docs/log-format.md: that of RFC 8032, 7.1, test 1. */
export const LOG_PEM = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
`;

export const logKeyOf = (pem: string): LogKey => readLogKey({ LOG_SIGNING_KEY: pem }, 'LOG_SIGNING_KEY') as LogKey;

export const LOG_KEY: LogKey = logKeyOf(LOG_PEM);

export const newLogPem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
