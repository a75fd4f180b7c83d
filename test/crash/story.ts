/**
 * The story that crash tests interrupt: a world with rows of two months waiting, a real mail server, a stand-in for
 * Stripe, and what must be
 * true of it in the end, however often the program was killed on the way.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { firstSettings } from '../../src/config/first-settings.ts';
import { readErasureFile } from '../../src/erasures/file.ts';
import { Amount } from '../../src/money.ts';
import { stripeAmount } from '../../src/processors/stripe/amounts.ts';
import { writeAccounts } from '../general-ledger/months.ts';
import { stripePayment } from '../payments/stripe-events.ts';
import { LOG_PEM } from '../support/log-keys.ts';
import { type MailServer, type ReceivedMail, startMailServer } from '../support/mail-server.ts';
import { command, type Ran, reckoner } from '../support/program.ts';
import { type Memory, type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { type KeptWorld, openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

const first = quote({ quote_id: 'q-1', accepted_at: '2026-07-03T12:00:00Z' });
const second = quote({ quote_id: 'q-2', partner_id: 'p-2', accepted_at: '2026-07-04T12:00:00Z' });

export const PARTNERS = [
  partner(),
  partner({ partner_id: 'p-2', name: 'Nordwind Reisen GmbH', time_zone: 'Europe/Berlin' }),
  // Taxed, and with an e-invoice beside each PDF.
  partner({
    partner_id: 'p-3',
    name: 'Vuurtoren Tickets BV',
    address: { line1: 'Koningsstraat 1', line2: '', city: 'Brussel', region: '', postal_code: '1000', country: 'BE' },
    ...{ currency: 'EUR', e_invoice: 'ubl', purchase_order: 'PO-77', electronic_address: '0208:0843766574' },
  }),
];

/** Sales in Belgium are taxed, all others are not. */
const TAX = {
  from: '2026-07',
  countries: { BE: { registration: 'BE0843766574' } },
  rules: [
    { country: 'BE', category: 'standard', rate: '21' },
    { category: 'outside_scope', reason: 'Outside the scope of VAT' },
  ],
};

/** July: two partners; August: a late row, a month below zero, a third partner. */
export const ROWS = [
  first,
  requote(first, { requote_id: 'rq-1', accepted_at: '2026-07-05T12:00:00Z' }),
  second,
  quote({
    ...{ quote_id: 'q-3', accepted_at: '2026-08-01T12:00:00Z' },
    ...{ order_reference: '#1001 B', cover_from: '2026-08-01', cover_to: '2026-08-31' },
  }),
  reversal(second, { reversal_id: 'rv-1', accepted_at: '2026-08-02T12:00:00Z' }),
  quote({ quote_id: 'q-4', partner_id: 'p-3', currency: 'EUR', accepted_at: '2026-08-03T12:00:00Z' }),
];
/** p-1 pays its invoice of July by wire, p-2 its own by the link. */
const BANK_LINES = `date,amount,currency,account,bank_reference,text,payer,payer_account
2026-09-01,10.50,USD,0001,FT-1,INV-2026-000001,Harbour Lights Ticketing,ACC-1
2026-09-01,-3.00,USD,0001,FT-2,fee,,
`;
const PAID = 'INV-2026-000002';
const linked = stripePayment({ invoice: PAID, amount: 700, on: '2026-09-01', link: 'LINK' });
const EVENTS = [linked.ordered(), linked.paidLater()].map((each) => `${JSON.stringify(each)}\n`).join('');

export const NOW = '2026-09-02T10:00:00Z';

/** At most this many e-mails are under way at once in one process, see WORKERS in src/delivery/worker-pool.ts. */
const IN_FLIGHT = 24;

export interface Story {
  readonly world: World;
  readonly mail: MailServer;
  readonly stripe: StripeStandIn;
  /** What the program finds in its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly run: (args: readonly string[], env?: Record<string, string>) => Promise<Ran>;
  readonly rowsFile: string;
  readonly partnersFile: string;
  /** The same partners, one of them under another name: its documents differ when they are run again. */
  readonly renamedFile: string;
  /** What partners paid, by wire and by the link. */
  readonly bankFile: string;
  readonly eventsFile: string;
  /** Ends it, for stories that go on from what it came to. */
  readonly keep: () => Promise<Chapter>;
  readonly end: () => Promise<void>;
}

/** All that a story came to, here and outside. */
export interface Chapter {
  readonly world: KeptWorld;
  readonly mails: readonly ReceivedMail[];
  readonly stripe: Memory;
}

/** From its beginning, or from where another was kept: then it has a copy of everything, and the other stays as it was. */
export async function beginStory(from?: Chapter): Promise<Story> {
  const mail = await startMailServer();
  mail.mails.push(...(from?.mails ?? []));
  const stripe = await startStripe({ now: () => new Date(NOW), ...(from && { memory: from.stripe }) });
  const world = await openWorld(from && { from: from.world });
  world.at(NOW);
  const sandbox = firstSettings('sandbox');
  const issuer = { ...sandbox.issuer, e_invoice: { electronic_address: '0088:4012345000009' } };
  const settings = { ...sandbox, issuer, tax: TAX, payment_link: { provider: 'stripe' } };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  writeAccounts(world);
  const rowsFile = join(world.home, 'rows.ndjson');
  const partnersFile = join(world.home, 'partners.json');
  writeFileSync(rowsFile, ROWS.map((row) => `${JSON.stringify(row)}\n`).join(''));
  writeFileSync(partnersFile, JSON.stringify(PARTNERS));
  const renamedFile = join(world.home, 'renamed.json');
  writeFileSync(
    renamedFile,
    JSON.stringify(PARTNERS.map((each, index) => (index === 0 ? { ...each, name: 'Renamed' } : each))),
  );
  const bankFile = join(world.home, 'bank.csv');
  writeFileSync(bankFile, BANK_LINES);
  const eventsFile = join(world.home, 'events.ndjson');
  const env = {
    RECKONER_HOME: world.home,
    DATABASE_URL: world.databaseUrl,
    RECKONER_NOW: NOW,
    SMTP_URL: mail.url,
    STRIPE_SECRET_KEY: 'sk_test_story',
    STRIPE_API_BASE: stripe.url,
    LOG_SIGNING_KEY: LOG_PEM,
  };
  return {
    world,
    mail,
    stripe,
    env,
    rowsFile,
    partnersFile,
    renamedFile,
    bankFile,
    /** The session was opened by the link that a delivery has made by then. */
    get eventsFile() {
      const links = [...stripe.state.paymentLinks.values()];
      const paid = links.find(({ metadata }) => (metadata as Record<string, string>)['invoice'] === PAID);
      writeFileSync(eventsFile, EVENTS.replaceAll('"LINK"', JSON.stringify(paid?.['id'])));
      return eventsFile;
    },
    // Only what is to be killed needs a process of its own.
    run: (args, more = {}) => (more['RECKONER_FAILPOINT'] ? reckoner : command)(args, { env: { ...env, ...more } }),
    async keep() {
      const chapter = { mails: mail.mails, stripe: stripe.memory(), world: await world.keep() };
      await mail.close();
      await stripe.close();
      return chapter;
    },
    end: async () => {
      await world.end();
      await mail.close();
      await stripe.close();
    },
  };
}

/** What every run must come to, killed or not: documents, rows and who was written to. Random tokens are left out. */
export async function outcome({ world, mail, stripe }: Story): Promise<unknown> {
  const documents = (await world.documents()).map(({ payment_link, pdf, email, ...rest }) => ({
    ...rest,
    has_link: payment_link !== null,
    has_pdf: pdf !== null,
    email: email?.status,
    to: email?.to,
  }));
  const rows = await world.sql(
    `SELECT kind, partner_id, own_id(ledger_rows) AS own_id, posted_month, month, spot_price
     FROM ledger_rows ORDER BY partner_id, kind, own_id`,
  );
  const received = new Set(mail.mails.map((each) => each.parsed.messageId ?? '').filter(isToPartner));
  const links = stripe.activeLinks().map(({ metadata, line_items }) => ({ metadata, line_items }));
  const byInvoice = (link: (typeof links)[number]) => JSON.stringify(link.metadata);
  links.sort((one, other) => byInvoice(one).localeCompare(byInvoice(other)));
  const payments = await world.sql(
    `SELECT p.amount, p.currency, p.method, b.partner_id, b.applied, b.reversed,
            (SELECT count(*) FROM payment_sources s WHERE s.payment_id = p.payment_id) AS sightings
     FROM payments p JOIN payment_balances b USING (payment_id) ORDER BY personal(p.reference)`,
  );
  // A rollback skips numbers.
  const told = (table: string, id: string) =>
    world.sql(
      `SELECT outcome, regexp_replace(personal(reason), 'payment \\d+', 'payment') AS reason FROM ${table} ORDER BY ${id}`,
    );
  const lines = await told('bank_line_outcomes', 'bank_line_id');
  const events = await told('processor_event_outcomes', 'processor_event_id');
  // Each world has its own installation and numbers of facts, and so its own roots.
  const books = await world.sql(
    `SELECT month, account, currency, trim_scale(amount)::text AS amount FROM book_closes JOIN book_balances USING (month)
     ORDER BY month, account, currency`,
  );
  const journals = await world.sql(
    `SELECT month, format, part, kind, account, currency, amount::text, to_account, name
     FROM gl_exports JOIN gl_export_lines USING (gl_export_id) ORDER BY gl_export_id, line`,
  );
  const taxes = await world.sql(
    `SELECT number, t.position, country, category, rate::text, taxable::text, t.tax::text
     FROM document_taxes t JOIN documents USING (document_id) ORDER BY document_id, t.position`,
  );
  const eInvoices = await world.sql(
    `SELECT number, e_invoice AS format FROM document_e_invoices JOIN documents USING (document_id) ORDER BY document_id`,
  );
  const statements = await world.sql(
    `SELECT partner_id, day::text, preliminary, asked_for, status FROM emails WHERE kind = 'account_statement'
     ORDER BY email_id`,
  );
  const bounces = await world.sql(
    `SELECT e.kind, e.status, personal(b.recipient) AS recipient FROM email_bounces b JOIN emails e USING (email_id) ORDER BY email_bounce_id`,
  );
  const disputes = await world.sql(
    `SELECT t.amount, t.reason, c.reason AS closed FROM invoice_disputes t
     LEFT JOIN invoice_dispute_closings c USING (invoice_dispute_id) ORDER BY invoice_dispute_id`,
  );
  const paused = await world.sql(
    'SELECT partner_id, until::text, reason FROM reminder_pauses ORDER BY reminder_pause_id',
  );
  const erased = await world.sql('SELECT personal(p.payer_account) AS payer FROM payments p ORDER BY payer');
  const erasures = await world.sql<{ commitment: string }>('SELECT commitment FROM erasures');
  // The file of the home has each of them.
  const kept = new Set(readErasureFile(world));
  expect(erasures.filter(({ commitment }) => !kept.has(commitment))).toEqual([]);
  const runs = await world.sql(`SELECT finished_at FROM job_runs WHERE job = 'purge' ORDER BY job_run_id`);
  return {
    documents,
    taxes,
    eInvoices,
    runs,
    statements,
    disputes,
    paused,
    bounces,
    erased: [...erased, erasures.length],
    rows,
    payments,
    lines,
    events,
    books,
    journals,
    received: received.size,
    links: links.map(withoutInstallation),
  };
}

/** Documents and account statements; letters about checkpoints, close reports and other e-mails to finance and the auditor may wait after a kill. */
const isToPartner = (messageId: string): boolean => /^<(INV|CN|ST|account[-_]statement)[-.]/.test(messageId);

/**
 * Every world has an installation of its own. The version counts how often the link was replaced: a balance that changed
 * and changed back while no delivery ran keeps its link.
 */
function withoutInstallation({ metadata, line_items }: Record<'metadata' | 'line_items', unknown>): object {
  const { installation: _, version: __, ...marks } = metadata as Record<string, string>;
  return { marks, line_items };
}

/** What is owed can be paid by one link each, nothing else can be paid, and every link that was made is known. */
async function assertOneLinkForEachDebt({ world, stripe }: Story): Promise<void> {
  const active = stripe.activeLinks().map(({ metadata, line_items }) => ({
    invoice: (metadata as Record<string, string>)['invoice'],
    units: (line_items as { price_data: { unit_amount: number } }[])[0]?.price_data.unit_amount,
  }));
  const open = await world.sql<{ invoice: string; balance: string; currency: string }>(
    `SELECT d.number AS invoice, b.balance::text, d.currency
     FROM documents d JOIN document_balances b USING (document_id)
     WHERE d.document = 'invoice' AND b.status = 'open' ORDER BY d.number`,
  );
  // What Stripe takes no payment of has no link.
  const owed = open.flatMap(({ invoice, balance, currency }) => {
    const asked = stripeAmount(Amount.of(balance, currency));
    return 'unitAmount' in asked ? [{ invoice, units: asked.unitAmount }] : [];
  });
  expect(active.sort((one, other) => String(one.invoice).localeCompare(String(other.invoice)))).toEqual(owed);
  const recorded = await world.sql<{ provider_id: string }>('SELECT provider_id FROM payment_link_objects');
  const known = new Set(recorded.map((row) => row.provider_id));
  const unknown = stripe.activeLinks().filter(({ id }) => !known.has(id));
  const waits = await world.sql('SELECT document_id, kind, reason FROM payment_link_waits');
  expect({ unknown, waits }).toMatchObject({ unknown: [], ...(unknown.length > 0 && { waits: [] }) });
}

/**
 * No e-mail is lost, none is sent twice but with the same Message-ID and bytes, and of those no more than were under
 * way at a kill. And every check of `verify` holds.
 */
export async function assertNothingLostOrDoubled(story: Story, kills: number): Promise<void> {
  const { world, mail } = story;
  await assertOneLinkForEachDebt(story);
  const copies = new Map<string, Set<string>>();
  let repeated = 0;
  for (const each of mail.mails) {
    const id = each.parsed.messageId ?? '';
    const bytes = createHash('sha256').update(each.raw).digest('hex');
    const seen = copies.get(id);
    if (seen) repeated += 1;
    copies.set(id, (seen ?? new Set()).add(bytes));
  }
  for (const [id, bytes] of copies) expect({ id, versions: bytes.size }).toEqual({ id, versions: 1 });
  expect(repeated).toBeLessThanOrEqual(kills * IN_FLIGHT);
  const sent = await world.sql<{ message_id: string }>(
    `SELECT message_id FROM emails WHERE status = 'sent' AND (document_id IS NOT NULL OR kind = 'account_statement')`,
  );
  expect(new Set([...copies.keys()].filter(isToPartner))).toEqual(new Set(sent.map((row) => row.message_id)));
  const { differences, inspected } = await world.verify();
  expect({ differences, some: inspected > 0 }).toEqual({ differences: 0, some: true });
}
