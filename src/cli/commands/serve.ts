/** `reckoner serve`. */
import { pino } from 'pino';
import { EXIT, reasonOf, refuse } from '../../errors/refusals.ts';
import { buildServer } from '../../http/server.ts';
import { processEvents, storeEvents } from '../../payments/inbox.ts';
import { thisProcess } from '../../people/audit-events.ts';
import { accessTo, readAccount } from '../../splits/poll.ts';
import { pollOnRequest } from '../../splits/poll-requests.ts';
import { wholeNumberArgument } from '../arguments.ts';
import { withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import type { Output } from '../output.ts';
import { accountsToRead } from './processor/poll.ts';

export const define: Definition = (command, act) => {
  command
    .option('--host <host>', 'address to listen on (default: 127.0.0.1)')
    .option(
      '--port <port>',
      'port to listen on (default: 8080; 0: any free port)',
      wholeNumberArgument('--port', 0, 65535),
    )
    .action(act(serve));
};

/** A close holds the ledger for seconds: an acceptance that waits longer than that is answered 503. */
const PATIENCE = { lockSeconds: 5, statementSeconds: 20 };
const CONNECTIONS = 16;
/** After a failure, such as a payment's lock that somebody else holds for long. */
const AGAIN_SECONDS = 15;

export interface ServeOptions {
  readonly host?: string;
  readonly port?: number;
}

export async function serve(output: Output, { host = '127.0.0.1', port = 8080 }: ServeOptions): Promise<number> {
  const stopping = new AbortController();
  return withContext(
    async (context) => {
      const lines = linesOfATurn();
      const log = pino(
        {
          base: null,
          timestamp: pino.stdTimeFunctions.isoTime,
          formatters: { level: (level) => ({ level }) },
          // None of ours logs headers; should a line ever do, secrets stay out of it.
          redact: ['*.headers.authorization', '*.headers.cookie', '*.client_secret', '*.access_token'],
        },
        lines,
      );
      // Stored first, so that nothing is lost; worked off after the answer, one after the other, and again where that
      // failed. Whatever a process before this one left, or one that was killed, is taken up at the start.
      let working: Promise<unknown> = Promise.resolve();
      let again: NodeJS.Timeout | undefined;
      const workOff = () => {
        clearTimeout(again);
        working = working
          .then(() =>
            context.database.transaction((tx) => processEvents(tx, { ...context, actor: thisProcess('http') })),
          )
          .catch((error: unknown) => {
            log.error({ reason: reasonOf(error) }, `events wait: they are taken up in ${AGAIN_SECONDS} seconds`);
            again = setTimeout(workOff, AGAIN_SECONDS * 1000).unref();
          });
      };
      // What happened on a connected account of ours is read there soon, and else by the job: a hint may be lost.
      const hints = pollOnRequest(
        async (account) => {
          if (!(await accountsToRead(context)).includes(account)) return;
          const acting = { ...context, actor: thisProcess('http') };
          log.info(await readAccount(context.database, acting, accessTo(context.environment, account)), 'account read');
        },
        (account, error) => log.error({ account, reason: reasonOf(error) }, 'not read: the job reconcile will'),
      );
      const onEventsStored = (accounts: readonly string[]) => {
        workOff();
        hints.take(accounts);
      };
      const app = await buildServer({ ...context, log, storeEvents, onEventsStored });
      const url = await app.listen({ host, port }).catch((error: unknown) => {
        throw refuse('listen_failed', { address: `${host}:${port}`, reason: whyNot(error) }, error);
      });
      workOff();
      output.print({ listening: url }, () => `Listening at ${url} (${context.environment.name}); stop with Ctrl-C.`);
      if (!stopping.signal.aborted) {
        await new Promise<void>((resolve) =>
          stopping.signal.addEventListener('abort', () => resolve(), { once: true }),
        );
      }
      // Takes no new requests and finishes those it has begun.
      await app.close();
      await working;
      await hints.stop();
      clearTimeout(again);
      lines.flush();
      return EXIT.done;
    },
    { onStop: () => stopping.abort(), poolSize: CONNECTIONS, patience: PATIENCE, by: output.by },
  );
}

/**
 * The log on stderr: the lines of one turn of the event loop are one write at its end. Of what this process does under
 * acceptances, a write for each line was 8 %, 15 % where another thread wrote, and now it is 1 %.
 */
function linesOfATurn(): { readonly write: (line: string) => void; readonly flush: () => void } {
  const stderr = pino.destination({ dest: 2, sync: true, minLength: 16 * 1024 - 1 });
  // Not flushSync, which waits for the disk as well.
  const flush = () => stderr.flush();
  let due = false;
  process.once('exit', flush);
  return {
    flush,
    write(line) {
      stderr.write(line);
      if (due) return;
      due = true;
      setImmediate(() => {
        due = false;
        flush();
      });
    },
  };
}

function whyNot(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return 'something else listens there already';
  if (code === 'EACCES') return 'this user may not listen at that port';
  if (code === 'EADDRNOTAVAIL') return 'this machine has no such address';
  return reasonOf(error);
}
