/** Three closed months with everything in them that the log covers, and an open one, for the tests of evidence and exports. */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { EXPORT_KINDS, type ExportRequest, exportPack } from '../../src/audit/export.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { closeDispute, openDispute } from '../../src/documents/disputes.ts';
import { holdDocument, releaseDocument } from '../../src/documents/hold.ts';
import { rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { undoWriteOff, writeOffInvoice } from '../../src/documents/write-off.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import type { Month } from '../../src/month.ts';
import { packageRoot } from '../../src/package.ts';
import { pauseReminders } from '../../src/payments/reminder-pauses.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { JOURNAL_PROGRAMS } from '../support/journal-programs.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { tool } from '../support/tools.ts';
import { unwrapped } from '../support/verifiers.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

export const month = (text: string): Month => text as Month;

/** July, August and September 2026 closed, the books of the first two as well; October open with one row. The clock stands on 1 October. */
export async function openBooks(options: Parameters<typeof openWorld>[0] = {}): Promise<World> {
  const world = await openWorld(options);
  const first = quote({ quote_id: 'q-1', spotPrice: '40.00', partnerCut: '12.00', invoiceAmount: '28.00' });
  const yen = { currency: 'JPY', spotPrice: '1000', partnerCut: '300', invoiceAmount: '700' };
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', name: '=Sum(A1) "Über", Ltd', currency: 'JPY' }),
    partner({ partner_id: 'p-3', name: 'Kuwait, 3 decimals', currency: 'KWD' }),
  ]);
  await world.rows([
    first,
    requote(first),
    quote({ partner_id: 'p-2', quote_id: 'q-2', ...yen }),
    quote({ policy_id: 'parking' }),
    quote({ partner_id: 'p-3', currency: 'KWD', spotPrice: '1.005', partnerCut: '0.300', invoiceAmount: '0.705' }),
  ]);
  await world.close();
  await world.deliver();

  world.at('2026-08-20T10:00:00Z');
  const acted = <Result>(work: Parameters<typeof world.database.transaction<Result>>[0]) =>
    world.database.transaction(work);
  await acted((tx) => voidDocument(tx, world, { number: 'INV-2026-000001', reason: 'a wrong address' }));
  await acted((tx) => rerunMonth(tx, world, month('2026-07'), { newTerms: false, changed: true }));
  await acted((tx) => creditInvoice(tx, world, { number: 'INV-2026-000004', amount: '1.50', reason: 'kindness' }));
  await acted((tx) => holdDocument(tx, world, { number: 'INV-2026-000004', reason: 'they asked' }));
  await acted((tx) => releaseDocument(tx, world, 'INV-2026-000004'));
  await acted((tx) => openDispute(tx, world, { number: 'INV-2026-000004', amount: '1', reason: 'wrong count' }));
  await acted((tx) => pauseReminders(tx, world, { partnerId: 'p-3', until: '2026-08-31', reason: 'installments' }));
  await acted((tx) => pauseReminders(tx, world, { partnerId: 'p-3', until: null, reason: 'all is paid' }));
  await acted((tx) => closeDispute(tx, world, { number: 'INV-2026-000004', reason: 'explained' }));
  // Credit that is used, and given back by a void, for the replacement.
  await acted((tx) => creditInvoice(tx, world, { number: 'INV-2026-000002', amount: '100', reason: 'kindness' }));
  await acted((tx) => voidDocument(tx, world, { number: 'INV-2026-000002', reason: 'a wrong name' }));
  await acted((tx) => rerunMonth(tx, world, month('2026-07'), { newTerms: false, changed: true }));
  await acted((tx) => writeOffInvoice(tx, world, { number: 'INV-2026-000003', reason: ' =insolvent' }));
  await acted((tx) => undoWriteOff(tx, world, { number: 'INV-2026-000003', reason: '＝not insolvent' }));
  await acted((tx) => writeOffInvoice(tx, world, { number: 'INV-2026-000003', reason: ' \t@too small' }));

  world.at('2026-09-01T10:00:00Z');
  const full = { spotPrice: '-40.00', partnerCut: '-12.00', invoiceAmount: '-28.00' };
  await world.rows([
    reversal(first, { accepted_at: '2026-08-02T12:00:00Z', ...full }),
    quote({ partner_id: 'p-2', ...yen, accepted_at: '2026-08-09T12:00:00Z' }),
    // Late: it belongs to July and posts to August.
    quote({ partner_id: 'p-2', ...yen }),
  ]);
  await world.close();
  writeAccounts(world, everyAccount());
  await world.database.transaction((tx) =>
    exportGl(tx, world, { month: month('2026-07'), format: 'generic', preliminary: true }),
  );
  world.at('2026-10-01T10:00:00Z');
  await world.rows([1, 2, 3, 4, 5].map((day) => quote({ accepted_at: `2026-09-0${day}T12:00:00.25Z` })));
  await world.close();
  await world.deliver();
  await world.closeBooks('2026-07', '2026-08');
  await world.rows([quote({ accepted_at: '2026-10-01T08:00:00Z' })]);
  return world;
}

export const checkpoint = (world: World) => takeCheckpoint(world.database, world);

let packs = 0;

/** Exports into a new folder of the world's home and gives its path. */
export async function exported(
  world: World,
  request: Partial<ExportRequest> & Pick<ExportRequest, 'kind'>,
): Promise<string> {
  packs += 1;
  const out = request.out ?? join(world.home, `pack-${packs}`);
  const months = { from: month('2026-07'), to: month('2026-09') };
  await exportPack(world.database, world.environment, { ...months, format: 'csv', ...request, out });
  return out;
}

export interface Verified {
  readonly status: number | null;
  readonly output: string;
}

/** Runs the verifier of a pack as a stranger would: in a process that has nothing of ours. */
export function verifyPack(
  args: readonly string[],
  verifier = join(packageRoot, 'templates/export/verify.mjs'),
): Verified {
  const { status, stdout, stderr } = spawnSync(process.execPath, [verifier, ...args], { encoding: 'utf8', env: {} });
  return { status, output: unwrapped(`${stdout}${stderr}`) };
}

const PYTHON = join(packageRoot, 'templates/export/verify.py');

export function verifyByPython(args: readonly string[]): Verified {
  const { status, stdout, stderr } = spawnSync(tool('python3'), [PYTHON, ...args], { encoding: 'utf8' });
  return { status, output: unwrapped(`${stdout}${stderr}`) };
}

/** Runs both verifiers, which must say the same, and gives what they said. */
export function verifyTwice(args: readonly string[]): Verified {
  const node = verifyPack(args);
  expect(verifyByPython(args)).toEqual(node);
  return node;
}

/**
 * Exports everything, each kind in one format, and has the verifiers accept it: both of them one kind, because all packs
 * of the same months have the same log, and verify.py the others. What they leave open may only be the key and the
 * checkpoints that nobody holds here, files that are not compared, and rules that look back before the first month.
 */
export async function expectPacksToHold(world: World, from: Month, to: Month): Promise<number> {
  const logKey = world.environment.logKey ?? LOG_KEY;
  await signCheckpoints({ ...world, environment: { ...world.environment, logKey } });
  const logs = new Set<string>();
  for (const [at, kind] of EXPORT_KINDS.entries()) {
    const pack = await exported(world, { kind, from, to, format: (packs + at) % 2 === 0 ? 'csv' : 'jsonl' });
    logs.add(readFileSync(join(pack, 'log.tsv'), 'utf8'));
    const { status, output } = (at === 0 ? verifyTwice : verifyByPython)([pack, '--allow']);
    const open = output.split('\n').filter((line) => line.startsWith('open') && !OPEN.test(line));
    if (status !== 0 || open.length > 0) throw new Error(`${kind}: ${output}`);
    rmSync(pack, { recursive: true });
  }
  expect(logs.size).toBe(1);
  return EXPORT_KINDS.length;
}

const OPEN = /^open +(signatures|held): |: not compared with the log$|Not decidable from this pack\.$/;

/** Exports a journal in each format of text, and gives the paths of the files by format. `at` is how their folders' names begin. */
export async function textJournals(world: World, from: Month, to: Month, at: string): Promise<Map<string, string>> {
  const paths = new Map<string, string>();
  for (const { format, writer } of JOURNAL_PROGRAMS) {
    if (paths.has(format)) continue;
    const out = await exported(world, { kind: 'journal', format, from, to, out: `${at}-${format}` });
    paths.set(format, join(out, writer.file));
  }
  return paths;
}
