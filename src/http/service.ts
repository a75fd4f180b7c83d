import { FastifyBaseLogger } from 'fastify';
import { Environment } from '#config/environment';
import { Settings } from '#config/settings';
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';

/** Each event once, by its account and id. Refuses malformed ones, and those of another environment. */
export type StoreEvents = (
  tx: Transaction,
  acting: { environment: Environment },
  file: { name: string; text: string; account?: string | undefined; signedBy?: string },
) => Promise<{ readonly accounts: readonly string[] }>;

export type Service = Readonly<{
  environment: Environment;
  settings: Settings;
  database: Database;
  log: FastifyBaseLogger;
  /** Stores the processor's events. Without this function, webhooks are refused. */
  storeEvents?: StoreEvents | undefined;
  /** Called after events are stored, with the connected accounts concerned. */
  onEventsStored?: ((accounts: readonly string[]) => void) | undefined;
}>;
