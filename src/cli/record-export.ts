/**
 * Records what a command writes outside the ledger as an audit event `audit.export`, as the console does. Refusal:
 * access_ended.
 */
import { todayOf } from '#config/today';
import { Database } from '#database/database';
import { recordEvent, thisProcess } from '#people/audit-events';
import { refuseEnded } from '#people/roles';
import { identifyIfKnown } from '#people/users';
import { CommandContext, withDatabase } from './context.ts';

/** Anyone with a shell may export. A user is named with --by; otherwise the event has the operating-system user. */
export async function recordExport(
  context: CommandContext,
  subject: string,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { database, environment, output } = context;
  const login = output.by ?? environment.user;
  const record = ({ transaction }: Pick<Database, 'transaction'>) =>
    transaction(async (tx) => {
      const claimed = thisProcess('command', output.by);
      const actor = login === undefined ? claimed : await identifyIfKnown(tx, claimed, login);
      if (actor.user !== undefined) refuseEnded(actor.user, todayOf(context));
      await recordEvent(tx, actor, { action: 'audit.export', subject, details, now: environment.now().toISO() });
    });
  if (environment.databaseReadUrl === undefined) await record(database);
  else if (environment.databaseUrl !== undefined) await withDatabase(environment, {}, record);
  else output.note('This export is not recorded, because DATABASE_URL is not set and a replica cannot be written to.');
}
