/** Drawing on all cores: worker threads where the program is compiled, in place where its sources run. */
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { DRAWING_VERSION, DRAWING_VERSIONS, type DrawingOptions, drawDocument } from '../documents/draw.ts';
import type { DocumentFace } from '../documents/face.ts';
import { versionOfPackageAt } from '../package.ts';
import type { DrawingTask } from './drawing-thread.ts';

export interface Studio {
  readonly draw: (face: DocumentFace, options?: DrawingOptions) => Promise<Buffer>;
  readonly close: () => Promise<void>;
}

// Node 20 can't start a thread from TypeScript.
const COMPILED = import.meta.url.endsWith('.js');

export function openStudio(): Studio {
  if (!COMPILED) return { draw: drawDocument, close: async () => {} };
  let threads: Piscina | undefined;
  return {
    async draw(face, options) {
      threads ??= new Piscina({
        filename: new URL('./drawing-thread.js', import.meta.url).href,
        minThreads: 1,
        maxThreads: availableParallelism(),
        idleTimeout: 1000,
      });
      return Buffer.from((await threads.run({ face, options } satisfies DrawingTask)) as Uint8Array);
    },
    async close() {
      await threads?.destroy();
    },
  };
}

const versionOf = (name: string): string => versionOfPackageAt(dirname(fileURLToPath(import.meta.resolve(name))));

const VECTORS = {
  pdfkit: versionOf('pdfkit'),
  fontkit: versionOf('fontkit'),
  zlib: process.versions['zlib'] ?? 'unknown',
} as const;

/** The libraries that each version of the drawing draws with: under the same, the same face gives the same bytes. */
export const librariesByVersion: Readonly<Record<number, Readonly<Record<string, string>>>> = Object.fromEntries(
  DRAWING_VERSIONS.map((version) => [version, version === 1 ? VECTORS : { ...VECTORS, qr: versionOf('qr') }]),
);

/** What draws a document now. */
export const drawnWith = {
  version: DRAWING_VERSION,
  libraries: librariesByVersion[DRAWING_VERSION] as Readonly<Record<string, string>>,
} as const;
