/**
 * Random histories of everything that can be done, in any order, from a printed seed: after every action the books tie,
 * what was issued stands as it was issued, and nobody gets an e-mail twice that nobody asked for twice.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ACTIONS as REGISTRY } from '../../src/actions/loaded.ts';
import { CHECKS } from '../../src/audit/checks.ts';
import { checkContext } from '../../src/audit/verify.ts';
import { E_INVOICE_FORMATS } from '../../src/config/e-invoice.ts';
import { todayOf } from '../../src/config/today.ts';
import type { DocumentJson } from '../../src/documents/document.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import type { Month } from '../../src/month.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { expectPacksToHold, textJournals } from '../audit/books.ts';
import { ledgerTotals, Model, PARTNERS } from '../close/model.ts';
import { startOver } from '../close/start-over.ts';
import { expectTaxToTie, taxed } from '../documents/random-tax.ts';
import { GERMAN, SELLER } from '../support/e-invoice-partners.ts';
import { judge } from '../support/en16931.ts';
import { JOURNAL_PROGRAMS, judgeJournal } from '../support/journal-programs.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import type { MailServer } from '../support/mail-server.ts';
import { openMailWorld } from '../support/mail-world.ts';
import { seeded } from '../support/random.ts';
import { expectStatementsToTie } from '../support/statements-tie.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { needs } from '../support/tools.ts';
import { partner, type World } from '../support/world.ts';
import { ACTIONS, chooseAction, FAVORED_IN, favoredActions, type History } from './actions.ts';
import { confirmedActions, queueDueEmails } from './confirmed.ts';

/** RECKONER_SEED=… RECKONER_HISTORIES=1 repeats one. */
const HISTORIES = times({ few: 4, short: 6, long: 300 }, 'RECKONER_HISTORIES');
const LENGTH = 20;
/** So many actions are tried at most until the favored ones are done. */
const MOST_TRIES = 400;
const { seed: SEED } = seeded();

let world: World;
let server: MailServer;
let stripe: StripeStandIn;
beforeAll(async () => {
  // The stand-in reads Stripe's types once, which takes longer than a request may.
  requestProblem('checkout_session_create', {});
  stripe = await startStripe({ now: () => world.environment.now().toJSDate() });
});
/** The journals of all histories as text, for the programs that read them. */
const journals: Map<string, string>[] = [];
const journalFolder = mkdtempSync(join(tmpdir(), 'reckoner-journals-'));
afterAll(() => {
  rmSync(journalFolder, { recursive: true });
  return stripe.close();
});
openMailWorld((opened) => {
  ({ world, server } = opened);
  Object.assign(world.environment, { logKey: LOG_KEY });
});

/** What nothing may change in a document once it is issued. */
const FACE = [
  ...(['number', 'series', 'sequence', 'document', 'purpose', 'partner_id', 'month', 'currency', 'issued_on'] as const),
  ...(['due_on', 'enrollments', 'spotPrice', 'partnerCut', 'invoiceAmount', 'credit_applied', 'amount_due'] as const),
  ...(['lines', 'replaces', 'credits'] as const),
];
/** What is there for good once it is there. */
const ONCE = ['payment_link', 'pdf', 'void_reason', 'replaced_by'] as const;

/** The events of actions that have another name. */
const EVENTS: Readonly<Record<string, string>> = { 'processor.reverse_month': 'processor.reverse' };
/** Actions of the registry that a few histories may end without: they need what several other actions leave behind. */
const RARELY: readonly string[] = [
  ...['invoice.write_off_undone', 'credit.apply', 'credit.unapply', 'credit.refund', 'credit.refund_returned'],
  ...['email.resend', 'email.dismiss', 'delivery.retry', 'reminder.record', 'payment.forget_account'],
  'reminder.resume',
  ...['payment.settle', 'payment.close_exception', 'payment.reverse', 'invoice.rerun', 'bank.book', 'bank.unbook'],
  ...['processor.match', 'processor.close', 'processor.reverse', 'processor.reverse_month'],
  ...['reversal.grant', 'reversal.refuse'],
];

/** Needs rows of the API, which histories do not have (test/ledger/doubled.test.ts). */
const ELSEWHERE = ['rows.separate'];

/** Needs months with closed books and three later ones (test/archive). */
const ARCHIVES = ['month.archive', 'month.unarchive'];

/** What the histories do without a preview: by programs, by jobs, or not at all. */
const UNCONFIRMED: readonly string[] = [
  ...['ledger.import', 'feed.accept', 'ledger.pause', 'payment.events', 'payment.settle', 'settings.adopt'],
  ...[...ELSEWHERE, ...ARCHIVES],
];

class Witness {
  private readonly seen = new Map<string, DocumentJson>();
  private linkChanges = new Map<string, number>();

  /** Each document that was ever seen is there, as it was. Only finance changes a link, and that is recorded. */
  async compare(documents: readonly DocumentJson[]): Promise<void> {
    const changed = await world.sql<{ number: string; changes: string }>(
      'SELECT number, count(*) AS changes FROM payment_link_changes JOIN documents USING (document_id) GROUP BY number',
    );
    const linkChanges = new Map(changed.map(({ number, changes }) => [number, Number(changes)]));
    const present = new Map(documents.map((document) => [document.number, document]));
    for (const [number, before] of this.seen) {
      const now = present.get(number);
      const sameLink = linkChanges.get(number) === this.linkChanges.get(number);
      const once = ONCE.filter((field) => before[field] !== null && (field !== 'payment_link' || sameLink));
      const kept = [...FACE, ...once];
      const of = (document: DocumentJson | undefined) => kept.map((field) => [number, field, document?.[field]]);
      expect(of(now)).toEqual(of(before));
    }
    for (const document of documents) this.seen.set(document.number, document);
    this.linkChanges = linkChanges;
  }
}

/**
 * The checks of verify, but for drawing everything anew, which the end of each history does, and comparing the schema. The
 * rules take twenty times as long as all other checks, so they run after every eighth action and at the end.
 */
async function expectBooksToTie(step: number): Promise<void> {
  await world.database.readingBeside(async (_, tx) => {
    if (tx === undefined) throw new Error('no connection for a second transaction');
    const scope = await checkContext(tx, null, { schema: world.schema });
    for (const { name, run } of CHECKS) {
      if (name === 'document_pdfs_as_issued' || (name === 'rules_hold' && step % 8 !== 0)) continue;
      const { differences } = await run(tx, scope);
      if (differences.length > 0) expect({ [name]: differences }).toEqual({});
    }
  });
}

/**
 * What is open on invoices less what is open of credit is, by partner and currency, what was issued and credited, less
 * what was written off and paid, with what was paid out of credit: credit that is applied or given back moves nothing.
 */
async function expectBalancesToTie(documents: readonly DocumentJson[]): Promise<void> {
  const owed = new Map<string, { open: bigint; issued: bigint }>();
  const add = (of: { partner_id: string; currency: string }, open: string, issued: string, sign: bigint) => {
    const minor = (amount: string) => sign * BigInt(amount.replace('.', ''));
    const key = `${of.partner_id} ${of.currency}`;
    const sums = owed.get(key) ?? { open: 0n, issued: 0n };
    owed.set(key, { open: sums.open + minor(open), issued: sums.issued + minor(issued) });
  };
  for (const document of documents) {
    const zero = document.balance.replace(/[1-9]/g, '0');
    if (document.status === 'void' || document.document === 'statement') expect(document.balance).toBe(zero);
    else add(document, document.balance, owedBy(document), document.document === 'invoice' ? 1n : -1n);
  }
  const settled = await world.sql<{ number: string; amount: string }>(
    `SELECT d.number, s.amount::text
     FROM (SELECT document_id, amount FROM live_write_offs
           UNION ALL
           SELECT document_id, amount FROM payment_applications
           WHERE payment_application_id NOT IN (SELECT payment_application_id FROM payment_unapplications)
           UNION ALL
           SELECT document_id, amount FROM small_differences
           WHERE payment_application_id NOT IN (SELECT payment_application_id FROM payment_unapplications)
           UNION ALL
           SELECT document_id, -amount FROM credit_refunds
           WHERE credit_refund_id NOT IN (SELECT credit_refund_id FROM credit_refund_returns)) AS s
     JOIN documents d USING (document_id)`,
  );
  for (const { number, amount } of settled) {
    const document = documents.find((each) => each.number === number) as DocumentJson;
    add(document, document.balance.replace(/[1-9]/g, '0'), amount, -1n);
  }
  for (const [key, { open, issued }] of owed) expect(`${key} ${open}`).toBe(`${key} ${issued}`);
}

/** With tax, where there is some. */
const owedBy = ({ gross, invoiceAmount }: DocumentJson): string => gross ?? invoiceAmount;

/** One copy of each e-mail, or as many as attempts were unclear besides, all of the same bytes. */
async function expectMailToBeRight(): Promise<void> {
  const copies = new Map<string, string[]>();
  for (const { parsed, raw } of server.mails) {
    const id = parsed.messageId ?? '';
    copies.set(id, [...(copies.get(id) ?? []), createHash('sha256').update(raw).digest('hex')]);
  }
  const emails = await world.sql<{ message_id: string; status: string; sent: boolean; unclear: number }>(
    `SELECT message_id, status, sent_at IS NOT NULL AS sent, unclear_attempts AS unclear FROM emails`,
  );
  const known = new Set(emails.map(({ message_id }) => message_id));
  expect([...copies.keys()].filter((id) => !known.has(id))).toEqual([]);
  for (const { message_id, status, sent, unclear } of emails) {
    const received = copies.get(message_id) ?? [];
    const right = received.length === unclear + (sent ? 1 : 0) && new Set(received).size <= 1;
    expect({ message_id, status, unclear, received: received.length, right }).toMatchObject({ right: true });
  }
}

/**
 * Each void of a document that reached its partner is told once: by a notice, or by a replacement that reached the
 * partner or still can. Gives how many notices there are. `sent`: all that were due are queued.
 */
async function expectVoidsToBeTold(documents: readonly DocumentJson[], { sent = false } = {}): Promise<number> {
  const reached = new Set(
    (
      await world.sql<{ number: string }>(
        `SELECT d.number FROM document_emails e JOIN documents d USING (document_id)
         WHERE e.delivery IN ('sent', 'uncertain', 'portal')`,
      )
    ).map(({ number }) => number),
  );
  const notices = await world.sql<{ number: string }>(
    `SELECT d.number FROM emails e JOIN documents d ON d.document_id = e.void_document_id
     WHERE e.asked_for IS NULL AND (e.status <> 'withdrawn' OR e.dismissal_reason IS NOT NULL)`,
  );
  const told = notices.map(({ number }) => number);
  expect(told).toEqual([...new Set(told)]);
  expect(told.filter((number) => !reached.has(number))).toEqual([]);
  const byNumber = new Map(documents.map((document) => [document.number, document]));
  const isTold = ({ replaced_by: next }: DocumentJson): boolean => {
    const replacement = next === null ? undefined : byNumber.get(next);
    if (replacement === undefined) return false;
    return replacement.status !== 'void' || reached.has(replacement.number) || isTold(replacement);
  };
  const untold = documents.filter(
    (each) => each.status === 'void' && reached.has(each.number) && !told.includes(each.number) && !isTold(each),
  );
  if (sent) expect(untold.map(({ number }) => number)).toEqual([]);
  return told.length;
}

/** The official rules accept each e-invoice. Gives how many there are. */
async function expectEInvoicesToHold(): Promise<number> {
  const written = await world.sql<{ number: string; xml: Buffer }>(
    'SELECT number, xml FROM document_e_invoices JOIN documents USING (document_id)',
  );
  for (const { number, xml } of written) expect([number, ...judge(xml).failed]).toEqual([number]);
  return written.length;
}

const recorded = async () =>
  world.sql(
    `SELECT (SELECT count(*) FROM audit_events) AS events, (SELECT count(*) FROM documents) AS documents,
            (SELECT count(*) FROM document_emails) AS emails, (SELECT count(*) FROM ledger_rows) AS entries`,
  );

test(`${HISTORIES} random histories of all actions (seeds ${SEED} to ${SEED + HISTORIES - 1}): everything holds after each`, {
  timeout: 180_000 + HISTORIES * 200_000,
}, async () => {
  const done = new Map(ACTIONS.map(({ name }) => [name, 0]));
  const refused = new Map<string, number>();
  /** The events of all actions that the histories did. */
  const recordedActions = new Set<string>();
  let steps = 0;
  let statements = 0;
  let packs = 0;
  let notices = 0;
  let eInvoices = 0;
  let taxedDocuments = 0;
  for (let seed = SEED; seed < SEED + HISTORIES; seed += 1) {
    await startOver(world);
    server.behaviour = 'accept';
    server.mails.length = 0;
    stripe.startOver();
    const { random } = seeded(seed);
    const history: History = {
      world,
      server,
      stripe,
      model: new Model(),
      random,
      now: new Date('2026-03-20T10:00:00Z'),
    };
    world.at(history.now.toISOString());
    // Every other history is taxed.
    if (seed % 2 === 1) world.settings = taxed(world.settings);
    // Of those without tax, every other one is a principal's.
    if (seed % 4 === 0) world.settings = { ...world.settings, we_are: 'principal' };
    // The others earn covered sales over their cover.
    else world.settings = { ...world.settings, recognition: 'over_cover' };
    world.settings = { ...world.settings, issuer: { ...world.settings.issuer, e_invoice: SELLER } };
    // As every command does before it acts.
    await recordSettingsChanges(world.database, world);
    const e_invoice = E_INVOICE_FORMATS[seed % E_INVOICE_FORMATS.length];
    const own: Readonly<Record<string, object>> = { ...ROUTED, 'p-2': { ...EUROPEAN, e_invoice } };
    await world.partners(
      PARTNERS.map((partner_id) => partner({ account_statement: 'monthly', ...own[partner_id], partner_id })),
    );
    const witness = new Witness();
    const actions: string[] = [];
    const toDo = new Set(favoredActions(seed));
    try {
      for (let step = 0; step < LENGTH || [...toDo].some(({ rare }) => !rare); ) {
        const action = chooseAction(random, actions, [...toDo]);
        // What one history finds no occasion for, another of the run must have done: see the end of this test.
        if (actions.length === MOST_TRIES) break;
        actions.push(action.name);
        await queueDueEmails(world);
        const before = action.refusals === undefined ? undefined : await recorded();
        const outcome = await action.run(history).catch((error: unknown) => {
          if (error instanceof Refusal && action.refusals?.includes(error.code)) return error.code;
          throw error;
        });
        if (outcome === false) continue; // There was nothing to do it to.
        step += 1;
        steps += 1;
        if (outcome === true) toDo.delete(action);
        if (outcome === true) done.set(action.name, (done.get(action.name) ?? 0) + 1);
        if (typeof outcome === 'string') {
          refused.set(outcome, (refused.get(outcome) ?? 0) + 1);
          expect(await recorded()).toEqual(before);
        }
        expect(await ledgerTotals(world)).toEqual({ rows: history.model.rows, totals: history.model.totals });
        const documents = await world.documents();
        await witness.compare(documents);
        await expectBalancesToTie(documents);
        taxedDocuments += expectTaxToTie(documents);
        await expectMailToBeRight();
        await expectVoidsToBeTold(documents);
        await expectBooksToTie(step);
      }
      for (const { action } of await world.sql<{ action: string }>('SELECT DISTINCT action FROM audit_events'))
        recordedActions.add(action);
      actions.push('the end');
      await world.deliver();
      await sendEmails(world, {});
      notices += await expectVoidsToBeTold(await world.documents(), { sent: true });
      await expectBooksToTie(0);
      await witness.compare(await world.documents());
      await expectMailToBeRight();
      eInvoices += await expectEInvoicesToHold();
      statements += await expectStatementsToTie(world, { today: todayOf(world), told: `seed ${seed}` });
      const [months] = await world.sql<{ first: Month; last: Month }>(
        'SELECT min(month) AS first, max(month) AS last FROM closed_months',
      );
      if (months?.first)
        journals.push(await textJournals(world, months.first, months.last, join(journalFolder, String(seed))));
      // Drawing everything anew takes as long as all the rest: two histories in four, of which one is taxed.
      if (history.model.rows === 0 || (HISTORIES > 1 && seed % 4 > 1)) continue;
      if (months?.first) packs += await expectPacksToHold(world, months.first, months.last);
      const { checks, differences } = await world.verify();
      if (differences > 0) expect(checks.filter((check) => check.differences.length > 0)).toEqual([]);
    } catch (error) {
      throw new Error(`RECKONER_SEED=${seed} RECKONER_HISTORIES=1: ${actions.join(' > ')}`, { cause: error });
    }
  }
  process.stdout.write(`random histories: ${JSON.stringify(Object.fromEntries(done))}, ${notices} void notices\n`);
  if (HISTORIES >= FAVORED_IN) {
    // Every action was really done, the rare ones in a run of hundreds, and some were refused.
    const never = ACTIONS.filter(({ name, rare }) => done.get(name) === 0 && (HISTORIES >= 100 || !rare));
    expect(never.map(({ name }) => name)).toEqual([]);
    // And so was every action of the registry: one that no history draws leaves no event.
    const undone = [...REGISTRY.keys()].filter(
      (name) => !recordedActions.has(EVENTS[name] ?? name) && ![...ELSEWHERE, ...ARCHIVES].includes(name),
    );
    expect(undone.filter((name) => HISTORIES >= 100 || !RARELY.includes(name))).toEqual([]);
    const unconfirmed = [...REGISTRY.keys()].filter(
      (name) => !confirmedActions.has(name) && !UNCONFIRMED.includes(name),
    );
    // A month closes without a decision for the most part.
    const rarely = [...RARELY, 'month.close'];
    expect(unconfirmed.filter((name) => HISTORIES >= 100 || !rarely.includes(name))).toEqual([]);
    expect(refused.size).toBeGreaterThan(0);
    expect(taxedDocuments).toBeGreaterThan(0);
    expect(eInvoices).toBeGreaterThan(0);
    if (HISTORIES >= 100) expect(notices).toBeGreaterThan(0);
  }
  tally('sequences run', `of ${LENGTH} actions or more`, HISTORIES);
  expect(statements).toBeGreaterThan(0);
  if (HISTORIES >= 16) expect(packs).toBeGreaterThan(0);
  tally('states verified', 'after actions', steps);
});

test.for(JOURNAL_PROGRAMS)('$program accepts the journals of these histories', (judge, context) => {
  needs(judge.program, context);
  if (HISTORIES >= 4) expect(journals.length).toBeGreaterThan(0);
  for (const paths of journals) expect(judgeJournal(judge, paths.get(judge.format) as string)).toBe('');
});

/** One of the three asks for e-invoices. In dinars, which have three decimals, its documents wait. */
const { currency: _, ...EUROPEAN } = { ...GERMAN, tax_id: 'DE987654328' };

/** One of the three is a connected account: its months are statements. */
const ROUTED: Readonly<Record<string, object>> = {
  'p-3': {
    arrangement: 'connected_account',
    connected_account_id: 'acct_1',
    merchant_of_record: 'platform',
    split: 'real_time',
  },
};
