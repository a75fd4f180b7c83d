/** The identity of an installation. Copies of the database keep this identity. */
import { queryingOne } from './transaction.ts';

export const readInstallation = queryingOne<Readonly<{ installation_id: string; environment: string }>>(
  `SELECT installation_id, environment FROM installation`,
);

/** The host that is part of the log's name. */
export const readLogHost = queryingOne<{ readonly log_host: string }>(`SELECT log_host FROM installation`);
