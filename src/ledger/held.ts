/**
 * Decides held rows: they are sales of their own and are recorded, or they repeat a sale and are discarded. Requotes and
 * reversals that are held with their sale follow its decision. Refusals: held_row_unknown, held_row_decided,
 * held_row_invalid.
 */
import { lockImporters } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { plural } from '../text.ts';
import { type DoubledRow, forgetDoubledRows, readDoubledRows } from './doubles.sql.ts';
import { type HeldRow, insertDecisions, readHeldRows, readWithRelated } from './held.sql.ts';
import { importRows } from './import.ts';

export interface Decided {
  readonly rows: readonly HeldRow[];
  /** Recorded rows of closed months, which are billed in the earliest open month. */
  readonly late: number;
}

interface Decision {
  readonly ids: readonly number[];
  readonly reason: string;
}

/** Records held rows as rows of their own. */
export async function releaseRows(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { ids, reason }: Decision,
): Promise<Decided> {
  await lockImporters(tx);
  const rows = await rowsToDecide(tx, ids);
  const text = rows.map((row) => `${JSON.stringify(rowOf(row))}\n`).join('');
  const now = environment.now();
  const report = await importRows(tx, [{ name: 'held rows', format: 'ndjson', text }], {
    ...{ skipInvalid: false, acceptDiffering: true, now, actor },
    action: { action: 'rows.release', subject: subjectOf(rows), details: { reason } },
  });
  const [error] = report.errors;
  const wrong = error?.reason ?? (report.duplicates > 0 ? 'the ledger has a row with this id' : undefined);
  if (wrong !== undefined || report.event_id === null) {
    const { held_row_id } = rows[error === undefined ? 0 : error.line - 1] as HeldRow;
    throw refuse('held_row_invalid', { held_row_id, reason: wrong ?? 'nothing to record' });
  }
  await decide(tx, rows, { decision: 'recorded', reason, now: now.toISO(), eventId: report.event_id });
  return { rows, late: report.late };
}

/** Discards held rows, because they repeat a sale. */
export async function discardRows(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { ids, reason }: Decision,
): Promise<Decided> {
  await lockImporters(tx);
  const rows = await rowsToDecide(tx, ids);
  const now = environment.now().toISO();
  const event = { action: 'rows.discard', subject: subjectOf(rows), details: { reason, discarded: rows.length }, now };
  await decide(tx, rows, { decision: 'discarded', reason, now, eventId: await recordEvent(tx, actor, event) });
  return { rows, late: 0 };
}

/** Keeps the doubled rows of a partner's API calls as rows of their own. Refusal: no_doubled_rows. */
export async function separateRows(
  tx: Transaction,
  { environment, actor }: ActorContext,
  { partner, reason }: { partner: string; reason: string },
): Promise<readonly DoubledRow[]> {
  const rows = await readDoubledRows(tx, { partner });
  if (rows.length === 0) throw refuse('no_doubled_rows', { partner_id: partner });
  await forgetDoubledRows(
    tx,
    rows.map(({ entry_id }) => entry_id),
  );
  const details = { reason, entries: rows.map(({ entry_id }) => entry_id) };
  const now = environment.now().toISO();
  await recordEvent(tx, actor, { action: 'rows.separate', subject: partner, details, now });
  return rows;
}

const decide = (
  tx: Transaction,
  rows: readonly HeldRow[],
  decision: Omit<Parameters<typeof insertDecisions>[1], 'ids'>,
): Promise<void> => insertDecisions(tx, { ids: rows.map(({ held_row_id }) => held_row_id), ...decision });

const subjectOf = ([first, ...more]: readonly HeldRow[]): string =>
  `${first?.partner_id} ${first?.own_id}${more.length === 0 ? '' : ` and ${plural(more.length, 'more row')}`}`;

async function rowsToDecide(tx: Transaction, ids: readonly number[]): Promise<HeldRow[]> {
  const rows = await readHeldRows(tx, { ids: await readWithRelated(tx, ids) });
  for (const held_row_id of ids) {
    const row = rows.find((each) => each.held_row_id === held_row_id);
    if (row === undefined) throw refuse('held_row_unknown', { held_row_id });
    if (row.decision !== null) throw refuse('held_row_decided', { held_row_id, decision: row.decision });
  }
  return rows;
}

/** Returns a held row with the fields of an import. */
const rowOf = (row: HeldRow) => ({
  ...{ kind: row.kind, partner_id: row.partner_id, quote_id: row.quote_id, requote_id: row.requote_id },
  ...{ reversal_id: row.reversal_id, enrollment_id: row.enrollment_id, policy_id: row.policy_id },
  ...{ currency: row.currency, accepted_at: row.accepted_at, spotPrice: row.spot_price, partnerCut: row.partner_cut },
  ...{ invoiceAmount: row.invoice_amount, order_reference: row.order_reference, cover_from: row.cover_from },
  cover_to: row.cover_to,
});
