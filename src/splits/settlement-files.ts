/**
 * Settlement files that partners send by API calls. A file is imported only once, as by the command. Returns the state
 * of the file's lines. Refusals: partner_not_connected, settlement_invalid, settlement_file_unknown.
 */
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { IssueContext } from '#documents/issue/context';
import { refuse } from '#errors/refusals';
import { Caller } from '#quotes/quotes.sql';
import { GivenFile, readAside } from '#reading/aside';
import { lockProcessor } from './accounts.sql.ts';
import { connectedPartner, findConnectedPartner, importSettlement, sha256Of } from './import.ts';
import { SettlementReading, settlementFile } from './read-settlement.ts';
import { findSettlementFile, SettlementFileState } from './settlement-files.sql.ts';

/** The most lines that a file in one call may have after its header. A longer file is not read. */
export const MOST_LINES = 10_000;

/**
 * Reads a file before the transaction that imports the file, so that no locks are held while it is read. The result is
 * undefined for a partner without a connected account, because the import refuses such a partner.
 */
export async function readSentFile(
  database: Database,
  acting: IssueContext,
  file: GivenFile & { readonly mostLines?: number },
  partnerId: string,
) {
  const partner = await database.reading((tx) => findConnectedPartner(tx, acting, partnerId));
  const now = acting.environment.now().toMillis();
  return partner && readAside(settlementFile, { ...file, currency: partner.currency, now });
}

export const sentFile = (text: string) => ({
  ...{ name: `settlement-${sha256Of(text).slice(0, 12)}.csv`, bytes: Buffer.from(text), mostLines: MOST_LINES },
});

/** Imports a file, unless it is already imported. `fresh` is false for a file that is already imported. */
export async function sendSettlementFile(
  tx: Transaction,
  acting: IssueContext,
  text: string,
  { partnerId, clientId }: Caller,
  reading?: SettlementReading,
): Promise<{ file: SettlementFileState; fresh: boolean }> {
  await connectedPartner(tx, acting, partnerId);
  const sha256 = sha256Of(text);
  // If the same file is sent in a concurrent call, this call waits for the lock and then finds the imported file.
  await lockProcessor(tx);
  const known = await findSettlementFile(tx, { partnerId, sha256 });
  if (known !== undefined) return { file: known, fresh: false };
  await importSettlement(tx, acting, { ...sentFile(text), text, clientId, reading }, partnerId);
  return { file: await readSettlementFile(tx, { partnerId, sha256 }), fresh: true };
}

/** A file of a different partner is refused like an unknown file. */
export async function readSettlementFile(tx: Transaction, wanted: { partnerId: string; sha256: string }) {
  const found = await findSettlementFile(tx, wanted);
  if (found === undefined) throw refuse('settlement_file_unknown', { sha256: wanted.sha256 });
  return found;
}
