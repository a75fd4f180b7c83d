import { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { Answer, FromThread, ManagementData } from './management.ts';
import { hasProxyHeader } from './shared.ts';

/** Without a heartbeat for this long, the main thread counts as stalled. */
const STALLED_MS = 5000;
const PATIENCE_MS = 5000;
/** A caller that asks more often gets the previous response. */
const REMEMBERED_MS = 1000;
const MOST_REMEMBERED = 100;

const { host, port, version, commit, heartbeat } = workerData as ManagementData;
const beats = new BigInt64Array(heartbeat);
const main = parentPort as NonNullable<typeof parentPort>;
const tell = (message: FromThread) => main.postMessage(message);

type Reply = Omit<Answer, 'id'>;
const waiting = new Map<number, (answer: Reply) => void>();
const remembered = new Map<string, Promise<Reply>>();
let asked = 0;

const json = (status: number, body: object) => ({
  status,
  type: 'application/json; charset=utf-8',
  body: JSON.stringify(body),
});

function health() {
  const since = Number((process.hrtime.bigint() - Atomics.load(beats, 0)) / 1_000_000n);
  const stalled = since > STALLED_MS;
  return json(stalled ? 503 : 200, { status: stalled ? 'stalled' : 'ok', version, commit, heartbeat_ms: since });
}

/** One request at a time, and at most one a second for each caller and URL. */
function ask(url: string, { socket }: IncomingMessage) {
  const address = socket.remoteAddress ?? '';
  const key = `${url} ${address}`;
  const known = remembered.get(key);
  if (known !== undefined) return known;
  if (remembered.size >= MOST_REMEMBERED) return Promise.resolve(json(503, { status: 'busy' }));
  const reply = new Promise<Reply>((resolve) => {
    asked += 1;
    const id = asked;
    const late = setTimeout(() => {
      waiting.delete(id);
      resolve(json(503, { status: 'stalled' }));
    }, PATIENCE_MS);
    waiting.set(id, (answer) => {
      clearTimeout(late);
      resolve(answer);
    });
    tell({ question: { id, url, address } });
  });
  remembered.set(key, reply);
  void reply.then(() => setTimeout(() => remembered.delete(key), REMEMBERED_MS));
  return reply;
}

/** A proxied request would have the proxy's address. By default, nginx adds no header, but forwards as HTTP/1.0. */
const isForwarded = (request: IncomingMessage) => request.httpVersion === '1.0' || hasProxyHeader(request);

main.on('message', ({ id, ...answer }: Answer) => {
  waiting.get(id)?.(answer);
  waiting.delete(id);
});

async function serve(request: IncomingMessage, response: ServerResponse) {
  const path = request.url?.split('?')[0];
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const found =
    !isRead || path === undefined
      ? json(405, { status: 'method not allowed' })
      : path === '/healthz'
        ? health()
        : path === '/metrics' && isForwarded(request)
          ? json(403, { status: 'not answered through a proxy' })
          : path === '/readyz' || path === '/metrics'
            ? await ask(path, request)
            : json(404, { status: 'not found' });
  response.writeHead(found.status, { 'Content-Type': found.type, 'Cache-Control': 'no-store' });
  response.end(request.method === 'HEAD' ? undefined : found.body);
}

const server = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, (request, response) => {
  void serve(request, response);
});
server.maxConnections = 256;
server.on('error', ({ code, message }: NodeJS.ErrnoException) => tell({ failed: { code, message } }));
server.listen({ host, port }, () => {
  const { address, family, port: actual } = server.address() as AddressInfo;
  tell({ listening: `http://${family === 'IPv6' ? `[${address}]` : address}:${actual}` });
});
