/** Drawing: on all cores where there is much of it, else in place. */
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Piscina } from 'piscina';
import type { RenderOptions } from '../documents/pdf/render.ts';
import { RENDERER_VERSION, RENDERER_VERSIONS } from '../documents/pdf/version.ts';
import type { DocumentSnapshot } from '../documents/snapshot.ts';
import type { Wrapper } from '../mail/enclosing.ts';
import { versionOfPackageAt } from '../package.ts';
import type { DrawingTask, Product } from './drawing-task.ts';

/** A drawing with the message that holds it, and their hashes in hexadecimal. */
export interface DrawnEnclosed {
  readonly drawing: { readonly pdf: Buffer; readonly sha256: string };
  readonly message: { readonly raw: Buffer; readonly sha256: string };
}

export interface Studio {
  readonly draw: (snapshot: DocumentSnapshot, options?: RenderOptions) => Promise<Buffer>;
  /** Draws it as of today and puts it into its message, in the thread that has its bytes. */
  readonly drawEnclosed: (snapshot: DocumentSnapshot, wrapper: Wrapper) => Promise<DrawnEnclosed>;
  readonly close: () => Promise<void>;
}

// Node 20 can't start a thread from TypeScript.
const COMPILED = import.meta.url.endsWith('.js');

/** Two threads take 1.3 s of CPU to start and to learn the fonts: these are drawn in place before either has begun. */
const FEW = 24;

/** The next document lies at each thread when it is done with one, rather than a message to this thread and back away. */
const DOCUMENTS_AT_A_THREAD = 2;

/** A thread that ends takes along what it has compiled, which costs it the first hundred documents to do again. */
const IDLE_MILLISECONDS = 10_000;

/** For so many drawings at the most; what draws is loaded with the first of them. */
export function openStudio(drawings: number): Studio {
  let threads: Promise<Piscina> | undefined;
  const start = async () => {
    const { Piscina } = await import('piscina');
    return new Piscina({
      filename: new URL('./drawing-thread.js', import.meta.url).href,
      minThreads: 1,
      maxThreads: availableParallelism(),
      concurrentTasksPerWorker: DOCUMENTS_AT_A_THREAD,
      idleTimeout: IDLE_MILLISECONDS,
    });
  };
  const work = async (task: DrawingTask): Promise<readonly Product[]> => {
    if (!COMPILED || drawings <= FEW) return (await import('./drawing-task.ts')).doTask(task);
    threads ??= start();
    return (await threads).run(task);
  };
  return {
    async draw(snapshot, options) {
      const [drawing] = (await work({ snapshot, options })) as [Product];
      return bufferOf(drawing.bytes);
    },
    async drawEnclosed(snapshot, wrapper) {
      const [drawing, message] = (await work({ snapshot, wrapper })) as [Product, Product];
      return {
        drawing: { pdf: bufferOf(drawing.bytes), sha256: drawing.sha256 },
        message: { raw: bufferOf(message.bytes), sha256: message.sha256 },
      };
    },
    async close() {
      await (await threads)?.destroy();
    },
  };
}

/** What comes from a thread is no Buffer any more. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

const versionOf = (name: string): string => versionOfPackageAt(dirname(fileURLToPath(import.meta.resolve(name))));

const VECTORS = {
  pdfkit: versionOf('pdfkit'),
  fontkit: versionOf('fontkit'),
  qr: versionOf('qr'),
  zlib: process.versions['zlib'] ?? 'unknown',
} as const;

/** The libraries that each version of the drawing draws with: under the same, the same snapshot gives the same bytes. */
export const librariesByVersion: Readonly<Record<number, Readonly<Record<string, string>>>> = Object.fromEntries(
  RENDERER_VERSIONS.map((version) => [version, VECTORS]),
);

/** What draws a document now. */
export const drawnWith = {
  version: RENDERER_VERSION,
  libraries: librariesByVersion[RENDERER_VERSION] as Readonly<Record<string, string>>,
} as const;
