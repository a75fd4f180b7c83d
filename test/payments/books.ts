/** A world with twelve open invoices of four partners, and the actions on payments as the program's own functions. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Settings } from '../../src/config/settings.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { applyPayment, unapplyPayment } from '../../src/payments/apply.ts';
import { assignPayment } from '../../src/payments/assign.ts';
import type { BookableLine } from '../../src/payments/bank-booking.sql.ts';
import { type BookRequest, bookBankLine } from '../../src/payments/bank-booking.ts';
import type { BankImport } from '../../src/payments/bank-import/import.ts';
import type { Caller } from '../../src/payments/context.ts';
import { type PaymentJson, paymentJson } from '../../src/payments/payment.ts';
import { readPayments } from '../../src/payments/payments.sql.ts';
import { processEvents } from '../../src/payments/processor-events/process.ts';
import { storeEvents } from '../../src/payments/processor-events/store.ts';
import { type RecordedPayment, type RecordRequest, recordPayment } from '../../src/payments/record.ts';
import { type ReverseRequest, reversePayment } from '../../src/payments/reverse.ts';
import { thisProcess } from '../../src/people/audit-events.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';
import { importBankFile } from './import-file.ts';
import { makeLinks } from './stripe-events.ts';

export const HARBOUR = 'p-1';
export const NORD = 'p-2';
export const BLUE_RIDGE = 'p-3';
export const MUNICH = 'p-4';

/** What a partner owes for July, August and perhaps September. */
export type Owed = readonly [partner: string, name: string, currency: string, ...months: string[]];

/** INV-2026-000001 to -000012: the invoices of July, then of August and September, each in this order. */
const OWED: readonly Owed[] = [
  [HARBOUR, 'Harbour Lights Ticketing', 'USD', '1250.00', '980.50', '77.77'],
  [NORD, 'Société Théâtrale du Nord', 'USD', '840.00', '840.00', '1500.00'],
  [BLUE_RIDGE, 'Blue Ridge Arena LLC', 'USD', '333.33', '120.10', '2100.00'],
  [MUNICH, 'Muenchner Fest GmbH & Co. KG', 'EUR', '500.00', '750.25', '60.00'],
];

export const CSV_MAPS: Settings['bank_csv'] | object = {
  sparkasse: {
    columns: {
      date: 'Buchung',
      value_date: 'Valuta',
      payer: 'Auftraggeber',
      text: ['Verwendungszweck'],
      debit: 'Soll',
      credit: 'Haben',
      balance: 'Saldo',
    },
    date_format: 'dd.MM.yyyy',
    decimal: ',',
    delimiter: ';',
    encoding: 'windows-1252',
    skip_lines: 2,
    account: 'GB82 WEST 1234 5698 7654 32',
    currency: 'EUR',
  },
  newest_first: {
    columns: {
      date: 'Posted',
      text: ['Description'],
      debit: 'Withdrawals',
      credit: 'Deposits',
      balance: 'Balance',
      bank_reference: 'Ref',
    },
    date_format: 'LLL d, yyyy',
    account: '000123456789',
  },
};

export interface Books extends World {
  readonly acting: Caller;
  readonly record: (request: Partial<RecordRequest>) => Promise<RecordedPayment>;
  readonly apply: (
    paymentId: number,
    number: string | readonly string[],
    amount?: string,
    creditNotes?: readonly string[],
  ) => Promise<number>;
  readonly assign: (paymentId: number, partnerId: string) => Promise<string | null>;
  readonly unapply: (paymentId: number, number?: string) => Promise<void>;
  readonly reverse: (
    request: Partial<ReverseRequest> & { paymentId: number },
  ) => Promise<Awaited<ReturnType<typeof reversePayment>>>;
  readonly book: (request: Partial<BookRequest> & { bankLineId: number }) => Promise<BookableLine>;
  readonly bank: (name: string, map?: string) => Promise<BankImport>;
  readonly bankText: (name: string, text: string, options?: { map?: string; preview?: boolean }) => Promise<BankImport>;
  readonly events: (
    events: readonly object[],
  ) => Promise<Awaited<ReturnType<typeof processEvents>> & { stored: number; known: number }>;
  readonly payments: (partnerId?: string) => Promise<PaymentJson[]>;
  readonly payment: (paymentId: number) => Promise<PaymentJson>;
  /** Balance of a document, with what is paid and credited of it. */
  readonly balance: (
    number: string,
  ) => Promise<{ balance: string; amount_paid: string; credited: string; status: string }>;
  /** Fails where a check of `verify` finds anything. */
  readonly verified: () => Promise<void>;
}

export const bankFile = (name: string): Buffer =>
  readFileSync(fileURLToPath(new URL(`files/${name}`, import.meta.url)));

/**
 * The invoices of `owed` are open; it is 15 October 2026. `settings` are laid over the sandbox's; `begin` is done before
 * July is closed.
 */
export async function openBooks(
  settings: Partial<Settings> = {},
  begin?: (world: World) => Promise<unknown>,
  options: Parameters<typeof openWorld>[0] = {},
  owed: readonly Owed[] = OWED,
): Promise<Books> {
  const world = await openWorld(options);
  await world.partners(owed.map(([partner_id, name, currency]) => partner({ partner_id, name, currency })));
  await begin?.(world);
  for (const [index, month] of ['2026-07', '2026-08', '2026-09'].slice(0, (owed[0]?.length ?? 0) - 3).entries()) {
    world.at(`2026-${String(8 + index).padStart(2, '0')}-02T15:00:00Z`);
    await world.rows(
      owed.map(([partner_id, , currency, ...months]) =>
        quote({
          partner_id,
          currency,
          accepted_at: `${month}-15T12:00:00Z`,
          spotPrice: months[index],
          partnerCut: '0',
          invoiceAmount: months[index],
        }),
      ),
    );
    await world.close();
  }
  world.at('2026-10-15T15:00:00Z');
  return booksOf(world, settings);
}

export function booksOf(world: World, settings: Partial<Settings> = {}): Books {
  const acting: Caller = {
    environment: world.environment,
    settings: { ...world.settings, ...settings },
    actor: thisProcess('command', 'a bookkeeper'),
  };
  const { transaction, preview, reading } = world.database;
  const payments = async (filter: Parameters<typeof readPayments>[1]) =>
    (await reading((tx) => readPayments(tx, filter))).map(paymentJson);
  const books: Books = {
    ...world,
    acting,
    record: (request) =>
      transaction((tx) =>
        recordPayment(tx, acting, {
          amount: '100.00',
          currency: 'USD',
          method: 'wire',
          receivedOn: '2026-10-14',
          reference: 'FT-1',
          ...request,
        }),
      ),
    apply: (paymentId, number, amount, creditNotes) =>
      transaction((tx) => applyPayment(tx, acting, { paymentId, numbers: [number].flat(), amount, creditNotes })),
    assign: (paymentId, partnerId) => transaction((tx) => assignPayment(tx, acting, { paymentId, partnerId })),
    unapply: (paymentId, number) => transaction((tx) => unapplyPayment(tx, acting, { paymentId, number })),
    reverse: (request) =>
      transaction((tx) => reversePayment(tx, acting, { kind: 'returned', reason: 'the bank says so', ...request })),
    book: (request) =>
      transaction((tx) => bookBankLine(tx, acting, { kind: 'charges', reason: 'of the statement', ...request })),
    bank: (name, map) =>
      transaction((tx) => importBankFile(tx, acting, { name: basename(name), bytes: bankFile(name), map })),
    bankText: (name, text, options = {}) =>
      (options.preview ? preview : transaction)((tx) =>
        importBankFile(tx, acting, { name, bytes: Buffer.from(text), map: options.map }),
      ),
    async events(events) {
      await makeLinks(world.sql, events);
      const text = events.map((event) => `${JSON.stringify(event)}\n`).join('');
      const stored = await transaction((tx) => storeEvents(tx, acting, { name: 'events.ndjson', text }));
      return { ...stored, ...(await transaction((tx) => processEvents(tx, acting))) };
    },
    payments: (partnerId) => payments({ partnerId }),
    payment: async (paymentId) => (await payments({ ids: [paymentId] }))[0] as PaymentJson,
    async balance(number) {
      const document = (await world.documents()).find((each) => each.number === number);
      if (document === undefined) throw new Error(`there is no ${number}`);
      const { balance, amount_paid, credited, status } = document;
      return { balance, amount_paid, credited, status };
    },
    async verified() {
      const { checks } = await world.verify();
      const wrong = checks.filter((check) => check.differences.length > 0);
      if (wrong.length > 0) throw new Error(JSON.stringify(wrong, null, 2));
    },
  };
  return books;
}

/** The code of the refusal that an action ends with. */
export async function refusalOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
  return 'none';
}

export const inv = (sequence: number): string => `INV-2026-${String(sequence).padStart(6, '0')}`;
