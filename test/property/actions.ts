/**
 * What may happen in a history, each action once in this list: random histories and whoever reads them learn of a new one
 * by its entry. An action finds something to be done to by itself; what it may be refused with, it says.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Action as Described } from '../../src/actions/action.ts';
import { booksClose } from '../../src/actions/books.ts';
import { monthClose } from '../../src/actions/close.ts';
import { creditApply, creditRefund, creditRefundReturned, creditUnapply } from '../../src/actions/credit.ts';
import { deliveryRetry } from '../../src/actions/delivery.ts';
import { disputeClose, disputeOpen } from '../../src/actions/dispute.ts';
import { emailDismiss, emailResend } from '../../src/actions/email.ts';
import { personErase } from '../../src/actions/erase.ts';
import { feedState } from '../../src/actions/feed.ts';
import { glExport } from '../../src/actions/general-ledger.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { invoiceDelivered } from '../../src/actions/invoice/delivered.ts';
import { invoiceHold, invoiceRelease } from '../../src/actions/invoice/hold.ts';
import { invoiceLinkRevoke, invoiceLinkRotate } from '../../src/actions/invoice/link.ts';
import { invoiceRerun } from '../../src/actions/invoice/rerun.ts';
import { invoiceResend } from '../../src/actions/invoice/resend.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { invoiceWriteOff, invoiceWriteOffUndo } from '../../src/actions/invoice/write-off.ts';
import { checkpointTake } from '../../src/actions/ledger.ts';
import { emailBounces } from '../../src/actions/mail.ts';
import { partnerImport } from '../../src/actions/partner.ts';
import { partnerChange } from '../../src/actions/partner-change.ts';
import { paymentRecord } from '../../src/actions/payment/record.ts';
import { reminderRecord } from '../../src/actions/remind.ts';
import { reminderPause, reminderResume } from '../../src/actions/reminder-pause.ts';
import { rowsReverse } from '../../src/actions/reverse.ts';
import { statementSend } from '../../src/actions/statement.ts';
import { verify } from '../../src/audit/verify.ts';
import { readBooksState } from '../../src/close/books.sql.ts';
import { bankFeedsAt, openBooks } from '../../src/close/books.ts';
import { acceptDoubts } from '../../src/close/close.ts';
import type { Doubt } from '../../src/close/feeds.ts';
import { closeMonths } from '../../src/close/run.ts';
import { writeBackup } from '../../src/database/backup.ts';
import { checkBackup, restoreBackup } from '../../src/database/restore.ts';
import { databaseFailure } from '../../src/database/transaction.ts';
import type { DocumentJson } from '../../src/documents/document.ts';
import { type NumberParts, resumeLedger, seriesInDoubt } from '../../src/documents/resume.ts';
import { reversalId } from '../../src/documents/rows-to-correct.sql.ts';
import { readLastNumbers } from '../../src/documents/skipped-numbers.sql.ts';
import { Refusal, type RefusalCode } from '../../src/errors/refusals.ts';
import { GL_FORMATS, type GlFormat } from '../../src/general-ledger/accounts.ts';
import { exportGl } from '../../src/general-ledger/export.ts';
import { readParts } from '../../src/general-ledger/exports.sql.ts';
import { Amount } from '../../src/money.ts';
import { type Month, monthsBetween } from '../../src/month.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { readPauses } from '../../src/people/pauses.sql.ts';
import { pauseLedger } from '../../src/people/pauses.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { purge } from '../../src/reports/purge.ts';
import { APPROVAL_ACTS } from '../actions/random-approvals.ts';
import { type Currency, inMajorUnits, type Model } from '../close/model.ts';
import { emptyTables } from '../close/start-over.ts';
import { CHECKOUT_ACTS } from '../delivery/checkouts/random-actions.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { HELD_ACTIONS } from '../ledger/random-actions.ts';
import { report } from '../mail/report.ts';
import { OPENING_ACTS } from '../opening/random-actions.ts';
import { EVENT_ACTIONS } from '../partner-events/actions.ts';
import { API_ACTS } from '../partners/random-actions.ts';
import { booksOf } from '../payments/books.ts';
import { PAYMENT_ACTS } from '../payments/random-actions.ts';
import { PEOPLE_ACTS } from '../people/random-actions.ts';
import { SPLIT_ACTS } from '../splits/actions.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import type { Behaviour, MailServer } from '../support/mail-server.ts';
import type { StripeStandIn } from '../support/stripe/stand-in.ts';
import { partner, type World } from '../support/world.ts';
import { confirmed, confirmingBooks } from './confirmed.ts';
import { SEVERAL_ACTS } from './several.ts';

export interface History {
  readonly world: World;
  readonly server: MailServer;
  readonly stripe: StripeStandIn;
  /** The rows that were sent, and what they add up to. */
  readonly model: Model;
  readonly random: () => number;
  /** Where the clock stands. */
  now: Date;
}

export interface Action {
  readonly name: string;
  /** How often it is chosen, beside the others. */
  readonly weight: number;
  /** It needs what several other actions leave behind: a few histories may end without it, a long run may not. */
  readonly rare?: true;
  /** With which answers it may come to nothing. */
  readonly refusals?: readonly RefusalCode[];
  /** False where there was nothing to do it to. */
  readonly run: (history: History) => Promise<boolean>;
}

const below = ({ random }: History, count: number) => Math.floor(random() * count);
const one = <Value>(history: History, values: readonly Value[]): Value | undefined =>
  values[below(history, values.length)];

function turnClock(history: History, to: Date): void {
  history.now = to;
  history.world.at(to.toISOString());
}

/** One of the documents that there are, of those that match. */
async function aDocument(
  history: History,
  matches: (document: DocumentJson) => boolean = () => true,
): Promise<DocumentJson | undefined> {
  return one(history, (await history.world.documents()).filter(matches));
}

/** An action upon one document, confirmed. Without an input there was nothing to do it to. */
const upon =
  <Input, Result, Followed>(
    action: Described<Input, Result, Followed>,
    inputFor: (document: DocumentJson, history: History) => Promise<Input | undefined> | Input,
    matches?: (document: DocumentJson) => boolean,
  ): Action['run'] =>
  async (history) => {
    const document = await aDocument(history, matches);
    const input = document && (await inputFor(document, history));
    if (input === undefined) return false;
    await confirmed(history.world, action, input);
    return true;
  };

const reason = 'as agreed';

/** An action upon one of the e-mails that carry no document. */
const uponEmail =
  (action: Described, more: object = {}): Action['run'] =>
  async (history) => {
    const emails = await history.world.sql<{ id: string }>(
      'SELECT email_id AS id FROM emails WHERE document_id IS NULL ORDER BY email_id',
    );
    const email = one(history, emails);
    if (email === undefined) return false;
    await confirmed(history.world, action, { emailId: [Number(email.id)], ...more });
    return true;
  };
/** Invoices for the most part, lest every second action is refused. */
const anInvoice = (document: DocumentJson) => document.document === 'invoice';

/** Deliveries to a mail server that behaves like this. */
const delivering =
  (behaviour: Behaviour): Action['run'] =>
  async ({ world, server }) => {
    server.behaviour = behaviour;
    const deliveries = await world.deliver();
    server.behaviour = 'accept';
    return deliveries.length > 0;
  };

/** The last number of every series, some of them further: what the world may have seen of a ledger that was lost. */
const lostNumbers = async (history: History): Promise<NumberParts[]> => {
  const { world } = history;
  const [known, pauses] = await world.database.reading(async (tx) => [await readLastNumbers(tx), await readPauses(tx)]);
  // What an opening carried over has the numbers of the previous system.
  const ours = known.filter(({ series }) => series !== 'OPENING');
  const last = new Map(ours.map((each) => [each.series, each.last]));
  // Of a series without a document here numbers may have been given as well.
  return [...new Set([...last.keys(), ...seriesInDoubt(pauses, world)])].map((series) => ({
    series,
    sequence: (last.get(series) ?? 0) + below(history, 3),
  }));
};

const aCreditNote = (document: DocumentJson) => document.document === 'credit_note';

/** How often each action on payments is chosen: what comes in oftener than what goes back. */
const PAYMENT_WEIGHTS: Readonly<Record<string, number>> = { 'record by hand': 3, 'import a bank file': 2, apply: 2 };

/** What a payment may be short, so that a bank may keep a fee of it. */
const SMALL = { small_difference: { USD: '0.05', EUR: '0.05' } };

const RARE_PAYMENT_ACTS: ReadonlySet<string> = new Set([
  'apply over partners',
  'forget an account',
  'reverse by the line that returned it',
]);

/** The actions on payments, on the day that it is. */
const paymentActions: readonly Action[] = Object.entries(PAYMENT_ACTS).map(([name, action]) => ({
  name: `payments: ${name}`,
  weight: PAYMENT_WEIGHTS[name] ?? 1,
  // They need two payments of one amount, invoices of several partners, or an account that was learned.
  ...(RARE_PAYMENT_ACTS.has(name) && { rare: true as const }),
  run: ({ world, random, now }) =>
    action(confirmingBooks(booksOf(world, SMALL)), random, now.toISOString().slice(0, 10)),
}));

const withRateFrom = (from: string, rate: string) =>
  (partner()['policies'] as object[]).map((policy) => ({ ...policy, partner_cut_rate: [{ from, rate }] }));

export const ACTIONS: readonly Action[] = [
  {
    name: 'rows come in',
    weight: 12,
    async run(history) {
      const rows = Array.from({ length: 3 + below(history, 10) }, () => {
        const kind = one(history, [
          'quote_accepted',
          'quote_accepted',
          'quote_accepted',
          'requote_accepted',
          'reversal',
        ] as const);
        return history.model.row(
          {
            kind: kind ?? 'quote_accepted',
            partner: below(history, 3),
            currency: one(history, ['USD', 'USD', 'USD', 'JPY', 'KWD'] as const) as Currency,
            policy: one(history, ['ticket-protection', 'parking'] as const) ?? 'parking',
            late: one(history, [0, 0, 0, 1, 2]) ?? 0,
            cut: below(history, 500),
            rest: below(history, 2000),
            of: below(history, 1000),
            part: one(history, ['half', 'all', 'all'] as const) ?? 'all',
          },
          (history.now.getUTCFullYear() - 2026) * 12 +
            history.now.getUTCMonth() -
            (history.now.getUTCDate() < 11 ? 1 : 0),
        );
      }).filter((row) => row !== undefined);
      if (rows.length === 0) return false;
      const totals: Record<string, string> = {};
      for (const { currency, invoiceAmount } of rows as { currency: string; invoiceAmount: string }[]) {
        totals[currency] = Amount.of(totals[currency] ?? '0', currency)
          .plus(Amount.of(invoiceAmount, currency))
          .toString();
      }
      const control = { count: rows.length, totals };
      const { accepted, held, rejected, held_rows } = await history.world.rows(rows, { control, holds: true });
      if (accepted + held !== rows.length) throw new Error(`of ${rows.length} good rows ${rejected} were rejected`);
      // Reversals that the terms do not cover, and what comes after them.
      for (const { line } of held_rows) history.model.held(rows[line - 1] as Record<string, unknown>);
      return true;
    },
  },
  ...HELD_ACTIONS,
  {
    name: 'the totals of a month are stated',
    weight: 2,
    async run(history) {
      const { world } = history;
      const sums = await world.sql<{ partner_id: string; month: Month; rows: number; totals: string[] }>(
        `SELECT partner_id, month, sum(rows)::int AS rows, array_agg(currency || '=' || amount) AS totals
         FROM (SELECT partner_id, month, currency, count(*) AS rows, sum(invoice_amount) AS amount
               FROM ledger_rows GROUP BY partner_id, month, currency) AS each
         GROUP BY partner_id, month ORDER BY partner_id, month`,
      );
      const month = one(history, sums);
      if (month === undefined) return false;
      const lacks = below(history, 3) === 0 ? 1 : 0;
      const stated = {
        partnerId: month.partner_id,
        month: month.month,
        count: month.rows + lacks,
        control: month.totals,
      };
      const incomplete = below(history, 3) === 0;
      const json = await confirmed(world, feedState, { ...stated, ...(incomplete && { incomplete }) });
      expect(json).toMatchObject({ agrees: lacks === 0, differences: { count: 0 - lacks, totals: {} } });
      return true;
    },
  },
  {
    name: 'a month ends and is closed',
    weight: 7,
    async run(history) {
      const { now, world } = history;
      turnClock(history, new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1, 12)));
      // As the hourly job does, and then as the operator who was told which feeds are missing.
      const settings = { ...world.settings, allow_empty: false as const };
      let closed = 0;
      for (let decided = true; decided; ) {
        decided = false;
        const count = () => {
          closed += 1;
        };
        await closeMonths(world.database, { ...world, settings }, {}, count).catch(async (refusal: unknown) => {
          if (!(refusal instanceof Refusal && ['feeds_in_doubt', 'month_empty'].includes(refusal.code))) throw refusal;
          decided = true;
          const month = refusal.facts['month'] as Month;
          const doubts = (refusal.facts['doubts'] ?? []) as Pick<Doubt, 'partner_id' | 'kind'>[];
          const [first] = doubts;
          if (first !== undefined && history.random() < 0.5) {
            const accepted = { month, partnerId: first.partner_id, reason: 'the partner confirms it' };
            await world.database.transaction((tx) => acceptDoubts(tx, { ...world, settings }, accepted));
            return;
          }
          const named = (isMissing: boolean) =>
            doubts.filter(({ kind }) => (kind === 'missing') === isMissing).map(({ partner_id }) => partner_id);
          const some = (of: string[]) => (of.length > 0 ? of : undefined);
          const decision = {
            ...{ month, without: some(named(true)), acceptFeed: some(named(false)), allowEmpty: doubts.length === 0 },
          };
          closed += ((await confirmed({ ...world, settings }, monthClose, decision)) as { months: object[] }).months
            .length;
        });
      }
      return closed > 0;
    },
  },
  {
    name: 'the books of a month are closed',
    weight: 3,
    refusals: ['bank_feed_behind', 'bank_feed_gap', 'possible_duplicates_open', 'taxed_documents_void'],
    async run(history) {
      const { world } = history;
      const state = await world.database.reading(readBooksState);
      const month = openBooks(state)[0];
      if (month === undefined) return false;
      const behind = (await world.database.reading((tx) => bankFeedsAt(tx, world.settings, { month })))
        .filter(({ complete }) => !complete)
        .map(({ account }) => account);
      const without = behind.length > 0 && below(history, 2) === 0 && { accounts: behind, reason: 'reports no more' };
      await confirmed(world, booksClose, {
        month,
        ...(without && { without: without.accounts, reason }),
      });
      return true;
    },
  },
  {
    name: 'a month is exported for the general ledger',
    weight: 3,
    // The programs take no third decimal.
    refusals: ['gl_lines_unusable'],
    async run(history) {
      const { world } = history;
      const { first_closed: first, last_closed: last } = await world.database.reading(readBooksState);
      if (first === null || last === null) return false;
      writeAccounts(world, everyAccount(below(history, 2) === 0 ? 'Sales' : 'Turnover'));
      const months = monthsBetween(first, last);
      const asked = {
        month: months[below(history, months.length)] as Month,
        format: GL_FORMATS[below(history, GL_FORMATS.length)] as GlFormat,
      };
      const parts = await world.database.reading((tx) => readParts(tx, asked));
      const reclassify = parts.length > 0 && below(history, 3) === 0;
      const request = { ...asked, preliminary: true, reclassify };
      const { recorded } = await confirmed(world, glExport, request);
      const again = await world.database.transaction((tx) => exportGl(tx, world, { ...request, reclassify: false }));
      if (again.recorded) throw new Error(`${asked.month} was exported twice for ${asked.format}`);
      return recorded;
    },
  },
  {
    name: 'some days pass',
    weight: 4,
    async run(history) {
      turnClock(history, new Date(history.now.getTime() + (1 + below(history, 9)) * 86_400_000));
      return true;
    },
  },
  { name: 'deliveries', weight: 6, run: delivering('accept') },
  { name: 'deliveries, deferred', weight: 1, run: delivering('defer_recipients') },
  { name: 'deliveries, refused for good', weight: 1, run: delivering('refuse_recipients') },
  { name: 'deliveries, cut off after the message', weight: 1, run: delivering('drop_after_data') },
  {
    name: 'a partner changes',
    weight: 3,
    async run(history) {
      const partner_id = one(history, ['p-1', 'p-2']) ?? 'p-1';
      const change = one(history, [
        { name: `Renamed ${below(history, 1000)}` },
        { payment_terms_days: below(history, 60) },
        { tax_id: `T-${below(history, 1000)}` },
        { invoicing_contact: { name: '', email: '', cc: [] } },
        { policies: withRateFrom(history.now.toISOString().slice(0, 10), `0.${10 + below(history, 80)}`) },
        {},
      ]);
      const bytes = Buffer.from(JSON.stringify([partner({ partner_id, ...change })]));
      await confirmed(history.world, partnerImport, { file: { name: 'partners.json', bytes } });
      return true;
    },
  },
  {
    name: 'void',
    weight: 2,
    refusals: ['document_void', 'payment_applied', 'credit_used', 'document_written_off', 'carried_over'],
    run: upon(invoiceVoid, ({ number }) => ({ number: [number], reason })),
  },
  {
    name: 'rerun of a document',
    weight: 3,
    refusals: [
      ...(['document_void', 'payment_applied', 'credit_used', 'document_written_off'] as const),
      ...(['not_of_the_ledger', 'document_on_hold', 'invoice_disputed', 'carried_over'] as const),
    ],
    run: upon(invoiceRerun, ({ number }, { random }) => ({ number: [number], newTerms: random() < 0.5 })),
  },
  {
    name: 'rerun of a month',
    weight: 2,
    // What was carried over is of the month of the cut-over.
    refusals: ['month_not_closed'],
    run: upon(invoiceRerun, ({ month, partner_id }, { random }) => {
      const partnerId = random() < 0.3 ? partner_id : undefined;
      return { month: month as Month, partnerId, newTerms: false, changed: random() < 0.7 };
    }),
  },
  {
    name: 'credit',
    weight: 4,
    refusals: ['document_void', 'credit_exceeds_invoice', 'credit_repeated'],
    run: upon(
      invoiceCredit,
      ({ number, invoiceAmount }, history) => {
        const whole = Number.parseInt(invoiceAmount, 10);
        const amount = one(history, [invoiceAmount, String(1 + Math.floor(whole / 2)), inMajorUnits(1, 0)]) as string;
        return { number: [number], amount, inFull: false, reason, again: history.random() < 0.7 };
      },
      (document) => anInvoice(document) && Number(document.invoiceAmount) > 0,
    ),
  },
  {
    name: 'write-off',
    weight: 1,
    refusals: ['document_void', 'nothing_to_write_off'],
    run: upon(invoiceWriteOff, ({ number }) => ({ number: [number], reason }), anInvoice),
  },
  {
    name: 'a write-off is undone',
    weight: 1,
    rare: true,
    async run(history) {
      const { world } = history;
      const written = await world.sql<{ number: string }>(
        'SELECT DISTINCT d.number FROM live_write_offs JOIN documents d USING (document_id) ORDER BY d.number',
      );
      const open = await aDocument(history, (each) => anInvoice(each) && Number(each.balance) > 0);
      const number = one(history, written)?.number ?? open?.number;
      if (number === undefined) return false;
      if (written.length === 0) {
        await confirmed(world, invoiceWriteOff, { number: [number], reason });
      }
      await confirmed(world, invoiceWriteOffUndo, { number: [number], reason });
      return true;
    },
  },
  ...paymentActions,
  {
    name: 'credit placed on an invoice',
    weight: 3,
    rare: true,
    refusals: ['credit_not_applicable', 'document_on_hold'],
    run: upon(
      creditApply,
      async ({ number: creditNote, partner_id, currency, balance }, history) => {
        const invoices = (await history.world.documents()).filter(
          (each) => anInvoice(each) && each.partner_id === partner_id && each.currency === currency,
        );
        const open =
          one(
            history,
            invoices.filter((each) => Number(each.balance) > 0),
          ) ?? one(history, invoices);
        if (open === undefined) return undefined;
        const least = Math.floor(Math.min(Number(balance), Number(open.balance)) / 2);
        const amount = least > 0 && history.random() < 0.5 ? String(least) : undefined;
        return { creditNote, number: open.number, amount };
      },
      (document) => aCreditNote(document) && Number(document.balance) > 0,
    ),
  },
  {
    name: 'placed credit taken back',
    weight: 2,
    rare: true,
    refusals: ['credit_covers_invoice'],
    async run(history) {
      const placed = await history.world.sql<{ note: string; number: string }>(
        `SELECT n.number AS note, i.number FROM live_credit_applications a
         JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id
         ORDER BY a.credit_application_id`,
      );
      const chosen = one(history, placed);
      if (chosen === undefined) return false;
      const { note: creditNote, number } = chosen;
      await confirmed(history.world, creditUnapply, { creditNote, number });
      return true;
    },
  },
  {
    name: 'an invoice is paid in full after its credit of the issue was taken back',
    weight: 2,
    rare: true,
    async run(history) {
      const { world, now } = history;
      const issuedWith = await world.sql<{ note: string; number: string }>(
        `SELECT n.number AS note, i.number FROM live_credit_applications a
         JOIN documents n ON n.document_id = a.credit_note_id JOIN documents i ON i.document_id = a.invoice_id
         WHERE a.at_issue AND i.invoice_amount > i.credit_applied ORDER BY a.credit_application_id`,
      );
      const chosen = one(history, issuedWith);
      if (chosen === undefined) return false;
      const { note: creditNote, number } = chosen;
      await confirmed(world, creditUnapply, { creditNote, number });
      const { balance: amount, currency } = (await world.documents()).find(
        (each) => each.number === number,
      ) as DocumentJson;
      const payment = { amount, currency, method: 'wire', reference: `all of ${number}` } as const;
      const receivedOn = now.toISOString().slice(0, 10);
      await confirmed(world, paymentRecord, { ...payment, number, receivedOn });
      return true;
    },
  },
  {
    name: 'the setting which credit a close takes changes, and the next command records it',
    weight: 1,
    async run(history) {
      const { world } = history;
      const credit_at_close = one(history, ['all', 'months', 'none'] as const) ?? 'all';
      const recorded = () =>
        world.sql<{ changes: { field: string; old: unknown; new: unknown }[] }>(
          `SELECT details->'changes' AS changes FROM audit_events WHERE action = 'settings.change' ORDER BY event_id`,
        );
      await recordSettingsChanges(world.database, world);
      const before = await recorded();
      const changes = { field: 'credit_at_close', old: world.settings.credit_at_close, new: credit_at_close };
      world.settings = { ...world.settings, credit_at_close };
      // However many commands see it, it is recorded once, as it was and as it is.
      for (const _ of [1, 2]) await recordSettingsChanges(world.database, world);
      const added = changes.old === changes.new ? [] : [{ changes: [changes] }];
      expect(await recorded()).toEqual([...before, ...added]);
      return true;
    },
  },
  {
    name: 'partners are reminded of what is due',
    weight: 1,
    rare: true,
    async run({ world }) {
      const settings = { ...world.settings, reminders: [-7, 0, 7, 21] };
      const open = new Map((await world.documents()).map((each) => [each.number, each]));
      const remind = () => confirmed({ ...world, settings }, reminderRecord, {});
      const { reminders } = await remind();
      for (const { documents } of reminders) {
        for (const { number, balance } of documents) {
          expect([number, open.get(number)?.status, open.get(number)?.balance]).toEqual([number, 'open', balance]);
        }
      }
      // Nobody is reminded twice of the same.
      expect((await remind()).reminders).toEqual([]);
      return reminders.length > 0;
    },
  },
  {
    name: 'the reminders of a partner are paused',
    weight: 1,
    refusals: ['argument_invalid'],
    async run(history) {
      const partnerId = (await aDocument(history))?.partner_id;
      if (partnerId === undefined) return false;
      const until = new Date(history.now.getTime() + 86_400_000 * (below(history, 30) - 1)).toISOString().slice(0, 10);
      await confirmed(history.world, reminderPause, { partnerId, until, reason });
      return true;
    },
  },
  {
    name: 'the pause of the reminders of a partner ends early',
    weight: 1,
    rare: true,
    refusals: ['reminders_not_paused'],
    async run(history) {
      const paused = await history.world.sql<{ partner_id: string }>(
        'SELECT partner_id FROM present_reminder_pauses WHERE until IS NOT NULL ORDER BY partner_id',
      );
      const partnerId = one(history, paused)?.partner_id;
      if (partnerId === undefined) return false;
      await confirmed(history.world, reminderResume, { partnerId, reason });
      return true;
    },
  },
  {
    name: 'rows of an invoice are credited',
    weight: 2,
    refusals: ['document_void', 'credit_exceeds_invoice', 'row_not_correctable', 'argument_invalid'],
    async run(history) {
      const invoice = await aDocument(history, (each) => anInvoice(each) && each.purpose === 'month');
      if (invoice === undefined) return false;
      const { number, partner_id, month, currency } = invoice;
      const rows = await history.world.sql<{ entry_id: number }>(
        `SELECT entry_id FROM ledger_rows WHERE partner_id = $1 AND posted_month = $2 AND currency = $3
         AND kind <> 'reversal' ORDER BY entry_id`,
        [partner_id, month, currency],
      );
      const ids = rows.map(({ entry_id }) => Number(entry_id)).slice(0, 1 + below(history, 3));
      if (ids.length === 0) return false;
      await confirmed(history.world, invoiceCredit, { number: [number], rows: ids, inFull: false, reason });
      return true;
    },
  },
  {
    name: 'sales are reversed by their rows',
    weight: 2,
    refusals: ['row_not_correctable'],
    async run(history) {
      const { world, model } = history;
      const sales = await world.sql<{ entry_id: number }>(
        "SELECT entry_id FROM ledger_rows WHERE kind = 'quote_accepted' ORDER BY entry_id",
      );
      const id = one(history, sales)?.entry_id;
      if (id === undefined) return false;
      const { recorded } = await confirmed(world, rowsReverse, { rows: [Number(id)], reason });
      const rows = await world.sql<Parameters<Model['recorded']>[0] & Record<string, unknown>>(
        `SELECT kind, quote_id, partner_id, policy_id, currency, partner_cut::text, invoice_amount::text
         FROM ledger_rows WHERE reversal_id = $1`,
        [reversalId(Number(id))],
      );
      expect(rows.length).toBe(recorded);
      for (const row of rows) model.recorded(row);
      return true;
    },
  },
  {
    name: "a document is delivered by the partner's portal",
    weight: 2,
    refusals: ['document_void', 'argument_invalid'],
    run: upon(invoiceDelivered, ({ number, issued_on }, history) => {
      const on = one(history, [issued_on, history.now.toISOString().slice(0, 10)]) as string;
      return { number: [number], on, reference: one(history, [undefined, 'P-17']) };
    }),
  },
  {
    name: 'the terms of a partner change by form',
    weight: 2,
    async run(history) {
      const { world } = history;
      const partnerId = (await aDocument(history))?.partner_id;
      if (partnerId === undefined) return false;
      const terms = {
        paymentTermsDays: one(history, ['14', '30']),
        paymentTermsEndOfMonth: one(history, ['yes', '']),
        paymentTermsDay: one(history, ['', '5', '31']),
        purchaseOrder: one(history, ['', 'PO-9']),
      };
      await confirmed(world, partnerChange, { partnerId, ...terms });
      return true;
    },
  },
  {
    name: 'credit paid out',
    weight: 1,
    rare: true,
    refusals: ['credit_not_refundable', 'refund_repeated', 'document_on_hold'],
    run: upon(
      creditRefund,
      ({ number, balance }, history) => {
        const half = Math.floor(Number(balance) / 2);
        const amount = half > 0 && history.random() < 0.6 ? String(half) : undefined;
        const again = history.random() < 0.5;
        return { number, amount, again, method: 'wire', reference: `out ${number}` } as const;
      },
      (document) => aCreditNote(document) && Number(document.balance) > 0,
    ),
  },
  {
    name: 'credit paid out that came back',
    weight: 1,
    rare: true,
    refusals: ['credit_not_refundable'],
    async run(history) {
      const paidOut = await history.world.sql<{ number: string }>(
        `SELECT d.number FROM credit_refunds JOIN documents d USING (document_id)
         WHERE credit_refund_id NOT IN (SELECT credit_refund_id FROM credit_refund_returns) ORDER BY credit_refund_id`,
      );
      const number = one(history, paidOut)?.number;
      if (number === undefined) return false;
      await confirmed(history.world, creditRefundReturned, { number, reason });
      return true;
    },
  },
  {
    name: 'an invoice is disputed',
    weight: 2,
    refusals: ['document_void', 'invoice_disputed', 'dispute_exceeds_balance'],
    run: upon(
      disputeOpen,
      ({ number, balance }, history) => ({
        ...{ number, reason, owner: one(history, [undefined, 'Ada']) },
        amount: one(history, [balance, undefined, inMajorUnits(1, 0)]),
        promisedOn: one(history, [undefined, history.now.toISOString().slice(0, 10)]),
      }),
      (document) => anInvoice(document) && Number(document.balance) > 0,
    ),
  },
  {
    name: 'a dispute is closed',
    weight: 2,
    refusals: ['document_void', 'invoice_not_disputed'],
    async run(history) {
      const disputed = await history.world.sql<{ number: string }>(
        'SELECT d.number FROM open_invoice_disputes JOIN documents d USING (document_id) ORDER BY document_id',
      );
      const number = one(history, disputed)?.number ?? (await aDocument(history))?.number;
      if (number === undefined) return false;
      await confirmed(history.world, disputeClose, { number: [number], reason });
      return true;
    },
  },
  {
    name: 'hold',
    weight: 2,
    refusals: ['document_void', 'document_on_hold'],
    run: upon(invoiceHold, ({ number }) => ({ number: [number], reason })),
  },
  {
    name: 'release',
    weight: 2,
    refusals: ['document_void', 'document_not_on_hold'],
    // Of those on hold, where there are some: taken from all documents, one history in ten released anything.
    async run(history) {
      const held = await history.world.sql<{ number: string }>(
        `SELECT d.number FROM holds h JOIN documents d USING (document_id)
         WHERE NOT EXISTS (SELECT FROM hold_releases r WHERE r.hold_id = h.hold_id) ORDER BY h.hold_id`,
      );
      const number = one(history, held)?.number ?? (await aDocument(history))?.number;
      if (number === undefined) return false;
      await confirmed(history.world, invoiceRelease, { number: [number] });
      return true;
    },
  },
  {
    name: 'resend',
    weight: 2,
    refusals: ['document_void', 'document_on_hold', 'document_email_unfinished', 'carried_over'],
    run: upon(
      invoiceResend,
      ({ number }) => ({ number: [number] }),
      // Once in four of any document, so that it is refused too.
      ({ email, status, number }) =>
        (status !== 'void' && ['sent', 'failed'].includes(email?.status ?? '')) || Number(number.slice(-1)) % 4 === 0,
    ),
  },
  {
    name: 'an e-mail comes back',
    weight: 2,
    async run(history) {
      const { world } = history;
      const sent = await world.sql<{ message_id: string; recipients: string[] }>(
        `SELECT message_id, recipients FROM emails WHERE status IN ('sent', 'uncertain', 'bounced') ORDER BY email_id`,
      );
      const email = one(history, sent);
      const final = one(history, email?.recipients ?? []);
      if (email === undefined || final === undefined) return false;
      const file = { name: 'mbox', bytes: report({ messageId: email.message_id, final }) };
      const { bounces } = await confirmed(world, emailBounces, { files: [file] });
      return bounces.length > 0;
    },
  },
  {
    name: 'what went wrong is sent again',
    weight: 1,
    rare: true,
    async run(history) {
      const { world } = history;
      const status = one(history, ['failed', 'uncertain', 'bounced'] as const) ?? 'failed';
      const { documents, others } = await confirmed(world, deliveryRetry, { status });
      return documents + others > 0;
    },
  },
  {
    name: 'account statements are asked for',
    weight: 2,
    async run(history) {
      const months = await history.world.sql<{ month: Month }>('SELECT month FROM closed_months ORDER BY month');
      const month = one(history, months)?.month;
      if (month === undefined) return false;
      const partnerId = one(history, ['p-1', 'p-2', undefined]);
      await confirmed(history.world, statementSend, { month, partnerId });
      // A delivery has queued those of closed books before, and nobody gets one twice.
      return true;
    },
  },
  {
    name: 'a checkpoint is taken',
    weight: 2,
    async run({ world }) {
      const json = await confirmed(world, checkpointTake, {});
      return json.taken;
    },
  },
  {
    name: 'e-mails without a document',
    weight: 2,
    async run(history) {
      const { world, server } = history;
      // A refused e-mail stays for the actions below.
      server.behaviour = one(history, ['accept', 'refuse_recipients', 'drop_after_data'] as const) ?? 'accept';
      let tried = 0;
      await sendEmails(world, {
        onEmail: () => {
          tried += 1;
        },
      });
      server.behaviour = 'accept';
      return tried > 0;
    },
  },
  {
    name: 'an e-mail without a document is resent',
    weight: 1,
    rare: true,
    refusals: ['email_unfinished'],
    run: uponEmail(emailResend as never),
  },
  {
    name: 'an e-mail without a document is dismissed',
    weight: 1,
    rare: true,
    refusals: ['email_unfinished', 'email_not_dismissible'],
    run: uponEmail(emailDismiss as never, { reason }),
  },
  {
    name: "the link of an invoice's page is replaced or taken back",
    weight: 2,
    refusals: ['link_missing', 'link_revoked'],
    async run(history) {
      const number = (await aDocument(history, anInvoice))?.number;
      if (number === undefined) return false;
      await confirmed(history.world, history.random() < 0.3 ? invoiceLinkRevoke : invoiceLinkRotate, {
        number,
        reason,
      });
      return true;
    },
  },
  {
    name: 'a pause, in which nothing is recorded, and its end',
    weight: 1,
    async run(history) {
      const { world } = history;
      const stateOf = history.random() < 0.5 ? null : new Date(history.now.getTime() - 3_600_000).toISOString();
      await world.database.transaction((tx) => pauseLedger(tx, world, { reason, stateOf }));
      const payment = { amount: '1', currency: 'USD', method: 'wire', reference: 'FT', partnerId: 'p-1' } as const;
      const receivedOn = history.now.toISOString().slice(0, 10);
      const code = await world.database
        .transaction((tx) => recordPayment(tx, world, { ...payment, receivedOn }))
        .then(
          () => 'recorded',
          (error: unknown) => (databaseFailure(error) as Refusal | undefined)?.code ?? (error as Refusal).code,
        );
      if (code !== 'paused') throw new Error(`while the ledger was paused, a payment was ${code}`);
      const numbersAfter = stateOf === null ? [] : await lostNumbers(history);
      await world.database.transaction((tx) => resumeLedger(tx, world, { numbersAfter }));
      return true;
    },
  },
  {
    name: 'backup, loss of everything, and restore',
    weight: 1,
    async run({ world }) {
      const file = join(world.home, 'history.backup');
      await writeBackup(world.database, world.environment, file);
      await emptyTables(world);
      const checked = await checkBackup(file, world.environment);
      await restoreBackup(world.database, checked, (tx) => verify(tx, undefined).catch(() => undefined));
      rmSync(file);
      return true;
    },
  },
  {
    name: 'the data of old processor events is erased',
    weight: 1,
    rare: true,
    async run({ world }) {
      // The database decides by its own clock what is old.
      await world.sql(`${GUARDS_OFF}
        UPDATE processor_events SET received_at = '2024-01-01T00:00:00Z'
        WHERE processor_event_id IN (SELECT processor_event_id FROM processor_event_outcomes);
        ${GUARDS_ON}`);
      const retention = { quotes_days: 30, processor_events_days: 30 };
      const { processor_events } = await purge(world.database, {
        ...world,
        settings: { ...world.settings, retention },
      });
      return processor_events > 0;
    },
  },
  ...SEVERAL_ACTS,
  ...SPLIT_ACTS,
  ...EVENT_ACTIONS,
  ...PEOPLE_ACTS,
  ...APPROVAL_ACTS,
  ...CHECKOUT_ACTS,
  ...API_ACTS,
  ...OPENING_ACTS,
  {
    name: 'the texts about a payer or the former contacts of a partner are erased',
    weight: 1,
    refusals: ['payment_unsettled', 'nothing_to_erase'],
    async run(history) {
      const payments = await history.world.sql<{ id: string }>(
        'SELECT payment_id AS id FROM payments ORDER BY payment_id',
      );
      const payment = one(history, payments);
      const partnerId = one(history, ['p-1', 'p-2', 'p-3']) ?? 'p-1';
      const person =
        payment === undefined || history.random() < 0.5
          ? { partnerContact: partnerId }
          : { payment: Number(payment.id) };
      await confirmed(history.world, personErase, { ...person, reason });
      return true;
    },
  },
];

/** Of this many histories with consecutive seeds, each action is favored by one. */
export const FAVORED_IN = 4;

/** The actions that a history goes on for until each is done once, so that a few histories together do all of them. */
export const favoredActions = (seed: number): readonly Action[] =>
  ACTIONS.filter((_, index) => index % FAVORED_IN === seed % FAVORED_IN);

/**
 * Every other time a favored action that is not done yet; else one of all actions by their weights, each the less likely the
 * more often this history has chosen it.
 */
export function chooseAction(random: () => number, chosen: readonly string[], toDo: readonly Action[]): Action {
  if (toDo.length > 0 && chosen.length > 4 && random() < 0.5) return toDo[Math.floor(random() * toDo.length)] as Action;
  const weighed = ACTIONS.map((action) => ({
    action,
    weight: action.weight / (1 + chosen.filter((name) => name === action.name).length),
  }));
  let at = random() * weighed.reduce((sum, { weight }) => sum + weight, 0);
  for (const { action, weight } of weighed) {
    at -= weight;
    if (at < 0) return action;
  }
  return ACTIONS[0] as Action;
}
