/** The place of a partner: how its contact signs in, what he sees and does there, and what he does not. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Browser, serveConsole } from '../support/console.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const CONTACT = { name: 'Accounts Payable', email: 'ap@partner.example', cc: [] };

let world: World;
let served: Served;
/** By partner: the payment page and the number of an invoice. */
const pages: Record<string, string> = {};
const numbers: Record<string, string> = {};

const partners = (changes: Readonly<Record<string, object>> = {}) =>
  world.partners(
    ['p-1', 'p-2', 'p-none', 'p-moved', 'p-ended', 'p-disputed', 'p-rows'].map((partner_id) =>
      partner({
        ...{ partner_id, name: `Partner <${partner_id}>`, invoicing_contact: CONTACT },
        ...(partner_id === 'p-none' && { invoicing_contact: { name: '', email: '', cc: [] } }),
        ...changes[partner_id],
      }),
    ),
  );

beforeAll(async () => {
  world = await openWorld();
  await partners();
  await world.rows(
    ['p-1', 'p-2', 'p-none', 'p-moved', 'p-ended', 'p-disputed', 'p-rows', 'p-rows'].map((partner_id) =>
      quote({ partner_id }),
    ),
  );
  await world.close();
  await world.deliver();
  const links = await world.sql<{ partner_id: string; number: string; token: string }>(
    `SELECT partner_id, number, token FROM current_links JOIN documents USING (document_id)`,
  );
  for (const { partner_id, number, token } of links) {
    pages[partner_id] = token;
    numbers[partner_id] = number;
  }
  served = await serveConsole(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});
beforeEach(async () => {
  world.at('2026-08-02T10:00:00Z');
  await world.sql(`DELETE FROM request_counts`);
});

const outbox = () => readdirSync(join(world.home, 'outbox'));

/** The e-mails that came since `before`, once there is one. */
async function mailSince(before: readonly string[]): Promise<string> {
  for (let tries = 0; tries < 100; tries += 1) {
    const [file] = outbox().filter((name) => !before.includes(name) && name.endsWith('.eml'));
    if (file !== undefined) return readFileSync(join(world.home, 'outbox', file), 'utf8').replaceAll(/=\r?\n/g, '');
    await wait(50);
  }
  throw new Error('no e-mail was sent');
}

/** Asks on the payment page of a partner, and gives the path of the link in the e-mail. */
async function linkFor(partnerId: string): Promise<string> {
  const before = outbox();
  const answer = await new Browser(served.url).post(`/place/ask/${pages[partnerId]}`);
  expect(answer.status).toBe(200);
  const [link] = /\/place\/sign-in#[\w-]{43}/.exec(await mailSince(before)) ?? [];
  if (link === undefined) throw new Error('the e-mail has no link');
  return link;
}

async function signedInAs(partnerId: string): Promise<Browser> {
  const browser = new Browser(served.url);
  expect((await browser.post(await linkFor(partnerId))).location).toBe('/place');
  expect((await browser.get('/place')).status).toBe(200);
  return browser;
}

describe('asking for a link', () => {
  test('begins on the payment page, and sends it to the address on file alone', async () => {
    const page = await new Browser(served.url).get(`/pay/${pages['p-1']}`);
    expect(page.text).toContain(`href="/place/ask/${pages['p-1']}"`);
    const before = outbox();
    const typed = { email: 'thief@elsewhere.example', to: 'thief@elsewhere.example' };
    await new Browser(served.url).post(`/place/ask/${pages['p-1']}`, typed);
    const mail = await mailSince(before);
    expect(mail).toMatch(/^To: .*ap@partner\.example/m);
    expect(mail).not.toContain('thief');
  });

  test('answers the same for a partner without a contact, to whom nothing is sent', async () => {
    const before = outbox();
    const answers = await Promise.all(
      ['p-1', 'p-none'].map((partnerId) => new Browser(served.url).post(`/place/ask/${pages[partnerId]}`)),
    );
    const [known, unknown] = answers.map(({ status, text }, at) => {
      const partnerId = ['p-1', 'p-none'][at] ?? '';
      return [status, text.replaceAll(partnerId, 'ID').replaceAll(pages[partnerId] ?? '', 'TOKEN')];
    });
    const same = (text: unknown) => String(text).replaceAll(/INV-2026-\d{6}/g, 'NUMBER');
    expect(same(known)).toBe(same(unknown));
    await mailSince(before);
    const links = await world.sql(`SELECT FROM partner_sign_in_links WHERE partner_id = 'p-none'`);
    expect(links).toEqual([]);
  });

  test('is limited for each page, and says the same whether or not there is a contact', async () => {
    for (const partnerId of ['p-1', 'p-none']) {
      const asked: number[] = [];
      for (let time = 0; time < 4; time += 1) {
        asked.push((await new Browser(served.url).post(`/place/ask/${pages[partnerId]}`)).status);
      }
      expect(asked).toEqual([200, 200, 200, 429]);
    }
    world.at('2026-08-02T10:15:01Z');
    expect((await new Browser(served.url).post(`/place/ask/${pages['p-1']}`)).status).toBe(200);
  });

  test('takes a form of ours, and a page that exists', async () => {
    const browser = new Browser(served.url);
    const path = `/place/ask/${pages['p-1']}`;
    expect((await browser.post(path, {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await browser.post(path, {}, { 'sec-fetch-site': undefined, origin: undefined })).status).toBe(403);
    for (const method of ['get', 'post'] as const) {
      expect((await browser[method](`/place/ask/${'A'.repeat(32)}`)).status).toBe(404);
    }
  });
});

test("the headings of a partner's documents lead to sorts of its own page", async () => {
  const browser = await signedInAs('p-1');
  const [, href = ''] = /<a href="([^"]*)">Due<\/a>/.exec((await browser.get('/place/documents')).text) ?? [];
  expect(href).toBe('/place/documents?sort=due_on');
  const sorted = await browser.get(href);
  expect(sorted.status).toBe(200);
  expect(sorted.text).toContain('aria-sort="ascending"><a href="/place/documents?sort=-due_on">Due</a>');
  expect(sorted.text).toContain(numbers['p-1']);
  expect(sorted.text).not.toContain(numbers['p-2']);
});

describe('a link', () => {
  test('signs in once, by its button: looking at it uses nothing up and changes nothing', async () => {
    const link = await linkFor('p-1');
    const browser = new Browser(served.url);
    for (let look = 0; look < 3; look += 1) expect((await browser.get(link)).status).toBe(200);
    expect([browser.cookies.size, (await browser.get('/place')).status]).toEqual([0, 401]);
    const answer = await browser.post(link);
    expect([answer.status, answer.location]).toEqual([303, '/place']);
    expect(answer.headers.getSetCookie()[0]).toMatch(/^reckoner-partner=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
    const again = await new Browser(served.url).post(link);
    expect([again.status, again.headers.get('set-cookie')]).toEqual([403, null]);
    const events = await world.sql<{ claimed_by: string; subject: string }>(
      `SELECT personal(claimed_by) AS claimed_by, subject FROM audit_events WHERE action = 'partner.sign_in' ORDER BY event_id DESC LIMIT 1`,
    );
    expect(events).toEqual([{ claimed_by: CONTACT.email, subject: 'p-1' }]);
  });

  test('used several times at the same moment signs in one browser', async () => {
    const link = await linkFor('p-1');
    const answers = await Promise.all([1, 2, 3].map(() => new Browser(served.url).post(link)));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 403, 403]);
  });

  test('that is older than 15 minutes signs nobody in', async () => {
    const link = await linkFor('p-1');
    world.at('2026-08-02T10:15:00Z');
    expect((await new Browser(served.url).post(link)).status).toBe(403);
  });

  test('is stored as a hash only, and so is the session', async () => {
    const link = await linkFor('p-1');
    const browser = new Browser(served.url);
    await browser.post(link);
    for (const secret of [link.split('#').at(-1), browser.cookies.get('reckoner-partner')]) {
      const [{ found } = { found: -1 }] = await world.sql<{ found: number }>(
        `SELECT (SELECT count(*) FROM partner_sign_in_links l WHERE l::text LIKE $1)::int
              + (SELECT count(*) FROM partner_sessions s WHERE s::text LIKE $1)::int
              + (SELECT count(*) FROM emails e WHERE e::text LIKE $1)::int
              + (SELECT count(*) FROM audit_events e WHERE e::text LIKE $1)::int AS found`,
        [`%${secret}%`],
      );
      expect(found).toBe(0);
      expect(served.log()).not.toContain(secret);
    }
  });

  test('ends when the partner gets another contact before it is used', async () => {
    const link = await linkFor('p-moved');
    await partners({ 'p-moved': { invoicing_contact: { ...CONTACT, email: 'new@partner.example' } } });
    expect((await new Browser(served.url).post(link)).status).toBe(403);
    await partners();
  });
});

describe('a session', () => {
  test('ends when it was idle for half an hour, by sign-out, and when contact or partner end', async () => {
    const browser = await signedInAs('p-moved');
    world.at('2026-08-02T10:29:00Z');
    expect((await browser.get('/place')).status).toBe(200);
    world.at('2026-08-02T10:58:00Z');
    expect((await browser.get('/place')).status).toBe(200);
    await partners({ 'p-moved': { invoicing_contact: { ...CONTACT, email: 'new@partner.example' } } });
    expect((await browser.get('/place')).status).toBe(401);
    await partners();
    world.at('2026-08-02T11:29:00Z');
    expect((await browser.get('/place')).status).toBe(401);

    const left = await signedInAs('p-1');
    const cookie = left.cookies.get('reckoner-partner') ?? '';
    expect((await left.post('/place/sign-out')).status).toBe(303);
    left.cookies.set('reckoner-partner', cookie);
    expect((await left.get('/place')).status).toBe(401);

    const ended = await signedInAs('p-ended');
    await partners({ 'p-ended': { active: false } });
    expect((await ended.get('/place')).status).toBe(401);
  });

  test('is not one of the console, nor the other way round', async () => {
    const browser = await signedInAs('p-1');
    const secret = browser.cookies.get('reckoner-partner') ?? '';
    browser.cookies.set('reckoner', secret);
    expect((await browser.get('/console/account')).status).toBe(303);
  });

  test('sees its own partner alone, also where another one has the same address', async () => {
    const browser = await signedInAs('p-1');
    const [own, other] = [numbers['p-1'], numbers['p-2']];
    for (const path of ['', '/documents', '/statement', '/statement.csv', '/statement.pdf', `/documents/${own}`]) {
      const { status, text } = await browser.get(`/place${path}`);
      expect([path, status, text.includes(String(own)), text.includes(String(other))]).toEqual([
        path,
        200,
        true,
        false,
      ]);
      expect(text).not.toContain('p-2');
    }
    for (const path of ['', '/document.pdf', '/rows.csv', '/dispute']) {
      expect([path, (await browser.get(`/place/documents/${own}${path}`)).status]).toEqual([path, 200]);
      const guessed = await browser.get(`/place/documents/${other}${path}`);
      const none = await browser.get(`/place/documents/INV-2026-999999${path}`);
      expect([path, guessed.status, none.status, guessed.text]).toEqual([path, 404, 404, none.text]);
    }
    const sent = await browser.post(`/place/documents/${other}/dispute`, { reason: 'not mine' });
    expect(sent.status).toBe(404);
    expect(await world.sql(`SELECT FROM invoice_disputes`)).toEqual([]);
    const second = await signedInAs('p-2');
    expect((await second.get(`/place/documents/${other}`)).status).toBe(200);
    expect((await second.get(`/place/documents/${own}`)).status).toBe(404);
  });

  test('shows what is owed, the way to pay it, and files', async () => {
    const browser = await signedInAs('p-1');
    const open = await browser.get('/place');
    expect(open.text).toContain(`href="/pay/${pages['p-1']}"`);
    expect(open.text).toContain('7.00');
    expect(open.headers.get('content-security-policy')).not.toContain('unsafe');
    expect(open.headers.get('cache-control')).toBe('no-store');
    expect(open.text).not.toContain('<script');
    const pdf = await browser.get(`/place/documents/${numbers['p-1']}/document.pdf`);
    expect([pdf.headers.get('content-type'), pdf.text.slice(0, 5)]).toEqual(['application/pdf', '%PDF-']);
    const rows = await browser.get(`/place/documents/${numbers['p-1']}/rows.csv`);
    expect(rows.text.trim().split('\n')).toHaveLength(2);
  });
});

describe('a dispute', () => {
  test('is raised by a form of this session only, and never by a GET', async () => {
    const browser = await signedInAs('p-disputed');
    const path = `/place/documents/${numbers['p-disputed']}/dispute`;
    expect((await browser.get(`${path}?reason=x`)).status).toBe(200);
    const token = browser.formToken;
    const other = await signedInAs('p-1');
    const refused = await Promise.all([
      browser.post(path, { reason: 'x', form_token: '' }),
      browser.post(path, { reason: 'x', form_token: other.formToken }),
      browser.post(path, { reason: 'x', form_token: token }, { 'sec-fetch-site': 'cross-site' }),
      browser.post(path, { reason: 'x', form_token: token }, { origin: 'https://elsewhere.example' }),
      new Browser(served.url).post(path, { reason: 'x', form_token: token }),
    ]);
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403, 401]);
    expect(await world.sql(`SELECT FROM invoice_disputes`)).toEqual([]);
  });

  test('says what is wrong with it, and records nothing then', async () => {
    const browser = await signedInAs('p-disputed');
    const path = `/place/documents/${numbers['p-disputed']}/dispute`;
    for (const [fields, said] of [
      [{ reason: ' ' }, 'Describe what is wrong in one line'],
      [{ reason: 'x', amount: '7.01' }, 'exceeds the open balance'],
      [{ reason: 'x', amount: '-1' }, 'must be above zero'],
      [{ reason: 'x', amount: '<b>' }, 'must be above zero'],
    ] as const) {
      const answer = await browser.post(path, fields);
      expect([answer.status, answer.text.includes(said)]).toEqual([422, true]);
      expect(answer.text).not.toContain('reckoner dispute');
    }
    expect(await world.sql(`SELECT FROM invoice_disputes`)).toEqual([]);
  });

  test('is a dispute of finance, with the address of the contact in its event', async () => {
    const browser = await signedInAs('p-disputed');
    const number = numbers['p-disputed'];
    const path = `/place/documents/${number}/dispute`;
    const answer = await browser.post(path, { reason: 'wrong <count>', amount: '3.00' });
    expect([answer.status, answer.location]).toEqual([303, `/place/documents/${number}`]);
    expect((await browser.get(`/place/documents/${number}`)).text).toContain('Disputed');
    const disputes = await world.sql(
      `SELECT e.action, e.subject, personal(e.claimed_by) AS claimed_by, e.via, d.amount::text, d.reason
       FROM invoice_disputes d JOIN audit_events e USING (event_id)`,
    );
    expect(disputes).toEqual([
      {
        ...{ action: 'dispute.open', subject: number, claimed_by: CONTACT.email, via: 'http' },
        ...{ amount: '3.00', reason: 'wrong <count>' },
      },
    ]);
    const again = await browser.post(path, { reason: 'again' });
    expect([again.status, again.text.includes('already in dispute')]).toEqual([422, true]);
  });
});

test('a contact disputes the rows that it selects, of its own invoice alone', async () => {
  const browser = await signedInAs('p-rows');
  const path = `/place/documents/${numbers['p-rows']}/dispute`;
  const { text } = await browser.get(path);
  const rows = [...text.matchAll(/name="tick:(\d+)"/g)].map(([, row]) => row ?? '');
  expect(rows).toHaveLength(2);
  const [other] = await world.sql<{ id: string }>(
    `SELECT entry_id AS id FROM ledger_rows WHERE partner_id = 'p-1' LIMIT 1`,
  );
  const refused = await browser.post(path, {
    reason: 'canceled',
    [`tick:${other?.id}`]: '1',
    [`tick:${rows[0]}`]: '1',
  });
  expect([refused.status, refused.text.includes('A selected row is not one of this invoice')]).toEqual([422, true]);
  expect(refused.text).toMatch(new RegExp(`name="tick:${rows[0]}"[^>]* checked`));
  expect((await browser.post(path, { reason: 'canceled', [`tick:${rows[0]}`]: '1' })).status).toBe(303);
  const [dispute] = await world.sql(
    `SELECT d.amount::text, e.details->'rows' AS rows FROM invoice_disputes d JOIN audit_events e USING (event_id)
     WHERE e.subject = $1`,
    [numbers['p-rows']],
  );
  expect(dispute).toEqual({ amount: '7.00', rows: [Number(rows[0])] });
});

test('a contact sees what was agreed, and nothing to change', async () => {
  const browser = await signedInAs('p-1');
  const { text } = await browser.get('/place/terms');
  for (const said of ['Policies', 'Cancellation', 'Due after', CONTACT.email]) expect(text).toContain(said);
  expect(text).not.toContain('/console/actions');
});

test('a contact gets one sum and one reference for a wire, while the invoice is open', async () => {
  const browser = await signedInAs('p-2');
  const { location } = await browser.post('/place/wires', { [`invoice:${numbers['p-2']}`]: 'on' });
  const page = await browser.get(location ?? '');
  expect(page.text).toMatch(/RF\d\d PAY0 00/);
  for (const said of ['Wire for 1 invoice', '7.00', 'Wire transfer', numbers['p-2'] ?? ''])
    expect(page.text).toContain(said);
  for (const fields of [{}, { 'invoice:INV-2026-999999': 'on' }]) {
    const answer = await browser.post('/place/wires', fields);
    expect([answer.status, answer.text.includes('Choose invoices that are open')]).toEqual([422, true]);
  }
});

test('where partners may not sign in, there is no such page and no link to one', async () => {
  for (const settings of [{ console: { ...world.settings.console, partner_place: false } }, { mail_from: '' }]) {
    const without = await serveConsole(world, settings);
    const browser = new Browser(without.url);
    for (const path of ['/place', `/place/ask/${pages['p-1']}`]) expect((await browser.get(path)).status).toBe(404);
    expect((await browser.get(`/pay/${pages['p-1']}`)).text).not.toContain('/place/');
    await without.end();
  }
});
