/** Renders PDFs: many documents in separate threads, a few in this thread. */
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { COMPILED } from '#compiled';
import { AddedFont } from '#documents/pdf/added-fonts';
import { RenderOptions } from '#documents/pdf/render';
import { RENDERER_VERSION } from '#documents/pdf/version';
import { DocumentSnapshot } from '#documents/snapshot';
import { versionOfPackageAt } from '#package';

export type RenderTask = Readonly<{
  snapshot: DocumentSnapshot;
  options?: RenderOptions | undefined;
}>;

/** Two threads take 1.3 s of CPU to start. In that time, this thread renders this many documents. */
const FEW = 24;

/** The next document already waits for each thread, which saves a message back and forth. */
const DOCUMENTS_AT_A_THREAD = 2;

/** A thread that ends loses its compiled code, and its successor renders the first hundred documents slowly. */
const IDLE_MILLISECONDS = 10_000;

export class PdfRendererPool {
  private readonly documents: number;
  private readonly most: number;
  private threads: Promise<Piscina> | undefined;

  /** Prepares to render this many documents in at most `most` threads. The first document loads the renderer. */
  constructor(documents: number, most: number = availableParallelism()) {
    this.documents = documents;
    this.most = most;
  }

  async render(snapshot: DocumentSnapshot, options?: RenderOptions): Promise<Buffer> {
    if (!COMPILED || this.documents <= FEW) {
      const { renderDocument } = await import('#documents/pdf/render');
      return renderDocument(snapshot, options);
    }
    this.threads ??= startThreads(this.most);
    return bufferOf(await (await this.threads).run({ snapshot, options } satisfies RenderTask));
  }

  async close() {
    await (await this.threads)?.destroy();
  }
}

async function startThreads(most: number) {
  const { Piscina } = await import('piscina');
  return new Piscina({
    filename: new URL('./render-thread.js', import.meta.url).href,
    minThreads: 1,
    maxThreads: most,
    concurrentTasksPerWorker: DOCUMENTS_AT_A_THREAD,
    idleTimeout: IDLE_MILLISECONDS,
  });
}

/** Structured clone turns Buffers into Uint8Arrays. */
const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) => Buffer.from(buffer, byteOffset, byteLength);

const versionOf = (name: string) => versionOfPackageAt(dirname(fileURLToPath(import.meta.resolve(name))));

/** A snapshot always gives the same bytes with the same version and libraries. */
export const currentRenderer = {
  version: RENDERER_VERSION,
  libraries: {
    pdfkit: versionOf('pdfkit'),
    fontkit: versionOf('fontkit'),
    qr: versionOf('qr'),
    zlib: process.versions['zlib'] ?? 'unknown',
  },
} as const;

/** What a document records: the libraries of its renderer, and the hashes of the added fonts that it needs. */
export function librariesWith(fonts: readonly AddedFont[]) {
  const hashes = fonts.map(({ sha256 }) => sha256).sort();
  return hashes.length === 0 ? currentRenderer.libraries : { ...currentRenderer.libraries, fonts: hashes.join(' ') };
}
