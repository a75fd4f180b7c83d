import { END_PAUSE } from '../errors/pauses.ts';
import { failpoint } from '../failpoint.ts';
import { readPauses } from '../people/pauses.sql.ts';
import { pauseLedger } from '../people/pauses.ts';
import { takeCheckpoint } from '../seals/checkpoint.ts';
import { defineAction, type Facts } from './action.ts';
import { needsAttention, sendDue } from './emails.ts';
import { instant, reason } from './fields.ts';

export const ledgerPause = defineAction({
  name: 'ledger.pause',
  title: 'Pause the ledger',
  command: {
    called: 'pause',
    unattended: true,
    help: `While the ledger is paused, nothing is closed, issued, sent or recorded:
commands are refused (exit 3), jobs end at once (exit 0), and the API answers
503 to requests that record something. Reading, verify, backup and --dry-run
work. E-mails being sent are finished. 'reckoner resume' ends the pause. Pausing
needs no user: without one it is recorded under 'cron' and the machine's user.

'reckoner restore FILE' pauses the ledger by itself: you need not pause it
first. After a point-in-time recovery or a disk snapshot, give its time with
--state-of: 'reckoner resume' then asks which numbers were issued after it.`,
  },
  role: 'administrator',
  // The person on call may have no user, and must not have to wait for one to pause the ledger.
  withoutRole: async (_tx, { actor }) => actor.user?.kind === 'program',
  input: {
    reason: reason(),
    stateOf: instant('State of', 'The database was restored to this time, such as 2026-12-01T02:00Z.').optional(),
  },
  subject: () => 'ledger',
  partners: async () => 'all',
  perform: (tx, context, { reason, stateOf = null }) => pauseLedger(tx, context, { reason, stateOf }),
  committed: () => failpoint('pause.committed'),
  facts: async (tx): Promise<Facts> => ({ ledger: { paused: (await readPauses(tx))[0]?.reason ?? null } }),
  amounts: () => [],
  report: async (_tx, _context, { result: paused }) => ({
    json: { paused },
    text: `The ledger is paused: ${paused.reason}.`,
    remedies: [END_PAUSE],
  }),
});

export const checkpointTake = defineAction({
  name: 'checkpoint.take',
  title: 'Take a checkpoint of the open month',
  command: { called: 'checkpoint', deliver: true },
  role: 'finance',
  input: {},
  subject: () => 'checkpoint',
  partners: async () => 'all',
  perform: (tx, context) => takeCheckpoint(tx, context),
  committed: () => failpoint('checkpoint.committed'),
  after: sendDue,
  facts: async (_tx, _input, taken): Promise<Facts> =>
    taken === undefined ? {} : { [`checkpoint ${taken.checkpoint_number}`]: { status: 'sealed' } },
  amounts: () => [],
  async report(_tx, { settings }, { result: taken, followed: emails = [] }) {
    const held = settings.auditor_email === '' ? ' Give it to the auditor: settings.json has no auditor_email.' : '';
    return {
      json: taken,
      text: `Checkpoint ${taken.checkpoint_number} was taken.${held}\n  seal  ${taken.seal}`,
      attention: emails.some(needsAttention),
    };
  },
});
