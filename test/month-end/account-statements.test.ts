/** Account statements by e-mail: when books close to whoever wants them, before that only on request and preliminary. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Month } from '../../src/month.ts';
import { sendStatements } from '../../src/month-end/emails/account-statement.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { refusalOf } from '../close/refusal.ts';
import { adopt } from '../support/adopting.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const hashOf = (partnerId: string) => createHash('sha256').update(partnerId).digest('hex').slice(0, 16);

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const contact = (partner_id: string) => ({ name: 'AP', email: `${partner_id}@partner.example`, cc: [] });
  await world.partners([
    partner({ account_statement: 'monthly', invoicing_contact: contact('p-1') }),
    partner({ partner_id: 'p-2', invoicing_contact: contact('p-2') }),
    partner({ partner_id: 'p-3', account_statement: 'monthly', invoicing_contact: contact('p-3') }),
  ]);
  await world.rows([quote(), quote({ partner_id: 'p-2' })]);
  await world.close();
  world.at('2026-09-01T12:00:00Z');
  await world.close();
});
afterAll(() => world.end());

const statements = () =>
  world.sql<{ partner_id: string; status: string; day: string; preliminary: boolean }>(
    `SELECT partner_id, status, day::text AS day, preliminary FROM emails WHERE kind = 'account_statement' ORDER BY email_id`,
  );

const run = (...args: string[]) =>
  command(['--json', 'statement', 'send', ...args], {
    env: { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-02T12:00:00Z' },
  });

/** The latest statement in the outbox whose name begins so. */
async function mailOf(name: string) {
  const outbox = join(world.home, 'outbox');
  const file = readdirSync(outbox).filter((each) => each.startsWith(name));
  return simpleParser(readFileSync(join(outbox, file[0] as string)));
}

const pdfText = async (pdf: Buffer) => {
  const document = await getDocument({ data: new Uint8Array(pdf), verbosity: 0 }).promise;
  const texts: string[] = [];
  for (let page = 1; page <= document.numPages; page += 1) {
    const { items } = await (await document.getPage(page)).getTextContent();
    texts.push(...items.map((item) => ('str' in item ? item.str : '')));
  }
  return texts.join(' ').replace(/ +/g, ' ');
};

test('the billing close mails no statement: the bank has not reported the month yet', async () => {
  await sendEmails(world, {});
  expect(await statements()).toEqual([]);
});

test('without a month, none is sent while no books are closed', async () => {
  const refused = await run('--partner', 'p-2');
  expect({ status: refused.status, stderr: refused.stderr }).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('no books are closed yet: name the month with --month'),
  });
});

test('one that finance sends before the books close says preliminary in the e-mail and in the PDF', async () => {
  const sent = await run('--month', '2026-08', '--partner', 'p-2');
  expect(sent.json()).toMatchObject({
    month: '2026-08',
    preliminary: true,
    emails: [{ partner_id: 'p-2', status: 'sent' }],
  });
  const mail = await mailOf('account-statement.2026-08.preliminary');
  expect(mail.subject).toBe(
    '[SANDBOX] Preliminary account statement for August 2026 from Sandbox Protection Services, Inc.',
  );
  expect(mail.text).toContain('*** This statement is preliminary. Our books of August 2026 are still open');
  expect(mail.html).toContain('This statement is preliminary.');
  const [attachment] = mail.attachments;
  expect(attachment?.filename).toBe('account-statement-2026-08-preliminary.pdf');
  expect(await pdfText(attachment?.content as Buffer)).toContain('The books of this period are still open');
  expect((await run('--month', '2026-08', '--partner', 'p-2')).json()).toMatchObject({ emails: [] });
});

test('when the books close, each partner that wants statements and each with a preliminary one gets its own, once', async () => {
  await world.closeBooks('2026-07', '2026-08');
  await sendEmails(world, {});
  await sendEmails(world, {});
  expect(await statements()).toEqual([
    { partner_id: 'p-2', status: 'sent', day: '2026-08-31', preliminary: true },
    { partner_id: 'p-1', status: 'sent', day: '2026-08-31', preliminary: false },
    { partner_id: 'p-2', status: 'sent', day: '2026-08-31', preliminary: false },
    { partner_id: 'p-3', status: 'withdrawn', day: '2026-08-31', preliminary: false },
  ]);
  const mail = await mailOf('account-statement.2026-08.'.concat(hashOf('p-1')));
  expect(mail.subject).toBe('[SANDBOX] Account statement for August 2026 from Sandbox Protection Services, Inc.');
  expect(mail.text).not.toMatch(/preliminary/i);
  expect(mail.text).toMatch(
    /- INV-2026-000001: USD 7\.00\ndue August 31, 2026\nTotal due: USD 7\.00\n\nOPEN INVOICES BY DAYS OVERDUE\nCurrent: USD 7\.00\n/,
  );
  expect(mail.attachments.map(({ filename }) => filename)).toEqual(['account-statement-2026-08.pdf']);
  expect(await pdfText(mail.attachments[0]?.content as Buffer)).not.toContain('Preliminary');
});

test('it says how to pay: bank details in the e-mail’s text and in the PDF, and the payment page of each open invoice', async () => {
  await world.deliver();
  const [{ url } = { url: '' }] = await world.sql<{ url: string }>(
    `SELECT url FROM payment_links JOIN documents USING (document_id) WHERE number = 'INV-2026-000001'`,
  );
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-03T12:00:00Z' };
  const [email] = await world.sql<{ id: string }>(
    `SELECT email_id AS id FROM emails WHERE kind = 'account_statement' AND partner_id = 'p-1'`,
  );
  expect((await command(['email', 'resend', String(email?.id)], { env })).status).toBe(0);
  const mail = await mailOf('account_statement.again');
  expect(mail.text).toContain(`due August 31, 2026\n${url}\n`);
  expect(mail.html).toContain(`href="${url}"`);
  expect(mail.text).toMatch(/PAY BY ACH TRANSFER[\s\S]*Routing number[\s\S]*PAY BY WIRE TRANSFER \(IN USD\)/);
  const text = await pdfText(mail.attachments[0]?.content as Buffer);
  for (const said of [
    'Total due USD 7.00',
    'How to pay, in USD',
    'ACH transfer',
    'Wire transfer',
    'The invoice numbers',
  ])
    expect(text).toContain(said);
});

test('it warns if an open invoice carries other bank details', async () => {
  const env = { RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-04T12:00:00Z' };
  const moved = JSON.stringify(world.settings.instructions).replaceAll('000123456789', '99887766');
  await adopt(world, 'instructions', JSON.parse(moved));
  const pdf = join(world.home, 'statement.pdf');
  const ran = await command(['report', 'statement', '--partner', 'p-1', '--as-of', '2026-08-31', '--pdf', pdf], {
    env,
  });
  expect(ran.status).toBe(0);
  const text = await pdfText(readFileSync(pdf));
  expect(text).toContain('99887766');
  expect(text).toContain('Our bank details have changed');
});

test('statement send mails any partner once, whether it asked for statements or not', async () => {
  expect((await run('--partner', 'p-2')).json()).toEqual({ month: '2026-08', preliminary: false, emails: [] });
});

test('a preliminary one that could not be sent before the books closed is withdrawn', async () => {
  world.at('2026-10-01T12:00:00Z');
  await world.close();
  const [queued] = await world.database.transaction(
    async (tx) => (await sendStatements(tx, world, { month: '2026-09' as Month, partnerId: 'p-1' })).emails,
  );
  await world.closeBooks('2026-09');
  await sendEmails(world, {});
  expect((await statements()).filter(({ day }) => day === '2026-09-30').slice(0, 2)).toEqual([
    { partner_id: 'p-1', status: 'withdrawn', day: '2026-09-30', preliminary: true },
    { partner_id: 'p-1', status: 'sent', day: '2026-09-30', preliminary: false },
  ]);
  expect(queued?.preliminary).toBe(true);
});

test('an open month and an unknown partner are refused, and nothing is recorded', async () => {
  const before = await statements();
  const send = (request: { month?: Month; partnerId?: string }) =>
    world.database.transaction((tx) => sendStatements(tx, world, request));
  expect(await refusalOf(send({ month: '2026-10' as Month }))).toMatchObject({ code: 'month_not_closed' });
  expect(await refusalOf(send({ partnerId: 'p-9' }))).toMatchObject({ code: 'partner_unknown' });
  expect(await statements()).toEqual(before);
});
