/** Findings for e-mails and payment links that need a person, and for a mail server that accepts nothing. */
import { query, querying, Transaction } from '#database/transaction';
import { LinkTrouble, readLinkTroubles } from '#delivery/links/links.sql';
import { EmailStatus } from '#mail/email';
import { nameOf, remediesOf } from '#mail/log';
import { ListedEmail, readEmails } from '#mail/log.sql';
import { RefusedInARow, readRefusedInARow } from '#mail/outbox.sql';
import { Scope } from '#people/scope';
import { minuteOf, plural } from '#text';
import { about, FoundDocument } from './documents.ts';
import { DELIVER, Finding, FindingQuestion, ReadFindings, toDo, troubleOf } from './finding.ts';

type WaitingDocument = FoundDocument &
  Readonly<{
    email_id: number;
    what: Exclude<EmailStatus, 'sent' | 'withdrawn'>;
    queued_at: string;
    since: string;
    reason: string | null;
  }>;

const HOUR_MS = 3_600_000;
/** Deliveries run every ten minutes. If an e-mail is queued for longer than this, no mail server accepts it. */
const QUEUED_TOO_LONG_MS = HOUR_MS;
const OVERDUE_HOURS = 24;

const before = (now: number, milliseconds: number) => new Date(now - milliseconds).toISOString();

function readWaitingDocuments(tx: Transaction, { scope, now, limit }: FindingQuestion): Promise<WaitingDocument[]> {
  return query(
    tx,
    `SELECT e.email_id, e.status AS what, d.number, d.partner_id, d.partner_name, d.currency,
            b.balance::text AS amount, e.queued_at, e.queued_at::date AS since, e.reason
     FROM unfinished_emails JOIN document_emails e USING (email_id, document_id)
     JOIN documents d USING (document_id) JOIN document_balances b USING (document_id)
     WHERE (e.status IN ('held', 'failed', 'bounced', 'uncertain')
            OR (e.status = 'queued' AND e.queued_at < :queuedBefore::timestamptz)
            OR (e.status = 'sending' AND e.queued_at < :overdueBefore::timestamptz))
       AND NOT EXISTS (SELECT FROM current_holds h WHERE h.document_id = e.document_id)
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY e.queued_at, d.document_id LIMIT :limit`,
    {
      ...{ scope, limit, queuedBefore: before(now, QUEUED_TOO_LONG_MS) },
      overdueBefore: before(now, OVERDUE_HOURS * HOUR_MS),
    },
  );
}

const TONES = {
  held: 'warn',
  failed: 'bad',
  bounced: 'bad',
  uncertain: 'warn',
  queued: 'bad',
  sending: 'bad',
} as const;

const isOverdue = (queuedAt: string, now: number) => Date.parse(queuedAt) < now - OVERDUE_HOURS * HOUR_MS;

/** Reports consecutive refusals as one finding about the mail server. */
export const readDeliveries: ReadFindings = async (tx, question) => {
  const waiting = await readWaitingDocuments(tx, question);
  const refused = waiting.some(({ what }) => what === 'failed') ? await readRefusedInARow(tx) : null;
  return waiting.map((document): Finding => {
    const { email_id, what, number, queued_at, since, reason } = document;
    const waits = what === 'queued' || what === 'sending';
    const isUrgent = waits ? isOverdue(queued_at, question.now) : refused?.documents.includes(email_id) !== true;
    return {
      ...about(document),
      ...{ item: `delivery:${number}`, kind: 'e-mails', tone: TONES[what], since },
      state: what === 'queued' ? 'no server accepts it' : what,
      reason: reason ?? (waits ? 'not tried yet' : ''),
      urgent: isUrgent ? urgentOf(document) : null,
      remedies: waits || what === 'held' ? [DELIVER] : [toDo('Resend it', 'invoice.resend', { number })],
    };
  });
};

function urgentOf({ what, number, reason }: WaitingDocument) {
  const because = reason === null || reason === '' ? '' : ` (${reason.replace(/\.$/, '')})`;
  const waits = `was issued more than ${OVERDUE_HOURS} hours ago and is still unsent${because}.`;
  const said: Readonly<Record<WaitingDocument['what'], string>> = {
    held: `is held${because}. Supply what is missing.`,
    failed: `was permanently refused by the mail server${because}. Correct the partner's contact.`,
    bounced: `was returned by a mail server${because}. Correct the partner's contact.`,
    uncertain: `may or may not have arrived${because}. Ask the partner before sending it again.`,
    ...{ queued: waits, sending: waits },
  };
  return `${number} ${said[what]}`;
}

export const readOtherEmails: ReadFindings = async (tx, { scope, now, limit }) => {
  const unfinished = await readEmails(tx, { unfinished: true, withoutDocument: true, scope, limit });
  const listed = unfinished.filter((email) => needsWork(email, now));
  const refused = listed.some(({ status }) => status === 'failed') ? await readRefusedInARow(tx) : null;
  return listed.map((email): Finding => {
    const waits = email.status === 'queued' || email.status === 'sending';
    const at = email.attempted_at ?? email.queued_at;
    const isUrgent = waits ? isOverdue(at, now) : refused?.others.includes(email.email_id) !== true;
    return {
      ...{ item: `email:${email.email_id}`, kind: 'e-mails', title: nameOf(email), money: null },
      state: email.status === 'queued' ? 'no server accepts it' : email.status,
      tone: email.status === 'held' || email.status === 'uncertain' ? 'warn' : 'bad',
      partners: email.partner_id === null ? [] : [{ id: email.partner_id, name: email.partner_id }],
      since: at.slice(0, 10),
      reason: email.reason ?? (waits ? 'not tried yet' : ''),
      urgent: isUrgent ? urgentOfOther(email, at) : null,
      remedies: remediesOf(email),
    };
  });
};

const needsWork = ({ status, queued_at, attempted_at }: ListedEmail, now: number) =>
  status === 'queued'
    ? Date.parse(queued_at) < now - QUEUED_TOO_LONG_MS
    : status !== 'sending' || isOverdue(attempted_at ?? queued_at, now);

function urgentOfOther(email: ListedEmail, at: string) {
  const { email_id, to, status, reason } = email;
  const [state, first] = OTHER_STATES[status as keyof typeof OTHER_STATES];
  return (
    `E-mail ${email_id}, ${nameOf(email)}${to === null ? '' : ` to ${to.join(', ')}`}, ${state} since ${minuteOf(at)}` +
    `${reason === null ? '' : ` (${reason})`}.${first}`
  );
}

const OTHER_STATES: Readonly<Record<Exclude<EmailStatus, 'sent' | 'withdrawn'>, readonly [string, string]>> = {
  queued: ['is still unsent', ''],
  sending: ['is still unsent', ''],
  held: ['is held', ' Supply what is missing.'],
  failed: ['was permanently refused by the mail server', ' Correct the address.'],
  uncertain: ['may or may not have arrived', ' Ask the recipient.'],
  bounced: ['was returned', ' Correct the address.'],
};

const readLinkedDocuments = querying<FoundDocument & { since: string }, { numbers: readonly string[]; scope: Scope }>(`
  SELECT d.number, d.partner_id, d.partner_name, d.currency, b.balance::text AS amount,
         coalesce(w.since::date, d.issued_on) AS since
  FROM documents d JOIN document_balances b USING (document_id) LEFT JOIN payment_link_waits w USING (document_id)
  WHERE d.number = ANY (:numbers::text[]) AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))`);

const LINK_LATE_SECONDS = 3600;

export const readLinks: ReadFindings = async (tx, { scope }) => {
  const troubles = await readLinkTroubles(tx);
  const numbers = troubles.map(({ number }) => number);
  const known = new Map((await readLinkedDocuments(tx, { numbers, scope })).map((each) => [each.number, each]));
  return troubles.flatMap((trouble): Finding[] => {
    const { number, active, reason, kind } = trouble;
    const document = known.get(number);
    if (document === undefined) return [];
    return [
      {
        ...about(document),
        ...{ item: `link:${number}`, kind: 'links', since: document.since, reason: reason ?? kind ?? '' },
        ...{ state: active ? 'link still active' : 'link missing', tone: active ? 'bad' : 'warn' },
        ...{ urgent: urgentOfLink(trouble), remedies: !active && kind === 'refused' ? [] : [DELIVER] },
      },
    ];
  });
};

function urgentOfLink({ number, active, kind, reason, waited_seconds: waited }: LinkTrouble) {
  const because = reason === null ? '' : ` (${reason})`;
  if (active) {
    return (
      `${number}: an active payment link asks for more than the balance${because}. If it stays active, deactivate it ` +
      'at the processor by hand.'
    );
  }
  if (kind === 'refused') {
    return `${number}: the processor refused the payment link${because}. The next attempt is in a day.`;
  }
  return waited > LINK_LATE_SECONDS ? `${number}: no payment link for more than an hour${because}.` : null;
}

/** Returns one finding for consecutive refusals, because the likely cause is the mail server. */
export function refusedInARow(refused: RefusedInARow | null): Finding[] {
  if (refused === null) return [];
  const { since, documents, others, reason } = refused;
  const counts = [
    ...(documents.length > 0 ? [plural(documents.length, 'document')] : []),
    ...(others.length > 0 ? [plural(others.length, 'other e-mail')] : []),
  ];
  const input = { status: 'failed', since: `${since.slice(0, 19)}Z` };
  return [
    troubleOf('machine', 'mail:refused', {
      urgent:
        `The mail server has refused ${counts.join(' and ')} in a row since ${minuteOf(since)} (${reason}). Several ` +
        'consecutive refusals point to the mail server, not the addresses. Correct it.',
      since,
      remedies: [
        toDo('Resend them all', 'delivery.retry', input),
        toDo('Resend a document', 'invoice.resend', {}, 'if an address is wrong'),
      ],
      count: documents.length + others.length,
    }),
  ];
}

const MAIL_LATE_HOURS = 1;

export const mailFailure = (failing: { since: string; reason: string } | null, now: number): Finding[] =>
  failing === null || now - Date.parse(failing.since) <= MAIL_LATE_HOURS * HOUR_MS
    ? []
    : [
        troubleOf('machine', 'mail:failing', {
          urgent:
            `No e-mail has gone out since ${minuteOf(failing.since)} (${failing.reason}). Check the mail server and ` +
            'SMTP_URL.',
          since: failing.since,
          remedies: [{ ...DELIVER, label: 'Try again' }],
        }),
      ];
