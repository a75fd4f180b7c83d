/** Passes connections at a port on to an address: PORT HOST HOST_PORT. Says when it listens. */
import { connect, createServer } from 'node:net';

const [port, host, hostPort] = process.argv.slice(2);
createServer((client) => {
  const upstream = connect(Number(hostPort), host);
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ]) {
    from.on('error', () => {});
    from.on('close', () => to.destroy());
    from.pipe(to);
  }
}).listen(Number(port), () => process.stdout.write('listens\n'));
