/**
 * Checkpoints of a log as signed notes (https://c2sp.org/tlog-checkpoint, https://c2sp.org/signed-note), and
 * cosignatures of witnesses (https://c2sp.org/tlog-cosignature).
 */
import { createHash, createPublicKey, KeyObject, sign, verify } from 'node:crypto';

export type TreeHead = Readonly<{
  origin: string;
  size: number;
  /** 32 bytes. */
  root: Buffer;
}>;

/** A public key of 32 bytes, and its name in signature lines. */
export interface NoteKey {
  readonly name: string;
  readonly publicKey: Buffer;
}

/** The bytes for two types of signature: an Ed25519 signature of a note, and a witness's cosignature. */
const ED25519 = 1;
const COSIGNATURE = 4;
const base64 = (bytes: Buffer) => bytes.toString('base64');

/** The text of a checkpoint. Signatures cover this text. */
export const bodyOf = ({ origin, size, root }: TreeHead) => `${origin}\n${size}\n${base64(root)}\n`;

/** Writes a note from a checkpoint and its signature lines, which have no line ends. */
export const noteOf = (head: TreeHead, lines: readonly string[]) =>
  `${bodyOf(head)}\n${lines.map((line) => `${line}\n`).join('')}`;

function keyId({ name, publicKey }: NoteKey, type: number) {
  return createHash('sha256').update(`${name}\n`).update(Buffer.of(type)).update(publicKey).digest().subarray(0, 4);
}

function vkey(key: NoteKey, type: number) {
  return `${key.name}+${keyId(key, type).toString('hex')}+${base64(Buffer.concat([Buffer.of(type), key.publicKey]))}`;
}

/** The verifier key of a log in the form NAME+ID+KEY. An auditor needs this key to check the log's signatures. */
export const vkeyOf = (key: NoteKey) => vkey(key, ED25519);

/** The verifier key of a witness. */
export const witnessKeyOf = (key: NoteKey) => vkey(key, COSIGNATURE);

/** NAME+ID, for people: a verifier key without its last part, the public key. */
export const keyIdOf = (key: string) => key.slice(0, key.lastIndexOf('+'));

/**
 * Reads a verifier key. Returns undefined if the key is damaged. `isWitness` tells whether the key belongs to a witness
 * or to a log.
 */
export function readKey(text: string): (NoteKey & { readonly isWitness: boolean }) | undefined {
  const [, name = '', id = '', encoded = ''] =
    /^([!-*,-~]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})$/.exec(text.trim()) ?? [];
  const bytes = Buffer.from(encoded, 'base64');
  const [type] = bytes;
  if (bytes.length !== 33 || (type !== ED25519 && type !== COSIGNATURE)) return undefined;
  const key = { name, publicKey: bytes.subarray(1) };
  return keyId(key, type).toString('hex') === id ? { ...key, isWitness: type === COSIGNATURE } : undefined;
}

const lineOf = (key: NoteKey, type: number, signature: Buffer) =>
  `— ${key.name} ${base64(Buffer.concat([keyId(key, type), signature]))}`;

/** The signature line that a log's key makes. */
export const signHead = (head: TreeHead, key: NoteKey, privateKey: KeyObject) =>
  lineOf(key, ED25519, sign(null, Buffer.from(bodyOf(head)), privateKey));

const cosigned = (head: TreeHead, seconds: number) => Buffer.from(`cosignature/v1\ntime ${seconds}\n${bodyOf(head)}`);

/** The cosignature line that a witness makes at a time, in whole seconds since 1970. */
export function cosignHead(head: TreeHead, key: NoteKey, privateKey: KeyObject, seconds: number) {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  return lineOf(key, COSIGNATURE, Buffer.concat([time, sign(null, cosigned(head, seconds), privateKey)]));
}

const SPKI_ED25519 = Buffer.from('302a300506032b6570032100', 'hex');

/** Whether a signature (Ed25519, 64 bytes) is valid. */
export function isSigned(content: Buffer, signature: Buffer, publicKey: Buffer) {
  try {
    const key = createPublicKey({ key: Buffer.concat([SPKI_ED25519, publicKey]), format: 'der', type: 'spki' });
    return verify(null, content, key, signature);
  } catch {
    return false;
  }
}

export interface Note {
  readonly head: TreeHead;
  readonly lines: readonly string[];
}

/** Reads a note. Returns undefined if the text is not a note. */
export function readNote(text: string): Note | undefined {
  const match =
    /^([^\s+]+)\n(0|[1-9][0-9]{0,14})\n([A-Za-z0-9+/]{43}=)\n\n((?:— [!-*,-~]+ [A-Za-z0-9+/]+={0,2}\n)*)$/.exec(text);
  if (match === null) return undefined;
  const [, origin = '', size = '', root = '', lines = ''] = match;
  return {
    head: { origin, size: Number.parseInt(size, 10), root: Buffer.from(root, 'base64') },
    lines: lines.split('\n').filter((line) => line !== ''),
  };
}

/** Whether one of the lines has a valid signature of the head by this key. Lines of other keys are ignored. */
export function isSignedBy(head: TreeHead, lines: readonly string[], key: NoteKey & { readonly isWitness?: boolean }) {
  const type = key.isWitness ? COSIGNATURE : ED25519;
  const id = keyId(key, type);
  return lines.some((line) => {
    const [, name, encoded = ''] = line.split(' ');
    const bytes = Buffer.from(encoded, 'base64');
    if (name !== key.name || !bytes.subarray(0, 4).equals(id)) return false;
    if (type === ED25519) return isSigned(Buffer.from(bodyOf(head)), bytes.subarray(4), key.publicKey);
    if (bytes.length !== 76) return false;
    return isSigned(cosigned(head, Number(bytes.readBigUInt64BE(4))), bytes.subarray(12), key.publicKey);
  });
}
