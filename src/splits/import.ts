/**
 * Imports balance transactions of our connected accounts, from a file or from the processor, and partners' settlement
 * files. A repeated import changes nothing. Refusals: partner_unknown, account_unknown, partner_not_connected,
 * balance_transactions_invalid, settlement_invalid, file_format_unknown.
 */
import { hash } from 'node:crypto';
import { lockLedgerShared } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { IssueContext } from '#documents/issue/context';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { moneyText } from '#money';
import { readPartners } from '#partners/partners.sql';
import { settlePayoutsOfAccounts } from '#payments/settle-payouts';
import { recordEvent } from '#people/audit-events';
import { BalanceTransaction } from '#processors/processor';
import { PROBLEMS_TOLD } from '#reading/limits';
import { insertReading, lockProcessor, Recording, readAccountOwners, readConnectedPartner } from './accounts.sql.ts';
import {
  findChangedBalanceTransactions,
  findConflictingLines,
  insertBalanceTransactions,
  insertSettlementFile,
  insertSettlementLines,
  insertSettlementTransactions,
} from './import.sql.ts';
import { payBilledShares } from './late-transfers.ts';
import { insertFoundAllocations } from './match.sql.ts';
import { readBalanceTransactions } from './read-balance-transactions.ts';
import { readSettlementText, SettlementReading } from './read-settlement.ts';
import { lineProblem, SettlementProblem } from './settlement.ts';

export type ImportReport = Readonly<{
  /** The number of balance transactions or lines that the file contains. */
  read: number;
  recorded: number;
  duplicates: number;
  /** The number of new allocations, including those of earlier balance transactions. */
  matched: number;
}>;

type ImportFile = Readonly<{
  name: string;
  text: string;
}>;

export async function importBalanceTransactions(
  tx: Transaction,
  acting: IssueContext,
  file: ImportFile,
  account: string,
  balance_transactions: readonly BalanceTransaction[] = readBalanceTransactions(file.name, file.text, isLive(acting)),
): Promise<ImportReport> {
  if ((await readAccountOwners(tx, { account })).length === 0) throw refuse('account_unknown', { account });
  const recording = await beginRecording(tx, acting, {
    action: 'processor.import',
    subject: file.name,
    details: { account, balance_transactions: balance_transactions.length },
  });
  const recorded = await recordBalanceTransactions(tx, { account, source: file.name }, balance_transactions, recording);
  const total = { balance_transactions: balance_transactions.length, fresh: recorded };
  await insertReading(tx, { account, from: null, to: recording.now, file: file.name, ...total, ...recording });
  failpoint('processor.recorded');
  const matched = await allocateShares(tx, acting, recording);
  await settlePayoutsOfAccounts(tx, acting);
  return { read: balance_transactions.length, recorded, duplicates: balance_transactions.length - recorded, matched };
}

export const isLive = ({ environment }: Pick<IssueContext, 'environment'>) => environment.name === 'production';

/** Refuses a balance transaction that is already recorded with different content. */
export async function recordBalanceTransactions(
  tx: Transaction,
  { account, source }: { account: string; source: string },
  balance_transactions: readonly BalanceTransaction[],
  recording: Recording,
) {
  const changed = await findChangedBalanceTransactions(tx, { account, balance_transactions });
  if (changed.length > 0) {
    const problems = changed.map(({ id, net, currency }) => ({
      path: id,
      reason: `was ${moneyText(net, currency)} before: a balance transaction never changes`,
    }));
    throw refuse('balance_transactions_invalid', { source, problems: problems.slice(0, PROBLEMS_TOLD) });
  }
  return insertBalanceTransactions(tx, { account, balance_transactions, ...recording });
}

/**
 * Imports a partner's settlement file. If the account has no other source, the file's lines become its balance
 * transactions. `clientId` is the client of an API call. `reading` is the file's content, read before the transaction.
 */
export async function importSettlement(
  tx: Transaction,
  acting: IssueContext,
  file: ImportFile & Readonly<{ clientId?: string; reading?: SettlementReading | undefined; mostLines?: number }>,
  partnerId: string,
): Promise<ImportReport> {
  const { clientId } = file;
  const partner = await connectedPartner(tx, acting, partnerId);
  const refuseFile = (problems: readonly SettlementProblem[], count = problems.length) =>
    refuse('settlement_invalid', {
      ...{ file: file.name, problems: problems.slice(0, PROBLEMS_TOLD), problem_count: count },
    });
  const { currency } = partner;
  const { lines, json, problems, problemCount } =
    file.reading?.currency === currency
      ? file.reading
      : readSettlementText({
          ...{ ...file, bytes: Buffer.from(file.text), currency },
          now: acting.environment.now().toMillis(),
        });
  if (problems.length > 0) throw refuseFile(problems, problemCount);
  const recording = await beginRecording(tx, acting, {
    action: 'processor.import',
    subject: file.name,
    details: { partner_id: partnerId, lines, ...(clientId !== undefined && { client_id: clientId }) },
  });
  const changed = await findConflictingLines(tx, { partnerId, lines: json });
  if (changed.length > 0) {
    throw refuseFile(
      changed.map(({ line, known }) => {
        const reason = `names a transfer or payment of a quote that was recorded with ${known}: add a line for the correction`;
        return lineProblem(line, 'conflict', reason);
      }),
    );
  }
  const entry = { partnerId, sha256: sha256Of(file.text), name: file.name, lines };
  const fileId = await insertSettlementFile(tx, entry, recording);
  const recorded = fileId === undefined ? 0 : await insertSettlementLines(tx, { fileId, partnerId, lines: json });
  await insertSettlementTransactions(tx, { partnerId, account: partner.account, ...recording });
  failpoint('processor.recorded');
  return {
    read: lines,
    recorded,
    duplicates: lines - recorded,
    matched: await allocateShares(tx, acting, recording),
  };
}

/** Returns the number of shares. A share of a billed quote pays the invoice. */
export async function allocateShares(tx: Transaction, acting: IssueContext, recording: Recording) {
  const found = await insertFoundAllocations(tx, recording);
  if (found > 0) await payBilledShares(tx, acting, recording);
  return found;
}

/** A settlement file is recorded once for each SHA-256. */
export const sha256Of = (text: string) => hash('sha256', text);

/** Returns undefined if the partner never had a connected account. */
export function findConnectedPartner(tx: Transaction, { environment, settings }: IssueContext, partnerId: string) {
  const month = environment.now().setZone(settings.time_zone).toFormat('yyyy-MM');
  return readConnectedPartner(tx, { partnerId, month });
}

export async function connectedPartner(tx: Transaction, acting: IssueContext, partnerId: string) {
  const partner = await findConnectedPartner(tx, acting, partnerId);
  if (partner !== undefined) return partner;
  const known = (await readPartners(tx, partnerId)).length > 0;
  throw known
    ? refuse('partner_not_connected', { partner_id: partnerId })
    : refuse('partner_unknown', { partner_id: partnerId });
}

/** Takes the locks, so that no month closes while the action's facts are dated. */
export async function beginRecording(
  tx: Transaction,
  { environment, settings, actor }: IssueContext,
  event: { action: string; subject: string; details: Readonly<Record<string, unknown>> },
): Promise<Recording> {
  await lockProcessor(tx);
  await lockLedgerShared(tx);
  const now = environment.now().toISO();
  return { now, eventId: await recordEvent(tx, actor, { ...event, now }), timeZone: settings.time_zone };
}
