/** The identity of an installation. Copies of the database keep this identity. */
import { queryOne, type Transaction } from './transaction.ts';

export const readInstallation = (
  tx: Transaction,
): Promise<{ readonly installation_id: string; readonly environment: string }> =>
  queryOne(tx, `SELECT installation_id, environment FROM installation`);
