/**
 * Records when each API client last called: at most once every few minutes by process and client, without delaying the
 * call.
 */
import { DateTime } from 'luxon';
import { Logger } from 'pino';
import { Database } from '#database/database';
import { noteClientUse } from '#partners/clients.sql';

const EVERY_SECONDS = 300;

export class ClientUses {
  readonly #service: ClientUsesService;
  readonly #noted = new Map<string, number>();

  constructor(service: ClientUsesService) {
    this.#service = service;
  }

  called(clientId: string) {
    const at = performance.now();
    const noted = this.#noted.get(clientId);
    if (noted !== undefined && at - noted < EVERY_SECONDS * 1000) return;
    this.#noted.set(clientId, at);
    const { database, environment, log } = this.#service;
    const use = { clientId, now: environment.now().toISO(), atMostEverySeconds: EVERY_SECONDS };
    // The call is not awaited, because the client gets its answer even if recording the use fails.
    void database
      .transaction((tx) => noteClientUse(tx, use))
      .catch((err: unknown) => log.warn({ err, client_id: clientId }, 'the use of a client was not noted'));
  }
}

type ClientUsesService = Readonly<{
  database: Pick<Database, 'transaction'>;
  environment: { readonly now: () => DateTime<true> };
  log: Pick<Logger, 'warn'>;
}>;
