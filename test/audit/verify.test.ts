/**
 * Every check of `verify` can fail: each damage, made as the owner of the database and rolled back, is found by its check
 * or rule.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Finding } from '../../src/audit/checks/query.ts';
import { CHECKS } from '../../src/audit/checks.ts';
import { LIVE_RULES } from '../../src/audit/live.sql.ts';
import { findBrokenRules, readRules } from '../../src/audit/rules.ts';
import { checkContext, type Verification, verify } from '../../src/audit/verify.ts';
import { databaseFailure, query, type Transaction } from '../../src/database/transaction.ts';
import { openDispute } from '../../src/documents/disputes.ts';
import { recordPortalDelivery } from '../../src/documents/portal-delivery.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import type { Month } from '../../src/month.ts';
import { Publisher } from '../../src/partner-events/publish.ts';
import { pauseReminders } from '../../src/payments/reminder-pauses.ts';
import { CHECKS_OF_CORRECTIONS, inspect } from '../close/invariants.ts';
import { correctionsOf } from '../documents/correcting.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { booksOf } from '../payments/books.ts';
import { billThroughProcessor, sellThroughProcessor } from '../splits/processor-world.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { tradeByHttp } from '../support/service.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { SWEEPING } from '../support/sweep.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { failing } from './failing.ts';
import { type Owner, openOwner } from './owner.ts';
import { PAYMENT_DAMAGES, payInEveryWay } from './payment-damages.ts';

const CLOSED = ['2026-07', '2026-08', '2026-09'] as Month[];

let world: World;
let owner: Owner;
let stripe: StripeStandIn;

beforeAll(async () => {
  stripe = await startStripe({ now: () => world.environment.now().toJSDate() });
  world = await openWorld({ stripe: stripe.url, logKey: LOG_KEY });
  world.settings = {
    ...world.settings,
    payment_link: { provider: 'stripe', printed_url: 'page', methods: ['card'] },
    recognition: 'over_cover',
  };
  owner = openOwner(world);
  const first = quote({ quote_id: 'q-1', spotPrice: '40.00', partnerCut: '12.00', invoiceAmount: '28.00' });
  const other = quote({
    quote_id: 'q-2',
    partner_id: 'p-2',
    currency: 'JPY',
    spotPrice: 1000,
    partnerCut: 300,
    invoiceAmount: 700,
  });
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
  await world.rows([first, other, requote(first)]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  const full = { spotPrice: '-40.00', partnerCut: '-12.00', invoiceAmount: '-28.00' };
  await world.rows([reversal(first, { accepted_at: '2026-08-02T12:00:00Z', ...full }), quote({ partner_id: 'p-2' })]);
  await world.close();
  world.at('2026-10-01T10:00:00Z');
  const cover = { cover_from: '2026-09-02', cover_to: '2027-09-01' };
  await world.rows([quote({ accepted_at: '2026-09-02T12:00:00Z', ...cover })]);
  await sellThroughProcessor(world, '2026-09-02');
  await world.close();
  await world.deliver();
  await world.closeBooks('2026-07', '2026-08');
  await exportToGeneralLedger();
  await correctSome();
  await billThroughProcessor(world, '2026-09');
  await world.deliver();
  await payInEveryWay(booksOf(world));
  // Rows of an open month: neither billed nor missing.
  await tradeByHttp(world);
  await world.rows([quote({ accepted_at: '2026-10-01T08:00:00Z' })]);
  await new Publisher(world.database).publish(10_000);
  await takeCheckpoint(world.database, world);
  await signCheckpoints(world);
});
afterAll(async () => {
  await owner.close();
  await world.end();
  await stripe.close();
});

/** Closed books, and a month whose books are open. */
async function exportToGeneralLedger(): Promise<void> {
  writeAccounts(world, everyAccount());
  const asked = { format: 'generic', preliminary: true } as const;
  for (const month of CLOSED) await world.database.transaction((tx) => exportGl(tx, world, { ...asked, month }));
}

/**
 * September's invoice is credited, voided and run again, twice; p-2's of August is written off, its one of July is disputed,
 * void and leaves a gap.
 */
async function correctSome(): Promise<void> {
  const { credit, voided, rerun, rerunMonth, writeOff } = correctionsOf(world);
  const dispute = { number: 'INV-2026-000002', amount: '100', reason: 'wrong count' };
  await world.database.transaction((tx) => openDispute(tx, world, dispute));
  const pause = { partnerId: 'p-2', until: '2027-01-31', reason: 'installments' };
  await world.database.transaction((tx) => pauseReminders(tx, world, pause));
  const delivered = { number: 'INV-2026-000001', on: world.environment.now().toISODate(), reference: 'UP-7' };
  await world.database.transaction((tx) => recordPortalDelivery(tx, world, delivered));
  await credit('INV-2026-000004', '2.00');
  await voided('INV-2026-000004');
  await rerunMonth('2026-09');
  await world.partners([partner({ name: 'Harbour Lights Ticketing, Inc.' })]);
  await rerun('INV-2026-000005');
  await writeOff('INV-2026-000003');
  await voided('INV-2026-000002');
}

/** Runs `look` on a database damaged by these statements with all triggers off, and rolls back. */
const ofDamaged = <Seen>(statements: readonly string[], look: (tx: Transaction) => Promise<Seen>): Promise<Seen> =>
  owner.undone(async (tx) => {
    await tx.knex.raw(GUARDS_OFF);
    for (const statement of statements) await tx.knex.raw(statement);
    await tx.knex.raw(GUARDS_ON);
    return look(tx);
  });

const verifyDamaged = (statements: readonly string[], month?: Month): Promise<Verification> =>
  ofDamaged(statements, (tx) => verify(tx, month));

/** What one check or one rule finds. All checks together take twenty times as long. */
const findingOf = (name: string, statements: readonly string[]): Promise<Finding> =>
  ofDamaged(statements, async (tx) => {
    const check = CHECKS.find((each) => each.name === name);
    return check ? check.run(tx, await checkContext(tx, null)) : findBrokenRules(tx, 'all', name);
  });

/**
 * What these books lack, and which tests have and damage it: time stamps, approvals and their thresholds, openings, tax and
 * e-invoices, and archives in test/log/time-stamps, test/actions/approvals and agreed, test/opening/evidence,
 * test/audit/tax, test/delivery/e-invoices, and test/archive.
 */
const TESTED_ELSEWHERE = [
  ...['time_stamps_hold', 'actions_approved', 'actions_compared', 'e_invoices_as_issued'],
  'archives_as_moved',
];

test('undamaged, every check inspects something and finds nothing', async () => {
  const found = await verifyDamaged([]);
  expect(failing(found)).toEqual([]);
  for (const { check, inspected } of found.checks.filter((each) => !TESTED_ELSEWHERE.includes(each.check)))
    expect({ check, some: inspected > 0 }).toEqual({ check, some: true });
});

test('the invariants of the tests hold over the same books, and those of corrections inspect something', async () => {
  const { looked, broken } = await inspect(world);
  expect(broken).toEqual({});
  for (const rule of CHECKS_OF_CORRECTIONS)
    expect({ rule, some: (looked[rule] ?? 0) > 0 }).toEqual({ rule, some: true });
});

test('rules that run beside the other checks give the same report, each check in its place', async () => {
  const both = <Result>(work: (tx: Transaction, other: Transaction) => Promise<Result>) =>
    world.database.readingBeside((tx, other) => {
      if (other === undefined) throw new Error('no connection for a second transaction');
      return work(tx, other);
    });
  const inTurn = await both((_, other) => verify(other, undefined));
  const told: string[] = [];
  const beside = await both((tx, other) => {
    return verify(tx, undefined, { onCheck: ({ check }) => told.push(check), beside: other });
  });
  expect(beside).toEqual(inTurn);
  expect(told).toEqual(CHECKS.map(({ name }) => name));
});

test('if either of the two connections is lost, verify fails and leaves nothing out', async () => {
  for (const lost of [0, 1]) {
    const found = world.database.readingBeside(async (tx, other) => {
      const [{ pid } = { pid: 0 }] = await query<{ pid: number }>(
        [tx, other][lost] as Transaction,
        'SELECT pg_backend_pid() AS pid',
      );
      await world.sql(`SELECT pg_terminate_backend(${pid})`);
      return verify(tx, undefined, { beside: other });
    });
    expect(databaseFailure(await found.catch((error: unknown) => error))).toMatchObject({ code: 'database_failed' });
  }
});

test('verifying one month inspects less', async () => {
  const all = await verifyDamaged([]);
  const one = await verifyDamaged([], '2026-08' as Month);
  expect(failing(one)).toEqual([]);
  expect(one.inspected).toBeLessThan(all.inspected);
  expect(one.inspected).toBeGreaterThan(0);
});

const numbered = (number: string) => `(SELECT document_id FROM documents WHERE number = '${number}')`;
const FIRST_ROW = `(SELECT min(entry_id) FROM ledger_rows)`;
const UNCHANGED_ROW = `(SELECT entry_id FROM ledger_rows WHERE quote_id = 'q-2' AND kind = 'quote_accepted')`;

const JOURNAL_WITHOUT_REVERSED_TRANSFERS = `CREATE OR REPLACE VIEW journal_months AS
     SELECT e.month, e.control, e.account, e.partner_id, e.currency, sum(e.amount) AS amount FROM journal e
     WHERE e.fact <> 'share_reversed' GROUP BY e.month, e.control, e.account, e.partner_id, e.currency`;

/** The check that must notice the damage, or the rule. */
type Damage = [what: string, check: string, ...statements: string[]];

const NAMES = new Set([...CHECKS, ...readRules().rules, ...LIVE_RULES].map(({ name }) => name));

/** One line for each way to damage the books. */
const DAMAGES: readonly Damage[] = [
  [
    'bank details printed that were not in force',
    'bank_details_in_force',
    `UPDATE audit_events SET details = jsonb_set(details, '{value,USD,wire,account_number}', '"1"')
     WHERE action = 'settings.adopt'`,
  ],
  [
    'a price that is not the sum of its parts',
    'row_adds_up',
    'ALTER TABLE ledger_rows DROP CONSTRAINT ledger_rows_balance',
    `UPDATE ledger_rows SET spot_price = spot_price + 1 WHERE entry_id = ${FIRST_ROW}`,
  ],
  [
    'half a yen',
    'documents_of_rows',
    'ALTER TABLE ledger_rows DROP CONSTRAINT ledger_rows_minor_digits',
    `UPDATE ledger_rows SET spot_price = 1000.5, partner_cut = 300.5 WHERE quote_id = 'q-2'`,
  ],
  [
    'a reversal larger than its quote',
    'quote_not_below_zero',
    `UPDATE ledger_rows SET spot_price = -90, partner_cut = -12, invoice_amount = -78 WHERE kind = 'reversal'`,
  ],
  ['a quote of another currency', 'quote_known', `UPDATE ledger_rows SET currency = 'EUR' WHERE kind = 'reversal'`],
  [
    'a quote of less than was taken from it in a later month',
    'quote_not_below_zero',
    `DELETE FROM ledger_rows WHERE quote_id = 'q-1' AND kind = 'requote_accepted'`,
    `UPDATE ledger_rows SET spot_price = spot_price - 1, partner_cut = partner_cut - 1
     WHERE quote_id = 'q-1' AND kind = 'quote_accepted'`,
  ],
  ...[
    ['a quote', FIRST_ROW],
    // Such a quote is found by its acceptances alone.
    ['a quote without requotes and reversals', UNCHANGED_ROW],
  ].flatMap(([quoted, row]) =>
    [
      ['in its month', '2026-07'],
      ['in a later month', '2026-08'],
      ['in the open month', '2026-10'],
      ['before the first closed month', '2026-06'],
    ].map(
      ([when, month]): Damage => [
        `${quoted} accepted again ${when}`,
        'sold_once',
        'DROP INDEX ledger_rows_known_once',
        `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price, partner_cut,
           invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
         SELECT partner_id, '${month}', kind, quote_id, policy_id, currency, '${month}-12T12:00:00Z', spot_price, partner_cut,
           invoice_amount, time_zone, '${month}', arrangement, recorded_at, event_id
         FROM ledger_rows WHERE entry_id = ${row}`,
      ],
    ),
  ),
  [
    'a requote whose quote is gone',
    'quote_known',
    `DELETE FROM ledger_rows WHERE kind = 'quote_accepted' AND quote_id IN (SELECT quote_id FROM ledger_rows WHERE kind = 'requote_accepted')`,
  ],
  [
    'an acceptance whose row is gone',
    'acceptance_has_row',
    `DELETE FROM ledger_rows USING requote_acceptances a WHERE ledger_rows.entry_id = a.entry_id`,
  ],
  [
    'an accepted price that was restated',
    'rows_at_offered_prices',
    `UPDATE ledger_rows SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1
     FROM quote_acceptances a WHERE ledger_rows.entry_id = a.entry_id`,
  ],
  ['a dropped guard', 'append_only_guards', 'DROP TRIGGER append_only ON ledger_rows'],
  ['a disabled guard', 'append_only_guards', 'ALTER TABLE documents DISABLE TRIGGER append_only'],
  ['a privilege given to the app', 'append_only_guards', 'GRANT UPDATE ON ledger_rows TO reckoner_app'],
  [
    'a fact with a number below the first',
    'log_derived_again',
    'ALTER TABLE voids DROP CONSTRAINT voids_fact_positive',
    'UPDATE voids SET log_no = -log_no',
  ],
  ['a guard that does nothing', 'schema_as_migrated', 'ALTER FUNCTION refuse_change() IMMUTABLE'],
  [
    'an event taken away',
    'event_of_fact',
    `DELETE FROM audit_events WHERE event_id = (SELECT max(event_id) FROM write_offs)`,
  ],
  ['a write-off taken away', 'event_has_fact', 'DELETE FROM write_offs'],
  [
    'a void said to be a hold',
    'event_makes_fact',
    `UPDATE audit_events SET action = 'invoice.hold' WHERE event_id = (SELECT max(event_id) FROM voids)`,
  ],
  [
    "a partner's terms",
    'partners_as_recorded',
    `UPDATE partners SET payment_terms_days = 60, contact_email = 'friend@evil.example' WHERE partner_id = 'p-1'`,
  ],
  [
    'a rate of a policy',
    'partners_as_recorded',
    `UPDATE policies SET partner_cut_rate = 0.9 WHERE policy_id = 'parking'`,
  ],
  [
    'a partner that is said to be inactive since another day',
    'partners_as_recorded',
    `UPDATE policies SET inactive_since = '2026-01-01' WHERE policy_id = 'parking'`,
  ],
  [
    'an arrangement before the current one',
    'partners_as_recorded',
    `INSERT INTO partner_arrangements (partner_id, from_month, arrangement) VALUES ('p-1', '2020-01', 'invoicing')`,
  ],
  [
    'a partner that nobody imported',
    'partners_as_recorded',
    `INSERT INTO partners (partner_id, name, address_line1, address_line2, address_city, address_region,
       address_postal_code, address_country, contact_name, contact_email, contact_cc, currency, time_zone, tax_id,
       purchase_order, legal_note)
     SELECT 'p-99', name, address_line1, address_line2, address_city, address_region, address_postal_code, address_country,
       contact_name, contact_email, contact_cc, currency, time_zone, tax_id, purchase_order, legal_note
     FROM partners WHERE partner_id = 'p-1'`,
    `INSERT INTO partner_arrangements (partner_id, from_month, arrangement) VALUES ('p-99', '0001-01', 'invoicing')`,
  ],
  [
    'an event of a change of a partner taken away',
    'partners_as_recorded',
    `DELETE FROM audit_events WHERE action = 'partner.create' AND subject = 'p-1'`,
  ],
  [
    'an import whose event is taken away',
    'row_of_event',
    `DELETE FROM audit_events WHERE event_id = (SELECT event_id FROM ledger_rows WHERE entry_id = ${FIRST_ROW})`,
  ],
  [
    'a row of an import taken away before its month is closed',
    'import_totals',
    `DELETE FROM ledger_rows WHERE entry_id = (SELECT max(entry_id) FROM ledger_rows)`,
  ],
  [
    'another price in the open month',
    'import_totals',
    `UPDATE ledger_rows SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1
     WHERE entry_id = (SELECT max(entry_id) FROM ledger_rows)`,
  ],
  [
    'a row that is said to come from an earlier import',
    'row_of_event',
    `UPDATE ledger_rows SET event_id = (SELECT min(event_id) FROM ledger_rows)
     WHERE entry_id = (SELECT max(entry_id) FROM ledger_rows)`,
  ],
  [
    'an import said to be by a client',
    'row_of_event',
    `UPDATE audit_events SET action = 'quote.accept'
     WHERE event_id = (SELECT event_id FROM ledger_rows WHERE entry_id = ${FIRST_ROW})`,
  ],
  ['every checkpoint taken away', 'log_derived_again', 'DELETE FROM log_signatures', 'DELETE FROM log_checkpoints'],
  [
    'a signed checkpoint taken away, the last one',
    'signatures_verify',
    'DELETE FROM log_checkpoints WHERE size = (SELECT max(size) FROM log_checkpoints)',
  ],
  [
    'a row of the open month removed after a checkpoint',
    'log_derived_again',
    'DELETE FROM ledger_rows WHERE entry_id = (SELECT max(entry_id) FROM ledger_rows)',
  ],
  [
    'a changed recording time',
    'log_derived_again',
    `UPDATE ledger_rows SET recorded_at = recorded_at + interval '1 second' WHERE entry_id = ${FIRST_ROW}`,
  ],
  [
    'a share allocation larger than its balance transaction',
    'shares_within_transaction',
    `UPDATE share_allocations SET amount = 7.01, settled_amount = 7.01 WHERE quote_id = 'split-routed'`,
  ],
  [
    'a changed balance transaction',
    'share_transaction',
    'ALTER TABLE balance_transactions DROP CONSTRAINT balance_transaction_adds_up',
    `UPDATE balance_transactions SET net = net + 1 WHERE quote_id = 'split-routed'`,
  ],
  [
    'a converted share that counts as more than was sent',
    'shares_within_amounts_sent',
    `UPDATE share_allocations SET amount = amount + 1 WHERE quote_id = 'split-converted'`,
  ],
  [
    'more of a balance transaction closed than it has',
    'transaction_closed',
    `UPDATE balance_transaction_closings SET amount = amount + 1`,
  ],
  [
    'a share imported again from a settlement file',
    'balance_transactions_counted_once',
    `INSERT INTO balance_transactions (account, id, reported_by, type, kind, currency, amount, fee, net, occurred_at, payment, quote_id,
                                      payload, recorded_at, event_id)
     SELECT account, 'line:0', 'settlement_file', 'settlement_line', 'share', currency, amount, 0, net, occurred_at, payment,
            quote_id, '{}', recorded_at, event_id
     FROM balance_transactions WHERE quote_id = 'split-routed'`,
    `INSERT INTO share_allocations (balance_transaction_id, partner_id, posted_month, entry_id, quote_id, currency, amount, settled_currency,
                                settled_amount, matched_by, occurred_on, entry_on, recorded_at, event_id)
     SELECT (SELECT balance_transaction_id FROM balance_transactions WHERE id = 'line:0'), partner_id, posted_month, entry_id, quote_id,
            currency, amount, settled_currency, settled_amount, matched_by, occurred_on, entry_on, recorded_at, event_id
     FROM share_allocations WHERE quote_id = 'split-routed'`,
  ],
  [
    'a payout with a balance transaction removed',
    'payout_contains',
    `UPDATE balance_transactions SET amount = 6, net = 6
     WHERE balance_transaction_id = (SELECT min(balance_transaction_id) FROM payout_contents)`,
  ],
  [
    'a bank receipt matched to the wrong payout',
    'account_payout',
    'ALTER TABLE account_payouts DROP CONSTRAINT account_payout_of_its_account',
    `UPDATE account_payouts SET balance_transaction_id = (SELECT min(balance_transaction_id) FROM payout_contents)`,
  ],
  [
    'payout fees that the processor did not charge',
    'account_payout',
    `UPDATE payout_settlements s SET gross = gross + 1, fees = fees + 1 FROM account_payouts a WHERE a.payout_id = s.payout_id`,
  ],
  [
    'a share moved to another quote',
    'share_of_quote',
    `UPDATE share_allocations SET quote_id = 'split-missing' WHERE quote_id = 'split-routed'`,
  ],
  [
    'a share on the account of another',
    'shares_on_own_accounts',
    `UPDATE balance_transactions SET account = 'acct_other' WHERE quote_id = 'split-routed'`,
  ],
  [
    'evidence of another reversal',
    'share_reversal',
    `UPDATE share_allocations SET amount = -6, settled_amount = -6 WHERE quote_id = 'split-pulled' AND amount < 0`,
  ],
  ['a missing share raised after it was billed', 'missing_shares', `UPDATE missing_shares SET amount = amount + 1`],
  [
    'a share of a quote that is invoiced',
    'share_of_quote',
    `UPDATE ledger_rows e SET arrangement = 'invoicing' FROM share_allocations r
     WHERE (r.partner_id, r.posted_month, r.entry_id) = (e.partner_id, e.posted_month, e.entry_id)`,
  ],
  [
    'an invoice for missing shares taken away',
    'missing_shares',
    `DELETE FROM documents WHERE purpose = 'missing_shares'`,
  ],
  [
    'an invoice for missing shares taken away, with its lines and e-mails',
    'shares_shown',
    `DELETE FROM email_attempts WHERE email_id IN (
       SELECT email_id FROM emails JOIN missing_shares USING (document_id))`,
    ...['document_lines', 'emails', 'document_pdfs', 'documents'].map(
      (table) => `DELETE FROM ${table} WHERE document_id IN (SELECT document_id FROM missing_shares)`,
    ),
  ],
  [
    'an invoice for missing shares in another currency',
    'missing_shares',
    `UPDATE documents SET currency = 'EUR' WHERE purpose = 'missing_shares'`,
    `UPDATE missing_shares SET currency = 'EUR'`,
  ],
  ['a missing share taken away', 'missing_shares', 'DELETE FROM missing_shares'],
  ['a share that pays more than was received', 'share_payment', 'UPDATE share_payments SET amount = amount + 1'],
  [
    'a share that pays by a payment of another',
    'share_payment',
    `ALTER TABLE payments DROP CONSTRAINT payment_minor_digits`,
    `UPDATE payments SET partner_id = 'p-1'
     WHERE payment_id IN (SELECT payment_id FROM share_payments)`,
  ],
  [
    'a share taken off its quote while what it paid stands',
    'shares_shown',
    `INSERT INTO share_allocations (balance_transaction_id, partner_id, posted_month, entry_id, quote_id, requote_id, currency, amount,
       settled_currency, settled_amount, matched_by, reason, occurred_on, entry_on, recorded_at, event_id)
     SELECT balance_transaction_id, partner_id, posted_month, entry_id, quote_id, requote_id, currency, -amount,
       settled_currency, -settled_amount, 'finance', 'by mistake', occurred_on, entry_on, recorded_at, event_id
     FROM share_allocations WHERE share_allocation_id = (SELECT min(share_allocation_id) FROM share_payments WHERE amount > 0)`,
  ],
  [
    'a payment by a share said to be by another',
    'share_payment',
    `UPDATE share_payments SET share_allocation_id = (SELECT min(share_allocation_id) FROM share_allocations WHERE amount > 0)`,
  ],
  [
    'a payment by a missing share',
    'share_payment',
    `UPDATE share_payments SET share_allocation_id = share_allocation_id + 1000`,
  ],
  [
    'a share of a missing row',
    'share_of_quote',
    `UPDATE share_allocations SET partner_id = 'p-2' WHERE quote_id = 'split-routed'`,
  ],
  ['a share that was counted as a payment and a share', 'share_payment', 'DELETE FROM share_payments'],
  [
    'a share that is kept as not allocated',
    'shares_kept',
    `INSERT INTO unallocated_balance_transactions SELECT min(balance_transaction_id) FROM share_allocations`,
  ],
  [
    'a transaction that finance closed and that is kept as open',
    'shares_kept',
    'UPDATE unallocated_balance_transactions SET closed = NOT closed',
  ],
  ['another sum of an account and month', 'shares_kept', 'UPDATE account_months SET amount = amount + 1'],
  ['a reversed transfer missing from the journal', 'journal_shown', JOURNAL_WITHOUT_REVERSED_TRANSFERS],
  [
    'a balance of closed books changed',
    'books_of_journal',
    `UPDATE book_balances SET amount = amount + 1 WHERE month = '2026-08'`,
  ],
  [
    'an open document of closed books left out',
    'open_items_of_closed_books',
    `DELETE FROM book_open_documents WHERE (month, document_id) =
       (SELECT month, document_id FROM book_open_documents ORDER BY month, document_id LIMIT 1)`,
  ],
  [
    'unapplied cash at the end of closed books that was spent',
    'open_items_of_closed_books',
    `INSERT INTO book_unapplied_cash (month, payment_id, partner_id, amount)
     SELECT max(c.month), min(p.payment_id), 'p-3', 1 FROM book_closes c CROSS JOIN payments p`,
  ],
  [
    'a part of covered sales that no row has',
    'revenue_schedules_of_rows',
    `INSERT INTO revenue_schedules (month, partner_id, policy_id, currency, release_month, amount)
     SELECT min(c.month), min(p.partner_id), 'parking', 'USD', '2027-01', 1 FROM closed_months c CROSS JOIN policies p
     WHERE p.policy_id = 'parking'`,
  ],
  [
    'an exported line of another amount',
    'gl_of_books',
    `UPDATE gl_export_lines SET amount = amount + 1 WHERE (gl_export_id, line) = (1, 1)`,
  ],
  ['an exported part without its lines', 'gl_part', `DELETE FROM gl_export_lines WHERE gl_export_id = 3`],
  [
    'an exported line of another account of theirs',
    'gl_export_files_as_written',
    `UPDATE gl_export_lines SET to_account = 'Elsewhere' WHERE (gl_export_id, line) = (2, 1)`,
  ],
  [
    'an exported file changed with its hash',
    'gl_export_files_as_written',
    `UPDATE gl_export_files SET content = content || ' ', sha256 = encode(sha256(content || ' '), 'hex') WHERE position = 1`,
  ],
  ['an exported file removed', 'gl_export_files_as_written', `DELETE FROM gl_export_files WHERE position = 1`],
  [
    'an entry of closed books of another account',
    'log_derived_again',
    `UPDATE documents SET partner_id = 'p-9' WHERE number = 'INV-2026-000001'`,
  ],
  [
    'a share entered in a closed month',
    'entry_in_open_books',
    `UPDATE share_allocations SET entry_on = '2026-08-01', occurred_on = '2026-08-01'`,
  ],
  [
    'a row moved to another instant',
    'row_month',
    `UPDATE ledger_rows SET accepted_at = accepted_at - interval '40 days' WHERE entry_id = ${FIRST_ROW}`,
  ],
  ['a missing closed month', 'months_in_order', `DELETE FROM closed_months WHERE month = '2026-08'`],
  ['a row removed', 'documents_of_rows', `DELETE FROM ledger_rows WHERE entry_id = ${FIRST_ROW}`],
  [
    'a row slipped into a closed month',
    'documents_of_rows',
    `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, policy_id, currency, accepted_at, spot_price, partner_cut,
       invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
     VALUES ('p-1', '2026-07', 'quote_accepted', 'q-x', 'parking', 'USD', '2026-07-02T12:00:00Z', 3, 1, 2,
       'America/New_York', '2026-07', 'invoicing', now(), (SELECT max(event_id) FROM audit_events))`,
  ],
  [
    'a total changed, header and line alike',
    'documents_of_rows',
    `UPDATE documents SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1 WHERE number = 'INV-2026-000001'`,
    `UPDATE document_lines SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1
     WHERE document_id = (SELECT document_id FROM documents WHERE number = 'INV-2026-000001') AND position = 1`,
  ],
  [
    'an amount moved from one line to another',
    'documents_of_rows',
    `UPDATE document_lines SET spot_price = spot_price + CASE position WHEN 1 THEN 1 ELSE -1 END,
       invoice_amount = invoice_amount + CASE position WHEN 1 THEN 1 ELSE -1 END
     WHERE document_id = (SELECT document_id FROM documents WHERE number = 'INV-2026-000001')`,
  ],
  ['a document taken away', 'documents_of_rows', `DELETE FROM documents WHERE number = 'INV-2026-000001'`],
  [
    'a second live document',
    'one_live_document',
    'DROP INDEX document_one_live_per_month',
    `UPDATE documents SET partner_id = 'p-1', currency = 'USD', month = '2026-07' WHERE number = 'INV-2026-000003'`,
  ],
  [
    'a number skipped',
    'numbers_without_gaps',
    `UPDATE documents SET sequence = 40 WHERE sequence = 2 AND series = 'INV-2026'`,
  ],
  [
    'a document dated before its predecessor',
    'numbers_without_gaps',
    `UPDATE documents SET issued_on = issued_on - 60, due_on = due_on - 60 WHERE number = 'INV-2026-000003'`,
  ],
  [
    'a header that is not the sum of its lines',
    'document_adds_up',
    `DELETE FROM document_lines WHERE position = 1 AND document_id = (SELECT min(document_id) FROM documents)`,
  ],
  [
    'credit used twice',
    'credit_at_issue',
    `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at, event_id)
     SELECT credit_note_id, invoice_id, 100, applied_on, recorded_at, event_id FROM credit_applications`,
  ],
  [
    'a posting that is not the amount of its fact',
    'row_adds_up',
    'ALTER TABLE ledger_rows DROP CONSTRAINT ledger_rows_balance',
    // A supplier's posting has one amount on both sides; a principal's has the three of the row.
    "UPDATE presentation SET we_are = 'principal'",
    `UPDATE ledger_rows SET partner_cut = partner_cut + 1 WHERE entry_id = ${FIRST_ROW}`,
  ],
  [
    'a document owed twice',
    'never_overpaid',
    `INSERT INTO credit_applications (credit_note_id, invoice_id, amount, applied_on, recorded_at, event_id)
     SELECT credit_note_id, invoice_id, 1, applied_on, recorded_at, event_id FROM credit_applications`,
  ],
  ['credit that was never applied', 'credit_at_issue', 'DELETE FROM credit_applications'],
  ['credit that a void did not give back', 'void_unsettled', 'DELETE FROM credit_releases'],
  [
    'credit given back twice',
    'ids_once',
    'ALTER TABLE credit_releases DROP CONSTRAINT credit_releases_pkey',
    `INSERT INTO credit_releases (credit_application_id, document_id, released_on, recorded_at, event_id)
     SELECT credit_application_id, document_id, released_on, recorded_at, event_id FROM credit_releases`,
  ],
  [
    'credit given back by an invoice that is not void',
    'credit_released',
    `INSERT INTO credit_releases (credit_application_id, document_id, released_on, recorded_at, event_id)
     SELECT credit_application_id, invoice_id, applied_on, recorded_at, event_id FROM credit_applications
     WHERE invoice_id = ${numbered('INV-2026-000006')}`,
  ],
  [
    'credit given back in the name of another void',
    'credit_released',
    `UPDATE credit_releases SET document_id = ${numbered('INV-2026-000002')}`,
  ],
  [
    'a credit note that says another amount than it took off its invoice',
    'credit_lowers_at_once',
    `UPDATE documents SET invoice_lowered_by = 1 WHERE purpose = 'adjustment'`,
  ],
  [
    "one partner's credit on another's invoice",
    'credit_applied',
    `UPDATE credit_applications SET invoice_id = ${numbered('INV-2026-000003')}
     WHERE invoice_id = ${numbered('INV-2026-000006')}`,
  ],
  [
    'a replaced document that is not void',
    'replacement',
    `DELETE FROM voids WHERE document_id = ${numbered('INV-2026-000004')}`,
  ],
  [
    'a void dated before its document',
    'void_of_document',
    `UPDATE voids SET voided_on = voided_on - 100 WHERE document_id = ${numbered('INV-2026-000004')}`,
  ],
  [
    'a void dated after its replacement',
    'replacement',
    `UPDATE voids SET voided_on = voided_on + 1 WHERE document_id = ${numbered('INV-2026-000004')}`,
  ],
  [
    'a replacement of another month',
    'replacement',
    `UPDATE documents SET month = '2026-08' WHERE number = 'INV-2026-000005'`,
  ],
  [
    'a replacement of another amount',
    'document_adds_up',
    `UPDATE documents SET spot_price = spot_price + 1, partner_cut = partner_cut + 1 WHERE number = 'INV-2026-000005'`,
  ],
  [
    'an e-mail of a void document that is still on its way',
    'emails_consistent',
    `UPDATE emails SET status = 'held', reason = 'wait', sent_at = NULL
     WHERE document_id = ${numbered('INV-2026-000002')}`,
  ],
  [
    'a void document written off',
    'void_unsettled',
    `UPDATE write_offs SET document_id = ${numbered('INV-2026-000002')}`,
  ],
  [
    'credit notes over their invoice',
    'credits_within_invoice',
    `UPDATE documents SET spot_price = 7.01, invoice_amount = 7.01 WHERE number = 'CN-2026-000002'`,
  ],
  [
    'a delivery by portal before the issue',
    'portal_delivery',
    `UPDATE portal_deliveries SET delivered_on = delivered_on - 1000`,
  ],
  ['an end of a pause that nobody made', 'reminder_pause', 'UPDATE reminder_pauses SET until = NULL'],
  ['a dispute of more than the invoice', 'invoice_dispute', 'UPDATE invoice_disputes SET amount = amount + 1000000'],
  [
    'a dispute that follows one that is open',
    'invoice_dispute',
    `INSERT INTO invoice_disputes (document_id, follows, amount, reason, owner, disputed_on, recorded_at, event_id)
     SELECT document_id, invoice_dispute_id, amount, reason, owner, disputed_on, recorded_at, event_id
     FROM invoice_disputes`,
  ],
  [
    'a personal text that was deleted and not erased',
    'personal_texts_kept_or_erased',
    `DELETE FROM personal_texts WHERE commitment IN (SELECT contact_name FROM documents)`,
  ],
  ['more written off than was owed', 'never_overpaid', 'UPDATE write_offs SET amount = amount + 1'],
  [
    'another PDF in place of the one that was sent',
    'document_pdfs_as_issued',
    'ALTER TABLE document_pdfs DROP CONSTRAINT document_pdf_is_its_hash',
    `UPDATE document_pdfs SET pdf = pdf || '\\x0a'::bytea WHERE document_id = (SELECT min(document_id) FROM document_pdfs)`,
  ],
  [
    'another PDF with its own hash',
    'document_pdfs_as_issued',
    `UPDATE document_pdfs SET pdf = pdf || '\\x0a'::bytea, sha256 = encode(sha256(pdf || '\\x0a'::bytea), 'hex')
     WHERE document_id = (SELECT min(document_id) FROM document_pdfs)`,
  ],
  [
    'a name changed on an issued document',
    'document_pdfs_as_issued',
    `UPDATE documents SET partner_name = 'Somebody Else' WHERE number = 'INV-2026-000001'`,
  ],
  ['an e-mail without the hash of what was sent', 'emails_consistent', 'UPDATE emails SET message_sha256 = NULL'],
  [
    'a message being sent that does not match its hash',
    'emails_consistent',
    `UPDATE emails SET status = 'sending', sent_at = NULL, message = 'Subject: another'
     WHERE status = 'sent' AND document_id = (SELECT min(document_id) FROM document_pdfs)`,
  ],
  ['a link over more than is due', 'payment_links_consistent', 'UPDATE payment_link_intents SET amount = amount + 1'],
  [
    'a link deactivated for a void that does not exist',
    'payment_links_consistent',
    `INSERT INTO payment_link_closings (document_id, version, why, closed_at)
     SELECT document_id, version, 'void', now() FROM payment_link_intents ON CONFLICT DO NOTHING`,
  ],
  [
    'a link that Stripe made and refused',
    'payment_links_consistent',
    `INSERT INTO payment_link_closings (document_id, version, why, closed_at)
     SELECT document_id, version, 'refused', now() FROM payment_link_intents ON CONFLICT DO NOTHING`,
  ],
  [
    'a second link beside an open one',
    'payment_links_consistent',
    `INSERT INTO payment_link_intents (document_id, version, provider, amount, currency, request, intended_at)
     SELECT document_id, version + 1, provider, amount, currency, request, intended_at FROM payment_link_intents i
     WHERE (document_id, version) NOT IN (SELECT document_id, version FROM payment_link_closings)`,
  ],
  ['an attempt taken out', 'payment_links_consistent', 'UPDATE payment_link_attempts SET attempt = attempt + 1'],
  [
    'a letter that was sent and is gone',
    'emails_consistent',
    `DELETE FROM emails WHERE email_id = (SELECT min(email_id) FROM email_attempts)`,
  ],
  [
    'a signature of another checkpoint',
    'signatures_verify',
    `UPDATE log_signatures SET line = (SELECT max(line) FROM log_signatures WHERE size = (SELECT max(size) FROM log_signatures))`,
  ],
  [
    'a signature under another name',
    'signatures_verify',
    `UPDATE log_signatures SET key_name = 'elsewhere.example/log'`,
  ],
  [
    'a signature by a key that the log does not state',
    'signatures_verify',
    `UPDATE log_keys SET public_key = encode(sha256('x'), 'base64')`,
  ],
  ...PAYMENT_DAMAGES,
  [
    'a document without an e-mail',
    'emails_consistent',
    'DELETE FROM email_attempts',
    'DELETE FROM reminders',
    'DELETE FROM emails',
  ],
  [
    'the last event taken out',
    'events_match_facts',
    `DELETE FROM partner_events WHERE (partner_id, position) IN (
       SELECT partner_id, max(position) FROM partner_events GROUP BY partner_id)`,
  ],
  [
    'an event that nothing is recorded for',
    'events_match_facts',
    `INSERT INTO partner_events (partner_id, position, type, log_no)
     SELECT partner_id, max(position) + 1, 'document.voided', 1 FROM partner_events GROUP BY partner_id LIMIT 1`,
  ],
  [
    'an event given to another partner',
    'events_match_facts',
    `UPDATE partner_events e SET partner_id = 'p-2', position = 1 + (
       SELECT max(position) FROM partner_events WHERE partner_id = 'p-2')
     WHERE partner_id = 'p-1' AND position = (SELECT max(position) FROM partner_events WHERE partner_id = 'p-1')`,
  ],
  [
    'an event of another type',
    'events_match_facts',
    `UPDATE partner_events SET type = 'payment.unapplied' WHERE type = 'payment.applied'`,
  ],
  [
    'two events in each other’s place',
    'events_match_facts',
    `UPDATE partner_events SET position = position + 1000000 WHERE partner_id = 'p-1' AND position <= 2`,
    `UPDATE partner_events SET position = 1000003 - position WHERE partner_id = 'p-1' AND position > 1000000`,
  ],
  [
    'a row published twice',
    'events_match_facts',
    'ALTER TABLE partner_events DROP CONSTRAINT partner_event_of_row_once',
    `INSERT INTO partner_events (partner_id, position, type, posted_month, entry_id)
     SELECT partner_id, 1 + (SELECT max(position) FROM partner_events o WHERE o.partner_id = e.partner_id), type,
            posted_month, entry_id
     FROM partner_events e WHERE entry_id = (SELECT max(entry_id) FROM partner_events)`,
  ],
  [
    'a month that begins on another day',
    'row_month',
    `UPDATE month_zones SET begins_at = begins_at + interval '1 day'`,
  ],
  [
    'a month that was closed before it had ended for its partner',
    'month_close_event',
    `UPDATE closed_months SET closed_at = '2026-08-01T01:00:00Z' WHERE month = '2026-07'`,
    `UPDATE audit_events SET occurred_at = '2026-08-01T01:00:00Z' WHERE action = 'month.close' AND subject = '2026-07'`,
  ],
  [
    'a first instant of a month an hour later',
    'months_in_time_zones',
    `UPDATE month_zones SET begins_at = begins_at + interval '1 hour'`,
  ],
  [
    'a balance that a view shows wrong',
    'balance_shown',
    `CREATE OR REPLACE VIEW document_balances AS
     SELECT document_id, gross AS amount_due, 0::numeric AS credited, 0::numeric AS amount_paid, gross AS balance,
            'open' AS status FROM documents`,
  ],
  [
    'a stored tax that no tax total has',
    'balance_shown',
    `UPDATE documents SET tax = 1 WHERE number = 'INV-2026-000001'`,
  ],
  [
    'cash that a view shows as unapplied',
    'cash_shown',
    `CREATE OR REPLACE VIEW live_payment_applications AS SELECT * FROM payment_applications WHERE false`,
  ],
  [
    'a replacement that is due later',
    'document_days',
    `UPDATE documents SET due_on = due_on + 1 WHERE number = 'INV-2026-000005'`,
  ],
  [
    'bank details that a PDF leaves out',
    'bank_details_in_force',
    `UPDATE instruction_versions SET content = content #- '{wire,bank_name}'`,
  ],
  [
    'a payment of a share on another account',
    'share_payment',
    `UPDATE payments SET account = 'acct_other' WHERE payment_id IN (SELECT payment_id FROM share_payments)`,
  ],
  [
    'an acceptance whose event names another requote',
    'acceptance_has_row',
    `UPDATE audit_events SET details = jsonb_set(details, '{requote_id}', '"another"') WHERE action = 'requote.accept'`,
  ],
  [
    'a count of the close changed',
    'month_counts',
    `UPDATE closed_months SET late_entries = late_entries + 1, entries = entries + 1 WHERE month = '2026-08'`,
  ],
];

for (const [what, check, ...statements] of DAMAGES) {
  test(`${check} finds ${what}`, async () => {
    // A sweep runs the other checks, too: none of them may fail on damaged books, whatever they find.
    const name = CHECKS.some((each) => each.name === check) ? check : 'rules_hold';
    const found = SWEEPING
      ? await verifyDamaged(statements)
      : { checks: [{ check: name, ...(await findingOf(check, statements)) }] };
    expect(failing(found)).toContain(check);
    for (const { differences } of found.checks) {
      for (const { subject, detail } of differences) expect([subject, detail]).not.toContain('');
    }
  });
}

const differencesOf = async (check: string, statements: readonly string[]): Promise<string[]> =>
  (await findingOf(check, statements)).differences.map(({ subject, detail }) => `${subject}: ${detail}`);

test('what a rule finds has names, amounts in major units and days', async () => {
  const found = await differencesOf('rules_hold', [
    `UPDATE month_totals SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1 WHERE month = '2026-08'`,
    `UPDATE documents SET issued_on = issued_on + 5, due_on = due_on + 5 WHERE number = 'INV-2026-000003'`,
  ]);
  const like = (pattern: RegExp) => expect.stringMatching(pattern);
  expect(found).toEqual(
    expect.arrayContaining([
      like(
        /^month_totals: month 2026-08: .+ Found: currency [A-Z]{3}, .+, stated_amount -?\d+\.\d\d, amount_of_rows -?\d+\.\d\d$/,
      ),
      like(
        /^document_days: INV-2026-000003: .+ Found: .+, issued_on 2026-\d\d-\d\d, due_on 2026-\d\d-\d\d, terms_days \d+, /,
      ),
    ]),
  );
});

test('a rule that cannot be run is named with the error, and the others still find what is wrong', async () => {
  const found = await differencesOf('rules_hold', [
    `ALTER VIEW journal_months RENAME TO journal_months_elsewhere`,
    `UPDATE month_totals SET spot_price = spot_price + 1, invoice_amount = invoice_amount + 1 WHERE month = '2026-08'`,
  ]);
  expect(found).toContain(
    'journal_shown: cannot be checked, the database is damaged: relation "journal_months" does not exist',
  );
  expect(found).toContainEqual(expect.stringMatching(/^month_totals: month 2026-08: /));
});

test('verifying a month runs the rules over everything', async () => {
  const [, , ...statements] = DAMAGES.find(([, name]) => name === 'payment_not_overdrawn') ?? [];
  expect(failing(await verifyDamaged(statements as string[], '2026-07' as Month))).toContain('payment_not_overdrawn');
});

test('every check finds one of these damages', () => {
  const tried = new Set([...DAMAGES.map(([, check]) => check), ...TESTED_ELSEWHERE, 'rules_hold']);
  expect(DAMAGES.map(([, name]) => name).filter((name) => !NAMES.has(name))).toEqual([]);
  expect(CHECKS.map((check) => check.name).filter((name) => !tried.has(name))).toEqual([]);
});
