/**
 * A mail server that takes every message and keeps none, in a process of its own; it tells its port, and when asked how many
 * it took. It does what the protocol asks and no more, since it shares the machine with what is measured: of a message
 * it looks for the end.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';

let taken = 0;

const END = Buffer.from('\r\n.\r\n');

function serve(socket: Socket): void {
  /** What has come of a message and may hold the beginning of its end; undefined between messages. */
  let tail: Buffer | undefined;
  let line = '';
  const answer = (text: string) => socket.write(`${text}\r\n`);
  const command = (text: string): void => {
    const verb = text.slice(0, 4).toUpperCase();
    if (verb === 'EHLO') answer('250-sink\r\n250 SIZE 50000000');
    else if (verb === 'DATA') {
      // The end may follow at once: an empty message.
      tail = Buffer.from('\r\n');
      answer('354 go on');
    } else if (verb === 'QUIT') socket.end('221 bye\r\n');
    else answer('250 2.0.0 ok');
  };
  socket.on('data', (piece) => {
    let rest: Buffer = piece;
    while (rest.length > 0) {
      if (tail === undefined) {
        const end = rest.indexOf('\n');
        line += rest.toString('latin1', 0, end < 0 ? rest.length : end);
        if (end < 0) return;
        rest = rest.subarray(end + 1);
        command(line.trim());
        line = '';
      } else {
        const seen: Buffer = Buffer.concat([tail, rest.subarray(0, END.length)]);
        const across = seen.indexOf(END);
        const within = across < 0 ? rest.indexOf(END) : across - tail.length;
        if (across < 0 && within < 0) {
          tail = rest.length < END.length ? seen.subarray(-END.length) : rest.subarray(-END.length);
          return;
        }
        rest = rest.subarray(within + END.length);
        tail = undefined;
        taken += 1;
        answer(`250 2.0.0 taken as ${taken}`);
      }
    }
  });
  socket.on('error', () => {});
  answer('220 sink ESMTP');
}

const server = createServer({ noDelay: true }, serve);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('message', () => process.send?.({ taken }));
process.once('disconnect', () => process.exit());
