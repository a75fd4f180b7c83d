/** A preview shows what an action would do, by the code that does it, and writes nothing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Action, ActionContext } from '../../src/actions/action.ts';
import { creditApply, creditRefund } from '../../src/actions/credit.ts';
import { feedState } from '../../src/actions/feed.ts';
import { inputJson } from '../../src/actions/fields.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { ACTIONS as ALL } from '../../src/actions/loaded.ts';
import { emailBounces } from '../../src/actions/mail.ts';
import { openingImport } from '../../src/actions/opening.ts';
import { paymentApply } from '../../src/actions/payment/apply.ts';
import { admit } from '../../src/actions/permit.ts';
import { reminderPause } from '../../src/actions/reminder-pause.ts';
import { previewAction, readInput, runAction } from '../../src/actions/run.ts';
import { statementSend } from '../../src/actions/statement.ts';
import { webhookSet } from '../../src/actions/webhook.ts';
import { query, type Transaction } from '../../src/database/transaction.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { writeOffInvoice } from '../../src/documents/write-off.ts';
import type { Month } from '../../src/month.ts';
import { createClient } from '../../src/partners/clients.ts';
import { readExceptions } from '../../src/payments/exceptions.sql.ts';
import type { Actor } from '../../src/people/audit-events.ts';
import { ROLES } from '../../src/people/roles.ts';
import { beginSession } from '../../src/people/sessions.ts';
import { identify } from '../../src/people/users.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { writeAccounts } from '../general-ledger/months.ts';
import { report } from '../mail/report.ts';
import { csvOf, invoice } from '../opening/file.ts';
import { type Books, inv, openBooks } from '../payments/books.ts';
import { makeLinks, stripePayment } from '../payments/stripe-events.ts';
import { ndjson, reversedTransfers, share, type Told } from '../splits/balance-transactions.ts';
import { invite } from '../support/console.ts';
import { partner, quote, type World } from '../support/world.ts';

let books: Books;
let context: ActionContext;
const SEPTEMBER = '2026-09' as Month;
const ON_JULY_15 = '2026-07-15T12:00:05Z';
/** Made by the setup. */
const made = {
  ...{ client: '', creditNote: '', placed: '', statement: 0, pending: 0, returned: '', unapplied: 0, applied: 0 },
  ...{
    held: 0,
    sold: 0,
    requested: 0,
    linked: 0,
    payout: 0,
    fee: 0,
    charged: 0,
    exception: '',
    matched: '',
    pulled: '',
    stray: share(300, ON_JULY_15),
  },
};
const WALLET = stripePayment({ invoice: inv(10), amount: 150000, key: 'WALLET', on: '2026-10-05' });
const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
const PAYER_ACCOUNT = '1018-2290-77';
const ADA = 'ada@issuer.example';
const KIM = 'kim@auditor.example';

beforeAll(async () => {
  books = await openBooks({}, sharesOfQuotes);
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
  const credited = (amount: string) =>
    doing((tx) => creditInvoice(tx, books.acting, { number: inv(9), amount, reason: 'goodwill' }));
  made.creditNote = await credited('5.00');
  made.placed = await credited('2.00');
  await runAction(context, creditApply, { creditNote: made.placed, number: inv(1), amount: '1.00' });
  await runAction(context, creditRefund, { number: made.placed });
  await runAction(context, openingImport, carriedOver('OLD-1'), { deliver: false });
  await runAction(context, statementSend, { month: SEPTEMBER, partnerId: 'p-2' });
  await runAction(context, statementSend, { month: SEPTEMBER, partnerId: 'p-3' }, { deliver: false });
  await runAction(context, feedState, { partnerId: 'p-2', month: '2026-10' as Month, count: 1, control: ['USD=7.00'] });
  await runAction(context, reminderPause, { partnerId: 'p-2', until: '2026-12-31', reason: 'installments' });
  await runAction(context, webhookSet, { partnerId: 'p-1', url: 'https://partner.example/events' });
  const { actor } = books;
  const action = { actor, environment: environment.name, now: environment.now() };
  made.client = (await doing((tx) => createClient(tx, 'p-1', {}, action))).client_id;
  // Since the invoices were delivered, settings.json has lost the bank details that were for USD alone.
  const { USD: _, ...instructions } = books.acting.settings.instructions;
  const settings = { ...books.acting.settings, instructions };
  context = { ...context, settings, ...(await asAdministrator()) };
  await invite(books, KIM);
  const kim = await context.database.reading((tx) => identify(tx, actor, { login: KIM, unattended: false }));
  if (kim.user === undefined) throw new Error(`${KIM} is nobody`);
  const session = { user: kim.user, method: 'link', network: '192.0.2.7', browser: 'a browser' } as const;
  await doing((tx) => beginSession(tx, context, session));
  await bankMoney();
  const sale = quote({ accepted_at: '2026-10-10T12:00:00Z' });
  const { held_rows: held } = await books.rows([sale, { ...sale, quote_id: 'again' }]);
  made.held = held[0]?.held_row_id ?? 0;
  const [last] = await books.sql<{ id: number }>('SELECT max(entry_id)::int AS id FROM ledger_rows');
  made.sold = last?.id ?? 0;
  const skewed = { ...sale, kind: 'reversal', reversal_id: 'skewed', spotPrice: -7, partnerCut: 0, invoiceAmount: -7 };
  const { held_rows: requested } = await books.rows([skewed], { holds: true });
  made.requested = requested[0]?.held_row_id ?? 0;
  await books.sql(
    `INSERT INTO doubled_rows SELECT posted_month, partner_id, entry_id, 'first' FROM ledger_rows WHERE quote_id = $1`,
    [sale['quote_id']],
  );
  const emails = await books.sql<{ email_id: number; kind: string; message_id: string }>(
    'SELECT email_id::int, kind, message_id FROM emails ORDER BY email_id',
  );
  const statements = emails.filter(({ kind }) => kind === 'account_statement').map(({ email_id }) => email_id);
  [made.statement = 0, made.pending = 0] = statements;
  made.returned = emails[0]?.message_id ?? '';
  await runAction(context, emailBounces, { files: [returned(emails[1]?.message_id)] });
});
afterAll(() => books.end());

/** A bank line whose payer's account is learned, one of no payer, and a payout with too high a fee to settle by itself. */
async function bankMoney(): Promise<void> {
  const link = stripePayment({ invoice: inv(12), amount: 6000, currency: 'eur', key: 'LINK', on: '2026-10-05' });
  await books.events([link.completed()]);
  await makeLinks(books.sql, [WALLET.completed()]);
  await books.bankText(
    'october.csv',
    `${HEAD}2026-10-09,120.10,USD,0001,B-7,${inv(7)},Blue Ridge Arena LLC,${PAYER_ACCOUNT}\n` +
      `2026-10-09,-5.00,USD,0001,B-8,RETURN R01,,\n` +
      `2026-10-09,-3.00,USD,0001,B-10,ACCOUNT FEE,,\n2026-10-09,-4.00,USD,0001,B-11,WIRE FEE,,\n` +
      `2026-10-09,10.00,EUR,0002,B-9,STRIPE TRANSFER ${link.ids.intent},STRIPE,\n`,
  );
  made.linked = (await books.payments()).find(({ reference }) => reference === link.ids.intent)?.payment_id ?? 0;
  made.payout = Number((await books.sql('SELECT max(payout_id)::int AS payout FROM payouts'))[0]?.['payout']);
  const fees = await books.sql<{ id: number }>(`SELECT bank_line_id::int AS id FROM bank_lines WHERE amount IN (3, 4)`);
  [made.fee = 0, made.charged = 0] = fees.map(({ id }) => id).sort((one, other) => one - other);
  await books.book({ bankLineId: made.charged });
  const exceptions = await books.database.reading((tx) => readExceptions(tx));
  made.exception = exceptions.find(({ kind }) => kind === 'bank_line')?.exception ?? '';
}

/** Of July, by transfers: one share arrived, one was pulled back, one in part, one is missing; one is of no quote. */
async function sharesOfQuotes(world: World): Promise<void> {
  const connected = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };
  await world.partners([partner({ partner_id: 'p-split', ...connected, connected_account_id: 'acct_split' })]);
  const ids = ['s-matched', 's-pulled', 's-part', 's-missing'];
  await world.rows(ids.map((quote_id) => quote({ partner_id: 'p-split', quote_id })));
  const shares = ids.slice(0, 3).map((quote_id) => share(700, ON_JULY_15, { quote_id }));
  const [matched, pulled, part] = shares as [Told, Told, Told];
  const partly = reversedTransfers(part, 233, '2026-07-22T12:00:00Z');
  const told = [...shares, made.stray, reversedTransfers(pulled, 700, '2026-07-22T12:00:00Z'), partly];
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'moved.ndjson', text: ndjson(told) }, 'acct_split'),
  );
  Object.assign(made, { matched: matched.id, pulled: partly.id });
}

const file = (name: string, text: string) => ({ name, bytes: Buffer.from(text) });
const returned = (messageId = '') => ({ name: 'report.eml', bytes: report({ messageId }) });
const carriedOver = (number: string) => ({
  file: file(`${number}.csv`, csvOf([invoice(number, '70.00')])),
  ...{ cutOver: '2026-10-04', control: ['USD=70.00'], count: 1 },
});
const why = { reason: 'as agreed' };

/** Archives need months that are older than those here (test/archive). */
const ACTIONS = new Map([...ALL].filter(([name]) => !/^month\.(un)?archive$/.test(name)));

/** An input for every action, by which it can be done here. */
const INPUTS: Readonly<Record<string, () => object>> = {
  'month.close': () => ({ month: '2026-10' }),
  'books.close': () => ({ month: '2026-07' }),
  'gl.export': () => ({ month: '2026-08', format: 'generic', preliminary: true }),
  'checkpoint.take': () => ({}),
  'feed.state': () => ({ partnerId: 'p-1', month: '2026-09', count: 2, control: ['USD=14.00'] }),
  'feed.accept': () => ({ partnerId: 'p-2', month: '2026-10', ...why }),
  'ledger.pause': () => why,
  'settings.adopt': () => ({ section: 'holds', file: file('holds.json', '{"times":"3"}') }),
  'work.assign': () => ({ item: `dispute:${inv(4)}`, to: ADA }),
  'invoice.delivered': () => ({ number: inv(1), on: '2026-10-01', reference: 'UP-7' }),
  'partner.change': () => ({ partnerId: 'p-1', line1: '2 New Street', paymentTermsDays: '45' }),
  'partner.import': () => ({ file: file('partners.json', JSON.stringify([partner({ name: 'Harbour' })])) }),
  'opening.import': () => carriedOver('OLD-2'),
  'opening.reverse': () => ({ numbers: ['OLD-1'], ...why }),
  'ledger.import': () => ({
    files: [file('rows.ndjson', `${JSON.stringify(quote({ accepted_at: '2026-10-05T12:00:00Z' }))}\n`)],
  }),
  'payment.import': () => ({
    file: file(
      'bank.csv',
      'date,amount,currency,account,bank_reference,text,payer,payer_account\n' +
        `2026-10-05,1250.00,USD,0001,B-1,${inv(1)},Harbour,\n`,
    ),
  }),
  'payment.events': () => ({ file: file('events.ndjson', `${JSON.stringify(WALLET.completed())}\n`) }),
  'processor.import': () => ({
    file: file('settlement.csv', `quote_id,transfer,payment,amount\ns-missing,,${made.stray.source.id},3.00\n`),
    partnerId: 'p-split',
  }),
  'email.bounces': () => ({ files: [returned(made.returned)] }),
  'invoice.void': () => ({ number: inv(1), ...why }),
  'invoice.rerun': () => ({ number: inv(6) }),
  'invoice.credit': () => ({ number: inv(1), amount: '12.50', ...why }),
  'invoice.write_off': () => ({ number: inv(1), ...why }),
  'invoice.write_off_undone': () => ({ number: inv(3), ...why }),
  'invoice.hold': () => ({ number: inv(1) }),
  'invoice.release': () => ({ number: inv(5) }),
  'invoice.resend': () => ({ number: inv(1) }),
  'invoice.link_rotate': () => ({ number: inv(1), ...why }),
  'invoice.link_revoke': () => ({ number: inv(1), ...why }),
  'payment.record': () => ({
    ...{ amount: '980.50', currency: 'USD', method: 'wire', receivedOn: '2026-10-05', reference: 'W-1' },
    number: inv(1),
  }),
  'payment.apply': () => ({ paymentId: made.unapplied, numbers: [inv(1)] }),
  'payment.unapply': () => ({ paymentId: made.applied, ...why }),
  'payment.reverse': () => ({ paymentId: made.applied, kind: 'returned', ...why }),
  'bank.book': () => ({ bankLineId: made.fee, kind: 'charges', ...why }),
  'bank.unbook': () => ({ bankLineId: made.charged, ...why }),
  'payment.assign': () => ({ paymentId: made.unapplied, partnerId: 'p-2' }),
  'payment.forget_account': () => ({ account: PAYER_ACCOUNT }),
  'person.erase': () => ({ payment: made.applied, ...why }),
  'payment.settle': () => ({ payoutId: made.payout, paymentIds: [made.linked] }),
  'payment.close_exception': () => ({ exception: made.exception, ...why }),
  'rows.release': () => ({ rows: [made.held], ...why }),
  'rows.discard': () => ({ rows: [made.held], ...why }),
  'reversal.grant': () => ({ row: made.requested, ...why }),
  'reversal.refuse': () => ({ row: made.requested, ...why }),
  'rows.reverse': () => ({ rows: [made.sold], ...why }),
  'rows.separate': () => ({ partner: 'p-1', ...why }),
  'credit.apply': () => ({ creditNote: made.creditNote, number: inv(1) }),
  'credit.unapply': () => ({ creditNote: made.placed, number: inv(1) }),
  'credit.refund': () => ({ number: made.creditNote }),
  'credit.refund_returned': () => ({ number: made.placed, ...why }),
  'dispute.open': () => ({ number: inv(1), ...why }),
  'dispute.close': () => ({ number: inv(4), ...why }),
  'email.resend': () => ({ emailId: made.statement }),
  'email.dismiss': () => ({ emailId: made.pending, ...why }),
  'delivery.retry': () => ({ status: 'bounced' }),
  'reminder.record': () => ({ without: ['0001'], ...why }),
  'reminder.pause': () => ({ partnerId: 'p-1', until: '2026-12-31', ...why }),
  'reminder.resume': () => ({ partnerId: 'p-2', ...why }),
  'statement.send': () => ({ month: '2026-09', partnerId: 'p-1' }),
  'processor.match': () => ({ balance_transaction: made.stray.id, quoteId: 's-missing', ...why }),
  'processor.unmatch': () => ({ balance_transaction: made.matched, quoteId: 's-matched', ...why }),
  'processor.close': () => ({ balance_transactions: [made.stray.id], ...why }),
  'processor.reverse': () => ({ balance_transaction: made.pulled, spotPrice: '3.33' }),
  'processor.reverse_month': () => ({ month: '2026-07' }),
  'shares.bill': () => ({ month: '2026-07' }),
  'user.invite': () => ({ login: 'mara@issuer.example', roles: ['finance'], partnerId: 'p-1' }),
  'user.link': () => ({ login: KIM }),
  'user.role': () => ({ login: KIM, grant: ['finance'], revoke: ['viewer'] }),
  'user.deactivate': () => ({ login: KIM, ...why }),
  'user.sign_out': () => ({ login: KIM }),
  'client.create': () => ({ partnerId: 'p-1', validDays: 30 }),
  'client.rotate': () => ({ clientId: made.client }),
  'client.revoke': () => ({ clientId: made.client }),
  'webhook.set': () => ({ partnerId: 'p-1', url: 'https://partner.example/events' }),
  'webhook.rotate': () => ({ partnerId: 'p-1' }),
  'webhook.resume': () => ({ partnerId: 'p-1' }),
  'webhook.remove': () => ({ partnerId: 'p-1' }),
};

/** Where the event of an action has another name. */
const RECORDED_AS: Readonly<Record<string, string>> = { 'processor.reverse_month': 'processor.reverse' };

/** Somebody who may do everything. */
async function asAdministrator(): Promise<{ actor: Actor }> {
  await invite(books, ADA, { roles: ROLES });
  return {
    actor: await context.database.reading((tx) => identify(tx, books.actor, { login: ADA, unattended: false })),
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
  test('has an input here for every action', () => {
    expect(Object.keys(INPUTS).sort()).toEqual([...ACTIONS.keys()].sort());
  });

  test.each([...ACTIONS.values()])('of $name writes nothing', async (action: Action) => {
    const input = INPUTS[action.name]?.() ?? {};
    const before = await counts();
    expect(Object.keys(before).length).toBeGreaterThan(50);
    // As an approval stores it.
    const given = readInput(action, inputJson(input));
    expect(given).toEqual(readInput(action, input));
    const shown = await previewAction(context, action, given);
    expect(shown.report.text).not.toBe('');
    expect(await counts()).toEqual(before);
  });

  test.each([...ACTIONS.values()])(
    'of $name is recorded as that of whoever looks, in each event',
    async (action: Action) => {
      const given = readInput(action, INPUTS[action.name]?.() ?? {});
      const { actor } = context;
      const events = await context.database.preview(async (tx) => {
        await admit(tx, context, action, given);
        const [{ before } = { before: 0 }] = await query<{ before: number }>(
          tx,
          'SELECT max(event_id) AS before FROM audit_events',
        );
        await action.perform(tx, context, given);
        return query<{ action: string; user_id: number | null }>(
          tx,
          'SELECT action, user_id FROM audit_events WHERE event_id > :before',
          { before },
        );
      });
      expect(events).toContainEqual({ action: RECORDED_AS[action.name] ?? action.name, user_id: actor.user?.user_id });
      expect(events.filter(({ user_id }) => user_id !== actor.user?.user_id)).toEqual([]);
    },
  );

  test('counts the credit that a payment is applied with', async () => {
    const input = { paymentId: made.unapplied, numbers: [inv(1)], amount: '20.00', creditNotes: [made.creditNote] };
    const { amounts } = await previewAction(context, paymentApply, input);
    expect(amounts.map((each) => each.forPeople())).toEqual(['25.00 USD']);
  });

  test('shows no secret that the action will make', async () => {
    const shown = await previewAction(context, ACTIONS.get('client.create') as Action, { partnerId: 'p-1' });
    expect(JSON.stringify(shown)).not.toMatch(/client_secret|client_id/);
  });

  test('shows each field that the action then changes, and the money that thresholds are compared with', async () => {
    const input = { number: inv(8), amount: '20.10', reason: 'goodwill' };
    const { changes, amounts } = await previewAction(context, invoiceCredit, input);
    expect(amounts.map(String)).toEqual(['20.10']);
    expect(changes).toContainEqual({ of: inv(8), field: 'balance', before: '750.25 EUR', after: '730.15 EUR' });
    expect(changes).toContainEqual({
      of: `the credit note on ${inv(8)}`,
      field: 'amount',
      before: null,
      after: '20.10 EUR',
    });
    await runAction(context, invoiceCredit, input, { deliver: false });
    expect((await books.balance(inv(8))).balance).toBe('730.15');
  });
});
