/**
 * Composes the exact bytes of an e-mail and the addresses on its envelope. The same input gives the same bytes.
 * Refusal: argument_invalid (not exactly one e-mail address).
 */
import { hash } from 'node:crypto';
import MailComposer from 'nodemailer/lib/mail-composer';
import MimeNode from 'nodemailer/lib/mime-node';
import { encode as encodeQuoted, wrap as wrapQuoted } from 'nodemailer/lib/qp';
import { emailAddress } from '#config/validation';
import { refuse } from '#errors/refusals';
import { oneLine } from './text.ts';

export type Mailbox = Readonly<{
  /** The display name; may be empty or contain any text. */
  name: string;
  address: string;
}>;

export type Attachment = Readonly<{
  filename: string;
  contentType: string;
  content: Buffer;
}>;

export type MessageParts = Readonly<{
  /** With or without the angle brackets. Fixed before the first attempt. */
  messageId: string;
  /** An ISO instant. */
  date: string;
  from: Mailbox;
  /** If absent or empty, replies go to `from`. */
  replyTo?: string | undefined;
  to: Mailbox;
  cc: readonly string[];
  content: EmailText;
  attachments: readonly Attachment[];
}>;

/** These alone determine who gets the message. */
export interface Envelope {
  from: string;
  to: string[];
}

/** Whether a text is exactly one e-mail address, without a name. */
export const isOneAddress = (text: string) => emailAddress.safeParse(text).success;

/** The sender and the recipients, each a single address and none twice. */
export function envelopeOf(message: Pick<MessageParts, 'from' | 'to' | 'cc'>): Envelope {
  const from = checkedAddress('sender', message.from.address);
  const to = checkedAddress('recipient', message.to.address);
  return { from, to: [to, ...copiesOf(message)] };
}

/** The recipients of copies, without recipients who get the message anyway. */
function copiesOf({ to, cc }: Pick<MessageParts, 'to' | 'cc'>) {
  const seen = new Set([to.address.toLowerCase()]);
  return cc
    .map((address) => checkedAddress('copy recipient', address))
    .filter((address) => {
      const known = seen.has(address.toLowerCase());
      seen.add(address.toLowerCase());
      return !known;
    });
}

function checkedAddress(role: string, address: string) {
  if (isOneAddress(address)) return address;
  throw refuse('argument_invalid', {
    argument: `The e-mail address of the ${role}`,
    value: oneLine(address),
    reason: 'is not exactly one address such as ap@partner.example',
  });
}

const MESSAGE_ID = /^<?([A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.-]+)>?$/;

/** A Message-ID without angle brackets. Throws for other texts, because this program makes all Message-IDs itself. */
export function bareMessageId(messageId: string) {
  const bare = MESSAGE_ID.exec(messageId)?.[1];
  if (bare === undefined) throw new TypeError(`'${oneLine(messageId)}' is not a Message-ID`);
  return bare;
}

/** RFC 5322, with CRLF line ends. */
export function composeMessage(message: MessageParts): Buffer {
  const messageId = bareMessageId(message.messageId);
  const date = new Date(message.date);
  if (Number.isNaN(date.getTime())) throw new TypeError(`'${message.date}' is not an instant`);
  const replyTo = message.replyTo || undefined;
  const composer = new MailComposer({
    messageId: `<${messageId}>`,
    date,
    // Addresses are passed as objects, because nodemailer reads a string as a list: "a@x, b@y" would go to both
    // addresses.
    from: mailbox('sender', message.from),
    to: [mailbox('recipient', message.to)],
    cc: copiesOf(message).map((address) => ({ name: '', address })),
    ...(replyTo === undefined ? {} : { replyTo: mailbox('reply address', { name: '', address: replyTo }) }),
    subject: oneLine(message.content.subject),
    headers: { 'Auto-Submitted': 'auto-generated' },
    text: withPlainLines(message.content.text),
    html: withPlainLines(message.content.html),
    attachments: message.attachments.map(({ filename, contentType, content }) => ({
      filename: oneLine(filename),
      contentType: oneLine(contentType),
      contentDisposition: 'attachment',
      content,
    })),
    // Fixed, because nodemailer's are random or depend on length. No line of a quoted-printable or base64 part can
    // contain "=_", so none can be taken for a boundary.
    boundaryPrefix: '=_reckoner',
    baseBoundary: hash('sha256', messageId).slice(0, 32),
    encoding: 'quoted-printable',
    // No part of the data may be read as a path or an address to fetch.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const pieces = writeNode(composer.compile());
  const last = pieces.at(-1);
  const ended = typeof last === 'string' && last.endsWith('\n') ? pieces : [...pieces, '\r\n'];
  return Buffer.concat(
    ended.map((piece) =>
      typeof piece === 'string' ? Buffer.from(piece.replace(/\r?\n/g, '\r\n'), 'latin1') : base64Lines(piece),
    ),
  );
}

/** Text, or bytes to encode in base64. */
type Piece = string | Buffer;

/**
 * Writes a node with the same bytes as nodemailer's streams, which doubled the time to compose a message: a chain for
 * each part, and five more around the whole.
 */
function writeNode(node: MimeNode): Piece[] {
  const head = `${node.buildHeaders()}\r\n\r\n`;
  if (!node.multipart) return [head, contentOf(node)];
  const parts = node.childNodes.flatMap((child) => [`--${node.boundary}\r\n`, ...writeNode(child), '\r\n']);
  return [head, ...parts, `--${node.boundary}--\r\n`];
}

function contentOf(node: MimeNode): Piece {
  const encoding = node.getTransferEncoding();
  const { content = '' } = node;
  if (content === '') return '';
  if (typeof content === 'string' && encoding === 'quoted-printable') return wrapQuoted(encodeQuoted(content));
  if (Buffer.isBuffer(content) && encoding === 'base64') return content;
  throw new TypeError(`a part of a message is to be encoded as ${encoding || 'nothing'}`);
}

/** In lines of 76 characters (RFC 2045, 6.8). */
function base64Lines(content: Buffer): Buffer {
  const text = content.toString('base64');
  const lines = Array.from({ length: Math.ceil(text.length / 76) }, (_, line) => text.slice(line * 76, line * 76 + 76));
  return Buffer.from(lines.join('\r\n'), 'latin1');
}

/** SMTP forbids lone CRs and servers replace them, so the sent bytes would differ from the stored ones. */
const withPlainLines = (text: string) => text.replace(/\r\n?/g, '\n');

const mailbox = (role: string, { name, address }: Mailbox) => ({
  name: oneLine(name),
  address: checkedAddress(role, address),
});

export type EmailText = Readonly<{
  subject: string;
  text: string;
  html: string;
}>;
