/** `reckoner pause`. */
import { failpoint } from '../../failpoint.ts';
import { pauseLedger } from '../../people/pauses.ts';
import { instantArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition, REASON } from '../define.ts';

const HELP = `
While the ledger is paused, nothing closes, is issued, sent or recorded:
commands are refused (exit 3), jobs end at once (exit 0), and the API answers
503 to whatever records. Reading, verify, backup and --dry-run work. E-mails
under way are finished. 'reckoner resume' ends the pause.

'reckoner restore FILE' leaves a pause by itself. After a point-in-time recovery
or from a snapshot of the disk, say so with --state-of: then 'reckoner resume'
asks which numbers were issued after it.`;

export const define: Definition = (command, act) => {
  command
    .requiredOption(...REASON)
    .option(
      '--state-of <time>',
      'the database was set back to this time, such as 2026-12-01T02:00Z',
      instantArgument('--state-of'),
    )
    .addHelpText('after', HELP)
    .action(act(acting(pause)));
};

async function pause(context: CommandContext, options: { reason: string; stateOf?: string }): Promise<void> {
  const { database, output } = context;
  const { reason, stateOf = null } = options;
  const paused = await database.transaction((tx) => pauseLedger(tx, context, { reason, stateOf }));
  failpoint('pause.committed');
  output.print({ paused }, () => `The ledger is paused: ${paused.reason}. 'reckoner resume' ends the pause.`);
}
