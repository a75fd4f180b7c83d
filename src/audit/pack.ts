/**
 * A pack: the folder or .zip file of an export, with a manifest of its files' hashes (docs/log-format.md). A pack is
 * written to a draft beside its destination, and published when it is complete. Refusals: export_exists,
 * file_unwritable.
 */
import { createHash, hash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { FileHandle, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { reasonOf, refuse } from '#errors/refusals';
import { Draft, draftOf, isSystemError } from '#files';
import { packageRoot } from '#package';
import { Zip } from './zip.ts';

/** Sums of a file's rows by currency. Amounts are texts with exactly the currency's digits. */
export type Totals = Readonly<Record<string, Readonly<Record<string, string>>>>;

export type PackedFile = Readonly<{
  /** The file's path in the pack, with forward slashes. */
  name: string;
  bytes: number;
  sha256: string;
  rows: number;
  totals?: Totals;
}>;

/** Bytes per write; smaller pieces are buffered. */
const PIECE = 256 * 1024;

/** Explains the pack to people. A pack contains no program; verify.mjs and verify.py from a release check it. */
const README = 'README.txt';

/**
 * Throws a refusal if the disk is full or read-only, because the user can fix that. Other errors, such as database
 * errors, pass through.
 */
export async function guarded<Result>(out: string, work: () => Promise<Result>) {
  return work().catch((error: unknown) => {
    if (!isSystemError(error)) throw error;
    throw refuse('file_unwritable', { file: out, reason: reasonOf(error) }, error);
  });
}

export class Pack {
  readonly files: PackedFile[] = [];
  private readonly out: string;
  private readonly place: string;
  private readonly draft: Draft;
  /** Complete files are synced to disk while the next files are written. */
  private readonly syncing: Promise<void>[] = [];
  private readonly unfinished = new Set<{ abandon(): Promise<void> }>();

  private constructor(out: string) {
    this.out = out;
    this.place = resolve(out);
    this.draft = draftOf(this.place);
  }

  static async open(out: string) {
    refuseTaken(out);
    const pack = new Pack(out);
    return guarded(out, async () => {
      await mkdir(pack.draft.path, { recursive: true });
      return pack;
    }).catch(async (error: unknown) => {
      await pack.draft.discard();
      throw error;
    });
  }

  file(name: string) {
    return guarded(this.out, async () => {
      const path = join(this.draft.path, name);
      await mkdir(dirname(path), { recursive: true });
      const file = new FileInPack(this.out, await open(path, 'wx'), (facts, synced) => {
        this.unfinished.delete(file);
        this.files.push({ name, ...facts });
        this.syncing.push(synced);
      });
      this.unfinished.add(file);
      return file;
    });
  }

  /** Opens a file for content that a file of the pack gets later. */
  scratch(): Promise<Scratch> {
    return guarded(this.out, async () => {
      const path = join(this.draft.path, `.${randomUUID()}`);
      const handle = await open(path, 'wx+');
      const abandon = () => handle.close();
      this.unfinished.add({ abandon });
      return {
        write: (content) => guarded(this.out, () => handle.writeFile(content)),
        moveTo: async (file) => {
          for await (const content of handle.createReadStream({ start: 0 })) await file.write(content);
          await guarded(this.out, () => rm(path));
        },
      };
    });
  }

  /** Adds the manifest of all other files and moves the pack to its destination. Returns the manifest's SHA-256. */
  publish(manifest: object) {
    return guarded(this.out, async () => {
      const readme = await this.file(README);
      await readme.write(await readFile(join(packageRoot, 'templates', 'export', README)));
      await readme.end({ rows: 0 });
      await Promise.all(this.syncing);
      const text = `${JSON.stringify({ ...manifest, files: this.files }, null, 2)}\n`;
      await writeFile(join(this.draft.path, 'manifest.json'), text, { flag: 'wx', flush: true });
      refuseTaken(this.out);
      if (isZip(this.out)) {
        const zip = new Zip(join(this.draft.path, '.zip'));
        await zip.add(this.draft.path, [...this.files.map(({ name }) => name), 'manifest.json']);
        await zip.publish(this.place);
        await this.draft.discard();
      } else await this.draft.publish();
      return hash('sha256', text);
    });
  }

  async discard() {
    await Promise.allSettled([...this.syncing, ...[...this.unfinished].map((file) => file.abandon())]);
    await this.draft.discard().catch(() => {});
  }
}

export interface Scratch {
  readonly write: (content: Buffer) => Promise<void>;
  /** Adds the content to a file of the pack. */
  readonly moveTo: (file: FileInPack) => Promise<void>;
}

type FileCallback = (facts: Omit<PackedFile, 'name'>, synced: Promise<void>) => void;

export class FileInPack {
  private readonly out: string;
  private readonly handle: FileHandle;
  private readonly ended: FileCallback;
  private readonly hash = createHash('sha256');
  private bytes = 0;
  private pieces: Buffer[] = [];
  private gathered = 0;
  /** One write is pending while the next piece is made. */
  private written: Promise<void> = Promise.resolve();

  constructor(out: string, handle: FileHandle, ended: FileCallback) {
    this.out = out;
    this.handle = handle;
    this.ended = ended;
  }

  async write(content: Buffer | string) {
    const piece = typeof content === 'string' ? Buffer.from(content) : content;
    this.pieces.push(piece);
    this.gathered += piece.length;
    if (this.gathered >= PIECE) await guarded(this.out, () => this.flush());
  }

  /** `rows` does not count the header. */
  async end(facts: { rows: number; totals?: Totals }) {
    await guarded(this.out, async () => {
      await this.flush();
      await this.written;
    });
    const synced = this.handle.sync().finally(() => this.handle.close());
    synced.catch(() => {}); // publish reports it.
    this.ended({ bytes: this.bytes, sha256: this.hash.digest('hex'), ...facts }, synced);
  }

  async abandon() {
    await this.written.catch(() => {});
    await this.handle.close();
  }

  private async flush() {
    const content = Buffer.concat(this.pieces);
    this.pieces = [];
    this.gathered = 0;
    this.hash.update(content);
    this.bytes += content.length;
    await this.written;
    this.written = this.handle.writeFile(content); // Appends.
    this.written.catch(() => {}); // The next flush or end reports the error.
  }
}

export const isZip = (out: string) => /\.zip$/i.test(out);

/** Refuses a destination that exists, unless it is an empty folder. */
export function refuseTaken(out: string) {
  if (!existsSync(out)) return;
  try {
    if (!isZip(out) && readdirSync(out).length === 0) return;
  } catch {
    // The destination is a file or an unreadable folder.
  }
  throw refuse('export_exists', { out });
}
