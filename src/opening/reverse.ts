/**
 * Reverses the named items of an opening, or all items that are left, if nothing was applied to them. Documents are
 * voided, and cash is recorded as a mistake. The reversals are dated today and posted against the opening balance.
 * Refusals: opening_unknown, opening_item_unknown, opening_items_used, clock_behind, argument_invalid.
 */

import { lockLedgerWhole } from '#database/ledger-lock';
import { LOCKS, takeLock } from '#database/locks';
import { Transaction } from '#database/transaction';
import { voidDocuments } from '#documents/corrections.sql';
import { dateOfAction, IssueContext } from '#documents/issue/context';
import { refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { openPaymentContext } from '#payments/context';
import { reverseAll } from '#payments/reverse';
import { CarriedItem, readItems, readOpenings } from './openings.sql.ts';

type OpeningReversal = Readonly<{
  openingId?: number | undefined;
  numbers?: readonly string[] | undefined;
  reason: string;
}>;

const USES = {
  paid: 'a payment is applied to it',
  credited: 'credit is applied to it, or a credit note was issued against it',
  written_off: 'it is written off',
  applied: 'it pays an invoice, or a part of it was reversed',
} as const;

export async function reverseOpening(
  tx: Transaction,
  context: IssueContext,
  { openingId, numbers, reason }: OpeningReversal,
): Promise<readonly CarriedItem[]> {
  await lockLedgerWhole(tx);
  await takeLock(tx, LOCKS.payments);
  const items = await itemsToReverse(tx, { openingId, numbers });
  const used = items.flatMap(({ number, used: how }) =>
    how === null ? [] : [{ number, used: how, reason: USES[how] }],
  );
  if (used.length > 0) throw refuse('opening_items_used', { items: used });
  if (items.length === 0) return items;
  const today = await dateOfAction(tx, context);
  const payments = await openPaymentContext(tx, context, {
    action: 'opening.reverse',
    subject: openingId === undefined ? (numbers ?? []).join(', ').slice(0, 500) : String(openingId),
    details: { reason, items: items.map(({ kind, number }) => ({ kind, number })) },
  });
  const { now, eventId } = payments;
  const documents = items.flatMap(({ document_id }) => (document_id === null ? [] : [{ document_id, reason }]));
  if (documents.length > 0) await voidDocuments(tx, { documents, today, now, eventId });
  await reverseAll(
    tx,
    payments,
    items.flatMap(({ payment_id, amount }) =>
      payment_id === null
        ? []
        : [
            {
              identity: `opening|${eventId}|${payment_id}`,
              payment_id,
              amount,
              kind: 'mistake' as const,
              reason,
              reversed_on: today,
            },
          ],
    ),
  );
  failpoint('opening_reversal.recorded');
  return items;
}

async function itemsToReverse(tx: Transaction, { openingId, numbers }: Pick<OpeningReversal, 'openingId' | 'numbers'>) {
  if (openingId !== undefined) {
    if ((await readOpenings(tx, { openingId })).length === 0) throw refuse('opening_unknown', { opening: openingId });
    return (await readItems(tx, { openingId })).filter((each) => !each.reversed);
  }
  const items = await readItems(tx, { numbers: numbers ?? [] });
  const known = new Set(items.map(({ number }) => number));
  const missing = (numbers ?? []).find((each) => !known.has(each));
  if (missing !== undefined) throw refuse('opening_item_unknown', { number: missing });
  return items;
}
