import { once } from 'node:events';
import { Logger } from 'pino';
import { Context, Definition, EXIT, Output, reasonOf, refuse, wholeNumberArgument, withContext } from '#cli/command';
import { addConsole } from '#console/plugin';
import { openManagement } from '#http/management';
import { buildServer } from '#http/server';
import { ServerOptions } from '#http/shared';
import { openLog } from '#log';
import { processEvents } from '#payments/processor-events/process';
import { storeEvents } from '#payments/processor-events/store';
import { isPaused, readPauses } from '#people/pauses.sql';
import { actingByItself } from '#people/users';
import { addPortal } from '#portal/plugin';
import { SERVER_SECONDS, setReadingSeconds } from '#reading/aside';
import { accessTo, readAccount } from '#splits/poll';
import { pollOnRequest } from '#splits/poll-requests';
import { accountsToRead } from './processor/poll.ts';

export const define: Definition = (command, action) => {
  command
    .option('--host <host>', 'address to listen on (default: 127.0.0.1)')
    .option(
      '--port <port>',
      'port to listen on (default: 8080; 0: any free port)',
      wholeNumberArgument('--port', 0, 65535),
    )
    .option(
      '--management-port <port>',
      'also serve /healthz, /readyz and /metrics on this port, from a separate thread (0: any free port)',
      wholeNumberArgument('--management-port', 0, 65535),
    )
    .option('--management-host <host>', 'address of the management port (default: 127.0.0.1)')
    .action(action(serve));
};

const pages: ServerOptions['addPages'] = (app, shared) => {
  addConsole(app, shared);
  addPortal(app, shared);
};

/** A close can lock the ledger for seconds. A request that waits longer gets a 503. */
const PATIENCE = { lockSeconds: 5, statementSeconds: 20 };
const CONNECTIONS = 16;
/**
 * After a failure, such as a lock on payments that another process holds, and between checks whether a pause has ended.
 */
const RETRY_SECONDS = 15;

type ServeOptions = Readonly<{
  host?: string;
  port?: number;
  managementHost?: string;
  managementPort?: number;
}>;

async function serve(
  output: Output,
  { host = '127.0.0.1', port = 8080, managementHost = '127.0.0.1', managementPort }: ServeOptions,
) {
  const stopping = new AbortController();
  return withContext(
    async (context) => {
      await context.database.checkWritable();
      setReadingSeconds(SERVER_SECONDS);
      const log = openLog(null);
      const events = processInBackground(context, log);
      const polling = pollAfterEvents(context, log);
      const onEventsStored = (accounts: readonly string[]) => {
        events.process();
        polling.take(accounts);
      };
      const app = await buildServer({ ...context, log, storeEvents, onEventsStored, addPages: pages });
      const url = await app.listen({ host, port }).catch(notListening(host, port));
      const management =
        managementPort === undefined
          ? undefined
          : await openManagement(app, { host: managementHost, port: managementPort }).catch(async (error: unknown) => {
              await app.close();
              return notListening(managementHost, managementPort)(error);
            });
      const [pause] = await context.database.reading(readPauses);
      if (pause !== undefined) log.warn({ since: pause.paused_at, reason: pause.reason }, 'the ledger is paused');
      // Processes events that an earlier process stored but did not process.
      events.process();
      output.print(
        { listening: url, ...(management && { management: management.url }) },
        () =>
          `Listening on ${url} (${context.environment.name}).${management ? ` Management on ${management.url}.` : ''} Press Ctrl-C to stop.`,
      );
      if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
      // Requests in progress are finished.
      await app.close();
      await events.stop();
      await polling.stop();
      await management?.close();
      return EXIT.done;
    },
    { onStop: () => stopping.abort(), poolSize: CONNECTIONS, patience: PATIENCE, by: output.by, unattended: true },
  );
}

/**
 * After the webhook was answered. Only one run works at a time, and a failed one is retried. Events are stored before
 * they are processed, so none is lost.
 */
function processInBackground(context: Context, log: Logger) {
  const { database } = context;
  let running: Promise<unknown> = Promise.resolve();
  let retry: NodeJS.Timeout | undefined;
  const again = () => {
    retry = setTimeout(process, RETRY_SECONDS * 1000).unref();
  };
  const process = () => {
    clearTimeout(retry);
    running = running
      .then(async () => {
        if (await database.reading(isPaused)) again();
        else
          await database.transaction(async (tx) =>
            processEvents(tx, { ...context, actor: await actingByItself(tx, 'http') }),
          );
      })
      .catch((error: unknown) => {
        log.error({ reason: reasonOf(error) }, `events not processed; retrying in ${RETRY_SECONDS} seconds`);
        again();
      });
  };
  const stop = async () => {
    await running;
    clearTimeout(retry);
  };
  return { process, stop };
}

/** Soon after an event about the account. The daily job `reconcile` reads what this misses. */
function pollAfterEvents(context: Context, log: Logger) {
  const { database, environment } = context;
  return pollOnRequest(
    async (account) => {
      if (!(await accountsToRead(context)).includes(account)) return;
      const acting = { ...context, actor: await database.reading((tx) => actingByItself(tx, 'http')) };
      log.info(await readAccount(database, acting, accessTo(environment, account)), 'account read');
    },
    (account, error) =>
      log.error({ account, reason: reasonOf(error) }, "account not read; the job 'reconcile' will read it"),
  );
}

const notListening = (host: string, port: number) => (error: unknown) => {
  throw refuse('listen_failed', { address: `${host}:${port}`, reason: whyNot(error) }, error);
};

function whyNot(error: unknown) {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return 'the port is in use';
  if (code === 'EACCES') return 'permission denied';
  if (code === 'EADDRNOTAVAIL') return 'this machine does not have that address';
  return reasonOf(error);
}
