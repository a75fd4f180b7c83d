/** A preview shows what an act would do, by the code that does it, and writes nothing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Act, ActContext } from '../../src/acts/act.ts';
import { inputJson } from '../../src/acts/fields.ts';
import { invoiceCredit } from '../../src/acts/invoice/credit.ts';
import { paymentApply } from '../../src/acts/payment/apply.ts';
import { admit } from '../../src/acts/permit.ts';
import { ACTS } from '../../src/acts/registry.ts';
import { previewAct, readInput, runAct } from '../../src/acts/run.ts';
import { webhookSet } from '../../src/acts/webhook.ts';
import { query, type Transaction } from '../../src/database/transaction.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { createClient } from '../../src/partners/clients.ts';
import type { Actor } from '../../src/people/audit-events.ts';
import { ROLES } from '../../src/people/roles.ts';
import { identify } from '../../src/people/users.ts';
import { writeAccounts } from '../general-ledger/months.ts';
import { csvOf, invoice } from '../opening/file.ts';
import { type Books, inv, openBooks } from '../payments/books.ts';
import { invite } from '../support/console.ts';
import { partner, quote } from '../support/world.ts';

let books: Books;
let context: ActContext;
/** Made by the setup. */
const made = { client: '', creditNote: '', email: 0, unapplied: 0, applied: 0 };

beforeAll(async () => {
  books = await openBooks();
  writeAccounts(books);
  const webhookKey = '5c'.repeat(32);
  const environment = { ...books.environment, webhookKey };
  // A dry run: the month that could be closed has not ended yet.
  context = { ...books.acting, environment, database: books.database, forecast: true };
  await books.deliver();
  const doing = <Result>(work: (tx: Transaction) => Promise<Result>) => books.database.transaction(work);
  made.unapplied = (await books.record({ partnerId: 'p-1', amount: '100.00', reference: 'KEPT' })).paymentId;
  made.applied = (await books.record({ number: inv(2), amount: '40.00', reference: 'PAID' })).paymentId;
  await doing((tx) => writeOffInvoice(tx, books.acting, { number: inv(3), reason: 'insolvent' }));
  await doing((tx) => openDispute(tx, books.acting, { number: inv(4), reason: 'wrong count' }));
  await doing((tx) => holdDocument(tx, books.acting, { number: inv(5), reason: 'ask first' }));
  await doing((tx) => voidDocument(tx, books.acting, { number: inv(6), reason: 'wrong rows' }));
  await books.record({ number: inv(9), amount: '77.77', reference: 'WHOLE' });
  made.creditNote = await doing((tx) =>
    creditInvoice(tx, books.acting, { number: inv(9), amount: '5.00', reason: 'goodwill' }),
  );
  await runAct(context, webhookSet, { partnerId: 'p-1', url: 'https://partner.example/events' });
  const { actor } = books;
  const act = { actor, environment: environment.name, now: environment.now() };
  made.client = (await doing((tx) => createClient(tx, 'p-1', {}, act))).client_id;
  context = { ...context, ...(await asAdministrator()) };
  await invite(books, 'kim@auditor.example');
  made.email = Number((await books.sql('SELECT min(email_id)::int AS email FROM emails'))[0]?.['email']);
});
afterAll(() => books.end());

const file = (name: string, text: string) => ({ name, bytes: Buffer.from(text) });
const why = { reason: 'as agreed' };

/** An input for every act. `refused`: nothing here can be done so, and the preview is refused as the act is. */
const INPUTS: Readonly<Record<string, () => { input: object; refused?: string }>> = {
  'month.close': () => ({ input: { month: '2026-10' } }),
  'books.close': () => ({ input: { month: '2026-07' } }),
  'gl.export': () => ({ input: { month: '2026-07', format: 'generic', preliminary: true } }),
  'checkpoint.take': () => ({ input: {} }),
  'ledger.pause': () => ({ input: why }),
  'instructions.adopt': () => ({ input: {}, refused: 'instructions_unchanged' }),
  'work.assign': () => ({ input: { item: `dispute:${inv(4)}` }, refused: 'work_assigned_already' }),
  'partner.import': () => ({ input: { file: file('partners.json', JSON.stringify([partner({ name: 'Harbour' })])) } }),
  'opening.import': () => ({
    input: {
      file: file('open.csv', csvOf([invoice('OLD-1', '70.00')])),
      ...{ cutOver: '2026-10-04', control: ['USD=70.00'], count: 1 },
    },
  }),
  'opening.reverse': () => ({ input: { openingId: 1, ...why }, refused: 'opening_unknown' }),
  'ledger.import': () => ({
    input: { files: [file('rows.ndjson', `${JSON.stringify(quote({ accepted_at: '2026-10-05T12:00:00Z' }))}\n`)] },
  }),
  'payment.import': () => ({
    input: {
      file: file(
        'bank.csv',
        'date,amount,currency,account,bank_reference,text,payer,payer_account\n' +
          `2026-10-05,1250.00,USD,0001,B-1,${inv(1)},Harbour,\n`,
      ),
    },
  }),
  'payment.events': () => ({ input: {} }),
  'processor.import': () => ({
    input: { file: file('settlement.csv', ''), partnerId: 'p-1' },
    refused: 'partner_not_connected',
  }),
  'email.bounces': () => ({ input: { files: [file('report.eml', 'Subject: no report\n\nNothing was returned.\n')] } }),
  'invoice.void': () => ({ input: { number: inv(1), ...why } }),
  'invoice.rerun': () => ({ input: { number: inv(6) } }),
  'invoice.credit': () => ({ input: { number: inv(1), amount: '12.50', ...why } }),
  'invoice.write_off': () => ({ input: { number: inv(1), ...why } }),
  'invoice.write_off_undone': () => ({ input: { number: inv(3), ...why } }),
  'invoice.hold': () => ({ input: { number: inv(1) } }),
  'invoice.release': () => ({ input: { number: inv(5) } }),
  'invoice.resend': () => ({ input: { number: inv(1) } }),
  'invoice.link_rotate': () => ({ input: { number: inv(1), ...why } }),
  'invoice.link_revoke': () => ({ input: { number: inv(1), ...why } }),
  'payment.record': () => ({
    input: {
      ...{ amount: '980.50', currency: 'USD', method: 'wire', receivedOn: '2026-10-05', reference: 'W-1' },
      number: inv(1),
    },
  }),
  'payment.apply': () => ({ input: { paymentId: made.unapplied, numbers: [inv(1)] } }),
  'payment.unapply': () => ({ input: { paymentId: made.applied } }),
  'payment.reverse': () => ({ input: { paymentId: made.applied, kind: 'returned', ...why } }),
  'payment.assign': () => ({ input: { paymentId: made.unapplied, partnerId: 'p-2' } }),
  'payment.forget_account': () => ({ input: { account: 'DE00' }, refused: 'payer_account_unknown' }),
  'payment.settle': () => ({ input: { payoutId: 99, paymentIds: [made.applied] }, refused: 'payout_unknown' }),
  'payment.close_exception': () => ({ input: { exception: 'line-99', ...why }, refused: 'exception_unknown' }),
  'credit.apply': () => ({ input: { creditNote: made.creditNote, number: inv(1) } }),
  'credit.unapply': () => ({ input: { creditNote: made.creditNote, number: inv(1) }, refused: 'credit_not_applied' }),
  'credit.refund': () => ({ input: { number: made.creditNote } }),
  'credit.refund_returned': () => ({ input: { number: made.creditNote, ...why }, refused: 'credit_not_refundable' }),
  'dispute.open': () => ({ input: { number: inv(1), ...why } }),
  'dispute.close': () => ({ input: { number: inv(4), ...why } }),
  'email.resend': () => ({ input: { emailId: made.email } }),
  'email.dismiss': () => ({ input: { emailId: made.email, ...why }, refused: 'email_not_dismissible' }),
  'delivery.retry': () => ({ input: { status: 'failed' } }),
  'reminder.record': () => ({ input: {} }),
  'statement.send': () => ({ input: { month: '2026-09', partnerId: 'p-1' } }),
  'processor.match': () => ({
    input: { balance_transaction: 'txn_1', quoteId: 'q-1', ...why },
    refused: 'balance_transaction_unknown',
  }),
  'processor.unmatch': () => ({
    input: { balance_transaction: 'txn_1', quoteId: 'q-1', ...why },
    refused: 'balance_transaction_unknown',
  }),
  'processor.close': () => ({
    input: { balance_transactions: ['txn_1'], ...why },
    refused: 'balance_transaction_unknown',
  }),
  'processor.reverse': () => ({
    input: { balance_transaction: 'txn_1', spotPrice: '1.00' },
    refused: 'balance_transaction_unknown',
  }),
  'processor.reverse_month': () => ({ input: { month: '2026-07' } }),
  'shares.bill': () => ({ input: { month: '2026-07' } }),
  'user.invite': () => ({ input: { login: 'mara@issuer.example', roles: ['finance'], partnerId: 'p-1' } }),
  'user.link': () => ({ input: { login: 'kim@auditor.example' } }),
  'user.role': () => ({ input: { login: 'kim@auditor.example', grant: ['finance'], revoke: ['viewer'] } }),
  'user.deactivate': () => ({ input: { login: 'kim@auditor.example', ...why } }),
  'user.sign_out': () => ({ input: { login: 'kim@auditor.example' } }),
  'client.create': () => ({ input: { partnerId: 'p-1', validDays: 30 } }),
  'client.rotate': () => ({ input: { clientId: made.client } }),
  'client.revoke': () => ({ input: { clientId: made.client } }),
  'webhook.set': () => ({ input: { partnerId: 'p-1', url: 'https://partner.example/events' } }),
  'webhook.rotate': () => ({ input: { partnerId: 'p-1' } }),
  'webhook.resume': () => ({ input: { partnerId: 'p-1' } }),
  'webhook.remove': () => ({ input: { partnerId: 'p-1' } }),
};

/** Events that acts have recorded here. */
let seen = 0;

/** Somebody who may do everything. */
async function asAdministrator(): Promise<{ actor: Actor }> {
  const login = 'ada@issuer.example';
  const roles = ROLES;
  await invite(books, login, { roles });
  return {
    actor: await context.database.reading((tx) => identify(tx, books.actor, { login, unattended: false })),
  };
}

/** How many rows each table has. */
async function counts(): Promise<Record<string, number>> {
  const tables = await books.sql<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY table_name`,
  );
  const each = tables.map(({ name }) => `SELECT '${name}' AS name, count(*)::int AS rows FROM ${name}`);
  const rows = await books.sql<{ name: string; rows: number }>(each.join(' UNION ALL '));
  return Object.fromEntries(rows.map(({ name, rows }) => [name, rows]));
}

describe('a preview', () => {
  test('has an input here for every act', () => {
    expect(Object.keys(INPUTS).sort()).toEqual([...ACTS.keys()].sort());
  });

  test.each([...ACTS.values()])('of $name writes nothing', async (act: Act) => {
    const { input, refused } = INPUTS[act.name]?.() ?? { input: {} };
    const before = await counts();
    expect(Object.keys(before).length).toBeGreaterThan(50);
    // As an approval stores it.
    const given = readInput(act, inputJson(input));
    expect(given).toEqual(readInput(act, input));
    const shown = await previewAct(context, act, given).catch((error: unknown) => {
      if (error instanceof Refusal) return error.code;
      throw error;
    });
    if (typeof shown === 'string') expect(shown).toBe(refused);
    else {
      expect(refused).toBeUndefined();
      expect(shown.report.text).not.toBe('');
    }
    expect(await counts()).toEqual(before);
  });

  test.each([...ACTS.values()])('of $name is recorded as that of whoever looks, in each event', async (act: Act) => {
    const { input, refused } = INPUTS[act.name]?.() ?? { input: {} };
    if (refused !== undefined) return;
    const given = readInput(act, input);
    const { actor } = await asAdministrator();
    const events = await context.database.preview(async (tx) => {
      await admit(tx, { ...context, actor }, act, given);
      const [{ before } = { before: 0 }] = await query<{ before: number }>(
        tx,
        'SELECT max(event_id) AS before FROM audit_events',
      );
      await act.perform(tx, { ...context, actor }, given);
      return query<{ action: string; user_id: number | null }>(
        tx,
        'SELECT action, user_id FROM audit_events WHERE event_id > :before',
        { before },
      );
    });
    seen += events.length;
    expect(events.filter(({ user_id }) => user_id !== actor.user?.user_id)).toEqual([]);
  });

  test('counts the credit that a payment is applied with', async () => {
    const input = { paymentId: made.unapplied, numbers: [inv(1)], amount: '20.00', creditNotes: [made.creditNote] };
    const { amounts } = await previewAct(context, paymentApply, input);
    expect(amounts.map((each) => each.forPeople())).toEqual(['25.00 USD']);
  });

  test('has recorded something in most acts', () => {
    expect(seen).toBeGreaterThan(35);
  });

  test('shows no secret that the act will make', async () => {
    const shown = await previewAct(context, ACTS.get('client.create') as Act, { partnerId: 'p-1' });
    expect(JSON.stringify(shown)).not.toMatch(/client_secret|client_id/);
  });

  test('shows each field that the act then changes, and the money that thresholds are compared with', async () => {
    const input = { number: inv(8), amount: '20.10', reason: 'goodwill' };
    const { changes, amounts } = await previewAct(context, invoiceCredit, input);
    expect(amounts.map(String)).toEqual(['20.10']);
    expect(changes).toContainEqual({ of: inv(8), field: 'balance', before: '750.25 EUR', after: '730.15 EUR' });
    expect(changes).toContainEqual({ of: 'the credit note', field: 'amount', before: null, after: '20.10 EUR' });
    await runAct(context, invoiceCredit, input, { deliver: false });
    expect((await books.balance(inv(8))).balance).toBe('730.15');
  });
});
