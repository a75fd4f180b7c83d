/**
 * Imports the previous system's items that were open at the end of the cut-over day. All items of a file are imported,
 * or none. Before anything is recorded, the items must match the previous system's control totals to the cent.
 * Refusals: opening_invalid, opening_clash, opening_control_differs, opening_after_close, opening_books_closed,
 * date_in_future, settings_incomplete, argument_invalid.
 */

import { hash } from 'node:crypto';
import { basename } from 'node:path';
import { todayOf } from '#config/today';
import { lockLedgerWhole } from '#database/ledger-lock';
import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { requestLinkChecks } from '#documents/emails.sql';
import { refuseIncompleteSettings } from '#documents/issue/context';
import { recordIssuerVersion } from '#documents/issue/issuer-version.sql';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { fieldName } from '#field-names';
import { readLastClosed } from '#ledger/closed-months.sql';
import { readTotals, Totals } from '#ledger/control';
import { Amount } from '#money';
import { readEarliestPostableDate } from '#payments/payments.sql';
import { ActorContext, recordEvent } from '#people/audit-events';
import { OpeningItem, parseOpening, problemAt } from './file.ts';
import {
  Carrying,
  insertCash,
  insertDocuments,
  insertOpening,
  insertTotals,
  OpeningTotal,
  readClashes,
  readOpenings,
} from './openings.sql.ts';

type OpeningRequest = Readonly<{
  file: Readonly<{ name: string; bytes: Uint8Array }>;
  cutOverOn: string;
  /** Control totals, one for each currency, such as `EUR=1234.56`: receivables less credit and unapplied cash. */
  control: readonly string[];
  count: number;
}>;

export type OpeningImport = Readonly<{
  file: string;
  cut_over_on: string;
  /**
   * The time when the same file was imported before. Null if this is the first import. A repeated import records
   * nothing.
   */
  already_imported: string | null;
  opening_id: number;
  totals: readonly OpeningTotal[];
  items: readonly OpeningItem[];
}>;

export async function importOpening(
  tx: Transaction,
  context: ActorContext,
  { file, cutOverOn, control, count }: OpeningRequest,
  items: readonly OpeningItem[] = parseOpening(file, cutOverOn),
): Promise<OpeningImport> {
  const controls = readTotals(control);
  const today = todayOf(context);
  if (cutOverOn > today) throw refuse('date_in_future', { argument: fieldName('cutOver'), value: cutOverOn, today });
  const name = basename(file.name);
  refuseOtherControl(name, items, controls, count);
  refuseIncompleteSettings(context);
  await lockLedgerWhole(tx);
  await takeLock(tx, LOCKS.payments);
  const sha256 = hash('sha256', file.bytes);
  const before = (await readOpenings(tx, { sha256 })).find(
    (each) => each.cut_over_on === cutOverOn && each.reversed < each.items,
  );
  if (before !== undefined) {
    const { opening_id, recorded_at, totals } = before;
    return { file: name, cut_over_on: cutOverOn, already_imported: recorded_at, opening_id, totals, items: [] };
  }
  await refuseClosed(tx, cutOverOn);
  await refuseClashes(tx, name, items);
  const totals = totalsOf(items);
  const { environment, settings, actor } = context;
  const now = environment.now().toISO();
  const details = { cut_over_on: cutOverOn, sha256, items: items.length, sums: totals };
  const eventId = await recordEvent(tx, actor, { action: 'opening.import', subject: name, details, now });
  const openingId = await insertOpening(tx, { cutOverOn, sha256, name, now, eventId });
  const issuerVersionId = await recordIssuerVersion(tx, settings.issuer, now);
  const sandbox = environment.name === 'sandbox';
  const carrying: Carrying = { openingId, cutOverOn, issuerVersionId, sandbox, now, eventId };
  await insertTotals(tx, { openingId, totals });
  const documents = items.filter((each) => each.kind !== 'cash');
  const carried = await insertDocuments(tx, { items: documents, ...carrying });
  failpoint('opening.documents');
  const cash = items.filter((each) => each.kind === 'cash');
  if (cash.length > 0) await insertCash(tx, cash, carrying);
  await requestLinkChecks(tx, {
    ids: carried.filter((each) => each.document === 'invoice').map((each) => each.document_id),
  });
  failpoint('opening.recorded');
  return { file: name, cut_over_on: cutOverOn, already_imported: null, opening_id: openingId, totals, items };
}

const SIGNS = { invoice: 'invoices', credit: 'credits', cash: 'cash' } as const;

function totalsOf(items: readonly OpeningItem[]) {
  const byCurrency = new Map<string, OpeningItem[]>();
  for (const item of items) byCurrency.set(item.currency, [...(byCurrency.get(item.currency) ?? []), item]);
  return [...byCurrency.entries()]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([currency, own]) => {
      const sums = { invoices: Amount.zero(currency), credits: Amount.zero(currency), cash: Amount.zero(currency) };
      for (const { kind, amount } of own) sums[SIGNS[kind]] = sums[SIGNS[kind]].plus(Amount.of(amount, currency));
      return {
        ...{ currency, items: own.length, invoices: sums.invoices.toString(), credits: sums.credits.toString() },
        ...{ cash: sums.cash.toString(), control: sums.invoices.minus(sums.credits).minus(sums.cash).toString() },
      };
    });
}

function refuseOtherControl(file: string, items: readonly OpeningItem[], controls: Totals, count: number) {
  const found = new Map(totalsOf(items).map(({ currency, control }) => [currency, control]));
  const differences = [...new Set([...found.keys(), ...Object.keys(controls)])].sort().flatMap((currency) => {
    const [control, own] = [controls[currency], found.get(currency)];
    return control === own ? [] : [{ what: currency, control: control ?? 'not given', file: own ?? 'nothing' }];
  });
  if (count !== items.length) {
    differences.push({ what: 'items', control: String(count), file: String(items.length) });
  }
  if (differences.length > 0) throw refuse('opening_control_differs', { file, differences });
}

async function refuseClosed(tx: Transaction, cutOverOn: string) {
  const month = await readLastClosed(tx);
  if (month !== null && month > cutOverOn.slice(0, 7)) {
    throw refuse('opening_after_close', { cut_over_on: cutOverOn, month });
  }
  const earliest = await readEarliestPostableDate(tx);
  if (earliest !== null && cutOverOn < earliest) {
    throw refuse('opening_books_closed', { cut_over_on: cutOverOn, earliest });
  }
}

const CLASHES = {
  partner: (of: string) => problem('partner_id', 'partner_unknown', `there is no partner ${of}: import it first`),
  document: (of: string) =>
    problem(
      'number',
      'number_known',
      `${of} is in the ledger already: omit the item, or reverse the one in the ledger`,
    ),
  cash: (of: string) =>
    problem('number', 'number_known', `is payment ${of} already: omit the item, or reverse the payment`),
};
const problem = (field: string, code: string, reason: string) => ({ field, code, reason });

async function refuseClashes(tx: Transaction, file: string, items: readonly OpeningItem[]) {
  const problems = (await readClashes(tx, { items })).map(({ line, clash, of }) => {
    const { field, code, reason } = CLASHES[clash](of);
    return problemAt(line, field, code, reason);
  });
  if (problems.length > 0) throw refuse('opening_clash', { file, problems });
}
