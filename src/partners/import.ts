/**
 * Imports partners: adds and updates, but deletes none. A new arrangement must begin in a month without ledger rows,
 * and so must a different account, if the old one was used. No import may change the source of an account in a month
 * that has balance transactions. Refusals: partners_invalid, partner_parent_invalid, arrangement_change, we_are_fixed.
 */
import { isDeepStrictEqual } from 'node:util';
import { DateTime } from 'luxon';
import { Settings } from '#config/settings';
import { lockImporters, lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Actor, AuditEvent, recordEvent } from '#people/audit-events';
import { PartnerChange, partnerChanges, recordPartnerChanges } from './changes.ts';
import { PartnerRecord } from './file.ts';
import {
  AccountUse,
  ALWAYS,
  Arrangement,
  changedTerms,
  latestArrangements,
  latestMonthsWithRows,
  OF_ARRANGEMENT,
  readAccountSources,
  readParents,
  readPartners,
  readUseOfAccounts,
  recordArrangements,
  recordTerms,
  upsertPartners,
  upsertPolicies,
} from './partners.sql.ts';
import { settleWeAre } from './presentation.ts';

export type PartnerImport = Readonly<{
  created: number;
  updated: number;
  unchanged: number;
}>;

type ImportedFile = Readonly<{
  /** Of a file, or of a form that changes one partner. */
  event: Pick<AuditEvent, 'action' | 'subject' | 'details'>;
  actor: Actor;
  now: DateTime<true>;
  settings: Pick<Settings, 'we_are'>;
}>;

export async function importPartners(
  tx: Transaction,
  partners: readonly PartnerRecord[],
  { event, actor, now: instant, settings }: ImportedFile,
): Promise<PartnerImport & { readonly changes: readonly PartnerChange[] }> {
  // Each ledger import reads all partners either before or after this change.
  await lockImporters(tx);
  await settleWeAre(tx, settings);
  refuseParents(partners, await readParents(tx));
  const now = instant.toISO();
  const before = await readPartners(tx);
  const written = await upsertPartners(tx, partners, now);
  const created = new Set(written.filter((row) => row.created).map((row) => row.partner_id));
  const changed = new Set(written.map((row) => row.partner_id));
  for (const id of await upsertPolicies(tx, partners, now)) changed.add(id);
  for (const id of await importArrangements(tx, partners)) changed.add(id);
  const terms = changedTerms(before, partners);
  for (const { partner_id } of terms) changed.add(partner_id);
  failpoint('partners.written');
  const imported = {
    created: created.size,
    updated: changed.size - created.size,
    unchanged: partners.length - changed.size,
  };
  if (changed.size === 0) return { ...imported, changes: [] };
  const details = { ...event.details, ...imported };
  const importEvent = await recordEvent(tx, actor, { ...event, details, now });
  await recordTerms(tx, terms, { now, eventId: importEvent });
  const changes = partnerChanges(before, await readPartners(tx));
  await recordPartnerChanges(tx, actor, changes, { importEvent, now });
  return { ...imported, changes };
}

/** That does not exist, is the partner itself, or is already paid for by it. */
function refuseParents(
  partners: readonly PartnerRecord[],
  stored: readonly { partner_id: string; parent: string | null }[],
) {
  const parents = new Map([...stored, ...partners].map(({ partner_id, parent }) => [partner_id, parent]));
  for (const { partner_id, parent } of partners) {
    const refuseBecause = (reason: string) => refuse('partner_parent_invalid', { partner_id, reason });
    const passed = [partner_id];
    for (let at = parent; at !== null; at = parents.get(at) ?? null) {
      if (!parents.has(at))
        throw refuseBecause(`its parent ${at} is not known. Import ${at} first, or in the same file`);
      passed.push(at);
      if (at === partner_id) throw refuseBecause(`it would be its own parent (${passed.join(' < ')})`);
      // Leading to a cycle is accepted. The cycle is refused when one of its own partners is imported.
      if (passed.indexOf(at) < passed.length - 1) break;
    }
  }
}

const refuseChange = (partner_id: string, reason: string) => refuse('arrangement_change', { partner_id, reason });

async function importArrangements(tx: Transaction, partners: readonly PartnerRecord[]) {
  const ids = partners.map((partner) => partner.partner_id);
  const present = new Map((await latestArrangements(tx, { ids })).map((each) => [each.partner_id, each]));
  const wanted = partners.map((partner) => wantedArrangement(partner, present.get(partner.partner_id)));
  const different = wanted.filter((each) => !sameArrangement(each, present.get(each.partner_id)));
  if (different.length === 0) return [];

  const accounts = different.flatMap((each) => accountsChangedBy(each, present.get(each.partner_id)));
  // A row's arrangement is fixed when it is recorded, so no row or balance transaction may be recorded during this
  // import.
  if (accounts.length > 0) await lockLedgerWhole(tx);
  await refuseMonthsWithRows(tx, different, present);
  await refuseReplacedAccounts(tx, different, present);
  const sources = await readAccountSources(tx, { accounts });
  await recordArrangements(tx, { arrangements: different });
  for (const [index, after] of (await readAccountSources(tx, { accounts })).entries()) {
    const before = sources[index];
    if (before === undefined || before.source === after.source) continue;
    const changedBy = different.find((each) =>
      accountsChangedBy(each, present.get(each.partner_id)).includes(after.account),
    );
    throw refuseChange(
      changedBy?.partner_id ?? '',
      `${after.account} already has balance transactions of ${after.month} from ${before.source}, and ` +
        'a month has one source. Change the source for every partner with this account, and set ' +
        '"arrangement_from" to a month without balance transactions',
    );
  }
  return different.map((each) => each.partner_id);
}

/** The accounts whose source changes in some month with the wanted arrangement. */
function accountsChangedBy(wanted: Arrangement, before: Arrangement | undefined) {
  if (
    wanted.from_month === before?.from_month &&
    wanted.connected_account_id === before.connected_account_id &&
    wanted.balance_transactions_from === before.balance_transactions_from
  ) {
    return [];
  }
  return [wanted.connected_account_id, before?.connected_account_id].filter((each) => typeof each === 'string');
}

function wantedArrangement(partner: PartnerRecord, before: Arrangement | undefined): Arrangement {
  const { partner_id, arrangement, arrangement_from } = partner;
  if (before !== undefined && before.arrangement !== arrangement) {
    if (arrangement_from === undefined) {
      throw refuseChange(
        partner_id,
        `its arrangement is ${before.arrangement}. To change it, set "arrangement_from" to a month without ledger rows`,
      );
    }
    if (arrangement_from < before.from_month) {
      throw refuseChange(
        partner_id,
        `arrangement_from ${arrangement_from} is before the current arrangement, which began in ${before.from_month}`,
      );
    }
  }
  // A different account or source may apply from a later month on. Earlier months keep their account and source.
  const next = Object.fromEntries(
    OF_ARRANGEMENT.map((field) => [field, partner[field] ?? null]),
  ) as unknown as ArrangementTerms;
  const following =
    before !== undefined &&
    (hasOtherAccount(next, before) || hasOtherSource(next, before)) &&
    arrangement_from !== undefined &&
    arrangement_from > before.from_month;
  const planned = before !== undefined && before.arrangement === arrangement && before.from_month !== ALWAYS;
  if (planned && !following && arrangement_from !== undefined && arrangement_from !== before.from_month) {
    throw refuseChange(
      partner_id,
      `its arrangement ${arrangement} began in ${before.from_month}, and this month cannot become ` +
        `${arrangement_from}. Leave arrangement_from at ${before.from_month}. To begin later, first restore ` +
        `the former arrangement from ${before.from_month} on, if no row prevents it`,
    );
  }
  return {
    partner_id,
    from_month:
      before?.arrangement === arrangement && !following ? before.from_month : (before && arrangement_from) || ALWAYS,
    ...next,
  };
}

/** A change of the source alone does not concern rows. */
async function refuseMonthsWithRows(
  tx: Transaction,
  different: readonly Arrangement[],
  present: ReadonlyMap<string, Arrangement>,
) {
  const changing = different.filter((each) => {
    const before = present.get(each.partner_id);
    if (before === undefined || (hasOtherSource(each, before) && !hasOtherAccount(each, before))) return false;
    return before.arrangement !== each.arrangement || before.from_month !== each.from_month;
  });
  const ids = changing.map((each) => each.partner_id);
  const latest = new Map((await latestMonthsWithRows(tx, { ids })).map((row) => [row.partner_id, row.month]));
  for (const { partner_id, from_month } of changing) {
    const latestMonth = latest.get(partner_id);
    if (latestMonth === undefined || from_month > latestMonth) continue;
    throw refuseChange(
      partner_id,
      `arrangement_from ${from_month} is not after ${latestMonth}, which has ledger rows; ` +
        'rows keep the arrangement of their month',
    );
  }
}

/** The money of a used account belongs to quotes of its months, and more may arrive. */
async function refuseReplacedAccounts(
  tx: Transaction,
  different: readonly Arrangement[],
  present: ReadonlyMap<string, Arrangement>,
) {
  const replaced = different.flatMap((wanted) => {
    const before = present.get(wanted.partner_id);
    return before?.from_month === wanted.from_month && hasOtherAccount(wanted, before) ? [{ wanted, before }] : [];
  });
  const use = await readUseOfAccounts(tx, { arrangements: replaced.map(({ before }) => before) });
  const used = new Map(use.map((each) => [each.partner_id, each]));
  for (const { wanted, before } of replaced) {
    const { month, has_balance_transactions } = used.get(wanted.partner_id) as AccountUse;
    if (month === null && !has_balance_transactions) continue;
    const old = before.connected_account_id;
    const why =
      month === null ? `${old} already has balance transactions` : `the partner has ledger rows up to ${month}`;
    throw refuseChange(
      wanted.partner_id,
      `${wanted.connected_account_id} cannot replace ${old}, because ${why}. ` +
        'Set "arrangement_from" to a later month without rows',
    );
  }
}

type ArrangementTerms = Omit<Arrangement, 'partner_id' | 'from_month'>;

function hasOtherAccount(one: ArrangementTerms, before: Arrangement) {
  return (
    one.arrangement === 'connected_account' &&
    before.arrangement === 'connected_account' &&
    one.connected_account_id !== before.connected_account_id
  );
}

const sourceOf = ({ balance_transactions_from }: ArrangementTerms) => balance_transactions_from ?? 'processor';

/** Whether the account stays, but its balance transactions come from another source. */
function hasOtherSource(one: ArrangementTerms, before: Arrangement) {
  return (
    one.arrangement === 'connected_account' &&
    one.connected_account_id === before.connected_account_id &&
    sourceOf(one) !== sourceOf(before)
  );
}

function sameArrangement(one: Arrangement, other: Arrangement | undefined) {
  return (Object.keys(one) as (keyof Arrangement)[]).every((field) => isDeepStrictEqual(one[field], other?.[field]));
}
