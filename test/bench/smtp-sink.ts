/** A mail server that takes every message and keeps none, in a process of its own; it tells its port, and at its end how many it took. */
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

let taken = 0;
const server = new SMTPServer({
  logger: false,
  disableReverseLookup: true,
  authOptional: true,
  disabledCommands: ['AUTH', 'STARTTLS'],
  onData(stream, _session, done) {
    stream.resume();
    stream.once('end', () => {
      taken += 1;
      done(null, `2.0.0 taken as ${taken}`);
    });
  },
});
server.on('error', () => {});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.server.address() as AddressInfo).port }));
process.on('message', () => process.send?.({ taken }));
process.once('disconnect', () => process.exit());
