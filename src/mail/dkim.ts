/**
 * Signs e-mails (DKIM, RFC 6376), so that recipients can verify the sender's domain and the content, above all bank
 * details. A message is signed when it is composed, so that a repeated one has the same bytes.
 */
import { createPublicKey, KeyObject } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import DKIM from 'nodemailer/lib/dkim';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';

type SigningContext = Readonly<{ environment: Pick<Environment, 'dkimKey'>; settings: Settings }>;

export async function signMessage(raw: Buffer, { environment, settings }: SigningContext) {
  const { dkimKey } = environment;
  if (dkimKey === undefined) return raw;
  const privateKey = dkimKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const dkim = new DKIM({ domainName: dkimDomain(settings), keySelector: settings.dkim.selector, privateKey });
  const signed = await buffer(dkim.sign(raw));
  // nodemailer sends a message unsigned if it cannot sign it.
  if (!signed.subarray(0, 15).equals(Buffer.from('DKIM-Signature:'))) throw new Error('the e-mail could not be signed');
  return signed;
}

export type DkimRecord = Readonly<{
  name: string;
  value: string;
}>;

/** The DNS record for the current key, or null if e-mails are not signed. */
export function dkimRecord({ environment, settings }: SigningContext): DkimRecord | null {
  const { dkimKey } = environment;
  const domain = dkimDomain(settings);
  if (dkimKey === undefined || domain === '') return null;
  return { name: `${settings.dkim.selector}._domainkey.${domain}`, value: `v=DKIM1; k=rsa; p=${publicPart(dkimKey)}` };
}

const publicPart = (key: KeyObject) => createPublicKey(key).export({ format: 'der', type: 'spki' }).toString('base64');

/** A signature counts for DMARC only if its domain is the sender's. */
const dkimDomain = ({ dkim, mail_from: from }: Settings) =>
  dkim.domain === '' ? from.slice(from.lastIndexOf('@') + 1) : dkim.domain;
