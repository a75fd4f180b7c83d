/**
 * The content of a PDF that does not depend on the compressor, for hashes that stay the same in later releases of Node.
 */
import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';

const STREAM = /stream\r?\n/g;

/** The file's objects with inflated streams, without the lengths and offsets that depend on compression. */
function contentOf(pdf: Buffer): Buffer {
  const text = pdf.toString('latin1');
  const end = text.lastIndexOf('\nxref\n');
  if (end < 0) throw new Error('this PDF has no table of its objects');
  const parts: Buffer[] = [];
  let at = 0;
  for (const match of text.slice(0, end).matchAll(STREAM)) {
    // Not the end of another stream, and not a word within one.
    if (match.index < at || text.slice(match.index - 3, match.index) === 'end') continue;
    const head = text.slice(at, match.index);
    const length = Number(/\/Length (\d+)(?![\s\S]*\/Length \d)/.exec(head)?.[1]);
    const from = match.index + match[0].length;
    const stream = pdf.subarray(from, from + length);
    parts.push(Buffer.from(head.replace(/\/Length \d+/g, '/Length'), 'latin1'));
    parts.push(head.includes('/FlateDecode') ? inflateSync(stream) : stream);
    at = from + length;
  }
  parts.push(Buffer.from(text.slice(at, end), 'latin1'));
  // The trailer, without the place of the table.
  parts.push(Buffer.from(text.slice(text.indexOf('trailer', end)).replace(/startxref\n\d+/, ''), 'latin1'));
  return Buffer.concat(parts);
}

export const contentHash = (pdf: Buffer): string => createHash('sha256').update(contentOf(pdf)).digest('hex');
