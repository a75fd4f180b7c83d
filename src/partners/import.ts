/**
 * Importing partners: new ones are added, known ones brought up to date, none deleted. A change of arrangement, or of a
 * connected account that was used, needs a month that has no rows yet. Refusals: partners_invalid, arrangement_change.
 */
import type { DateTime } from 'luxon';
import { lockImporters, lockLedgerWhole } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import type { Month } from '../month.ts';
import type { PartnerRecord } from './file.ts';
import {
  type Arrangement,
  findUsedAccounts,
  latestArrangements,
  latestMonthsWithRows,
  readUseOfAccounts,
  recordArrangements,
  upsertPartners,
  upsertPolicies,
} from './queries.ts';

export interface PartnerImport {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
}

/** From the beginning of time: the first arrangement of a partner. */
const ALWAYS = '0001-01' as Month;

export async function importPartners(
  tx: Transaction,
  partners: readonly PartnerRecord[],
  now: DateTime<true>,
): Promise<PartnerImport> {
  // No import of rows is between its checks and its commit: it saw the partners all as before, or sees them all as now.
  await lockImporters(tx);
  const at = now.toISO();
  const written = await upsertPartners(tx, partners, at);
  const created = new Set(written.filter((row) => row.created).map((row) => row.partner_id));
  const changed = new Set(written.map((row) => row.partner_id));
  for (const id of await upsertPolicies(tx, partners, at)) changed.add(id);
  for (const id of await importArrangements(tx, partners)) changed.add(id);
  failpoint('partners.written');
  return {
    created: created.size,
    updated: changed.size - created.size,
    unchanged: partners.length - changed.size,
  };
}

/** Records what differs from the arrangements there are, and names the partners that it changed. */
async function importArrangements(tx: Transaction, partners: readonly PartnerRecord[]): Promise<string[]> {
  const ids = partners.map((partner) => partner.partner_id);
  const present = new Map((await latestArrangements(tx, ids)).map((each) => [each.partner_id, each]));
  const wanted = partners.map((partner) => wantedArrangement(partner, present.get(partner.partner_id)));
  const different = wanted.filter((each) => !sameArrangement(each, present.get(each.partner_id)));

  const changing = different.filter((each) => {
    const before = present.get(each.partner_id);
    if (before === undefined || (hasOtherSource(each, before) && !hasOtherAccount(each, before))) return false;
    return before.arrangement !== each.arrangement || before.from_month !== each.from_month;
  });
  const replacing = different.filter((each) => {
    const before = present.get(each.partner_id);
    return before?.from_month === each.from_month && hasOtherAccount(each, before);
  });
  const rerouted = different.filter((each) => hasOtherSource(each, present.get(each.partner_id)));
  // A row's arrangement is decided when it is recorded: no row or balance transaction may be recorded meanwhile.
  if (changing.length > 0 || replacing.length > 0 || rerouted.length > 0) await lockLedgerWhole(tx);
  if (changing.length > 0) {
    const latest = await latestMonthsWithRows(
      tx,
      changing.map((each) => each.partner_id),
    );
    const latestByPartner = new Map(latest.map((row) => [row.partner_id, row.month]));
    for (const each of changing) refuseChangeOver(each, latestByPartner.get(each.partner_id));
  }
  if (replacing.length > 0) {
    const before = replacing.flatMap(({ partner_id }) => present.get(partner_id) ?? []);
    const used = new Map((await readUseOfAccounts(tx, before)).map((each) => [each.partner_id, each]));
    for (const each of replacing) refuseReplaced(each, present.get(each.partner_id), used.get(each.partner_id));
  }
  for (const { partner_id } of await findUsedAccounts(tx, rerouted)) refuseOtherSource(partner_id);
  if (different.length > 0) await recordArrangements(tx, different);
  return different.map((each) => each.partner_id);
}

function wantedArrangement(partner: PartnerRecord, before: Arrangement | undefined): Arrangement {
  const { partner_id, arrangement, arrangement_from } = partner;
  if (before !== undefined && before.arrangement !== arrangement) {
    if (arrangement_from === undefined) {
      throw refuse('arrangement_change', {
        partner_id,
        reason: `it is ${before.arrangement} now, and a change needs "arrangement_from": a month that has no rows yet`,
      });
    }
    if (arrangement_from < before.from_month) {
      throw refuse('arrangement_change', {
        partner_id,
        reason: `arrangement_from ${arrangement_from} lies before the present arrangement, which began in ${before.from_month}`,
      });
    }
  }
  // Another account, or another source, may follow from a later month on; earlier months keep what they have.
  const next = {
    arrangement,
    connected_account_id: partner.connected_account_id ?? null,
    balance_transactions_from: partner.balance_transactions_from ?? null,
  };
  const following =
    before !== undefined &&
    (hasOtherAccount(next, before) || hasOtherSource(next, before)) &&
    arrangement_from !== undefined &&
    arrangement_from > before.from_month;
  const planned = before !== undefined && before.arrangement === arrangement && before.from_month !== ALWAYS;
  if (planned && !following && arrangement_from !== undefined && arrangement_from !== before.from_month) {
    throw refuse('arrangement_change', {
      partner_id,
      reason:
        `it is ${arrangement} from ${before.from_month} on, and that month cannot become ${arrangement_from}. ` +
        `Leave arrangement_from at ${before.from_month}, or, while no row stands in its way, take the change back ` +
        `(the former arrangement from ${before.from_month}) and make it again for a later month`,
    });
  }
  return {
    partner_id,
    from_month:
      before?.arrangement === arrangement && !following ? before.from_month : (before && arrangement_from) || ALWAYS,
    arrangement,
    connected_account_id: partner.connected_account_id ?? null,
    merchant_of_record: partner.merchant_of_record ?? null,
    split: partner.split ?? null,
    connected_account_type: partner.connected_account_type ?? null,
    connected_account_state: partner.connected_account_state ?? null,
    balance_transactions_from: partner.balance_transactions_from ?? null,
  };
}

function refuseChangeOver(wanted: Arrangement, latestWithRows: Month | undefined): void {
  if (latestWithRows === undefined || wanted.from_month > latestWithRows) return;
  throw refuse('arrangement_change', {
    partner_id: wanted.partner_id,
    reason:
      `arrangement_from ${wanted.from_month} is not after ${latestWithRows}, which has ledger rows already; ` +
      'rows keep the arrangement of their month',
  });
}

/** Connected as before, but by another account. */
function hasOtherAccount(one: Pick<Arrangement, 'arrangement' | 'connected_account_id'>, before: Arrangement): boolean {
  return (
    one.arrangement === 'connected_account' &&
    before.arrangement === 'connected_account' &&
    one.connected_account_id !== before.connected_account_id
  );
}

type AccountSource = Pick<Arrangement, 'arrangement' | 'connected_account_id' | 'balance_transactions_from'>;

const sourceOf = ({ balance_transactions_from }: AccountSource) => balance_transactions_from ?? 'processor';

/** The same account, but its balance transactions come from the other source. */
function hasOtherSource(one: AccountSource, before: Arrangement | undefined): boolean {
  return (
    before !== undefined &&
    one.arrangement === 'connected_account' &&
    one.connected_account_id === before.connected_account_id &&
    sourceOf(one) !== sourceOf(before)
  );
}

/** A month of an account has one source, so that nothing counts twice. */
function refuseOtherSource(partner_id: string): never {
  throw refuse('arrangement_change', {
    partner_id,
    reason:
      'its account has balance transactions already, and a month has one source. ' +
      'Change balance_transactions_from with a month without balance transactions, by "arrangement_from"',
  });
}

/** An account that was used stays that of its months: what came to it is of their quotes, and more may come. */
function refuseReplaced(
  wanted: Arrangement,
  before: Arrangement | undefined,
  used: { readonly month: Month | null; readonly moved: boolean } | undefined,
): void {
  if (used === undefined || (used.month === null && !used.moved)) return;
  const use = used.month === null ? 'money moved on it already' : `it has ledger rows up to ${used.month}`;
  throw refuse('arrangement_change', {
    partner_id: wanted.partner_id,
    reason:
      `${wanted.connected_account_id} cannot replace ${before?.connected_account_id}, for ${use}. ` +
      'Begin the new account with a later month that has no rows yet, by "arrangement_from"',
  });
}

function sameArrangement(one: Arrangement, other: Arrangement | undefined): boolean {
  return (
    other !== undefined &&
    one.from_month === other.from_month &&
    one.arrangement === other.arrangement &&
    one.connected_account_id === other.connected_account_id &&
    one.merchant_of_record === other.merchant_of_record &&
    one.split === other.split &&
    one.connected_account_type === other.connected_account_type &&
    one.connected_account_state === other.connected_account_state &&
    one.balance_transactions_from === other.balance_transactions_from
  );
}
