/** `reckoner migrate`. */

import { type Environment, readEnvironment } from '../../config/environment.ts';
import { lockLedgerWhole } from '../../database/ledger-lock.ts';
import { EXIT } from '../../errors/refusals.ts';
import { packageVersion } from '../../package.ts';
import { recordEvent, thisProcess } from '../../people/audit-events.ts';
import { readUnsealedMonths } from '../../seals/queries.ts';
import { sealClosedMonths } from '../../seals/seal.ts';
import { plural } from '../../text.ts';
import { withDatabase } from '../context.ts';
import type { Definition } from '../define.ts';
import type { Output } from '../output.ts';

export const define: Definition = (command, act) => {
  command.action(act(migrate));
};

export async function migrate(output: Output): Promise<number> {
  const environment = readEnvironment();
  const migrations = await bringUpToDate(output, environment);
  output.print({ migrations }, () =>
    migrations.length > 0
      ? `Applied ${plural(migrations.length, 'migration')}: ${migrations.join(', ')}.`
      : 'The database is up to date.',
  );
  return EXIT.done;
}

/** Migrates the database, and seals months that were closed without a seal. Either is recorded as an event. */
export function bringUpToDate(output: Output, environment: Environment): Promise<string[]> {
  return withDatabase(environment, { unmigrated: true }, async (database) => {
    const migrations = await database.migrations.run();
    await database.transaction(async (tx) => {
      await lockLedgerWhole(tx);
      const now = environment.now().toISO();
      // Record the event first, so that the new seals cover it.
      const unsealed = await readUnsealedMonths(tx);
      if (migrations.length + unsealed.length > 0) {
        await recordEvent(tx, thisProcess('command', output.by), {
          action: 'database.migrate',
          subject: packageVersion,
          details: { migrations, sealed: unsealed },
          now,
        });
      }
      await sealClosedMonths(tx, now);
    });
    return migrations;
  });
}
