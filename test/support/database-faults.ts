/** Makes a test's database behave like a faulty server: one that is read-only, or whose clock is wrong. */
import pg from 'pg';

async function withOwner<Result>(url: string, work: (owner: pg.Client, name: string) => Promise<Result>) {
  const owner = new pg.Client(url);
  await owner.connect();
  try {
    const { rows } = await owner.query<{ name: string }>('SELECT current_database() AS name');
    return await work(owner, rows[0]?.name ?? '');
  } finally {
    await owner.end();
  }
}

/** Applies to new connections. */
export const makeReadOnly = (url: string, readOnly: 'on' | 'off'): Promise<void> =>
  withOwner(url, async (owner, name) => {
    await owner.query('SET default_transaction_read_only TO off');
    await owner.query(`ALTER DATABASE ${name} SET default_transaction_read_only TO ${readOnly}`);
  });

export interface DatabaseClock {
  /** Stops the database's clock at an instant. */
  readonly show: (instant: string) => Promise<void>;
  /** Gives the database the server's own clock again. */
  readonly end: () => Promise<void>;
}

/** New connections to this database use a replacement for PostgreSQL's clock_timestamp(). */
export async function databaseClock(url: string): Promise<DatabaseClock> {
  const ask = (sql: string) => withOwner(url, (owner, name) => owner.query(sql.replaceAll('NAME', name)));
  await ask(`
    CREATE SCHEMA faulty; GRANT USAGE ON SCHEMA faulty TO PUBLIC;
    CREATE FUNCTION faulty.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN pg_catalog.clock_timestamp();
    ALTER DATABASE NAME SET search_path TO public, faulty, pg_catalog`);
  return {
    async show(instant) {
      await ask(`CREATE OR REPLACE FUNCTION faulty.clock_timestamp() RETURNS timestamptz LANGUAGE sql
                 RETURN '${instant}'::timestamptz`);
    },
    async end() {
      await ask(`ALTER DATABASE NAME RESET search_path; DROP SCHEMA faulty CASCADE`);
    },
  };
}
