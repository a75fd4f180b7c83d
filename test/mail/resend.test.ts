/** E-mails without a document that were not sent: resent, sent to a new address, or dismissed; and what `status` says. */
import { expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { dismissEmail } from '../../src/mail/dismiss.ts';
import { type ListedEmail, readEmails } from '../../src/mail/log.sql.ts';
import { countOtherEmails } from '../../src/mail/outbox.sql.ts';
import type { EmailResult } from '../../src/mail/outbox.ts';
import { resendEmail } from '../../src/mail/resend.ts';
import { queueStatusEmail } from '../../src/month-end/emails/status.ts';
import { sendEmails, sendTheseEmails } from '../../src/month-end/month-end.ts';
import { recordReminders } from '../../src/payments/remind.ts';
import { refusalOf } from '../close/refusal.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { readStatus } from '../support/status.ts';
import { partner, quote, type World } from '../support/world.ts';

let world: World;
let server: MailServer;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const AUDITOR = 'auditor@protection.example';
const FINANCE = 'finance@protection.example';

async function send(only?: readonly number[]): Promise<EmailResult[]> {
  const results: EmailResult[] = [];
  const reporter = { onEmail: (result: EmailResult) => results.push(result) };
  await (only === undefined ? sendEmails(world, reporter) : sendTheseEmails(world, reporter, only));
  return results;
}
const resend = (emailId: number, to?: string) =>
  world.database.transaction((tx) => resendEmail(tx, world, { emailId, to }));
const dismiss = (emailId: number, reason = 'told by telephone') =>
  world.database.transaction((tx) => dismissEmail(tx, world, { emailId, reason }));
const unfinished = (): Promise<ListedEmail[]> =>
  world.database.reading((tx) => readEmails(tx, { unfinished: true, withoutDocument: true, limit: 100 }));
const attention = async () =>
  (await world.database.reading((tx) => readStatus(tx, world))).attention.filter((each) => each.startsWith('E-mail'));
const set = (changes: Partial<Settings>) => {
  world.settings = { ...world.settings, ...changes };
};
const events = (action: string) =>
  world.sql(
    'SELECT personal(subject) AS subject, personal_json(details) AS details FROM audit_events WHERE action = $1',
    [action],
  );

const CHECKPOINT = expect.stringMatching(/^checkpoint of \d+ facts$/);

/** Closes July; the mail server refuses this address, or accepts nothing to the end. */
async function closeWith(refused: string): Promise<ListedEmail> {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  set({ auditor_email: AUDITOR, finance_email: FINANCE });
  server.replies.set(refused, 550);
  await send();
  const [email] = await unfinished();
  return email as ListedEmail;
}

test.each([
  ['checkpoint', AUDITOR, 'checkpoint of \\d+ facts'],
  ['close_report', FINANCE, 'close report of 2026-07'],
] as const)('a failed %s is listed by status and ends with a resend', async (kind, address, about) => {
  const email = await closeWith(address);
  expect(email).toMatchObject({ kind, status: 'failed', to: [address], unfinished: true });
  expect(await attention()).toEqual([
    expect.stringMatching(
      `^E-mail ${email.email_id}, ${about} to ${address}, was permanently refused by the mail server since ` +
        `2026-08-01.*550.*Resend it with 'reckoner email resend ${email.email_id}'. Dismiss it with 'reckoner email ` +
        `dismiss ${email.email_id} --reason REASON'.`,
    ),
  ]);
  // Nothing is repeated by itself.
  expect(await send()).toEqual([]);
  server.replies.clear();
  const again = await resend(email.email_id);
  expect(await send([again.email_id])).toMatchObject([{ status: 'sent', email: { kind } }]);
  expect(await unfinished()).toEqual([]);
  expect(await attention()).toEqual([]);
  expect(await world.database.reading(countOtherEmails)).toMatchObject({ sent: 2, failed: 0 });
  expect(await events('email.resend')).toEqual([
    { subject: expect.stringMatching(`^${about}$`), details: { email: String(email.email_id) } },
  ]);
  // Both attempts are in the log, each under its own Message-ID.
  const log = await world.sql(
    `SELECT a.outcome, e.asked_for, count(*) OVER () AS attempts FROM email_attempts a JOIN emails e USING (email_id)
     WHERE e.kind = $1 ORDER BY e.email_id`,
    [kind],
  );
  expect(log.map(({ outcome, asked_for }) => [outcome, asked_for])).toEqual([
    ['refused', null],
    ['sent', 'resend'],
  ]);
  expect(
    await world.sql('SELECT count(DISTINCT message_id)::integer AS ids FROM emails WHERE kind = $1', [kind]),
  ).toEqual([{ ids: 2 }]);
});

test('an e-mail can be resent to one other address, and again after it was sent', async () => {
  const email = await closeWith(AUDITOR);
  const other = await resend(email.email_id, 'partner-auditor@audit.example');
  expect(await send()).toMatchObject([{ status: 'sent' }]);
  expect(await world.sql('SELECT recipients FROM emails WHERE email_id = $1', [other.email_id])).toEqual([
    { recipients: ['partner-auditor@audit.example'] },
  ]);
  const third = await resend(email.email_id, 'partner-auditor@audit.example');
  expect(await send()).toMatchObject([{ status: 'sent', email: { email_id: third.email_id } }]);
});

test('an e-mail that still waits, an unknown one and a foreign address are refused', async () => {
  const email = await closeWith(AUDITOR);
  const waiting = await resend(email.email_id);
  expect(await refusalOf(resend(email.email_id))).toMatchObject({
    code: 'email_unfinished',
    facts: { email: waiting.email_id, status: 'queued' },
  });
  expect(await refusalOf(resend(999))).toMatchObject({ code: 'email_unknown' });
  expect(await refusalOf(dismiss(999))).toMatchObject({ code: 'email_unknown' });
  expect(await refusalOf(resend(email.email_id, 'boss@partner.com'))).toMatchObject({ code: 'recipient_refused' });
  expect(await refusalOf(resend(email.email_id, 'a, b'))).toMatchObject({ code: 'argument_invalid' });
});

test('two resends at once queue one e-mail', async () => {
  const email = await closeWith(AUDITOR);
  const both = await Promise.allSettled([resend(email.email_id), resend(email.email_id)]);
  expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(both.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'email_unfinished' } });
});

test('a changed address gets a new e-mail, once; the same address gets none', async () => {
  await closeWith(AUDITOR);
  expect(await send()).toEqual([]);
  set({ auditor_email: 'new-auditor@protection.example' });
  expect(await send()).toMatchObject([{ status: 'sent', email: { kind: 'checkpoint' } }]);
  expect(await send()).toEqual([]);
  expect(await unfinished()).toEqual([]);
  expect(await events('email.resend')).toMatchObject([
    { subject: CHECKPOINT, details: { to: 'new-auditor@protection.example', because: 'new_address' } },
  ]);
});

test('a reminder is sent again to the corrected contact, for the documents that it was recorded for', async () => {
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
  await world.deliver();
  set({ auditor_email: '', finance_email: '' });
  world.at('2026-09-10T10:00:00Z');
  await world.database.transaction((tx) => recordReminders(tx, world));
  const [address] = (await world.sql<{ to: string }>('SELECT contact_email AS to FROM partners')).map(({ to }) => to);
  server.replies.set(address ?? '', 550);
  expect(await send()).toMatchObject([{ status: 'failed', email: { kind: 'reminder' } }]);
  await world.partners([partner({ invoicing_contact: { name: '', email: 'right@partner.example', cc: [] } })]);
  expect(await send()).toMatchObject([{ status: 'sent', email: { kind: 'reminder', partner_id: 'p-1' } }]);
  expect([server.mails.at(-1)?.to].flat()).toEqual(['right@partner.example']);
  expect(await attention()).toEqual([]);
});

test('an uncertain e-mail stays uncertain and needs no attention once it is dismissed', async () => {
  const { email_id: id } = await closeWith(AUDITOR);
  server.replies.clear();
  server.behaviour = 'drop_after_data';
  const { email_id: again } = await resend(id);
  await send();
  await send();
  expect(await attention()).toEqual([expect.stringContaining('may or may not have arrived')]);
  expect((await attention())[0]).toContain('Ask the recipient');
  await dismiss(again, 'the auditor has it');
  expect(await attention()).toEqual([]);
  expect(await world.database.reading(countOtherEmails)).toMatchObject({ uncertain: 0 });
  expect(await world.sql('SELECT status, dismissal_reason FROM emails WHERE email_id = $1', [again])).toEqual([
    { status: 'uncertain', dismissal_reason: 'the auditor has it' },
  ]);
  expect(await events('email.dismiss')).toEqual([
    { subject: CHECKPOINT, details: { email: String(again), reason: 'the auditor has it' } },
  ]);
  expect(await refusalOf(dismiss(again))).toMatchObject({ code: 'email_not_dismissible' });
  // A new address gets nothing of what was dismissed, and a resend is still possible.
  set({ auditor_email: 'new-auditor@protection.example' });
  server.behaviour = 'accept';
  expect(await send()).toEqual([]);
  await resend(again);
  expect(await send()).toMatchObject([{ status: 'sent' }]);
});

test('an e-mail that was never tried is withdrawn by its dismissal; one that may have arrived is uncertain', async () => {
  const { email_id: id } = await closeWith(AUDITOR);
  server.replies.clear();
  const { email_id: first } = await resend(id);
  await dismiss(first);
  expect(await world.sql('SELECT status FROM emails WHERE email_id = $1', [first])).toEqual([{ status: 'withdrawn' }]);
  const { email_id: second } = await resend(id);
  server.behaviour = 'drop_after_data';
  expect(await send()).toMatchObject([{ status: 'deferred' }]);
  await dismiss(second);
  expect(await world.sql('SELECT status, message FROM emails WHERE email_id = $1', [second])).toEqual([
    { status: 'uncertain', message: null },
  ]);
  expect(await send()).toEqual([]);
});

test("a document's e-mail is not dismissed: its document has to be resent", async () => {
  await closeWith(AUDITOR);
  const [email] = await world.sql<{ id: string }>('SELECT email_id AS id FROM emails WHERE document_id IS NOT NULL');
  await expect(dismiss(Number(email?.id))).rejects.toMatchObject({
    code: 'email_not_dismissible',
    remedies: [{ action: 'invoice.resend', input: { number: 'INV-2026-000001' } }],
  });
});

test('a failed status e-mail needs attention until the next one is sent', async () => {
  await closeWith(AUDITOR);
  set({ operations_email: 'ops@protection.example' });
  server.replies.set('ops@protection.example', 550);
  const mailStatus = async () => {
    await world.database.transaction((tx) => queueStatusEmail(tx, world));
    return send();
  };
  expect(await mailStatus()).toMatchObject([{ status: 'failed', email: { kind: 'status' } }]);
  expect(await attention()).toHaveLength(2);
  server.replies.delete('ops@protection.example');
  world.at('2026-08-02T09:00:00Z');
  expect(await mailStatus()).toMatchObject([{ status: 'sent' }]);
  expect(await attention()).toHaveLength(1);
});
