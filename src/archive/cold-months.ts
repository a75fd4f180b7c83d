/** The statements of archived months, and what `verify` finds wrong with them. */
import { isDeepStrictEqual } from 'node:util';
import type { Environment } from '../config/environment.ts';
import type { Transaction } from '../database/transaction.ts';
import { type Checkpoint, readCheckpoints } from '../log/checkpoints.sql.ts';
import { readTree } from '../log/head.ts';
import { copyLines } from '../log/lines.sql.ts';
import { bodyOf } from '../log/note.ts';
import { hashLines } from '../log/tree.ts';
import type { Month } from '../month.ts';
import { type ArchivedFile, presentLeaves, readColdMonths, readStoredFiles, storedGroups } from './archive.sql.ts';
import { otherGroups, otherRows } from './cold.sql.ts';
import { atOnce, JOBS } from './proof.ts';
import { linesOf, needRows, readingFiles } from './rows.ts';
import { compareHeld } from './statement.ts';
import { openStore } from './stores.ts';

/** The statement of the close whose first fact has the number `first`. */
export async function statementOf(tx: Transaction, first: number, files: readonly ArchivedFile[]): Promise<string> {
  const checkpoints = await readCheckpoints(tx);
  const at = checkpoints.findIndex(({ last_no }) => last_no >= first);
  const [before, own] = [checkpoints[at - 1], checkpoints[at] as Checkpoint];
  const range = { after: before?.last_no ?? 0, to: first - 1 };
  await needRows(tx, { numbers: range });
  const tree = await readTree(tx, before, range.to);
  const facts: Buffer[] = [];
  await copyLines(tx, { after: range.to, to: own.last_no }, (piece) => void facts.push(Buffer.from(piece)));
  const named = files.map((file) => `${JSON.stringify(file)}\n`).join('');
  return [bodyOf(own), hashLines(tree.hashes()), Buffer.concat(facts), named].join('\n');
}

/** What is wrong with archived months: all that can be found in `months`, what is lost in others. */
export async function proveColdMonths(
  tx: Transaction,
  environment: Environment,
  months: readonly Month[],
  jobs = JOBS,
): Promise<{ subject: string; detail: string }[]> {
  const files = await readStoredFiles(tx, {});
  const held = (await readCheckpoints(tx)).map(bodyOf);
  const cold = await Promise.all(
    (await readColdMonths(tx)).map(async ({ month, store }) => ({
      ...{ month, store: await openStore(tx, environment, store) },
      files: files.filter((file) => file.month === month),
    })),
  );
  const others: { subject: string; detail: string }[] = [];
  for (const { month, store, files: own } of cold) {
    if (months.includes(month)) continue;
    const lost = await store.lost(own);
    others.push(...lost.map((name) => ({ subject: month, detail: `${name} is missing, or has another size` })));
  }
  const asked = cold.filter(({ month }) => months.includes(month));
  const proofs = await atOnce(jobs, asked, async ({ month, store }) => compareHeld(await store.prove(month), held));
  const own = files.filter(({ month }) => months.includes(month));
  const isProved = proofs.every(({ wrong }) => wrong.length === 0) && own.length > 0;
  // Rows and groups that stayed are compared with their files.
  const differing = !isProved
    ? []
    : await readingFiles(tx, environment, own, async (readings) => {
        const found: string[] = [];
        for (const { reading, months: of } of readings) {
          const rows = await otherRows(reading, linesOf(tx, presentLeaves(of)));
          const groups = await otherGroups(reading, linesOf(tx, storedGroups(of)));
          found.push(...rows.map((each) => `row ${each.split(' ', 1)[0]}`));
          found.push(...groups.map((each) => `group ${each.split(' ', 4).join(' ')}`));
        }
        return found;
      });
  const wrongRows = differing.map((subject) => ({ subject, detail: 'is not that of the archive' }));
  const ofFiles = proofs.flatMap(({ months: subject, wrong, open, files: proved }) => {
    const named = files.filter(({ month }) => month === subject).map(({ month: _, store: __, ...file }) => file);
    const isOther = wrong.length === 0 && !isDeepStrictEqual(named, proved);
    const other = isOther ? ['has other files in the database than its statement names'] : [];
    return [...wrong, ...open, ...other].map((detail) => ({ subject, detail }));
  });
  return [...others, ...ofFiles, ...wrongRows];
}
