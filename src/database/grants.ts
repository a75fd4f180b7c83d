/**
 * The privileges of the role reckoner_app. Each `migrate` grants the privileges again, because the role may be newer
 * than the tables, or the tables may come from a dump of a cluster with other roles.
 */
import { refuse } from '#errors/refusals';
import { SchemaObject } from './schema-objects.ts';
import { Queryable } from './session.ts';
import { execute, queryOne, setLocally, Transaction } from './transaction.ts';

/**
 * Grants the privileges, if the role exists. `migrated` are the objects that the migrations have made elsewhere, with
 * the privileges that the migrations granted on them.
 */
export async function grantToApp(owner: Queryable, migrated: readonly SchemaObject[] = []) {
  const { rows } = await owner.query(
    `SELECT to_regrole('reckoner_app') IS NOT NULL AS there, quote_ident(current_schema()) AS home`,
  );
  const { there, home } = rows[0] as { there: boolean; home: string };
  if (!there) return;
  const grants = migrated.flatMap(({ object, facts }) => {
    const [, name] = /^privileges on (?!schema$)(\w+)$/.exec(object) ?? [];
    const [, privileges] = /\breckoner_app: ([A-Z, ]+)/.exec(facts) ?? [];
    return name && privileges ? [`GRANT ${privileges} ON ${name} TO reckoner_app;`] : [];
  });
  // A backup may run as a login that owns nothing, and must read the position of each sequence.
  const whole = [
    `GRANT USAGE ON SCHEMA ${home} TO reckoner_app;`,
    `GRANT SELECT ON migrations TO reckoner_app; GRANT SELECT ON ALL SEQUENCES IN SCHEMA ${home} TO reckoner_app;`,
    'CALL close_functions();',
  ];
  await owner.query([...whole, ...grants].join('\n'));
}

type Ownership = Readonly<{
  login: string;
  owner: string;
  owns: boolean;
}>;

async function readOwnership(pool: Queryable) {
  const { rows } = await pool.query(
    `SELECT current_user AS login, pg_get_userbyid(relowner) AS owner,
            pg_has_role(current_user, relowner, 'USAGE') AS owns
     FROM pg_class WHERE oid = to_regclass('migrations')`,
  );
  return rows[0] as Ownership | undefined;
}

/**
 * True for the owner of our tables. If there are no tables, true for every login, because the login that creates the
 * tables becomes their owner.
 */
export const ownsTables = async (pool: Queryable) => (await readOwnership(pool))?.owns ?? true;

export async function refuseUnlessOwner(pool: Queryable, action: 'migrate' | 'restore' | 'archive') {
  const found = await readOwnership(pool);
  if (found && !found.owns) throw refuse('database_not_owner', { action, login: found.login, owner: found.owner });
}

/**
 * Runs statements as the owner of the tables within a transaction of the program's role, for what that role may not do:
 * moving rows to an archive and back. If a statement fails, the transaction must end. Refusal: database_not_owner.
 */
export async function asTableOwner<Result>(tx: Transaction, work: () => Promise<Result>) {
  const { role } = await queryOne<{ role: string }>(tx, `SELECT current_setting('role') AS role`);
  await setLocally(tx, 'role', 'none');
  await refuseUnlessOwner(tx.client, 'archive');
  await execute(
    tx,
    `SELECT set_config('role', pg_get_userbyid(relowner), true) FROM pg_class WHERE oid = 'migrations'::regclass`,
  );
  const result = await work();
  await setLocally(tx, 'role', role);
  return result;
}
