/**
 * Time stamps by an authority (RFC 3161): the request for a hash, and the check of the authority's answer. The check of
 * a bad answer returns a sentence and throws nothing. The libraries take 0.1 s to load, so they are loaded only when a
 * stamp is requested or checked.
 */
import { hash, randomBytes } from 'node:crypto';
import { DateTime } from 'luxon';
import * as Pkijs from 'pkijs';
import { reasonOf } from '#errors/refusals';

const SHA_256 = '2.16.840.1.101.3.4.2.1';
const SIGNED_DATA = '1.2.840.113549.1.7.2';
const TST_INFO = '1.2.840.113549.1.9.16.1.4';
const EXTENDED_KEY_USAGE = '2.5.29.37';
const TIME_STAMPING = '1.3.6.1.5.5.7.3.8';

/** An authority normally answers within a second. A run waits no longer than this time. */
const TIMEOUT_MS = 10_000;
/** An answer with its certificates takes 2 to 8 kB. Verifiers accept no larger answers. */
const LARGEST = 65_536;
/** The largest accepted difference between the authority's clock and our clock. */
const CLOCKS_MINUTES = 5;
const NONCE_BYTES = 8;

export interface TimeStamp {
  /** The authority's whole answer, in DER. */
  readonly response: Buffer;
  /** The time that the authority states, as an ISO instant. */
  readonly stampedAt: string;
}

type Answer = TimeStamp | { readonly problem: string };

/** Asks the authority at a URL to stamp the SHA-256 of a text. */
export async function requestTimeStamp(url: string, record: string, timeoutMs = TIMEOUT_MS): Promise<Answer> {
  // The first bit is 0 and the first byte is not 0, so DER encodes the nonce as a positive integer.
  const nonce = Buffer.concat([Buffer.of(1), randomBytes(NONCE_BYTES)]);
  const answer = await post(url, await requestFor(hashOf(record), nonce), timeoutMs);
  if (!Buffer.isBuffer(answer)) return answer;
  const checked = await checkTimeStamp(answer, record, nonce);
  if ('problem' in checked) return checked;
  const apart = Math.abs(DateTime.fromISO(checked.stampedAt).diffNow().as('minutes'));
  return apart <= CLOCKS_MINUTES
    ? checked
    : {
        problem: `states ${checked.stampedAt}, which is ${Math.round(apart)} minutes off our clock: correct the wrong one`,
      };
}

const hashOf = (record: string): Buffer => hash('sha256', record, 'buffer');

async function requestFor(hash: Buffer, nonce: Buffer): Promise<Buffer> {
  const { AlgorithmIdentifier, MessageImprint, TimeStampReq } = await import('pkijs');
  const { Integer, Null, OctetString } = await import('asn1js');
  const request = new TimeStampReq({
    version: 1,
    messageImprint: new MessageImprint({
      hashAlgorithm: new AlgorithmIdentifier({ algorithmId: SHA_256, algorithmParams: new Null() }),
      hashedMessage: new OctetString({ valueHex: arrayOf(hash) }),
    }),
    nonce: new Integer({ valueHex: arrayOf(nonce) }),
    certReq: true,
  });
  return Buffer.from(request.toSchema().toBER());
}

/** The copy has its own memory, because small Buffers share memory. */
const arrayOf = (bytes: Uint8Array) => new Uint8Array(bytes).buffer;

async function post(url: string, body: Buffer, timeoutMs: number): Promise<Buffer | { readonly problem: string }> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const headers = { 'content-type': 'application/timestamp-query', accept: 'application/timestamp-reply' };
    const answer = await fetch(url, { method: 'POST', headers, body: arrayOf(body), redirect: 'error', signal });
    if (!answer.ok) {
      await answer.body?.cancel();
      return { problem: `answered with HTTP status ${answer.status}` };
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > LARGEST) return { problem: `answered with more than ${LARGEST} bytes, which cannot be a time stamp` };
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (signal.aborted) return { problem: `did not answer within ${timeoutMs / 1000} seconds` };
    const { cause } = error as { cause?: unknown };
    return { problem: `cannot be reached: ${reasonOf(cause ?? error)}` };
  }
}

/**
 * Checks that the authority granted the request, and that the stamp is for the hash of this text and for this nonce.
 * For a stored answer, any nonce is accepted. The answer must contain the certificate that signed its token. This
 * certificate must be only for time stamping, and must have been valid at that time. This function does not check the
 * certificate's owner: `openssl ts -verify` checks the owner with the authority's own certificate.
 */
export async function checkTimeStamp(response: Buffer, record: string, nonce?: Buffer): Promise<Answer> {
  try {
    const { SignedData, TimeStampResp, TSTInfo } = await import('pkijs');
    const { status, timeStampToken } = TimeStampResp.fromBER(arrayOf(response));
    if (status.status > 1) {
      const said = (status.statusStrings ?? []).map(({ valueBlock: { value } }) => String(value)).join('; ');
      return { problem: `refused the request with status ${status.status}${said === '' ? '' : `: ${said}`}` };
    }
    if (timeStampToken?.contentType !== SIGNED_DATA) return { problem: 'answered without a signed token' };
    const signed = new SignedData({ schema: timeStampToken.content });
    const content = signed.encapContentInfo.eContent;
    if (signed.encapContentInfo.eContentType !== TST_INFO || content === undefined) {
      return { problem: 'signed something other than a time stamp' };
    }
    const info = TSTInfo.fromBER(content.getValue());
    const problem =
      faultOfContent(info, hashOf(record), nonce) ?? (await faultOfSignature(signed, record, info.genTime));
    return problem === undefined ? { response, stampedAt: info.genTime.toISOString() } : { problem };
  } catch {
    // The message quotes none of the unknown bytes.
    return { problem: 'answered with something other than a time stamp' };
  }
}

function faultOfContent(
  { messageImprint, nonce: stated }: Pkijs.TSTInfo,
  hash: Buffer,
  nonce?: Buffer,
): string | undefined {
  const { hashAlgorithm, hashedMessage } = messageImprint;
  if (hashAlgorithm.algorithmId !== SHA_256 || !hash.equals(Buffer.from(hashedMessage.getValue()))) {
    return 'stamped a hash other than that of the record';
  }
  if (nonce === undefined) return undefined;
  if (stated === undefined || !nonce.equals(Buffer.from(stated.valueBlock.valueHexView))) {
    return 'answered another request: its nonce differs from the one sent';
  }
  return undefined;
}

/**
 * The messages of pkijs if it does not find the signer's certificate: the answer has no certificate, or only other
 * certificates.
 */
const NO_CERTIFICATE: readonly (number | undefined)[] = [2, 3];

async function faultOfSignature(signed: Pkijs.SignedData, record: string, at: Date): Promise<string | undefined> {
  if (signed.signerInfos.length !== 1) return 'did not sign its token exactly once';
  const { signatureVerified, signerCertificate, code } = await signed
    .verify({ signer: 0, checkChain: false, extendedMode: true, data: arrayOf(Buffer.from(record)) })
    // pkijs rejects with the result that it has so far.
    .catch((found: Partial<Pkijs.SignedDataVerifyResult> & { code?: number }) => found);
  if (NO_CERTIFICATE.includes(code)) return 'omitted its signing certificate';
  if (signatureVerified !== true || !signerCertificate) return 'signed its token with an invalid signature';
  const usage = signerCertificate.extensions?.find(({ extnID }) => extnID === EXTENDED_KEY_USAGE);
  const purposes = (usage?.parsedValue as { keyPurposes?: string[] } | undefined)?.keyPurposes ?? [];
  if (!usage?.critical || purposes.length !== 1 || purposes[0] !== TIME_STAMPING) {
    return 'signed its token with a certificate that is not only for time stamping';
  }
  if (at < signerCertificate.notBefore.value || at > signerCertificate.notAfter.value) {
    return 'signed its token with a certificate that was not valid at that time';
  }
  return undefined;
}
