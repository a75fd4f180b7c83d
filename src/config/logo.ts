/** Reads the issuer's logo: a small PNG or JPEG file, recognized by content and kept as it is. */
import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { reasonOf } from '#errors/refusals';

/** Plain JSON, because it is sent to the rendering threads. */
export type Logo = Readonly<{
  /** The file's hash in hexadecimal. */
  sha256: string;
  media_type: 'image/png' | 'image/jpeg';
  /** Pixels. */
  width: number;
  height: number;
  /** The file's bytes in base64. */
  content: string;
}>;

/** Every PDF contains the logo. */
const MOST_BYTES = 200_000;
const LEAST_PIXELS = 16;
const MOST_PIXELS_A_SIDE = 2_000;
/**
 * Each rendering decodes the logo, at 75 ms per million pixels of a transparent image. One of 1,000 by 400 prints
 * sharply.
 */
const MOST_PIXELS = 400_000;

/** The logo, or why the file cannot be used. */
export function readLogo(path: string): Logo | { readonly problem: string } {
  let bytes: Buffer;
  try {
    const found = statSync(path);
    if (!found.isFile() && !found.isDirectory()) return { problem: `${path} is not a file` };
    const { size } = found;
    if (size > MOST_BYTES) return { problem: `${path} has ${size} bytes; a logo has at most ${MOST_BYTES}` };
    bytes = readFileSync(path);
  } catch (error) {
    return { problem: `${path} cannot be read: ${reasonOf(error)}` };
  }
  const size = pngSize(bytes) ?? jpegSize(bytes);
  if (size === undefined) return { problem: `${path} is neither a PNG nor a JPEG image` };
  if (typeof size === 'string') return { problem: `${path} ${size}` };
  const { media_type, width, height } = size;
  const area = `${width} × ${height} pixels`;
  if (Math.min(width, height) < LEAST_PIXELS) return { problem: `${path} has only ${area}` };
  if (Math.max(width, height) > MOST_PIXELS_A_SIDE || width * height > MOST_PIXELS) {
    const most = `${MOST_PIXELS_A_SIDE} a side and ${MOST_PIXELS} in all`;
    return { problem: `${path} has ${area}; a logo has at most ${most}` };
  }
  const sha256 = hash('sha256', bytes);
  return { sha256, media_type, width, height, content: bytes.toString('base64') };
}

type ImageSize = Pick<Logo, 'media_type' | 'width' | 'height'>;

const PNG_BEGIN = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const PNG_END = Buffer.from('IEND');

/** ISO/IEC 15948. */
function pngSize(bytes: Buffer): ImageSize | string | undefined {
  if (!bytes.subarray(0, PNG_BEGIN.length).equals(PNG_BEGIN)) return undefined;
  if (bytes.length < 57 || bytes.toString('latin1', 12, 16) !== 'IHDR' || bytes.lastIndexOf(PNG_END) < 0) {
    return 'is a truncated PNG image';
  }
  if (!isWholePng(bytes)) return 'is a damaged PNG image';
  const [depth, color, interlace] = [bytes[24], bytes[25], bytes[28]];
  // The renderer cannot decode these.
  if (interlace !== 0) return 'is an interlaced PNG image; save it without interlacing';
  if (depth === 16 && (color === 4 || color === 6)) return 'is a PNG image with 16 bits per color; save it with 8';
  return { media_type: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** Checks the checksum and the end of each chunk. */
function isWholePng(bytes: Buffer) {
  let at = PNG_BEGIN.length;
  while (at + 12 <= bytes.length) {
    const end = at + 8 + bytes.readUInt32BE(at);
    if (end + 4 > bytes.length || bytes.readUInt32BE(end) !== crc32(bytes.subarray(at + 4, end))) return false;
    if (bytes.toString('latin1', at + 4, at + 8) === 'IEND') return true;
    at = end + 4;
  }
  return false;
}

/** The markers that begin a frame of a kind that PDF readers decode: baseline, extended, progressive. */
const FRAMES: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2]);
/** Gray or RGB. PDF readers show CMYK inverted or not at all. */
const CHANNELS: ReadonlySet<number> = new Set([1, 3]);

/** The size in the frame header of a JPEG file (ISO/IEC 10918-1). */
function jpegSize(bytes: Buffer): ImageSize | string | undefined {
  if (bytes[0] !== 0xff || bytes[1] !== 0xd8 || bytes[2] !== 0xff) return undefined;
  let at = 2;
  while (at + 10 <= bytes.length) {
    if (bytes[at] !== 0xff) break;
    const marker = bytes[at + 1] as number;
    if (FRAMES.has(marker)) {
      if (!CHANNELS.has(bytes[at + 9] as number)) return 'is a JPEG image for print (CMYK); save it as RGB';
      return { media_type: 'image/jpeg', height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return 'is a truncated JPEG image, or one of an unsupported kind';
}
