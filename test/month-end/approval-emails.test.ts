/** Who hears by e-mail of a request for approval, and of what became of it. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { approveRequest, endRequest } from '../../src/actions/approve.ts';
import { clientCreate } from '../../src/actions/client.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { ledgerImport } from '../../src/actions/rows.ts';
import { runAction } from '../../src/actions/run.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { changeRoles, identify } from '../../src/people/users.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving, PAT } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { readStatus } from '../support/status.ts';
import { quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
beforeAll(async () => {
  server = await startMailServer();
  world = await openApproving({ smtpUrl: server.url });
  await sendEmails(world, {});
});
afterAll(async () => {
  await world.end();
  await server.close();
});
beforeEach(() => {
  server.behaviour = 'accept';
  server.mails.length = 0;
});

const [FIRST, SECOND] = ['INV-2026-000001', 'INV-2026-000002'] as const;

/** Mara asks, and gets the number of the request. */
async function ask(number: string, reason: string): Promise<number> {
  const rules = { 'invoice.hold': { always: true } as const, 'invoice.void': { always: true } as const };
  const action = reason === 'hold' ? invoiceHold : invoiceVoid;
  const { facts } = await refusalOf(runAction(await as(world, MARA, rules), action, { number, reason }));
  return facts['request_id'] as number;
}
const reject = async (requestId: number, reason: string) =>
  endRequest(await as(world, LEE), requestId, 'reject', reason);
const send = () => sendEmails(world, {});
const sent = () => server.mails.map(({ to, parsed }) => ({ to, subject: parsed.subject }));

test('a request is mailed once, to whoever may approve it and not to whoever asked, with what it would do', async () => {
  const request = await ask(SECOND, 'wrong price');
  await send();
  await send();
  const subject = `[SANDBOX] Approval needed: Void a document, ${SECOND} (14.00 USD)`;
  expect(sent()).toEqual([{ to: [LEE], subject }]);
  const text = server.mails[0]?.parsed.text ?? '';
  expect(text).toContain(`${MARA} asks for your approval: Void a document, ${SECOND}`);
  expect(text).toContain('Reason: wrong price');
  expect(text).toContain('Expires: 2026-08-15 10:00 UTC');
  expect(text).toContain(`- ${SECOND}, Status: open → void`);
  expect(text).toContain(`http://127.0.0.1:8080/console/approvals/${request}\n`);
  expect(text.replaceAll('\n', ' ')).toContain(`reckoner approval approve ${request}`);
  await reject(request, 'the price is right');
  await send();
  expect(sent()[1]).toEqual({
    to: [MARA],
    subject: `[SANDBOX] Rejected: Void a document, ${SECOND} (14.00 USD)`,
  });
  expect(server.mails[1]?.parsed.text).toContain('Reason: the price is right');
  await send();
  expect(server.mails).toHaveLength(2);
});

test('approvers of a partner hear of what touches that partner alone, and the approval is mailed too', async () => {
  const request = await ask(FIRST, 'hold');
  await send();
  expect(sent().map(({ to }) => to)).toEqual([[LEE, PAT]]);
  await approveRequest(await as(world, LEE), request, { reason: null, deliver: false });
  await send();
  expect(sent()[1]?.subject).toMatch(/^\[SANDBOX\] Approved: /);
  expect(server.mails[1]?.parsed.text).toMatch(/The action\swas carried out under your name\./);
});

test('an approved import of rows is not done yet, and its e-mail says until when it can be repeated', async () => {
  const rules = { 'ledger.import': { always: true } as const };
  const file = { name: 'rows.ndjson', bytes: Buffer.from(`${JSON.stringify(quote())}\n`) };
  const importing = runAction(await as(world, MARA, rules), ledgerImport, { files: [file] });
  const request = (await refusalOf(importing)).facts['request_id'] as number;
  await send();
  expect(server.mails[0]?.parsed.text).toContain('After the approval, the requester repeats this with the same files.');
  await approveRequest(await as(world, LEE), request, { reason: null, deliver: false });
  await send();
  expect(sent()[1]?.subject).toMatch(/^\[SANDBOX\] Approved: Import ledger rows, rows\.ndjson/);
  const text = server.mails[1]?.parsed.text?.replaceAll(/\s+/g, ' ');
  expect(text).toContain('Repeat it with the same files until 2026-08-15 10:00 UTC to carry it out.');
});

test('a mail server that is down keeps no request from being made, and it is mailed later', async () => {
  server.behaviour = 'drop_before_data';
  const request = await ask(SECOND, 'while mail is down');
  await send();
  const waiting = await world.sql(
    `SELECT kind, status, approval_request_id::int AS request FROM emails WHERE status NOT IN ('sent', 'withdrawn')`,
  );
  expect(waiting).toEqual([{ kind: 'approval_request', status: 'queued', request }]);
  server.behaviour = 'accept';
  await send();
  expect(sent().map(({ to }) => to)).toEqual([[LEE]]);
  await endRequest(await as(world, MARA), request, 'withdraw', null);
});

test('whoever withdraws hears nothing, and what is withdrawn before its e-mail goes out is not mailed', async () => {
  const request = await ask(SECOND, 'a mistake');
  server.behaviour = 'defer_recipients';
  await send();
  await endRequest(await as(world, MARA), request, 'withdraw', null);
  server.behaviour = 'accept';
  await send();
  expect(sent()).toEqual([]);
});

test('a request that expires is told to whoever asked', async () => {
  await ask(SECOND, 'nobody looks');
  await send();
  world.at('2026-08-15T10:00:00Z');
  await send();
  expect(sent()[1]).toMatchObject({ to: [MARA], subject: expect.stringContaining('Not decided in time: ') });
  expect(server.mails[1]?.parsed.text).toContain('expired at 2026-08-15 10:00 UTC without a decision.');
});

test('while nobody may approve, the e-mail is held and the status says how to name an approver', async () => {
  const roles = async (grant: boolean) =>
    world.database.transaction(async (tx) => {
      const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
      const approver = [{ role: 'approver', partner_id: null }] as const;
      return changeRoles(
        tx,
        { ...world, actor },
        { login: LEE, grant: grant ? approver : [], revoke: grant ? [] : approver },
      );
    });
  const request = await ask(SECOND, 'nobody there');
  await roles(false);
  await send();
  expect(sent()).toEqual([]);
  const { attention } = await world.database.reading((tx) => readStatus(tx, world));
  expect(attention.join('\n')).toContain(`no one may decide request ${request}: give a user the role approver`);
  await roles(true);
  await send();
  expect(sent().map(({ to }) => to)).toEqual([[LEE]]);
});

test('no e-mail holds the secret that an approved action makes', async () => {
  const rules = { 'client.create': { always: true } as const };
  const asked = refusalOf(
    runAction(await as(world, ADMINISTRATOR, rules), clientCreate, { partnerId: 'p-1', validDays: 30 }),
  );
  const request = (await asked).facts['request_id'] as number;
  await send();
  const { json } = await approveRequest(await as(world, LEE), request, { reason: null });
  await send();
  const { client_secret: secret } = json as { client_secret: string };
  expect(secret.length).toBeGreaterThan(20);
  expect(sent().map(({ to }) => to)).toEqual([[LEE, MARA, PAT], [ADMINISTRATOR]]);
  for (const { raw } of server.mails) expect(String(raw)).not.toContain(secret);
});
