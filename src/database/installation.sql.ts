/** The identity of an installation. Copies of the database keep this identity. */
import { queryOne, type Transaction } from './transaction.ts';

export const readInstallation = (
  tx: Transaction,
): Promise<{ readonly installation_id: string; readonly environment: string }> =>
  queryOne(tx, `SELECT installation_id, environment FROM installation`);

/** The host that is part of the log's name. */
export const readLogHost = (tx: Transaction): Promise<{ readonly log_host: string }> =>
  queryOne(tx, `SELECT log_host FROM installation`);
