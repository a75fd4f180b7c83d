import { type NumberParts, numberOf, partsOf, resumeLedger } from '../../documents/resume.ts';
import { EXIT, refuse } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { describeAfterRestore, readAfterRestore } from '../../reports/after-restore.ts';
import { plural } from '../../text.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';

const HELP = `
After 'reckoner restore FILE', the first run shows what may have happened after
the backup and does not resume (exit 3). Find the last number of invoices,
credit notes and statements that anyone has seen: check the finance_email
mailbox (close reports) and the mail server's log, and ask the partners and the
auditor. Then resume with all of them, or with --none-issued. For a series
without a later number give its last one here, or 000000 if it has none. Numbers
up to those given are never used again: a sealed fact explains the gap.`;

export const define: Definition = (command, action) => {
  command
    .option('--numbers-after <number>', 'last number issued after the backup; repeat for each series', numbersArgument)
    .option('--none-issued', 'no document was issued after the backup')
    .addHelpText('after', HELP)
    .action(action(acting(resume, 'administrator')));
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
  const found = await database.reading((tx) => readAfterRestore(tx, context));
  if (found.pauses.some((each) => each.state_of !== null) && !noneIssued && numbersAfter.length === 0) {
    const numbers = [...found.numbers.map(({ last }) => last), ...found.unused.map((series) => `${series}-000000`)];
    output.print({ resumed: false, ...found }, () =>
      [describeAfterRestore(found, environment), undecided(numbers)].join('\n\n'),
    );
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

const undecided = (
  numbers: readonly string[],
) => `Not resumed. If documents were issued after that, replace each number with the
last one issued, and keep the others:
  reckoner resume${numbers.map((each) => ` \\\n    --numbers-after ${each}`).join('')}
If none were issued:
  reckoner resume --none-issued`;
