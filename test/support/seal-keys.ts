/** Keys that sign seals in tests. */
import { generateKeyPairSync } from 'node:crypto';
import { readSealKey, type SealKey } from '../../src/config/seal-key.ts';

/** The key of the test vector in docs/pack-format.md: that of RFC 8032, 7.1, test 1. */
export const SEAL_PEM = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
`;

export const sealKeyOf = (pem: string): SealKey => readSealKey({ SEAL_SIGNING_KEY: pem }) as SealKey;

export const SEAL_KEY: SealKey = sealKeyOf(SEAL_PEM);

export const newSealPem = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
