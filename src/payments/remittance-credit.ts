/**
 * Credit that a remittance deducts: "INV-2026-000011 less CN-2026-000001". The payment and the credit together pay the
 * named invoices. Pure.
 */
import { Amount } from '#money';
import { ReferenceField } from './bank/statement.ts';
import { OpenCredit, Payable, PlacedCredit } from './evidence.ts';
import { OpenItems } from './open-items.ts';

export function namedCredit(
  references: readonly ReferenceField[],
  { partnerId, currency }: { partnerId: string; currency: string },
  items: OpenItems,
): OpenCredit[] {
  return items.creditReferences(references).flatMap(({ number }) => {
    const credit = items.creditNote(number);
    const usable = credit?.partner_id === partnerId && credit.currency === currency && credit.balance.isPositive();
    return credit !== undefined && usable ? [credit] : [];
  });
}

/** Writes a text such as `INV-2026-000011 less CN-2026-000001 (611.30 USD)`. */
export function lessCredit(documents: readonly Payable[], credits: readonly OpenCredit[]) {
  const deducted = credits.map(
    ({ number, balance, held_at }) => `${number} (${balance.forPeople()}${held_at === null ? '' : ', on hold'})`,
  );
  return `${documents.map((each) => each.number).join(', ')} less ${deducted.join(', ')}`;
}

export function netOf(documents: readonly Payable[], credits: readonly OpenCredit[], currency: string) {
  const sum = (amounts: readonly { balance: Amount }[]) => Amount.sum(currency, amounts, ({ balance }) => balance);
  return sum(documents).minus(sum(credits));
}

/** Returns the credit that was applied to each document, and the amount of each document that is still unpaid. */
export function placeCredit(
  documents: readonly Payable[],
  credits: readonly OpenCredit[],
): { placed: PlacedCredit[]; left: ReadonlyMap<number, Amount> } {
  const placed: PlacedCredit[] = [];
  const left = new Map(documents.map((each) => [each.document_id, each.balance]));
  for (const credit of credits) {
    let open = credit.balance;
    for (const document of documents) {
      const due = left.get(document.document_id) as Amount;
      const amount = open.minus(due).isPositive() ? due : open;
      if (!amount.isPositive()) continue;
      placed.push({ credit, document, amount });
      left.set(document.document_id, due.minus(amount));
      open = open.minus(amount);
    }
  }
  return { placed, left };
}
