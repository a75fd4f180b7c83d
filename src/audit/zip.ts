import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { refuse } from '#errors/refusals';
import { codeOf, linkTo } from '#files';

/** A fixed time for all entries, so that packs with the same content give the same file. */
const ZIP_TIME = new Date(Date.UTC(2000, 0, 1));

/** A .zip file to which files move one after another, so that only those of one pack are on the disk twice. */
export class Zip {
  private readonly zip = new ZipFile();
  private readonly path: string;
  private readonly written: Promise<void>;

  constructor(path: string) {
    this.path = path;
    this.written = pipeline(this.zip.outputStream, createWriteStream(path, { flags: 'wx', flush: true }));
    this.written.catch(() => {}); // publish reports it.
  }

  async add(folder: string, names: readonly string[]): Promise<void> {
    for (const name of names) {
      const path = join(folder, name);
      const read = new Promise<void>((resolved, rejected) => {
        this.zip.addReadStreamLazy(name, { mtime: ZIP_TIME, mode: 0o100644 }, (open) => {
          open(null, createReadStream(path).once('close', resolved).once('error', rejected));
        });
      });
      await Promise.race([read, this.written]);
      await rm(path);
    }
  }

  async publish(place: string): Promise<void> {
    this.zip.end();
    await this.written;
    await linkTo(this.path, place).catch((error: unknown) => {
      throw codeOf(error) === 'EEXIST' ? refuse('export_exists', { out: place }) : error;
    });
  }
}
