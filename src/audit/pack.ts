/**
 * A pack: the folder or .zip file of an export, with a manifest of its files' hashes and a verifier. It is written to a
 * draft beside its destination and published when complete. Refusals: export_exists, file_unwritable.
 */
import { createHash } from 'node:crypto';
import { createWriteStream, existsSync, readdirSync } from 'node:fs';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { Refusal, reasonOf, refuse } from '../errors/refusals.ts';
import { codeOf, draftOf, isSystemError, linkTo } from '../files.ts';
import { packageRoot } from '../package.ts';

/** Sums of a file's rows by currency. Amounts are texts with exactly the currency's digits. */
export type Totals = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface PackedFile {
  /** Its path in the pack, with forward slashes. */
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly rows: number;
  readonly totals?: Totals;
}

export interface FileInPack {
  readonly write: (content: Buffer | string) => Promise<void>;
  /** `rows` does not count the header. */
  readonly end: (facts: { rows: number; totals?: Totals }) => Promise<void>;
}

export interface Pack {
  readonly files: readonly PackedFile[];
  readonly file: (name: string) => Promise<FileInPack>;
  /** Adds the manifest of all other files and moves the pack to its destination. Returns the manifest's SHA-256. */
  readonly publish: (manifest: object) => Promise<string>;
  readonly discard: () => Promise<void>;
}

/** Bytes per write; smaller pieces are buffered. */
const PIECE = 256 * 1024;

/** Files that every pack contains beside its data. They do not depend on this program. */
const TOOLS = ['README.txt', 'verify.mjs'];

export async function openPack(out: string): Promise<Pack> {
  const place = resolve(out);
  const zip = /\.zip$/i.test(place);
  const unwritable = (error: unknown) =>
    error instanceof Refusal ? error : refuse('file_unwritable', { file: out, reason: reasonOf(error) }, error);
  refuseTaken(out, place);
  const draft = draftOf(place);
  await mkdir(draft.path, { recursive: true }).catch(async (error: unknown) => {
    await draft.discard();
    throw unwritable(error);
  });

  const files: PackedFile[] = [];
  // Files are synced while the next ones are written.
  const syncing: Promise<void>[] = [];
  const unfinished = new Set<() => Promise<void>>();
  const file = async (name: string): Promise<FileInPack> => {
    const path = join(draft.path, name);
    await mkdir(dirname(path), { recursive: true });
    const handle = await open(path, 'wx');
    const hash = createHash('sha256');
    let bytes = 0;
    let pieces: Buffer[] = [];
    let gathered = 0;
    // One write is pending while the next piece is made.
    let written: Promise<void> = Promise.resolve();
    const abandon = async () => {
      await written.catch(() => {});
      await handle.close();
    };
    unfinished.add(abandon);
    const flush = async () => {
      const content = Buffer.concat(pieces);
      pieces = [];
      gathered = 0;
      hash.update(content);
      bytes += content.length;
      await written;
      written = handle.writeFile(content); // Appends.
      written.catch(() => {}); // The next flush or end reports it.
    };
    return {
      async write(content) {
        const piece = typeof content === 'string' ? Buffer.from(content) : content;
        pieces.push(piece);
        gathered += piece.length;
        if (gathered >= PIECE) await flush();
      },
      async end({ rows, totals }) {
        await flush();
        await written;
        unfinished.delete(abandon);
        files.push({ name, bytes, sha256: hash.digest('hex'), rows, ...(totals && { totals }) });
        const synced = handle.sync().finally(() => handle.close());
        synced.catch(() => {}); // publish reports it.
        syncing.push(synced);
      },
    };
  };
  const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> =>
    work().catch((error: unknown) => {
      // The user can fix a full or read-only disk. Errors of the database pass through.
      throw isSystemError(error) ? unwritable(error) : error;
    });
  return {
    files,
    file: (name) =>
      guarded(async () => {
        const made = await file(name);
        return {
          write: (content) => guarded(() => made.write(content)),
          end: (facts) => guarded(() => made.end(facts)),
        };
      }),
    publish: (manifest) =>
      guarded(async () => {
        for (const name of TOOLS) {
          const tool = await file(name);
          await tool.write(await readFile(join(packageRoot, 'templates', 'export', name)));
          await tool.end({ rows: 0 });
        }
        await Promise.all(syncing);
        const text = `${JSON.stringify({ ...manifest, files }, null, 2)}\n`;
        const last = await open(join(draft.path, 'manifest.json'), 'wx');
        await last.writeFile(text);
        await last.sync();
        await last.close();
        refuseTaken(out, place);
        if (zip) {
          await publishZip(draft.path, place, [...files.map(({ name }) => name), 'manifest.json']);
          await draft.discard();
        } else await draft.publish();
        return createHash('sha256').update(text).digest('hex');
      }),
    async discard() {
      await Promise.allSettled([...syncing, ...[...unfinished].map((abandon) => abandon())]);
      await draft.discard().catch(() => {});
    },
  };
}

/** Refuses a destination that exists, unless it is an empty folder. */
function refuseTaken(out: string, place: string): void {
  if (!existsSync(place)) return;
  try {
    if (!/\.zip$/i.test(place) && readdirSync(place).length === 0) return;
  } catch {
    // A file, or an unreadable folder.
  }
  throw refuse('export_exists', { out });
}

/** A fixed time for all entries, so the same pack gives the same file. */
const ZIP_TIME = new Date(Date.UTC(2000, 0, 1));

async function publishZip(draft: string, place: string, names: readonly string[]): Promise<void> {
  const zip = new ZipFile();
  for (const name of names) zip.addFile(join(draft, name), name, { mtime: ZIP_TIME, mode: 0o100644 });
  zip.end();
  const written = join(draft, '.zip');
  await pipeline(zip.outputStream, createWriteStream(written, { flags: 'wx', flush: true }));
  await linkTo(written, place).catch((error: unknown) => {
    throw codeOf(error) === 'EEXIST' ? refuse('export_exists', { out: place }) : error;
  });
}
