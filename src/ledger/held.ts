/**
 * Decides held rows. Rows that may repeat a sale are sales of their own and are recorded, or they repeat a sale and are
 * discarded. Requotes and reversals that are held with their sale follow its decision. Reversals are granted, possibly
 * with other amounts, or refused. Rows after a granted reversal are recorded with it; after a refused one, they stay held.
 * Refusals: held_row_unknown, held_row_decided, held_row_invalid, held_row_is_reversal, held_row_no_reversal.
 */
import { lockImporters } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { Amount } from '#money';
import { workingDaysFrom } from '#month';
import { ActorContext, recordEvent } from '#people/audit-events';
import { plural } from '#text';
import { DoubledRow, forgetDoubledRows, readDoubledRows } from './doubles.sql.ts';
import { HeldRow, insertDecisions, readHeldRows, readWithRelated } from './held.sql.ts';
import { importRows } from './import.ts';

/** Whether a held row is a reversal that is granted or refused. A reversal of a held sale follows its sale. */
export const isRequest = ({ kind, sign }: Pick<HeldRow, 'kind' | 'sign'>) =>
  kind === 'reversal' && sign !== 'held_sale';

/** A request is overdue after this many working days. */
const DECIDED_WITHIN_DAYS = 5;

/** The last day on which a request is not overdue. */
export const dueOn = (recordedAt: string) => workingDaysFrom(recordedAt.slice(0, 10), DECIDED_WITHIN_DAYS);

export type Decided = Readonly<{
  rows: readonly HeldRow[];
  /** Recorded rows of closed months, which are billed in the earliest open month. */
  late: number;
}>;

type Decision = Readonly<{
  ids: readonly number[];
  reason: string;
}>;

/** Records held rows as rows of their own. */
export async function releaseRows(tx: Transaction, context: ActorContext, { ids, reason }: Decision): Promise<Decided> {
  await lockImporters(tx);
  const rows = await rowsToDecide(tx, ids, { reversals: false });
  return record(tx, context, rows, { action: 'rows.release', reason });
}

/** Our share and the cut that a granted reversal takes, above zero. */
export type GrantedAmounts = Readonly<{
  invoiceAmount: Amount;
  partnerCut: Amount;
}>;

/** Records a held reversal, with other amounts if they are given. */
export async function grantReversal(
  tx: Transaction,
  context: ActorContext,
  { id, amounts, reason }: { id: number; amounts: GrantedAmounts | undefined; reason: string },
): Promise<Decided> {
  await lockImporters(tx);
  const rows = (await rowsToDecide(tx, [id], { reversals: true })).map((row) =>
    amounts === undefined || row.held_row_id !== id
      ? row
      : {
          ...row,
          spot_price: amounts.invoiceAmount.plus(amounts.partnerCut).negated().toString(),
          partner_cut: amounts.partnerCut.negated().toString(),
          invoice_amount: amounts.invoiceAmount.negated().toString(),
        },
  );
  return record(tx, context, rows, { action: 'reversal.grant', reason });
}

export const TAKEN_BACK = 'the processor has taken our share back';

/**
 * Records held reversals whose share the processor has taken back, and requotes that are held after them. A row that
 * cannot be recorded stays held. Returns the recorded rows. At most 1,000 rows can be given.
 */
export async function recordTakenBack(
  tx: Transaction,
  context: ActorContext,
  ids: readonly number[],
): Promise<readonly HeldRow[]> {
  const rows = (await rowsToDecide(tx, ids, { reversals: true })).filter(
    ({ kind, held_row_id }) => kind !== 'reversal' || ids.includes(held_row_id),
  );
  const given = {
    action: 'reversal.taken_back',
    reason: TAKEN_BACK,
    allowedBy: 'processor',
    skipInvalid: true,
  } as const;
  const { event_id, errors } = await importHeld(tx, context, rows, given);
  const bad = new Set(errors.map(({ line }) => line));
  const recorded = rows.filter((_, index) => !bad.has(index + 1));
  if (event_id === null) return [];
  await decideRecorded(tx, context, recorded, { reason: TAKEN_BACK, eventId: event_id });
  failpoint('processor.covered');
  return recorded;
}

/** Decides that held rows are recorded, which the event has recorded. */
export const decideRecorded = (
  tx: Transaction,
  { environment }: Pick<ActorContext, 'environment'>,
  rows: readonly Pick<HeldRow, 'held_row_id'>[],
  { reason, eventId }: { reason: string; eventId: number },
) => decide(tx, rows, { decision: 'recorded', reason, now: environment.now().toISO(), eventId });

const importHeld = (
  tx: Transaction,
  { environment, actor, settings }: ActorContext,
  rows: readonly HeldRow[],
  given: { action: string; reason: string; allowedBy: 'person' | 'processor'; skipInvalid: boolean },
) => {
  const { action, reason, allowedBy, skipInvalid } = given;
  const text = rows.map((row) => `${JSON.stringify(heldLine(row))}\n`).join('');
  return importRows(tx, [{ name: 'held rows', format: 'ndjson', text }], {
    ...{ skipInvalid, acceptDiffering: true, now: environment.now(), actor, ceilings: settings.reversals, allowedBy },
    environment,
    action: { action, subject: subjectOf(rows), details: { reason } },
  });
};

async function record(
  tx: Transaction,
  context: ActorContext,
  rows: readonly HeldRow[],
  { action, reason }: { action: string; reason: string },
): Promise<Decided> {
  const report = await importHeld(tx, context, rows, { action, reason, allowedBy: 'person', skipInvalid: false });
  const [error] = report.errors;
  const wrong = error?.reason ?? (report.duplicates > 0 ? 'the ledger has a row with this id' : undefined);
  if (wrong !== undefined || report.event_id === null) {
    const row = rows[error === undefined ? 0 : error.line - 1] as HeldRow;
    const { held_row_id } = row;
    throw refuse('held_row_invalid', { held_row_id, reason: wrong ?? 'nothing to record', is_request: isRequest(row) });
  }
  await decideRecorded(tx, context, rows, { reason, eventId: report.event_id });
  return { rows, late: report.late };
}

/** Discards held rows, because they repeat a sale. */
export async function discardRows(tx: Transaction, context: ActorContext, { ids, reason }: Decision): Promise<Decided> {
  await lockImporters(tx);
  const rows = await rowsToDecide(tx, ids, { reversals: false });
  return discard(tx, context, rows, { action: 'rows.discard', reason });
}

/** Refuses a held reversal. Rows that are held after it stay held. */
export async function refuseReversal(
  tx: Transaction,
  context: ActorContext,
  { id, reason }: { id: number; reason: string },
): Promise<Decided> {
  await lockImporters(tx);
  const rows = await rowsToDecide(tx, [id], { reversals: true });
  const own = rows.filter(({ held_row_id }) => held_row_id === id);
  return discard(tx, context, own, { action: 'reversal.refuse', reason });
}

async function discard(
  tx: Transaction,
  { environment, actor }: ActorContext,
  rows: readonly HeldRow[],
  { action, reason }: { action: string; reason: string },
): Promise<Decided> {
  const now = environment.now().toISO();
  const event = { action, subject: subjectOf(rows), details: { reason, discarded: rows.length }, now };
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
  await forgetDoubledRows(tx, { entries: rows.map(({ entry_id }) => entry_id) });
  const details = { reason, entries: rows.map(({ entry_id }) => entry_id) };
  const now = environment.now().toISO();
  await recordEvent(tx, actor, { action: 'rows.separate', subject: partner, details, now });
  return rows;
}

async function decide(
  tx: Transaction,
  rows: readonly Pick<HeldRow, 'held_row_id'>[],
  decision: Omit<Parameters<typeof insertDecisions>[1], 'ids'>,
) {
  await insertDecisions(tx, { ids: rows.map(({ held_row_id }) => held_row_id), ...decision });
  failpoint('reversal.decided');
}

const subjectOf = ([first, ...more]: readonly HeldRow[]) =>
  `${first?.partner_id} ${first?.own_id}${more.length === 0 ? '' : ` and ${plural(more.length, 'more row')}`}`;

/** `reversals`: whether the rows must be reversals, or must not be. */
async function rowsToDecide(tx: Transaction, ids: readonly number[], { reversals }: { reversals: boolean }) {
  const rows = await readHeldRows(tx, { ids: await readWithRelated(tx, { ids }) });
  for (const held_row_id of ids) {
    const row = rows.find((each) => each.held_row_id === held_row_id);
    if (row === undefined) throw refuse('held_row_unknown', { held_row_id });
    if (row.decision !== null) throw refuse('held_row_decided', { held_row_id, decision: row.decision });
    if (isRequest(row) !== reversals) {
      throw refuse(reversals ? 'held_row_no_reversal' : 'held_row_is_reversal', { held_row_id });
    }
  }
  return rows;
}

/** Returns a held row with the fields of an import. */
export const heldLine = (row: HeldRow) => ({
  ...{ kind: row.kind, partner_id: row.partner_id, quote_id: row.quote_id, requote_id: row.requote_id },
  ...{ reversal_id: row.reversal_id, enrollment_id: row.enrollment_id, policy_id: row.policy_id },
  ...{ currency: row.currency, accepted_at: row.accepted_at, spotPrice: row.spot_price, partnerCut: row.partner_cut },
  ...{ invoiceAmount: row.invoice_amount, order_reference: row.order_reference, cover_from: row.cover_from },
  cover_to: row.cover_to,
});
