/**
 * The management port: /healthz, /readyz and /metrics, served by a thread that API callers cannot block. /healthz
 * checks the main thread's heartbeat; the others ask it.
 */
import { Worker } from 'node:worker_threads';
import { FastifyInstance } from 'fastify';
import { reasonOf } from '#errors/refusals';
import { commit, packageVersion } from '#package';

const BEAT_MS = 250;

export type ManagementData = Readonly<{
  host: string;
  port: number;
  version: string;
  commit: string;
  /** One BigInt64 with the main thread's last heartbeat by process.hrtime, which all threads share. */
  heartbeat: SharedArrayBuffer;
}>;

type Question = Readonly<{
  id: number;
  url: string;
  address: string;
}>;

export type Answer = Readonly<{
  id: number;
  status: number;
  type: string;
  body: string;
}>;

export type FromThread =
  | { readonly listening: string }
  | { readonly failed: Readonly<{ code: string | undefined; message: string }> }
  | { readonly question: Question };

type Management = Readonly<{
  url: string;
  close: () => Promise<void>;
}>;

/** Rejects if the port cannot be opened. */
export async function openManagement(
  app: FastifyInstance,
  { host, port }: { host: string; port: number },
): Promise<Management> {
  const heartbeat = new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT);
  const beat = () => void Atomics.store(new BigInt64Array(heartbeat), 0, process.hrtime.bigint());
  beat();
  const beating = setInterval(beat, BEAT_MS).unref();
  const workerData: ManagementData = { host, port, version: packageVersion, commit, heartbeat };
  const thread = new Worker(new URL('./management-thread.js', import.meta.url), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: 64 },
  });
  const close = async () => {
    clearInterval(beating);
    await thread.terminate();
  };
  const url = await new Promise<string>((resolve, reject) => {
    thread.on('message', (message: FromThread) => {
      if ('listening' in message) resolve(message.listening);
      else if ('failed' in message) reject(Object.assign(new Error(message.failed.message), message.failed));
      else void answer(app, message.question).then((found) => thread.postMessage(found));
    });
    thread.on('error', (error) => {
      app.log.error({ reason: reasonOf(error) }, 'the management port is closed: its thread has ended');
      reject(error);
    });
  }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  thread.unref();
  return { url, close };
}

async function answer(app: FastifyInstance, { id, url, address }: Question) {
  try {
    const found = await app.inject({ method: 'GET', url, remoteAddress: address });
    return { id, status: found.statusCode, type: String(found.headers['content-type'] ?? ''), body: found.body };
  } catch (error) {
    app.log.warn({ reason: reasonOf(error) }, 'the management port was not answered');
    return { id, status: 503, type: 'application/json', body: '{"status":"unavailable"}' };
  }
}
