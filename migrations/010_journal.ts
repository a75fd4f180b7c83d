/**
 * The journal: every fact as a balanced entry, derived by views and never kept beside the facts (design, The double
 * entry behind each fact). Each view says which facts it is of:
 *
 *   journal_of_rows     ledger rows, three postings each
 *   journal_of_facts    documents, corrections and payments: `journal_entries`, two postings each
 *   journal             both, one line a posting: a debit is above zero, a credit below
 *   journal_months      both, summed by month and account: rows are grouped before they are posted, so that millions
 *                       of them are read once and no more
 *
 * The month of an entry is that in which it stands for good. A row's is the month that it posts to. Of other facts it is
 * the month of `entry_on`: the true date, but never before the earliest month that was open when it was recorded.
 *
 * And the e-mails that carry no document: reminders of what is owed, and the report of a close.
 */
import type { Knex } from 'knex';

export async function up(knex: Knex): Promise<void> {
  await entryDates(knex);
  await journal(knex);
  await notices(knex);
}

// --- The dates of entries -----------------------------------------------------------------------------------------------

/** Facts about documents with the column of their true date. Those about payments have their `entry_on` already. */
const DATED: readonly (readonly [table: string, column: string])[] = [
  ['documents', 'issued_on'],
  ['credit_applications', 'applied_on'],
  ['credit_releases', 'released_on'],
  ['write_offs', 'written_off_on'],
  ['voids', 'voided_on'],
];

/**
 * The issuer's day can still be in a month that has ended everywhere its partners are, and is closed. So each fact keeps
 * the first day that was open when it was recorded. (Facts from before this migration keep none, and their true date.)
 */
async function entryDates(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE FUNCTION earliest_postable_date() RETURNS date STABLE LANGUAGE sql AS $$
      SELECT (month_after(max(month)) || '-01')::date FROM closed_months
    $$`);
  for (const [table, column] of DATED) {
    await knex.raw(`
      ALTER TABLE ${table}
        ADD COLUMN reopened_on date,
        ADD COLUMN entry_on date NOT NULL GENERATED ALWAYS AS (greatest(${column}, reopened_on)) STORED`);
    await knex.raw(`ALTER TABLE ${table} ALTER COLUMN reopened_on SET DEFAULT earliest_postable_date()`);
    await knex.raw(`
      CREATE TRIGGER entry_month_open AFTER INSERT ON ${table} REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_entry_in_closed_month()`);
  }
}

// --- The entries --------------------------------------------------------------------------------------------------------

/** A side of an entry: the control account, and what tells its subaccounts apart: a partner, our bank account. */
type Side = readonly [control: string, detail: string];

interface Entry {
  readonly fact: string;
  readonly id: string;
  readonly dated: string;
  readonly debit: Side;
  readonly credit: Side;
  readonly amount: string;
  readonly from: string;
  /** The columns of the fact's own table, by its alias. */
  readonly entryOn?: string;
  readonly partner?: string;
  readonly debitPartner?: string;
  readonly currency: string;
  readonly document?: string;
  readonly reference?: string;
}

const BILLED = `'assets:receivable:billed'`;
const UNBILLED = `'assets:receivable:unbilled'`;
const BY_PROCESSOR = `'assets:receivable:processor'`;
const PARTNER_CREDIT = `'liabilities:partner-credit'`;
const UNAPPLIED = `'liabilities:unapplied'`;
const ADJUSTMENTS = `'income:adjustments'`;
const BANK = `'assets:bank'`;
const PROCESSOR = `'assets:processor'`;
const BANK_CHARGES = `'expenses:bank-charges'`;
const BAD_DEBTS = `'expenses:bad-debts'`;
const PROCESSOR_FEES = `'expenses:processor-fees'`;
const NONE = 'NULL';

/** Where a payment's money came to: a link's is with the processor until a payout brings it to the bank. */
const MONEY: Side = [
  `CASE p.method WHEN 'link' THEN ${PROCESSOR} ELSE ${BANK} END`,
  `CASE p.method WHEN 'link' THEN NULL ELSE p.account END`,
];

const reversed = (entry: Entry, fact: string, changes: Partial<Entry>): Entry => ({
  ...entry,
  fact,
  debit: entry.credit,
  credit: entry.debit,
  ...changes,
});

const ISSUED: Entry = {
  fact: 'document_issued',
  id: 'd.document_id',
  dated: 'd.issued_on',
  entryOn: 'd.entry_on',
  debit: [
    `CASE WHEN d.document = 'invoice' THEN ${BILLED} WHEN d.purpose = 'adjustment' THEN ${ADJUSTMENTS}
          WHEN d.purpose = 'missing_shares' THEN ${BY_PROCESSOR} ELSE ${UNBILLED} END`,
    'd.partner_id',
  ],
  credit: [
    `CASE WHEN d.document = 'credit_note' THEN ${PARTNER_CREDIT}
          WHEN d.purpose = 'missing_shares' THEN ${BY_PROCESSOR} ELSE ${UNBILLED} END`,
    'd.partner_id',
  ],
  amount: `CASE d.document WHEN 'statement' THEN 0 ELSE d.invoice_amount END`,
  from: 'documents d',
  partner: 'd.partner_id',
  currency: 'd.currency',
  document: 'd.number',
};

const CREDITED = `JOIN documents d ON d.document_id = a.invoice_id JOIN documents n ON n.document_id = a.credit_note_id`;

const CREDIT_APPLIED: Entry = {
  fact: 'credit_applied',
  id: 'a.credit_application_id',
  dated: 'a.applied_on',
  entryOn: 'a.entry_on',
  debit: [PARTNER_CREDIT, 'd.partner_id'],
  credit: [BILLED, 'd.partner_id'],
  amount: 'a.amount',
  from: `credit_applications a ${CREDITED}`,
  partner: 'd.partner_id',
  currency: 'd.currency',
  document: 'd.number',
  reference: 'n.number',
};

const PAYMENT_RECEIVED: Entry = {
  fact: 'payment_received',
  id: 'p.payment_id',
  dated: 'p.received_on',
  entryOn: 'p.entry_on',
  debit: MONEY,
  credit: [UNAPPLIED, 'p.partner_id'],
  amount: 'p.amount',
  from: 'payments p',
  partner: 'p.partner_id',
  currency: 'p.currency',
  reference: 'p.reference',
};

const PAYMENT_APPLIED: Entry = {
  fact: 'payment_applied',
  id: 'a.payment_application_id',
  dated: 'a.applied_on',
  entryOn: 'a.entry_on',
  debit: [UNAPPLIED, 'a.partner_id'],
  credit: [BILLED, 'a.partner_id'],
  amount: 'a.amount',
  from: 'payment_applications a JOIN documents d USING (document_id) JOIN payments p USING (payment_id)',
  partner: 'a.partner_id',
  currency: 'a.currency',
  document: 'd.number',
  reference: 'p.reference',
};

const SMALL_DIFFERENCE: Entry = {
  fact: 'small_difference',
  id: 's.payment_application_id',
  dated: 'a.applied_on',
  entryOn: 's.entry_on',
  debit: [BANK_CHARGES, NONE],
  credit: [BILLED, 'a.partner_id'],
  amount: 's.amount',
  from: `small_differences s JOIN payment_applications a USING (payment_application_id)
         JOIN documents d ON d.document_id = s.document_id JOIN payments p USING (payment_id)`,
  partner: 'a.partner_id',
  currency: 's.currency',
  document: 'd.number',
  reference: 'p.reference',
};

const UNDONE = 'JOIN payment_unapplications u USING (payment_application_id)';

const PAYMENT_REVERSED: Entry = {
  fact: 'payment_reversed',
  id: 'r.payment_reversal_id',
  dated: 'r.reversed_on',
  entryOn: 'r.entry_on',
  debit: [UNAPPLIED, 'r.partner_id'],
  credit: MONEY,
  amount: 'r.amount',
  from: 'payment_reversals r JOIN payments p USING (payment_id)',
  partner: 'r.partner_id',
  currency: 'r.currency',
  reference: 'p.reference',
};

const CREDIT_REFUNDED: Entry = {
  fact: 'credit_refunded',
  id: 'f.credit_refund_id',
  dated: 'f.refunded_on',
  entryOn: 'f.entry_on',
  debit: [PARTNER_CREDIT, 'f.partner_id'],
  credit: [BANK, 'f.account'],
  amount: 'f.amount',
  from: 'credit_refunds f JOIN documents d USING (document_id)',
  partner: 'f.partner_id',
  currency: 'f.currency',
  document: 'd.number',
  reference: 'f.reference',
};

const ENTRIES: readonly Entry[] = [
  ISSUED,
  reversed(ISSUED, 'document_voided', {
    dated: 'v.voided_on',
    entryOn: 'v.entry_on',
    from: 'voids v JOIN documents d ON d.document_id = v.document_id',
  }),
  CREDIT_APPLIED,
  reversed(CREDIT_APPLIED, 'credit_released', {
    dated: 'r.released_on',
    entryOn: 'r.entry_on',
    from: `credit_releases r JOIN credit_applications a USING (credit_application_id) ${CREDITED}`,
  }),
  {
    fact: 'written_off',
    id: 'w.write_off_id',
    dated: 'w.written_off_on',
    entryOn: 'w.entry_on',
    debit: [BAD_DEBTS, NONE],
    credit: [BILLED, 'd.partner_id'],
    amount: 'w.amount',
    from: 'write_offs w JOIN documents d USING (document_id)',
    partner: 'd.partner_id',
    currency: 'd.currency',
    document: 'd.number',
  },
  PAYMENT_RECEIVED,
  {
    fact: 'payment_assigned',
    id: 'g.payment_assignment_id',
    dated: 'g.assigned_on',
    entryOn: 'g.entry_on',
    debit: [UNAPPLIED, 'g.from_partner_id'],
    debitPartner: 'g.from_partner_id',
    credit: [UNAPPLIED, 'g.partner_id'],
    partner: 'g.partner_id',
    amount: 'g.amount',
    from: 'payment_assignments g JOIN payments p USING (payment_id)',
    currency: 'p.currency',
    reference: 'p.reference',
  },
  PAYMENT_APPLIED,
  reversed(PAYMENT_APPLIED, 'payment_unapplied', {
    dated: 'u.unapplied_on',
    entryOn: 'u.entry_on',
    from: `${PAYMENT_APPLIED.from} ${UNDONE}`,
  }),
  SMALL_DIFFERENCE,
  reversed(SMALL_DIFFERENCE, 'small_difference_undone', {
    dated: 'u.unapplied_on',
    entryOn: 'u.entry_on',
    from: `${SMALL_DIFFERENCE.from} ${UNDONE}`,
  }),
  PAYMENT_REVERSED,
  reversed(PAYMENT_REVERSED, 'payment_reinstated', {
    dated: 'i.reinstated_on',
    entryOn: 'i.entry_on',
    credit: [UNAPPLIED, 'i.partner_id'],
    partner: 'i.partner_id',
    from: `${PAYMENT_REVERSED.from} JOIN payment_reinstatements i USING (payment_reversal_id)`,
  }),
  {
    fact: 'payout_received',
    id: 'o.payout_id',
    dated: 'o.received_on',
    entryOn: 'o.entry_on',
    debit: [BANK, 'o.account'],
    credit: [PROCESSOR, NONE],
    amount: 'o.amount',
    from: 'payouts o JOIN bank_lines l USING (bank_line_id)',
    currency: 'o.currency',
    reference: 'l.bank_reference',
  },
  {
    // What the processor kept: with the payout, the whole of the payments leaves it.
    fact: 'payout_settled',
    id: 't.payout_id',
    dated: 't.entry_on',
    entryOn: 't.entry_on',
    debit: [PROCESSOR_FEES, NONE],
    credit: [PROCESSOR, NONE],
    amount: 't.fees',
    from: 'payout_settlements t JOIN payouts o USING (payout_id) JOIN bank_lines l USING (bank_line_id)',
    currency: 'o.currency',
    reference: 'l.bank_reference',
  },
  CREDIT_REFUNDED,
  reversed(CREDIT_REFUNDED, 'credit_refund_returned', {
    dated: 'b.returned_on',
    entryOn: 'b.entry_on',
    from: `${CREDIT_REFUNDED.from} JOIN credit_refund_returns b USING (credit_refund_id)`,
  }),
];

function select(entry: Entry): string {
  const [debit, debitDetail] = entry.debit;
  const [credit, creditDetail] = entry.credit;
  const partner = entry.partner ?? NONE;
  return `
    SELECT '${entry.fact}'::text AS fact, ${entry.id} AS fact_id, ${entry.entryOn} AS entry_on, ${entry.dated} AS dated_on,
           ${debit} AS debit, (${debitDetail})::text AS debit_detail,
           (${entry.debitPartner ?? partner})::text AS debit_partner,
           ${credit} AS credit, (${creditDetail})::text AS credit_detail, (${partner})::text AS credit_partner,
           ${entry.currency} AS currency, (${entry.amount})::numeric AS amount,
           (${entry.document ?? NONE})::text AS document, (${entry.reference ?? NONE})::text AS reference
    FROM ${entry.from}
    WHERE ${entry.amount} <> 0`;
}

// --- The views ------------------------------------------------------------------------------------------------------------

/** The three postings of a row, or of a sum of rows. */
const ROW_POSTINGS = `
      CROSS JOIN LATERAL (VALUES
        (CASE e.arrangement WHEN 'invoicing' THEN ${UNBILLED} ELSE ${BY_PROCESSOR} END, e.partner_id, e.invoice_amount),
        ('expenses:partner-cut', e.partner_id, e.partner_cut),
        ('income:sales', e.policy_id, -e.spot_price)) AS p (control, detail, amount)
      WHERE p.amount <> 0`;

const ACCOUNT = `p.control || coalesce(':' || nullif(p.detail, ''), '')`;

async function journal(knex: Knex): Promise<void> {
  await knex.raw(`CREATE VIEW journal_entries AS ${ENTRIES.map(select).join('\n    UNION ALL')}`);
  await knex.raw(`
    CREATE VIEW journal_of_facts AS
    SELECT to_char(j.entry_on, 'YYYY-MM') COLLATE "C" AS month, j.entry_on, j.dated_on, j.fact, j.fact_id, p.control,
           ${ACCOUNT} AS account, p.partner_id, NULL::text AS policy_id, j.currency, p.amount, j.document, j.reference
    FROM journal_entries j
    CROSS JOIN LATERAL (VALUES
      (j.debit, j.debit_detail, j.debit_partner, j.amount),
      (j.credit, j.credit_detail, j.credit_partner, -j.amount)) AS p (control, detail, partner_id, amount)`);

  // A row is dated the day of its acceptance where it was accepted, so that its date lies in its own month; a late one
  // the first day of the month that it posts to. (Where clocks are set back at midnight, see src/month.ts, the month's
  // first hour still has the date of the day before.)
  await knex.raw(`
    CREATE VIEW journal_of_rows AS
    SELECT e.posted_month AS month,
           CASE WHEN e.posted_month > e.month THEN (e.posted_month || '-01')::date
                ELSE greatest(day.dated_on, (e.month || '-01')::date) END AS entry_on,
           day.dated_on, e.kind AS fact, e.entry_id AS fact_id, p.control, ${ACCOUNT} AS account, e.partner_id,
           e.policy_id, e.currency, p.amount, NULL::text AS document,
           coalesce(e.reversal_id, e.requote_id, e.quote_id) AS reference
    FROM (ledger_rows e CROSS JOIN LATERAL (SELECT (e.accepted_at AT TIME ZONE e.time_zone)::date AS dated_on) AS day)
    ${ROW_POSTINGS}`);

  await knex.raw(`
    CREATE VIEW journal AS
    SELECT * FROM journal_of_rows UNION ALL SELECT * FROM journal_of_facts`);

  await knex.raw(`
    CREATE VIEW journal_months AS
    SELECT e.month, p.control, ${ACCOUNT} AS account, e.partner_id, e.currency, sum(p.amount) AS amount
    FROM (SELECT posted_month AS month, arrangement, partner_id, policy_id, currency, sum(spot_price) AS spot_price,
                 sum(partner_cut) AS partner_cut, sum(invoice_amount) AS invoice_amount
          FROM ledger_rows GROUP BY posted_month, arrangement, partner_id, policy_id, currency) AS e
    ${ROW_POSTINGS}
    GROUP BY e.month, p.control, p.detail, e.partner_id, e.currency
    UNION ALL
    SELECT month, control, account, partner_id, currency, sum(amount) AS amount
    FROM journal_of_facts GROUP BY month, control, account, partner_id, currency`);

  for (const view of ['journal_entries', 'journal_of_facts', 'journal_of_rows', 'journal', 'journal_months']) {
    await knex.raw(`CALL grant_to_app('SELECT', '${view}')`);
  }
}

// --- E-mails that carry no document -----------------------------------------------------------------------------------

async function notices(knex: Knex): Promise<void> {
  // Recorded before it is sent, and once: a reminder by partner and day, the report of a close by month. The states and
  // what they need are those of `sendings`.
  await knex.raw(`
    CREATE TABLE notices (
      notice_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      kind text NOT NULL CONSTRAINT notice_kind_known CHECK (kind IN ('reminder', 'close_report')),
      partner_id text COLLATE "C" REFERENCES partners,
      day date,
      month text COLLATE "C" REFERENCES closed_months,
      message_id text NOT NULL CONSTRAINT notice_message_id_once UNIQUE,
      status text NOT NULL CONSTRAINT notice_status_known
        CHECK (status IN ('queued', 'sending', 'sent', 'held', 'failed', 'uncertain', 'withdrawn')),
      reason text,
      recipients text[],
      message bytea,
      message_sha256 text,
      envelope_from text,
      attempts integer NOT NULL DEFAULT 0,
      unclear_attempts integer NOT NULL DEFAULT 0,
      worker bigint,
      queued_at timestamptz NOT NULL,
      attempted_at timestamptz,
      sent_at timestamptz,
      event_id bigint NOT NULL REFERENCES audit_events,
      CONSTRAINT notice_once UNIQUE NULLS NOT DISTINCT (kind, partner_id, day, month),
      CONSTRAINT notice_of_partner UNIQUE (notice_id, partner_id),
      CONSTRAINT notice_says_of_what CHECK (
        (kind = 'reminder') = (partner_id IS NOT NULL) AND (kind = 'reminder') = (day IS NOT NULL)
        AND (kind = 'close_report') = (month IS NOT NULL)),
      CONSTRAINT notice_in_flight_has_worker CHECK ((status = 'sending') = (worker IS NOT NULL)),
      CONSTRAINT notice_in_flight_has_message CHECK (status <> 'sending' OR (message IS NOT NULL AND recipients IS NOT NULL)),
      CONSTRAINT notice_sent_has_time CHECK ((status = 'sent') = (sent_at IS NOT NULL)),
      CONSTRAINT notice_held_has_reason CHECK (status <> 'held' OR reason IS NOT NULL)
    )`);
  await knex.raw(`CREATE INDEX notices_unfinished ON notices (status) WHERE status <> 'sent'`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE', 'notices')`);
  await knex.raw(`
    CREATE FUNCTION refuse_rewritten_notice() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF (OLD.kind, OLD.partner_id, OLD.day, OLD.month, OLD.message_id, OLD.queued_at, OLD.event_id)
         IS DISTINCT FROM (NEW.kind, NEW.partner_id, NEW.day, NEW.month, NEW.message_id, NEW.queued_at, NEW.event_id)
         OR OLD.status IN ('sent', 'withdrawn') THEN
        RAISE EXCEPTION 'notice % is a fact: another is a new one', OLD.notice_id
          USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'notices_facts_stay';
      END IF;
      RETURN NEW;
    END
    $$`);
  await knex.raw(`
    CREATE TRIGGER notices_facts_stay BEFORE UPDATE ON notices
      FOR EACH ROW EXECUTE FUNCTION refuse_rewritten_notice()`);

  // The step of its reminders that a document has reached, in days after it was due, and the e-mail that says so.
  await knex.raw(`
    CREATE TABLE reminders (
      document_id bigint NOT NULL,
      step integer NOT NULL,
      notice_id bigint NOT NULL,
      partner_id text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      PRIMARY KEY (document_id, step),
      CONSTRAINT reminder_to_its_partner FOREIGN KEY (notice_id, partner_id) REFERENCES notices (notice_id, partner_id),
      CONSTRAINT reminder_of_its_partners_document FOREIGN KEY (document_id, partner_id, currency)
        REFERENCES documents (document_id, partner_id, currency)
    )`);
  await knex.raw(`CREATE INDEX reminders_of_notice ON reminders (notice_id)`);
  await knex.raw(`CALL make_append_only('reminders')`);
}
