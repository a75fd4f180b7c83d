/** The close cockpit: what closing would issue, what stands in its way, the close itself and its e-mails. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportGl } from '../../src/general-ledger/export.ts';
import type { Month } from '../../src/month.ts';
import { everyAccount, writeAccounts } from '../general-ledger/months.ts';
import { ADMINISTRATOR, type Browser, invite, type Page, serveConsole, signedIn, wordsOf } from '../support/console.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
let finance: Browser;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Other Tickets' })]);
  await world.rows([
    quote({ accepted_at: '2026-07-10T12:00:00Z' }),
    quote({ partner_id: 'p-2', accepted_at: '2026-07-10T12:00:00Z' }),
  ]);
  world.at('2026-08-02T15:00:00Z');
  await world.close();
  await world.deliver();
  world.at('2026-09-02T15:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T12:00:00Z' })]);
  await invite(world, ADMINISTRATOR);
  served = await serveConsole(world, { allow_empty: false });
  finance = await signedIn(served, await invite(world, 'mara@issuer.example', { roles: ['finance'] }));
});
afterAll(async () => {
  await served.end();
  await world.end();
});

const counts = () => world.sql<{ documents: string }>(`SELECT count(*)::text AS documents FROM documents`);
const sentBack = ({ text }: Page, form = text): [string, string][] =>
  [...form.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
    .map(([, name = '', value = '']): [string, string] => [name, value])
    .filter(([name]) => name !== 'form_token');
const CLOSE = '/console/actions/month.close';
const preview = (browser: Browser, asked: object) =>
  browser.post(CLOSE, { month: '2026-08', ...asked, step: 'preview' });

describe('before the close', () => {
  test('its preview shows every partner against last month and the feed that is missing, and writes nothing', async () => {
    const before = await counts();
    const { status, text } = await preview(finance, {});
    expect(status).toBe(200);
    expect(wordsOf({ text } as Page)).toMatch(/Other Tickets\) has no rows/);
    expect(text).toContain('href="/console/actions/month.close?month=2026-08&amp;without=p-2"');
    expect(text).toContain('INV-2026-000003');
    expect(text).not.toContain('value="confirm"');
    expect((await finance.get('/console/close/2026-08')).text).toContain(
      '/console/actions/feed.accept?partnerId=p-2&amp;month=2026-08',
    );
    expect(await counts()).toEqual(before);
  });

  test('a viewer sees the cockpit without its buttons, and no preview', async () => {
    const viewer = await signedIn(served, await invite(world, 'vera@issuer.example', { roles: ['viewer'] }));
    const { status, text } = await viewer.get('/console/close/2026-08');
    expect([status, text.includes('value="preview"')]).toEqual([200, false]);
    expect((await preview(viewer, {})).status).toBe(403);
  });

  test('the running month is previewed with the day on which it can be closed, and without a button that closes it', async () => {
    const running = await openWorld();
    await running.partners([partner()]);
    await running.rows([quote({ accepted_at: '2026-07-10T12:00:00Z' })]);
    running.at('2026-07-20T12:00:00Z');
    await invite(running, ADMINISTRATOR);
    const console_ = await serveConsole(running);
    const mara = await signedIn(console_, await invite(running, 'mara@issuer.example', { roles: ['finance'] }));
    const { text } = await preview(mara, { month: '2026-07' });
    expect(text).toContain('INV-2026-000001');
    expect(text).toMatch(/role="alert">[^<]*2026-07/);
    expect(text).not.toContain('value="confirm"');
    await console_.end();
    await running.end();
  });

  test('the running month is in the strip beside the one that waits, with what is missing of it so far', async () => {
    expect(wordsOf(await finance.get('/console/close'))).toMatch(
      /Aug 2026[\d.]+\u00a0USDReady to closeSep 2026No rowsRunning/,
    );
    const page = await finance.get('/console/close/2026-09');
    expect(page.text).toContain('0 of 2 have arrived');
    expect(page.text).toContain('<a href="/console/close/2026-08">August 2026</a> closes first');
    expect(page.text).toContain('ends everywhere on');
    expect(page.text).not.toContain('value="preview"');
    expect(page.text).not.toContain('Auditor&#39;s pack');
  });

  test('a month before the first, or after the running one, is no page', async () => {
    for (const month of ['2026-06', '2026-10', '9999-11']) {
      expect([month, (await finance.get(`/console/close/${month}`)).status]).toEqual([month, 404]);
    }
  });
});

test('closing without the missing feed issues, leads back to the cockpit, and its e-mails follow while it is looked at', async () => {
  const page = await preview(finance, { without: 'p-2' });
  expect(page.text).toContain('Close August 2026 and e-mail 1 document');
  const asked = sentBack(page, page.text.slice(page.text.indexOf(`action="${CLOSE}"`)));
  expect(asked).toEqual([
    ['shown', expect.stringMatching(/^[0-9a-f]{64}$/)],
    ...[
      ['month', '2026-08'],
      ['without', 'p-2'],
    ],
  ]);
  const done = await finance.post(CLOSE, [...asked, ['step', 'confirm']]);
  expect([done.status, done.location]).toEqual([303, '/console/close/2026-08']);
  await expect
    .poll(async () => (await finance.get('/console/close/2026-08')).text, { timeout: 20_000, interval: 500 })
    .toMatch(/1 of 1 sent/);
  const { text } = await finance.get('/console/close/2026-08');
  expect(text).not.toContain('hx-trigger');
  // The part that is polled has both cards that count e-mails, so that they agree.
  const polled = text.slice(
    text.indexOf('id="deliveries"'),
    text.indexOf('</section></div><section class="card"><header><h2>Proof'),
  );
  expect(polled).toMatch(/E-mails.*Sign-off.*1 e-mail sent, none waiting/s);
  expect(text).toContain('/console/actions/books.close?month=2026-08');
});

test('the sign-off says who closed the month, what keeps its books open, and in the end who closed them', async () => {
  const cockpit = async (month: string) => (await finance.get(`/console/close/${month}`)).text;
  expect(await cockpit('2026-08')).toMatch(/Billing closed by mara@issuer\.example/);
  expect(await cockpit('2026-08')).toMatch(/href="\/console\/close\/2026-07">The books of July 2026<\/a> close first/);
  expect(await cockpit('2026-08')).toContain('Not verified since it was closed');
  expect(await cockpit('2026-07')).toContain('The books of July 2026 can be closed');
  const action = '/console/actions/books.close';
  const preview = await finance.post(action, [
    ['month', '2026-07'],
    ['step', 'preview'],
  ]);
  const done = await finance.post(action, [...sentBack(preview), ['step', 'confirm']]);
  expect(done.text).toContain('The books of July 2026 are closed.');
  expect(await cockpit('2026-07')).toMatch(/Books closed by mara@issuer\.example/);
  expect(await cockpit('2026-08')).not.toContain('close first');
});

test('the sign-off asks finance to export closed books for the general ledger, once it has an accounts.json', async () => {
  const cockpit = async () => (await finance.get('/console/close/2026-07')).text;
  expect(await cockpit()).not.toContain('general ledger');
  writeAccounts(world, everyAccount());
  expect(await cockpit()).toMatch(
    /Not exported for the general ledger<br\/><a href="\/console\/actions\/gl\.export\?month=2026-07">Export<\/a>/,
  );
  expect((await finance.get('/console/close/2026-08')).text).not.toContain('Not exported');
  await world.database.transaction((tx) => exportGl(tx, world, { month: '2026-07' as Month, format: 'xero' }));
  expect(await cockpit()).toMatch(/>Exported<\/a> for xero/);
});

test('the sign-off names the differences of a verify that ran after the close', async () => {
  await world.sql(
    `INSERT INTO audit_tasks (kind, input, asked_at, finished_at, seen_at, host, progress, result)
     VALUES ('verify', '{}', now(), now(), now(), 'here', 1,
             '{"checks":[{"check":"rules_hold","inspected":3,"differences":2,"first":[]}]}')`,
  );
  expect((await finance.get('/console/close/2026-08')).text).toContain('Verified since, with 2 differences');
});

test('a request to close the books is named by the sign-off until it is approved, and its approver after it', async () => {
  const ruled = await serveConsole(world, { approvals: { 'books.close': { always: true } } });
  const mara = await signedIn(ruled, await invite(world, 'mara@issuer.example', { roles: ['finance'] }));
  const lee = await signedIn(ruled, await invite(world, 'lee@issuer.example', { roles: ['approver'] }));
  const action = '/console/actions/books.close';
  const preview = await mara.post(action, [
    ['month', '2026-08'],
    ['step', 'preview'],
  ]);
  await mara.post(action, [...sentBack(preview), ['step', 'confirm']]);
  const waiting = (await mara.get('/console/close/2026-08')).text;
  const [, request = ''] = /approvals\/(\d+)">Request \d+<\/a> of mara@issuer\.example waits/.exec(waiting) ?? [];
  const asked = await lee.get(`/console/approvals/${request}`);
  await lee.post(`/console/approvals/${request}`, [...sentBack(asked), ['decision', 'approve']]);
  expect((await mara.get('/console/close/2026-08')).text).toContain(
    'Books closed by mara@issuer.example, approved by lee@issuer.example',
  );
  await ruled.end();
});

test('a month that was closed long ago has its cockpit, and the strip leads there and back', async () => {
  const old = await openWorld();
  await old.partners([partner()]);
  await old.rows([quote({ accepted_at: '2025-06-10T12:00:00Z' })]);
  old.at('2026-08-02T15:00:00Z');
  await old.close();
  await invite(old, ADMINISTRATOR);
  const console_ = await serveConsole(old);
  const mara = await signedIn(console_, await invite(old, 'mara@issuer.example', { roles: ['finance'] }));
  const latest = await mara.get('/console/close');
  expect(latest.text).toMatch(/href="\/console\/close\/2025-08">Earlier/);
  expect(latest.text).not.toContain('Later');
  const { status, text } = await mara.get('/console/close/2025-06');
  expect(status).toBe(200);
  expect(text).toContain('1 invoice, 0 credit notes, 0 statements from 1 row');
  expect(text).toMatch(/href="\/console\/audit\/checkpoints\/\d+">\d+ facts/);
  expect(text).toMatch(/href="\/console\/close">Later/);
  expect(text).not.toContain('Earlier');
  await console_.end();
  await old.end();
});

test('the cockpit of many partners lists what is missing and what changed most, and says where the others are', async () => {
  const large = await openWorld();
  const ids = Array.from({ length: 104 }, (_, index) => `p-${String(index).padStart(3, '0')}`);
  await large.partners(ids.map((partner_id) => partner({ partner_id, name: `Tickets ${partner_id}` })));
  await large.rows(ids.map((partner_id) => quote({ partner_id, accepted_at: '2026-07-10T12:00:00Z' })));
  large.at('2026-08-02T15:00:00Z');
  await large.close();
  await large.rows(ids.slice(0, 103).map((partner_id) => quote({ partner_id, accepted_at: '2026-08-01T15:00:00Z' })));
  await invite(large, ADMINISTRATOR);
  const console_ = await serveConsole(large, { allow_empty: false });
  const mara = await signedIn(console_, await invite(large, 'mara@issuer.example', { roles: ['finance'] }));
  const running = wordsOf(await mara.get('/console/close/2026-08'));
  expect(running).toContain('103 of 104 have arrived');
  expect(running).toMatch(/Tickets p-103not here yet.*Tickets p-098arrived\s*and 4 more: all have arrived/s);
  expect(running).not.toContain('Tickets p-099');
  const closed = await mara.get('/console/close/2026-07');
  expect(wordsOf(closed)).toContain('The largest changes; 4 more are smaller.');
  expect(closed.text.match(/\/console\/invoices\/INV/g)).toHaveLength(100);
  await console_.end();
  await large.end();
});

describe('a close that a second person approves', () => {
  let mail: MailServer;
  let asked: World;
  beforeAll(async () => {
    mail = await startMailServer();
    asked = await openWorld({ smtpUrl: mail.url });
    await asked.partners([partner(), partner({ partner_id: 'p-2', currency: 'EUR' })]);
    const large = { currency: 'EUR', spotPrice: '9000.00', partnerCut: '0', invoiceAmount: '9000.00' };
    await asked.rows([
      quote({ accepted_at: '2026-07-10T12:00:00Z' }),
      quote({ partner_id: 'p-2', accepted_at: '2026-07-10T12:00:00Z', ...large }),
    ]);
    asked.at('2026-08-02T15:00:00Z');
    await asked.rows([quote({ accepted_at: '2026-08-01T15:00:00Z' })]);
    await invite(asked, ADMINISTRATOR);
  });
  afterAll(async () => {
    await asked.end();
    await mail.close();
  });

  test('leads to its cockpit at once, and its e-mails follow', async () => {
    mail.behaviour = 'never_greet';
    const ruled = await serveConsole(asked, { approvals: { 'month.close': { always: true } } });
    const mara = await signedIn(ruled, await invite(asked, 'mara@issuer.example', { roles: ['finance'] }));
    const lee = await signedIn(ruled, await invite(asked, 'lee@issuer.example', { roles: ['approver'] }));
    const action = '/console/actions/month.close';
    const preview = await mara.post(action, { month: '2026-07', step: 'preview' });
    const waiting = await mara.post(action, [...sentBack(preview), ['step', 'confirm']]);
    expect(waiting.text).toContain('Approval requested: request 1');
    const approved = await lee.post('/console/approvals/1', { decision: 'approve' });
    expect([approved.status, approved.location]).toEqual([303, '/console/close/2026-07']);
    // The mail server has not even said its name.
    expect(await asked.sql(`SELECT FROM emails WHERE status NOT IN ('queued', 'sending')`)).toEqual([]);
    // The strip shows the same currencies from month to month, each with its amount.
    const strip = wordsOf(await mara.get('/console/close'));
    expect(strip).toMatch(/Jul 20267.00\u00a0USD\s*[\d,.]+\u00a0EUR/);
    expect(strip).toContain('Aug 20267.00\u00a0USDRunning');
    mail.behaviour = 'accept';
    await ruled.end();
  });
});
