import { Definition, EXIT, Output, withDatabase } from '#cli/command';
import { Environment, readEnvironment } from '#config/environment';
import { packageVersion } from '#package';
import { recordEvent, thisProcess } from '#people/audit-events';
import { identifyIfKnown } from '#people/users';
import { plural } from '#text';

export const define: Definition = (command, action) => {
  command.action(action(migrate));
};

async function migrate(output: Output) {
  const environment = readEnvironment();
  const migrations = await bringUpToDate(output, environment);
  output.print({ migrations }, () => describeMigrations(migrations));
  return EXIT.done;
}

export const describeMigrations = (migrations: readonly string[]) =>
  migrations.length > 0
    ? `Applied ${plural(migrations.length, 'migration')}: ${migrations.join(', ')}.`
    : 'The database is up to date.';

/** Runs the pending migrations. An event records them, and a new schema record. */
export function bringUpToDate(output: Output, environment: Environment) {
  return withDatabase(environment, { unmigrated: true }, (database) =>
    database.migrations.run(async (tx, { migrations, schema }) => {
      if (migrations.length === 0 && !schema.isNew) return;
      const details = { migrations, schema_record: schema.sha256 };
      const now = environment.now().toISO();
      const event = { action: 'database.migrate', subject: packageVersion, details, now };
      const claimed = thisProcess('command', output.by);
      await recordEvent(tx, await identifyIfKnown(tx, claimed, output.by ?? environment.user), event);
    }),
  );
}
