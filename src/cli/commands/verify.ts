import { existsSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { JOBS, packsIn, proveAll } from '#archive/folder';
import { rowsOfToday, Verification, verify as verifyAll } from '#audit/verify';
import { monthArgument, wholeNumberArgument } from '#cli/arguments';
import { CommandContext, Definition, readingNow } from '#cli/define';
import { logKeyOf, readNoteFile } from '#cli/fields';
import { Output, printable, table } from '#cli/output';
import { EXIT, refuse } from '#errors/refusals';
import { bodyOf, isSignedBy } from '#log/note';
import { groupThousands } from '#money';
import { Month } from '#month';
import { plural } from '#text';

export const define: Definition = (command, action) => {
  command
    .argument(
      '[month]',
      'a closed month (default: everything, with the rows of one closed month)',
      monthArgument('month'),
    )
    .option('--all', 'hash the rows of all months again')
    .option('--packs <folder>', 'verify archived months and packs in a folder, without the server')
    .option('--held <file...>', 'with --packs: checkpoints that you received')
    .option('--key <key>', "with --packs: the log's verifier key, or a file with it")
    .option('--jobs <number>', 'with --packs: processes (default: one per core)', wholeNumberArgument('--jobs', 1, 999))
    .addHelpText(
      'after',
      `
Without a month, each run hashes the rows of the open months and of one closed
month, a different one each day. It verifies all other facts, documents and
balances every time. Of other archived months it compares the sizes of files,
and reads the rows that facts name. --all hashes every row.`,
    )
    .action(
      action((output, month: Month | undefined, options: Options) =>
        options.packs === undefined
          ? readingNow(verify)(output, month, options)
          : packs(output, options.packs, options),
      ),
    );
};

type Options = Readonly<{ all?: true; packs?: string; held?: string[]; key?: string; jobs?: number }>;

/** The maximum number of differences of a check that are printed. --json has all. */
const SHOWN = 10;

async function verify({ database, environment, output }: CommandContext, month: Month | undefined, { all }: Options) {
  // The renderer is loaded only here, because loading is slow.
  const { installedFonts } = await import('#documents/printable');
  const fonts = installedFonts(environment);
  const found = await database.readingBeside(async (tx, beside) => {
    const derived = all ? 'all' : await rowsOfToday(tx, environment.now());
    return verifyAll(tx, month, { fonts, beside, derived, environment });
  });
  output.print(found, () => described(found));
  return found.differences > 0 ? EXIT.attention : EXIT.done;
}

async function packs(output: Output, folder: string, { held = [], key, jobs = JOBS }: Options) {
  const there = existsSync(folder);
  const paths = there ? packsIn(folder) : [];
  const reason = there ? 'it has no archived month or pack' : 'there is no such folder';
  if (paths.length === 0) throw refuse('file_unreadable', { file: folder, reason });
  const own = key && logKeyOf('--key', key);
  const bodies = held.map(readNoteFile).map(({ head, lines }) => {
    if (!own || isSignedBy(head, lines, own)) return bodyOf(head);
    throw refuse('checkpoint_not_signed', { ...head, key: own.name });
  });
  const options = [...held.map((file) => `--held=${file}`), ...(key === undefined ? [] : [`--key=${key}`])];
  const proofs = (await proveAll(paths, { held: bodies, options, jobs })).map((proof) => ({
    ...proof,
    result: proof.wrong.length > 0 ? 'wrong' : proof.open.length > 0 ? 'open' : 'holds',
  }));
  output.print(proofs, () =>
    [
      table(
        ['months', '>rows', 'to invoice', 'root', 'result', 'in'],
        proofs.map(({ months, rows = null, totals = {}, checkpoint, result, path }) => {
          const sums = Object.entries(totals).map(
            ([currency, { invoiceAmount }]) => `${groupThousands(invoiceAmount)} ${currency}`,
          );
          const root = checkpoint?.split('\n')[2]?.slice(0, 12) ?? '';
          return [months, rows, sums.join(', '), root, result, relative(folder, dirname(path)) || '.'];
        }),
      ),
      ...proofs.flatMap(({ months, wrong, open }) =>
        [...wrong.slice(0, SHOWN), ...open].map((each) => `${months}: ${each}`),
      ),
    ].join('\n'),
  );
  return proofs.every(({ result }) => result === 'holds') ? EXIT.done : EXIT.attention;
}

function described({ checks, inspected, differences }: Verification) {
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
