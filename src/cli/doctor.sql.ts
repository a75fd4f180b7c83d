import { queryingOne } from '#database/transaction';

export type ServerFacts = Readonly<{
  version: string;
  login: string;
  superuser: boolean;
  owns: boolean;
  tls: string | null;
  local: boolean;
  most_connections: number;
  connections: number;
  fsync: string;
  full_page_writes: string;
  megabytes: number;
}>;

/** This query must run as the login role, because reckoner_app cannot see its connection's TLS state. */
export const readServerFacts = queryingOne<ServerFacts>(`
  SELECT current_setting('server_version') AS version, session_user::text AS login,
         (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) AS superuser,
         EXISTS (SELECT FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
                 WHERE c.relnamespace = current_schema()::regnamespace AND r.rolname = session_user) AS owns,
         (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls,
         inet_server_addr() IS NULL OR inet_server_addr() << '127.0.0.0/8' OR inet_server_addr() = '::1' AS local,
         current_setting('max_connections')::int AS most_connections,
         (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
         current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
         (pg_database_size(current_database()) / 1048576)::int AS megabytes`);
