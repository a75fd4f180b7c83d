/** A place between programs and a server, at which a test cuts their connections. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Link {
  readonly port: number;
  /** The bytes that have passed in both directions. */
  readonly passed: () => number;
  /** Resets all connections, and each new one, when so many more bytes have passed. */
  readonly cutAfter: (bytes: number) => void;
  readonly isCut: () => boolean;
  readonly mend: () => void;
  readonly end: () => Promise<void>;
}

export async function startLink(target: number, { listen = '127.0.0.1' } = {}): Promise<Link> {
  const sockets = new Set<Socket>();
  let [passed, limit] = [0, Number.POSITIVE_INFINITY];
  const isCut = () => passed >= limit;
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const pass = (from: Socket, to: Socket): void => {
    sockets.add(from);
    from.on('error', () => {});
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    from.on('data', (piece) => {
      passed += piece.length;
      if (isCut()) reset();
      else if (!to.write(piece)) from.pause();
    });
    to.on('drain', () => from.resume());
  };
  const server = createServer((client) => {
    if (isCut()) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target, '127.0.0.1');
    pass(client, upstream);
    pass(upstream, client);
  });
  server.listen(0, listen);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    passed: () => passed,
    isCut,
    cutAfter(bytes) {
      limit = passed + bytes;
      if (isCut()) reset();
    },
    mend() {
      limit = Number.POSITIVE_INFINITY;
    },
    async end() {
      reset();
      server.close();
      await once(server, 'close');
    },
  };
}
