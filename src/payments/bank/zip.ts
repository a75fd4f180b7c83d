/** Reads zip archives, in which banks deliver their files. Refusals: bank_file_invalid, bank_format_not_read. */
import { constants, crc32, inflateRawSync } from 'node:zlib';
import { someOf } from '#errors/definition';
import { refuse } from '#errors/refusals';
import { BankFile, HEAD_BYTES } from './format.ts';
import { invalidFile } from './statement.ts';

export const isZip = (bytes: Buffer) => bytes.subarray(0, 4).toString('latin1') === 'PK\x03\x04';

const END_OF_DIRECTORY = Buffer.from('PK\x05\x06', 'latin1');
const ENTRY_OF_DIRECTORY = 0x02014b50;
const [STORED, DEFLATED] = [0, 8];
/** In all files of an archive. */
const MOST_BYTES = 256 * 1024 * 1024;

/** Documents for people, checksums, signatures and schemas, which banks add, and what an operating system adds, unless their content is a bank file. */
const IGNORED =
  /(?:^|\/)(?:__MACOSX\/.*|\.[^/]*|(?:readme|liesmich|lisezmoi|licen[cs]e)(?:\.txt)?|[^/]*\.(?:pdf|html?|rtf|md|png|jpe?g|sha(?:1|256|512)|md5|xsd|sig|asc|p7s))$/i;

/** Returns the files of an archive, without folders, and the names of those that are ignored. */
export function unzipped(
  { name: archive, bytes }: BankFile,
  isBankFile: (bytes: Buffer) => boolean,
): Readonly<{
  files: Pick<BankFile, 'name' | 'bytes'>[];
  ignored: string[];
}> {
  const invalid = (reason: string) => invalidFile(archive, [{ path: '', reason }]);
  const files: Pick<BankFile, 'name' | 'bytes'>[] = [];
  const ignored: string[] = [];
  try {
    const end = bytes.lastIndexOf(END_OF_DIRECTORY);
    if (end < 0) throw invalid('is a zip archive that is cut off');
    let at = bytes.readUInt32LE(end + 16);
    let left = MOST_BYTES;
    for (let count = bytes.readUInt16LE(end + 10); count > 0; count -= 1) {
      if (bytes.readUInt32LE(at) !== ENTRY_OF_DIRECTORY) throw invalid('is a zip archive with a damaged directory');
      const entry = bytes.subarray(at);
      const [flags, method] = [entry.readUInt16LE(8), entry.readUInt16LE(10)];
      const [sum, packed, size] = [entry.readUInt32LE(16), entry.readUInt32LE(20), entry.readUInt32LE(24)];
      const ends = 46 + entry.readUInt16LE(28);
      const name = entry.toString('utf8', 46, ends);
      const local = entry.readUInt32LE(42);
      at += ends + entry.readUInt16LE(30) + entry.readUInt16LE(32);
      if (/^xl\/|\[Content_Types\]\.xml$/.test(name)) {
        throw refuse('bank_format_not_read', { file: archive, format: 'a spreadsheet', instead: 'Save it as CSV.' });
      }
      if (name.endsWith('/')) continue;
      const from = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
      const content = bytes.subarray(from, from + packed);
      if (IGNORED.test(name) && ((flags & 1) !== 0 || !isBankFile(headOf(content, method)))) {
        ignored.push(name);
        continue;
      }
      if ((flags & 1) !== 0) throw invalid(`is a zip archive with a password. Unpack it and import ${name}`);
      left -= size;
      if (left < 0) throw invalid(`is a zip archive with more than ${MOST_BYTES} bytes. Import its files one by one`);
      if (method !== STORED && method !== DEFLATED)
        throw invalid(`is a zip archive that packs ${name} in an unknown way`);
      const file = method === STORED ? content : inflateRawSync(content, { maxOutputLength: Math.max(size, 1) });
      if (file.length !== size || crc32(file) !== sum) throw invalid(`is a zip archive with a damaged ${name}`);
      if (isZip(file)) throw invalid(`is a zip archive with another one in it. Unpack it and import ${name}`);
      files.push({ name: name.split('/').at(-1) as string, bytes: file });
    }
  } catch (error) {
    if (error instanceof RangeError || (error as NodeJS.ErrnoException).code?.startsWith('Z_') === true) {
      throw invalid('is a zip archive that is damaged');
    }
    throw error;
  }
  if (files.length === 0) {
    const others = ignored.length > 0 ? `, but with ${someOf(ignored)}` : '';
    const instead = 'Import the file of the bank that has the lines of the account.';
    throw refuse('bank_format_not_read', {
      file: archive,
      format: `a zip archive without bank files${others}`,
      instead,
    });
  }
  return { files, ignored };
}

/** The beginning of a file. */
function headOf(content: Buffer, method: number) {
  const packed = content.subarray(0, HEAD_BYTES);
  return method === DEFLATED ? inflateRawSync(packed, { finishFlush: constants.Z_SYNC_FLUSH }) : packed;
}
