import { type Verification, verify as verifyAll } from '../../audit/verify.ts';
import { EXIT } from '../../errors/refusals.ts';
import type { Month } from '../../month.ts';
import { plural } from '../../text.ts';
import { monthArgument } from '../arguments.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { printable, table } from '../output.ts';

export const define: Definition = (command, action) => {
  command
    .argument('[month]', 'a closed month (default: everything)', monthArgument('month'))
    .action(action(reading(verify)));
};

/** The most differences of a check that are printed. --json has all. */
const SHOWN = 10;

async function verify({ database, environment, output }: CommandContext, month: Month | undefined): Promise<number> {
  // Loaded only here, because the renderer is slow to load.
  const { installedFonts } = await import('../../documents/printable.ts');
  const fonts = installedFonts(environment);
  const found = await database.readingBeside((tx, beside) => verifyAll(tx, month, { fonts, beside }));
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
