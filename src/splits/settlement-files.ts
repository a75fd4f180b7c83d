/**
 * A settlement file that a partner sends by a call: imported as the command imports it, and once; then what came of its
 * lines. Refusals: partner_not_connected, settlement_invalid, settlement_file_unknown.
 */
import type { Transaction } from '../database/transaction.ts';
import type { IssueContext } from '../documents/issue/context.ts';
import { refuse } from '../errors/refusals.ts';
import type { Caller } from '../quotes/queries.ts';
import { lockProcessor } from './accounts.sql.ts';
import { connectedPartner, importSettlement, sha256Of } from './import.ts';
import type { SettlementProblem } from './settlement.ts';
import { findSettlementFile, type SettlementFileState } from './settlement-files.sql.ts';

/** Of a file that a call sends. All calls wait while its lines are read, so a longer one is not read at all. */
export const MOST_LINES = 10_000;

/** Imports a file, or finds it imported: `fresh` says which. */
export async function sendSettlementFile(
  tx: Transaction,
  acting: IssueContext,
  text: string,
  { partnerId, clientId }: Caller,
): Promise<{ file: SettlementFileState; fresh: boolean }> {
  await connectedPartner(tx, acting, partnerId);
  const sha256 = sha256Of(text);
  const name = `settlement-${sha256.slice(0, 12)}.csv`;
  refuseLongFile(name, text);
  // The same file at the same time waits here, and then finds it.
  await lockProcessor(tx);
  const known = await findSettlementFile(tx, { partnerId, sha256 });
  if (known !== undefined) return { file: known, fresh: false };
  await importSettlement(tx, acting, { name, text, clientId }, partnerId);
  return { file: await readSettlementFile(tx, { partnerId, sha256 }), fresh: true };
}

function refuseLongFile(file: string, text: string): void {
  const lines = text.trimEnd().split(/\r\n?|\n/).length - 1;
  if (lines <= MOST_LINES) return;
  const reason = `has ${lines} lines after its header, and at most ${MOST_LINES} are taken: send them in several files`;
  const problem = { path: '', line: null, code: 'lines_too_many', reason } satisfies SettlementProblem;
  throw refuse('settlement_invalid', { file, problems: [problem], problem_count: 1 });
}

/** The partner's own file. Another partner's is refused like an unknown one. */
export async function readSettlementFile(
  tx: Transaction,
  wanted: { partnerId: string; sha256: string },
): Promise<SettlementFileState> {
  const found = await findSettlementFile(tx, wanted);
  if (found === undefined) throw refuse('settlement_file_unknown', { sha256: wanted.sha256 });
  return found;
}
