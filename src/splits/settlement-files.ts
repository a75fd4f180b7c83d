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
import { findSettlementFile, type SettlementFileState } from './settlement-files.sql.ts';

/** Imports a file, or finds it imported: `fresh` says which. */
export async function sendSettlementFile(
  tx: Transaction,
  acting: IssueContext,
  text: string,
  { partnerId, clientId }: Caller,
): Promise<{ file: SettlementFileState; fresh: boolean }> {
  await connectedPartner(tx, acting, partnerId);
  // The same file at the same time waits here, and then finds it.
  await lockProcessor(tx);
  const sha256 = sha256Of(text);
  const known = await findSettlementFile(tx, { partnerId, sha256 });
  if (known !== undefined) return { file: known, fresh: false };
  const name = `settlement-${sha256.slice(0, 12)}.csv`;
  await importSettlement(tx, acting, { name, text, clientId }, partnerId);
  return { file: await readSettlementFile(tx, { partnerId, sha256 }), fresh: true };
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
