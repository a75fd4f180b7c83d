/** Corrections for tests: each action in a transaction of its own, and what the books show afterwards. */
import { expect } from 'vitest';
import { resendDocument } from '../../src/delivery/resend.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import type { DocumentJson } from '../../src/documents/document.ts';
import { readHistory } from '../../src/documents/history.ts';
import { holdDocument, releaseDocument } from '../../src/documents/hold.ts';
import { applyCredit, type PlacedCredit, unapplyCredit } from '../../src/documents/place-credit.ts';
import { type Rerun, rerunDocument, rerunMonth } from '../../src/documents/rerun.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import type { Month } from '../../src/month.ts';
import { inspect } from '../close/invariants.ts';
import { quote, reversal, type World } from '../support/world.ts';

/** A rerun with the number of unchanged documents; without `differing` where nothing differs. */
export type CountedRerun = Omit<Rerun, 'unchanged' | 'differing'> & {
  readonly unchanged: number;
  readonly differing?: Rerun['differing'];
};
const counted = async (rerun: Promise<Rerun>): Promise<CountedRerun> => {
  const { unchanged, differing, ...rest } = await rerun;
  return { ...rest, unchanged: unchanged.length, ...(differing.length > 0 && { differing }) };
};

export interface Corrections {
  readonly voided: (number: string, reason?: string) => Promise<void>;
  readonly rerun: (number: string, options?: { newTerms?: boolean }) => Promise<CountedRerun>;
  /** Replaces what differs too, unless `changed` is false. */
  readonly rerunMonth: (
    month: string,
    options?: { newTerms?: boolean; changed?: boolean; partnerId?: string },
  ) => Promise<CountedRerun>;
  /** Gives the credit note's number. */
  readonly credit: (number: string, amount: string, reason?: string) => Promise<string>;
  /** Applies open credit to an invoice, and takes it back. */
  readonly apply: (creditNote: string, number: string, amount?: string) => Promise<PlacedCredit>;
  readonly unapply: (creditNote: string, number: string) => Promise<PlacedCredit>;
  readonly writeOff: (number: string, reason?: string) => Promise<void>;
  readonly hold: (number: string, reason?: string) => Promise<void>;
  readonly release: (number: string) => Promise<void>;
  readonly resend: (number: string, to?: string) => Promise<number>;
}

export function correctionsOf(world: World, database = world.database): Corrections {
  const { transaction } = database;
  return {
    voided: (number, reason = 'issued in error') => transaction((tx) => voidDocument(tx, world, { number, reason })),
    rerun: (number, { newTerms = false } = {}) =>
      counted(transaction((tx) => rerunDocument(tx, world, number, { newTerms }))),
    rerunMonth: (month, { newTerms = false, changed = true, partnerId } = {}) =>
      counted(transaction((tx) => rerunMonth(tx, world, month as Month, { newTerms, changed, partnerId }))),
    credit: (number, amount, reason = 'agreed by phone') =>
      transaction((tx) => creditInvoice(tx, world, { number, amount, reason, again: true })),
    apply: (creditNote, number, amount) => transaction((tx) => applyCredit(tx, world, { creditNote, number, amount })),
    unapply: (creditNote, number) => transaction((tx) => unapplyCredit(tx, world, { creditNote, number })),
    writeOff: (number, reason = 'the partner is bankrupt') =>
      transaction((tx) => writeOffInvoice(tx, world, { number, reason })),
    hold: (number, reason = 'disputed') => transaction((tx) => holdDocument(tx, world, { number, reason })),
    release: (number) => transaction((tx) => releaseDocument(tx, world, number)),
    resend: (number, to) => transaction((tx) => resendDocument(tx, world, { number, to })),
  };
}

/** One document, as a program sees it. */
export async function document(world: World, number: string): Promise<DocumentJson> {
  const found = (await world.documents()).find((each) => each.number === number);
  if (found === undefined) throw new Error(`there is no ${number}`);
  return found;
}

/** The history of a document: each action with its sentence. */
export async function story(world: World, number: string): Promise<[action: string, says: string][]> {
  const [row] = await world.sql<{ id: string }>('SELECT document_id AS id FROM documents WHERE number = $1', [number]);
  const lines = await world.database.reading((tx) => readHistory(tx, Number(row?.id)));
  return lines.map(({ action, says }) => [action, says]);
}

/** Neither verify nor the inspection of the tables finds anything, and both have inspected something. */
export async function expectVerified(world: World): Promise<void> {
  const { broken, looked } = await inspect(world);
  expect(broken).toEqual({});
  expect(Object.values(looked).some((count) => count > 0)).toBe(true);
  const { checks, differences, inspected } = await world.verify();
  expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
  expect({ differences, some: inspected > 0 }).toEqual({ differences: 0, some: true });
}

/** The state of each document: `amount - credit applied - credited = balance status`. */
export async function standing(world: World): Promise<Record<string, string>> {
  return Object.fromEntries(
    (await world.documents()).map((each) => [
      each.number,
      `${each.invoiceAmount} - ${each.credit_applied} - ${each.credited} = ${each.balance} ${each.status}`,
    ]),
  );
}

/** What of which credit note is used for which invoice now. */
export async function creditInUse(world: World): Promise<string[]> {
  const used = await world.sql<{ note: string; invoice: string; amount: string }>(
    `SELECT n.number AS note, i.number AS invoice, a.amount::text FROM credit_applications a
     JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id
     WHERE NOT EXISTS (SELECT FROM credit_releases r WHERE r.credit_application_id = a.credit_application_id)
     ORDER BY a.credit_application_id`,
  );
  return used.map(({ note, invoice, amount }) => `${amount} of ${note} for ${invoice}`);
}

/** The e-mails of a document, oldest first. */
export const emailsOf = (world: World, number: string) =>
  world.sql<{ asked_for: string; status: string; reason: string | null; message_id: string; attempts: number }>(
    `SELECT s.asked_for, s.status, s.reason, s.message_id, s.attempts
     FROM document_emails s JOIN documents d USING (document_id) WHERE d.number = $1 ORDER BY s.email_id`,
    [number],
  );

/** A quote over `amount`, all of it ours, on the tenth of a month. */
export const sale = (month: string, amount: string, more: Record<string, unknown> = {}) =>
  quote({ accepted_at: `${month}-10T12:00:00Z`, spotPrice: amount, partnerCut: '0', invoiceAmount: amount, ...more });

/** Takes all of a sale back in a later month. */
export function refund(sold: Record<string, unknown>, month: string): Record<string, unknown> {
  const amount = `-${String(sold['invoiceAmount'])}`;
  return reversal(sold, {
    accepted_at: `${month}-10T12:00:00Z`,
    spotPrice: amount,
    partnerCut: '0',
    invoiceAmount: amount,
  });
}
