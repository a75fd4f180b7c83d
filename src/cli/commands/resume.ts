/** `reckoner resume`. */
import { type NumberParts, numberOf, partsOf, resumeLedger } from '../../documents/resume.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { describeAfterRestore, readAfterRestore } from '../../reports/after-restore.ts';
import { plural } from '../../text.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';

const HELP = `
After 'reckoner restore FILE', a first call shows what may have happened after
the backup and resumes nothing (exit 3). Look for the last number that anybody has
seen: in the mailbox of finance_email (close reports), in the mail server's log,
with the partners or the auditor. Then resume with it, or with --none-issued.
The numbers up to it are never given: a sealed fact explains the gap.`;

export const define: Definition = (command, act) => {
  command
    .option('--numbers-after <number>', 'last number issued after the backup; once for each series', numbersArgument)
    .option('--none-issued', 'no document was issued after the backup')
    .addHelpText('after', HELP)
    .action(act(acting(resume)));
};

function numbersArgument(value: string, before: NumberParts[] = []): NumberParts[] {
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
  options: { numbersAfter?: NumberParts[]; noneIssued?: boolean },
): Promise<number> {
  const { database, environment, output } = context;
  const { numbersAfter = [], noneIssued = false } = options;
  if (noneIssued && numbersAfter.length > 0) {
    throw refuse('usage', { reason: '--none-issued contradicts --numbers-after' });
  }
  const found = await database.reading(readAfterRestore);
  if (found.pauses.some((each) => each.state_of !== null) && !noneIssued && numbersAfter.length === 0) {
    output.print({ resumed: false, ...found }, () => `${describeAfterRestore(found, environment)}\n\n${UNDECIDED}`);
    return EXIT.refused;
  }
  const skipped = await database.transaction((tx) => resumeLedger(tx, context, { numbersAfter }));
  failpoint('resume.committed');
  const ranges = skipped.map(({ series, first, last }) => ({
    ...{ series, first: numberOf({ series, sequence: first }), last: numberOf({ series, sequence: last }) },
    count: last - first + 1,
  }));
  output.print({ resumed: true, skipped: ranges }, () =>
    [
      ...ranges.map(({ first, last, count }) =>
        count === 1 ? `Skipped ${first}.` : `Skipped ${plural(count, 'number')}: ${first} to ${last}.`,
      ),
      'The ledger is resumed.',
    ].join('\n'),
  );
  return EXIT.done;
}

const UNDECIDED = `Not resumed. Say what was issued after that:
  reckoner resume --numbers-after NUMBER    the last number that was issued;
                                            once for each series
  reckoner resume --none-issued             no document was issued`;
