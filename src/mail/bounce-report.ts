/**
 * Reads delivery status notifications (RFC 3464), in which mail servers report that they gave up on a recipient. A file
 * is one message or an mbox. Other messages are skipped, because a mailbox also contains replies.
 */
import { hash } from 'node:crypto';
import PostalMime from 'postal-mime';
import { readerOf } from '#reading/aside';
import { refuseTooMany } from '#reading/limits';
import { oneLine } from './text.ts';

export type ReportedBounce = Readonly<{
  /** The Message-ID, `<unique@domain>`, of the message that did not arrive. */
  messageId: string;
  /** The address as we wrote it, if the report contains it, and the last one that the server used. */
  recipients: readonly string[];
  /** RFC 3463, such as 5.1.1. */
  status: string;
  diagnostic: string;
  server: string;
  sha256: string;
}>;

/** Even a report that contains our largest message in full is smaller. */
const MOST_BYTES = 32 * 1024 * 1024;

/** The number of messages in a file, and those that are reports. */
export const bounceFile = readerOf(import.meta.url, 'bounceFile', async ({ name, bytes }) => {
  const messages = messagesOf(Buffer.from(bytes));
  refuseTooMany(name, messages.length);
  const reports: ReportedBounce[] = [];
  for (const message of messages) for (const each of await bouncesIn(message)) reports.push(each);
  return { messages: messages.length, reports };
});

/** The messages of an mbox file, or the whole content as one. */
export function messagesOf(content: Buffer) {
  if (!content.subarray(0, 5).equals(Buffer.from('From '))) return content.length === 0 ? [] : [content];
  const starts: number[] = [];
  for (let at = 0; at >= 0; at = content.indexOf('\nFrom ', at + 1)) {
    // In an mbox file, a message begins after an empty line. "From " within a text is escaped or does not follow one.
    const before = at === 0 || content[at - 1] === 0x0a || (content[at - 1] === 0x0d && content[at - 2] === 0x0a);
    if (before) starts.push(at === 0 ? 0 : at + 1);
  }
  return starts.map((start, index) => {
    const message = content.subarray(start, starts[index + 1] ?? content.length);
    return message.subarray(message.indexOf('\n') + 1);
  });
}

/** The recipients that a message reports as given up; none if it is not such a report. */
export async function bouncesIn(message: Buffer): Promise<ReportedBounce[]> {
  if (message.length > MOST_BYTES) return [];
  const options = { forceRfc822Attachments: true, attachmentEncoding: 'arraybuffer', maxNestingDepth: 20 } as const;
  const email = await PostalMime.parse(message, options).catch(() => undefined);
  const parts = (email?.attachments ?? []).map(({ mimeType, content }) => ({ mimeType, content: textOf(content) }));
  const report = parts.find(({ mimeType }) => /^message\/(?:global-)?delivery-status$/.test(mimeType))?.content;
  if (report === undefined) return [];
  const [whole = new Map<string, string>(), ...each] = groupsOf(report);
  const returned = parts.find(({ mimeType }) => /^(?:message\/(?:rfc822|global)|text\/rfc822-headers)/.test(mimeType));
  const messageId = messageIdOf(returned?.content ?? '') ?? bracketed(whole.get('original-envelope-id') ?? '');
  if (messageId === undefined) return [];
  const sha256 = hash('sha256', message);
  const server = withoutType(whole.get('reporting-mta')).slice(0, 255);
  return each.flatMap((fields) => {
    const status = /^[45]\.\d{1,3}\.\d{1,3}/.exec(fields.get('status') ?? '')?.[0];
    // A `delayed` message is not given up yet. `relayed`, `expanded` and `delivered` are not failures.
    if (fields.get('action')?.toLowerCase() !== 'failed' || status === undefined) return [];
    const recipients = ['original-recipient', 'final-recipient'].map((name) => withoutType(fields.get(name)));
    const diagnostic = withoutType(fields.get('diagnostic-code')).slice(0, 1000);
    return [{ messageId, recipients: recipients.filter((one) => one !== ''), status, diagnostic, server, sha256 }];
  });
}

const textOf = (content: ArrayBuffer | Uint8Array | string) =>
  typeof content === 'string' ? content : Buffer.from(content as Uint8Array).toString('utf8');

/**
 * The fields of each group by lower-case name: first the group of the whole report, then one group for each recipient.
 */
function groupsOf(report: string): Map<string, string>[] {
  const unfolded = report.replace(/\r\n/g, '\n').replace(/\n[ \t]+/g, ' ');
  return unfolded
    .split(/\n{2,}/)
    .map((group) => group.split('\n').flatMap((line) => fieldOf(line)))
    .filter((fields) => fields.length > 0)
    .map((fields) => new Map(fields));
}

function fieldOf(line: string): [string, string][] {
  const colon = line.indexOf(':');
  return colon <= 0 ? [] : [[line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]];
}

/** The address in `rfc822; ap@partner.example`, without the type. */
const withoutType = (field: string | undefined) => oneLine((field ?? '').replace(/^[\w-]+\s*;/, ''));

function messageIdOf(headers: string) {
  const [head = ''] = headers.replace(/\r\n/g, '\n').split('\n\n', 1);
  const [fields = new Map<string, string>()] = groupsOf(head);
  return bracketed(fields.get('message-id') ?? '');
}

function bracketed(text: string) {
  const bare = /^<?([^<>\s]{3,250}@[^<>\s]{1,250})>?$/.exec(text.trim())?.[1];
  return bare === undefined ? undefined : `<${bare}>`;
}
