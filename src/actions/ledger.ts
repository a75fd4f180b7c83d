/** Pausing the ledger (people/pauses.ts), and taking a checkpoint of the log (log/checkpoint.ts). */
import { END_PAUSE } from '#errors/pauses';
import { failpoint } from '#failpoint';
import { takeCheckpoint } from '#log/checkpoint';
import { countUncovered, readLastCheckpoint } from '#log/checkpoints.sql';
import { checkpointTitle } from '#log/text';
import { recordEvent } from '#people/audit-events';
import { pauseLedger, refuseWhilePaused } from '#people/pauses';
import { readPauses } from '#people/pauses.sql';
import { minuteOf } from '#text';
import { defineAction, Facts, instant, reason } from './action.ts';
import { needsAttention, sendDue } from './emails.ts';

export const ledgerPause = defineAction({
  name: 'ledger.pause',
  title: 'Pause the ledger',
  command: {
    called: 'pause',
    unattended: true,
    help: `While the ledger is paused, nothing is closed, issued, sent or recorded:
commands are refused (exit 3), jobs end at once (exit 0), and the API answers
503 to requests that record something. Reading, verify, backup and --dry-run
still work. E-mails that are already being sent are finished. 'reckoner resume'
ends the pause. Pausing needs no user: without --by or RECKONER_USER, the pause
is recorded under 'cron' and the machine's user.

'reckoner restore FILE' pauses the ledger by itself: you need not pause it
first. After a point-in-time recovery or a disk snapshot, give the time of the
restored state with --state-of: 'reckoner resume' then asks which numbers were
issued after that time.`,
  },
  role: 'administrator',
  // The person on call may have no user account, and must still be able to pause the ledger at once.
  withoutRole: async (_tx, { actor }) => actor.user?.kind === 'program',
  input: {
    reason: reason(),
    stateOf: instant('State of', 'The database was restored to this time, such as 2026-12-01T02:00Z.').optional(),
  },
  subject: () => 'ledger',
  perform: (tx, context, { reason, stateOf = null }) => pauseLedger(tx, context, { reason, stateOf }),
  committed: () => failpoint('pause.committed'),
  facts: async (tx): Promise<Facts> => ({ ledger: { paused: (await readPauses(tx))[0]?.reason ?? null } }),
  report: async ({ result: paused }) => ({
    json: { paused },
    text: `The ledger is paused: ${paused.reason}.`,
    remedies: [END_PAUSE],
  }),
});

export const checkpointTake = defineAction({
  name: 'checkpoint.take',
  title: 'Take a checkpoint of the log',
  command: { deliver: true },
  role: 'finance',
  input: {},
  subject: () => 'checkpoint',
  async perform(tx, { environment, actor }): Promise<{ readonly isNew: boolean }> {
    await refuseWhilePaused(tx);
    if ((await countUncovered(tx)) === 0) return { isNew: false };
    const now = environment.now().toISO();
    await recordEvent(tx, actor, { action: 'checkpoint.take', subject: 'checkpoint', details: {}, now });
    return { isNew: true };
  },
  // A checkpoint waits for all transactions that are recording facts, so it cannot be taken inside such a transaction.
  async committed({ database, ...context }, { result: { isNew } }) {
    if (isNew) await takeCheckpoint(database, context);
  },
  after: sendDue,
  facts: async (_tx, _input, result): Promise<Facts> =>
    result?.isNew ? { 'the checkpoint': { status: 'taken' } } : {},
  async report({ result: { isNew }, preview, followed: emails = [] }, _context, tx) {
    const last = await readLastCheckpoint(tx);
    const checkpoint = last && { size: last.size, root: last.root.toString('base64'), taken_at: last.taken_at };
    const title = last === undefined ? 'none' : `${checkpointTitle(last)}, taken ${minuteOf(last.taken_at)}`;
    const text = !isNew
      ? `There is nothing new since the last checkpoint: ${title}.`
      : preview
        ? `A checkpoint would be taken. The last one: ${title}.`
        : `A ${last && checkpointTitle(last)} was taken.\n  root  ${checkpoint?.root}`;
    return {
      json: { taken: isNew && !preview, checkpoint: checkpoint ?? null },
      text,
      attention: emails.some(needsAttention),
    };
  },
});
