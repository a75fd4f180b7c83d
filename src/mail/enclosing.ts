/** The last step of composing a message, which takes most of its bytes and needs nothing else: its drawing put into it. */

/** A message without the content of one attachment. */
export interface Wrapper {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/** The bytes of the message, with this content in its place. */
export function enclose({ before, after }: Wrapper, content: Uint8Array): Buffer {
  const lines = base64Lines(content);
  // Not of the shared pool: these bytes may be handed to another thread.
  const message = Buffer.allocUnsafeSlow(before.length + lines.length + after.length);
  message.set(before);
  message.set(lines, before.length);
  message.set(after, before.length + lines.length);
  return message;
}

const LINE = 76;

/** Base64 in lines of 76 characters (RFC 2045, 6.8), CRLF between them. */
export function base64Lines(content: Uint8Array): Buffer {
  const { buffer, byteOffset, byteLength } = content;
  const encoded = Buffer.from(Buffer.from(buffer, byteOffset, byteLength).toString('base64'), 'latin1');
  const lines = Math.ceil(encoded.length / LINE);
  const wrapped = Buffer.allocUnsafe(encoded.length + Math.max(lines - 1, 0) * 2);
  let at = 0;
  for (let line = 0; line < lines; line += 1) {
    if (line > 0) {
      wrapped[at] = 13;
      wrapped[at + 1] = 10;
      at += 2;
    }
    at += encoded.copy(wrapped, at, line * LINE, (line + 1) * LINE);
  }
  return wrapped;
}
