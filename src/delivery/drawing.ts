/** Drawing: on all cores where there is much of it, else in place. */
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Piscina } from 'piscina';
import { DRAWING_VERSION, DRAWING_VERSIONS } from '../documents/draw/edition.ts';
import type { DrawingOptions } from '../documents/draw.ts';
import type { DocumentFace } from '../documents/face.ts';
import { versionOfPackageAt } from '../package.ts';
import type { DrawingTask } from './drawing-thread.ts';

export interface Studio {
  readonly draw: (face: DocumentFace, options?: DrawingOptions) => Promise<Buffer>;
  readonly close: () => Promise<void>;
}

// Node 20 can't start a thread from TypeScript.
const COMPILED = import.meta.url.endsWith('.js');

/** Two threads take 1.3 s of CPU to start and to learn the fonts: these are drawn in place before either has begun. */
const FEW = 24;

/** For so many drawings at the most; what draws is loaded with the first of them. */
export function openStudio(drawings: number): Studio {
  return COMPILED && drawings > FEW ? studioOfThreads() : studioInPlace();
}

function studioInPlace(): Studio {
  return {
    async draw(face, options) {
      const { drawDocument } = await import('../documents/draw.ts');
      return drawDocument(face, options);
    },
    close: async () => {},
  };
}

function studioOfThreads(): Studio {
  let threads: Promise<Piscina> | undefined;
  const start = async () => {
    const { Piscina } = await import('piscina');
    return new Piscina({
      filename: new URL('./drawing-thread.js', import.meta.url).href,
      minThreads: 1,
      maxThreads: availableParallelism(),
      idleTimeout: 1000,
    });
  };
  return {
    async draw(face, options) {
      threads ??= start();
      return Buffer.from((await (await threads).run({ face, options } satisfies DrawingTask)) as Uint8Array);
    },
    async close() {
      await (await threads)?.destroy();
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
