import { acting, CommandContext, Definition, EXIT, refuse } from '#cli/command';
import { readNoteFile } from '#cli/fields';
import { Environment } from '#config/environment';
import { NumberParts, numberOf, partsOf, resumeLedger } from '#documents/resume';
import { failpoint } from '#failpoint';
import { readHead } from '#log/head';
import { describeAfterRestore, readAfterRestore } from '#reports/after-restore';
import { counted, plural } from '#text';

const HELP = `
After 'reckoner restore FILE', the first run shows what may have happened after
the backup and does not resume (exit 3). Find the last number of invoices,
credit notes and statements that anyone has seen: check the finance_email
mailbox (close reports) and the mail server's log, and ask the partners and the
auditor. Then give all of these numbers, or --none-issued. For a series without
a later number, give its last number in this ledger, or 000000 if it has none
here. Numbers up to those given are never used again: the log explains the gap.

Resume also needs the last checkpoint of the log that anyone outside has seen.
It takes the checkpoint in RECKONER_HOME/log-head, unless --checkpoint names a
later one. If the restored database does not continue that checkpoint, the log
goes on under a new name, and its first new fact states what was lost.`;

export const define: Definition = (command, action) => {
  command
    .option('--numbers-after <number>', 'last number issued after the backup; repeat for each series', numbersArgument)
    .option('--none-issued', 'no document was issued after the backup')
    .option('--checkpoint <file>', 'the last checkpoint of the log that the auditor or a witness has')
    .option('--no-checkpoint-seen', 'no one outside has a checkpoint')
    .addHelpText('after', HELP)
    .action(action(acting(resume, 'administrator')));
};

function numbersArgument(value: string, before: NumberParts[] = []) {
  const argument = '--numbers-after';
  const parts = partsOf(value);
  if (parts === undefined) {
    throw refuse('argument_invalid', { argument, value, reason: 'is not a number such as INV-2026-000176' });
  }
  if (before.some((each) => each.series === parts.series)) {
    throw refuse('argument_invalid', { argument, value, reason: `is the second number of ${parts.series}` });
  }
  return [...before, parts];
}

async function resume(
  context: CommandContext,
  options: { numbersAfter?: NumberParts[]; noneIssued?: boolean; checkpoint?: string; checkpointSeen?: boolean },
) {
  const { database, environment, output } = context;
  const { numbersAfter = [], noneIssued = false } = options;
  if (noneIssued && numbersAfter.length > 0) {
    throw refuse('usage', { reason: '--none-issued contradicts --numbers-after' });
  }
  const found = await database.reading((tx) => readAfterRestore(tx, context));
  if (found.pauses.some((each) => each.state_of !== null) && !noneIssued && numbersAfter.length === 0) {
    const numbers = [...found.numbers.map(({ last }) => last), ...found.unused.map((series) => `${series}-000000`)];
    output.print({ resumed: false, ...found }, () =>
      [describeAfterRestore(found, environment), undecided(numbers)].join('\n\n'),
    );
    return EXIT.refused;
  }
  const isRestored = found.pauses.some((each) => each.state_of !== null);
  const seen = seenOutside(options.checkpoint, environment);
  if (isRestored && seen === undefined && options.checkpointSeen !== false) throw refuse('checkpoint_needed', {});
  const { skipped, log } = await database.transaction((tx) => resumeLedger(tx, context, { numbersAfter, seen }));
  failpoint('resume.committed');
  const ranges = skipped.map(({ series, first, last }) => ({
    ...{ series, first: numberOf({ series, sequence: first }), last: numberOf({ series, sequence: last }) },
    count: last - first + 1,
  }));
  output.print({ resumed: true, skipped: ranges, log: log ?? null }, () =>
    [
      ...ranges.map(({ first, last, count }) =>
        count === 1 ? `Skipped ${first}.` : `Skipped ${plural(count, 'number')}: ${first} to ${last}.`,
      ),
      ...(log === undefined
        ? []
        : [
            `The log goes on as ${log.origin}. ${log.follows} was seen outside with ${plural(log.lost_size, 'fact')}; ` +
              `its first ${counted(log.kept_size)} are certainly kept. Send the auditor its next checkpoint.`,
          ]),
      'The ledger is resumed.',
    ].join('\n'),
  );
  return EXIT.done;
}

/** The larger of two checkpoints: the one in a file and the one in RECKONER_HOME. */
function seenOutside(file: string | undefined, environment: Environment) {
  const kept = readHead(environment)?.head;
  if (file === undefined) return kept;
  const given = readNoteFile(file).head;
  return kept !== undefined && kept.origin === given.origin && kept.size > given.size ? kept : given;
}

const undecided = (
  numbers: readonly string[],
) => `Not resumed. If documents were issued after that, replace each number with the
last one issued, and keep the others:
  reckoner resume${numbers.map((each) => ` \\\n    --numbers-after ${each}`).join('')}
If none were issued:
  reckoner resume --none-issued`;
