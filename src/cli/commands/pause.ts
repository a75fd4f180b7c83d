/** `reckoner pause`. */
import { ledgerPause } from '../../acts/ledger.ts';
import { instantArgument } from '../arguments.ts';
import { type Definition, REASON } from '../define.ts';
import { doing } from '../run-act.ts';

const HELP = `
While the ledger is paused, nothing closes, is issued, sent or recorded:
commands are refused (exit 3), jobs end at once (exit 0), and the API answers
503 to whatever records. Reading, verify, backup and --dry-run work. E-mails
under way are finished. 'reckoner resume' ends the pause. Pausing needs no user:
without one it is recorded as done by 'cron' and the machine's user.

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
    .action(act(doing(ledgerPause, (options: { reason: string; stateOf?: string }) => options, { unattended: true })));
};
