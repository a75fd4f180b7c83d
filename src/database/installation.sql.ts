/** The identity of an installation, kept in copies of its database. */
import { queryOne, type Transaction } from './transaction.ts';

export const readInstallation = (
  tx: Transaction,
): Promise<{ readonly installation_id: string; readonly environment: string }> =>
  queryOne(tx, `SELECT installation_id, environment FROM installation`);
