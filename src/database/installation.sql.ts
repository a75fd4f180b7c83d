/** The identity of an installation. Copies of its database keep it. */
import { queryOne, type Transaction } from './transaction.ts';

export const readInstallation = (
  tx: Transaction,
): Promise<{ readonly installation_id: string; readonly environment: string }> =>
  queryOne(tx, `SELECT installation_id, environment FROM installation`);
