/** Small pictures for tests, made byte by byte. */

import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import type { Logo } from '../../src/config/logo.ts';

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

interface PngOptions {
  readonly width?: number;
  readonly height?: number;
  /** With 8 bits a color; 6 has transparency and 2 has none. */
  readonly color?: 2 | 6;
  readonly depth?: 8 | 16;
  readonly interlaced?: boolean;
}

/** A disc and a bar in the issuer's blue on a transparent background, or on white without transparency. */
export function png({ width = 240, height = 60, color = 6, depth = 8, interlaced = false }: PngOptions = {}): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([depth, color, 0, 0, interlaced ? 1 : 0], 8);
  const channels = color === 6 ? 4 : 3;
  const rows = Buffer.alloc(height * (1 + width * channels));
  const radius = height / 2;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const inDisc = Math.hypot(x + 0.5 - radius, y + 0.5 - radius) < radius;
      const inBar = x > height * 1.25 && y > height * 0.35 && y < height * 0.65;
      const pixel = inDisc ? [23, 64, 109, 255] : inBar ? [217, 154, 28, 255] : [255, 255, 255, 0];
      rows.set(pixel.slice(0, channels), y * (1 + width * channels) + 1 + x * channels);
    }
  }
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

export function pngLogo(options: PngOptions = {}): Logo {
  const bytes = png(options);
  const { width = 240, height = 60 } = options;
  return {
    sha256: createHash('sha256').update(bytes).digest('hex'),
    media_type: 'image/png',
    width,
    height,
    content: bytes.toString('base64'),
  };
}

/** The beginning of a JPEG file up to its frame, and an empty scan, which is enough to recognize it. */
export function jpeg({ width, height, channels = 3 }: { width: number; height: number; channels?: 1 | 3 | 4 }): Buffer {
  const frame = Buffer.alloc(10 + channels * 3);
  frame.set([0xff, 0xc0]);
  frame.writeUInt16BE(8 + channels * 3, 2);
  frame[4] = 8;
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  frame[9] = channels;
  for (let channel = 0; channel < channels; channel += 1) frame.set([channel + 1, 0x11, 0], 10 + channel * 3);
  const begin = [0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0];
  return Buffer.concat([Buffer.from(begin), frame, Buffer.from([0xff, 0xd9])]);
}
