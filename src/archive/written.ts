/** Files of a store: their hashes, and files that are written in pieces. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import type { Fill } from './store.ts';

/** The files that this process has hashed, with what tells that they did not change since. */
const HASHED = new Map<string, { readonly seen: string; readonly sha256: string }>();

/** The SHA-256 of a file. A file of the same time and size is not read again. */
export async function sha256Of(path: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(path);
  const seen = `${mtimeMs} ${size} ${ino}`;
  const known = HASHED.get(path);
  if (known?.seen === seen) return known.sha256;
  const sha256 = await hashed(path);
  HASHED.set(path, { seen, sha256 });
  return sha256;
}

async function hashed(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

export async function writeFile(path: string, fill: Fill): Promise<void> {
  const file = await open(path, 'w');
  try {
    await fill(async (piece) => {
      await file.writeFile(piece);
    });
  } finally {
    await file.close();
  }
}
