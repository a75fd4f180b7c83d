/** A stand-in for a time-stamping authority (RFC 3161) with a CA of its own: OpenSSL answers, this file only carries. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tool } from './tools.ts';

/** What is done with a request, in DER: the whole answer. */
export type Answering = (query: Buffer, response: ServerResponse) => Buffer | string | undefined;

export interface TimeStampAuthority {
  readonly url: string;
  /** The certificate of its CA, a PEM file, and a folder for whoever checks. */
  readonly ca: string;
  readonly folder: string;
  /** How many requests it had. */
  readonly requests: () => number;
  /** Answers like this from now on; without it, as it should. */
  readonly answer: (answering?: Answering) => void;
  readonly stamp: (query: Buffer, section?: 'good' | 'refusing') => Buffer;
  /** A request for other data, or with another nonce for the same hash (in hex). */
  readonly query: (of: { data: string } | { hash: string }) => Buffer;
  /** The same time stamp signed by another certificate. */
  readonly signedBy: (query: Buffer, signer: 'expired' | 'web', ...flags: string[]) => Buffer;
  readonly end: () => Promise<void>;
}

const SECTIONS = (folder: string) =>
  (['good', 'refusing'] as const)
    .map(
      (name) =>
        `[${name}]\nserial=${folder}/serial\nsigner_digest=sha256\ndefault_policy=1.2.3.4.1\n` +
        `digests=${name === 'good' ? 'sha256' : 'sha512'}\naccuracy=secs:1\ness_cert_id_chain=no\ness_cert_id_alg=sha256\n`,
    )
    .join('');

export async function openAuthority({ key = 'ec' }: { key?: 'ec' | 'rsa' } = {}): Promise<TimeStampAuthority> {
  const folder = mkdtempSync(join(tmpdir(), 'reckoner-authority-'));
  const at = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync(tool('openssl'), args, { cwd: folder, stdio: 'pipe' });
  const newKey = key === 'ec' ? ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'] : ['rsa:2048'];
  openssl(
    'req',
    '-x509',
    '-newkey',
    ...newKey,
    ...'-nodes -keyout ca.key -out ca.pem -days 3650 -subj /CN=CA'.split(' '),
  );
  const certify = (name: string, usage: string, days: string) => {
    writeFileSync(at('ext'), `extendedKeyUsage=critical,${usage}\nkeyUsage=critical,digitalSignature\n`);
    openssl('req', '-newkey', ...newKey, ...`-nodes -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`.split(' '));
    const request = `x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile ext -out ${name}.pem`;
    openssl(...request.split(' '), '-days', days);
  };
  certify('tsa', 'timeStamping', '3650');
  certify('expired', 'timeStamping', '-1');
  certify('web', 'serverAuth', '3650');
  writeFileSync(at('serial'), '01');
  writeFileSync(at('tsa.cnf'), SECTIONS(folder));

  const stamp: TimeStampAuthority['stamp'] = (query, section = 'good') => {
    writeFileSync(at('query'), query);
    const reply = 'ts -reply -config tsa.cnf -queryfile query -signer tsa.pem -inkey tsa.key -out response';
    openssl(...reply.split(' '), '-section', section);
    return readFileSync(at('response'));
  };
  let answering: Answering | undefined;
  let requests = 0;
  const server = createServer((request: IncomingMessage, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      requests += 1;
      const query = Buffer.concat(pieces);
      const answer = answering === undefined ? stamp(query) : answering(query, response);
      if (answer !== undefined) response.end(answer);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/stamp`,
    ca: at('ca.pem'),
    folder,
    requests: () => requests,
    answer(next) {
      answering = next;
    },
    stamp,
    query(of) {
      const what = 'data' in of ? ['-data', at('data')] : ['-digest', of.hash];
      if ('data' in of) writeFileSync(at('data'), of.data);
      openssl('ts', '-query', ...what, ...'-sha256 -cert -out other'.split(' '));
      return readFileSync(at('other'));
    },
    signedBy(query, signer, ...flags) {
      stamp(query);
      openssl(...'ts -reply -in response -token_out -out token'.split(' '));
      openssl(...'cms -verify -noverify -inform DER -in token -out info'.split(' '));
      const signing = `cms -sign -binary -nodetach -outform DER -in info -out again -signer ${signer}.pem -inkey ${signer}.key`;
      openssl(...signing.split(' '), '-econtent_type', '1.2.840.113549.1.9.16.1.4', ...flags);
      return sequence(Buffer.from('3003020100', 'hex'), readFileSync(at('again')));
    },
    async end() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A DER SEQUENCE of up to 65,535 bytes. */
function sequence(...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(0x30, 0x82, content.length >> 8, content.length & 0xff), content]);
}
