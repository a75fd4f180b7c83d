import { rowsOfToday, type Verification, verify as verifyAll } from '../../audit/verify.ts';
import { EXIT } from '../../errors/refusals.ts';
import type { Month } from '../../month.ts';
import { plural } from '../../text.ts';
import { monthArgument } from '../arguments.ts';
import { type CommandContext, type Definition, readingNow } from '../define.ts';
import { printable, table } from '../output.ts';

export const define: Definition = (command, action) => {
  command
    .argument(
      '[month]',
      'a closed month (default: everything, with the rows of one closed month)',
      monthArgument('month'),
    )
    .option('--all', 'hash the rows of all months again')
    .addHelpText(
      'after',
      `
Without a month, each run hashes the rows of the open months and of one closed
month, a different one each day. It verifies all other facts, documents and
balances every time. --all hashes every row.`,
    )
    .action(action(readingNow(verify)));
};

/** The maximum number of differences of a check that are printed. --json has all. */
const SHOWN = 10;

async function verify(
  { database, environment, output }: CommandContext,
  month: Month | undefined,
  { all }: { readonly all?: true },
): Promise<number> {
  // The renderer is loaded only here, because loading is slow.
  const { installedFonts } = await import('../../documents/printable.ts');
  const fonts = installedFonts(environment);
  const found = await database.readingBeside(async (tx, beside) => {
    const derived = all ? 'all' : await rowsOfToday(tx, environment.now());
    return verifyAll(tx, month, { fonts, beside, derived });
  });
  output.print(found, () => described(found));
  return found.differences > 0 ? EXIT.attention : EXIT.done;
}

function described({ checks, inspected, differences }: Verification): string {
  const rows = checks.map((each) => [each.check, each.inspected, each.differences.length]);
  const named = checks.flatMap(({ check, differences: found, note }) => [
    ...(note === undefined ? [] : [`${check}: ${note}.`]),
    ...found.slice(0, SHOWN).map(({ subject, detail }) => `${check}: ${printable(subject)} ${printable(detail)}`),
    ...(found.length > SHOWN ? [`${check}: … and ${found.length - SHOWN} more`] : []),
  ]);
  return [
    table(['check', '>inspected', '>differences'], rows),
    '',
    ...named,
    differences === 0
      ? `All ${checks.length} checks pass (${plural(inspected, 'item')} inspected).`
      : `${plural(differences, 'difference')} found. Do not change the database; find out who or what changed it.`,
  ].join('\n');
}
