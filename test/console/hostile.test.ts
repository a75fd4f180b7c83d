/** The console against somebody who has an account, a browser and bad intentions. Each attack leaves everything as it was. */
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openDispute } from '../../src/documents/disputes.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { changeRoles, identify } from '../../src/people/users.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { ndjson, share } from '../splits/balance-transactions.ts';
import { ADMINISTRATOR, alertOf, Browser, invite, serveConsole, signedIn } from '../support/console.ts';
import {
  addressOf,
  askToRelease,
  isOpen,
  makePack,
  type Objects,
  type Route,
  serveRoutes,
  sizeIn,
} from '../support/console-routes.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote } from '../support/world.ts';

/** What a partner's contact may write to finance. */
const COMMAND = "Settle it by 'reckoner invoice write-off INV-2026-000001 --reason agreed'";
/** In every text that comes from outside. */
const PAYLOAD = `"'><img src=x onerror=alert(1)><script>alert(2)</script>`;
const RAW = /<img src=x|<script>alert/;

const routed = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };

const NOW = '2026-10-15T15:00:00Z';

let books: Books;
let served: Served;
let routes: readonly Route[] = [];
let objects: Objects;
/** A document and a payment of the partner whose user attacks, and of another one. */
const own = { number: '', payment: '', creditNote: '', client: '' };
const other = { ...own };
/** Finance of partner p-1 alone. */
let lee: Browser;
/** Everything. */
let ada: Browser;

beforeAll(async () => {
  const world = await openWorld();
  books = booksOf(world);
  const contact = { name: PAYLOAD, email: 'ap@harbour.example', cc: [] };
  await world.partners([
    partner({ name: `Harbour ${PAYLOAD}`, invoicing_contact: contact }),
    partner({ partner_id: 'p-2', name: 'Northern' }),
    partner({ ...routed, partner_id: 'p-3', connected_account_id: 'acct_1', connected_account_type: 'standard' }),
    partner({ ...routed, partner_id: 'p-4', connected_account_id: 'acct_2', connected_account_type: 'standard' }),
  ]);
  const at = '2026-07-15T12:00:01Z';
  await world.rows([
    quote(),
    quote({ partner_id: 'p-2' }),
    quote({ partner_id: 'p-3', quote_id: 'q-3' }),
    quote({ partner_id: 'p-4', quote_id: 'q-4' }),
  ]);
  world.at('2026-08-01T10:00:00Z');
  const told = { name: 'file', text: ndjson([{ ...share(700, at, {}), id: 'txn_other' }]) };
  await world.database.transaction((tx) => importBalanceTransactions(tx, world, told, 'acct_2'));
  await world.close();
  await world.deliver();
  world.at(NOW);
  await invite(world, ADMINISTRATOR, { name: PAYLOAD });
  ({ served, routes } = await serveRoutes(world));
  const documents = (await world.documents()).filter(({ document }) => document === 'invoice');
  for (const [things, partnerId] of [
    [own, 'p-1'],
    [other, 'p-2'],
  ] as const) {
    const { number } = documents.find(({ partner_id }) => partner_id === partnerId) as { number: string };
    things.number = number;
    const { paymentId } = await books.record({ partnerId, amount: '3.00', reference: PAYLOAD.slice(0, 60) });
    things.payment = String(paymentId);
    things.client = (await served.client(partnerId)).client_id;
    await world.database.transaction((tx) => holdDocument(tx, books.acting, { number, reason: PAYLOAD }));
    await world.database.transaction((tx) =>
      openDispute(tx, books.acting, { number, reason: `${PAYLOAD} ${COMMAND}` }),
    );
  }
  const requestId = await askToRelease(world, own.number, 'p-1');
  const task = await makePack(world);
  objects = {
    number: own.number,
    partnerId: 'p-1',
    exception: own.payment,
    month: '2026-07',
    requestId,
    task,
    size: await sizeIn(world),
  };
  const all = { roles: ['viewer', 'finance', 'approver'] as const };
  ada = await signedIn(served, await invite(world, ADMINISTRATOR, all));
  lee = await signedIn(
    served,
    await invite(world, 'lee@issuer.example', { roles: ['finance'], partnerId: 'p-1', name: PAYLOAD }),
  );
  await invite(world, 'lee@issuer.example', { roles: ['finance'], partnerId: 'p-3' });
  lee = await signedIn(served, await invite(world, 'lee@issuer.example'));
});
afterAll(async () => {
  await served.end();
  await books.end();
});
beforeEach(() => books.at(NOW));

const facts = async () =>
  (await books.sql<{ events: number }>(`SELECT count(*)::int AS events FROM audit_events`))[0]?.events;

describe('finance of one partner', () => {
  const preview = (action: string, fields: readonly (readonly [string, string])[]) =>
    lee.post(`/console/actions/${action}`, [...fields, ['step', 'preview']]);
  const OUTSIDE =
    'lee@issuer.example has the role finance for some partners only. What you asked for belongs to another partner, or does not exist.';

  test("is told the same of another partner's things as of what does not exist", async () => {
    const nothing = { number: 'INV-2026-999999', payment: '999999', client: 'c-none', email: '999999' };
    const [{ email = 0 } = {}] = await books.sql<{ email: number }>(
      `SELECT email_id::int AS email FROM emails JOIN documents d USING (document_id) WHERE d.partner_id = 'p-2' LIMIT 1`,
    );
    const guesses = (of: typeof nothing): readonly (readonly [string, readonly (readonly [string, string])[]])[] => {
      const why = ['reason', 'x'] as const;
      return [
        ['invoice.void', [['number', of.number], why]],
        ['invoice.hold', [['number', of.number], why]],
        ['invoice.resend', [['number', of.number]]],
        ['invoice.rerun', [['number', of.number]]],
        ['invoice.link_rotate', [['number', of.number], why]],
        ['invoice.credit', [['number', of.number], ['amount', '1.00'], why]],
        ['dispute.open', [['number', of.number], why]],
        ['payment.unapply', [['paymentId', of.payment], why]],
        ['payment.reverse', [['paymentId', of.payment], ['kind', 'returned'], why]],
        [
          'payment.assign',
          [
            ['paymentId', of.payment],
            ['partnerId', 'p-1'],
          ],
        ],
        [
          'payment.apply',
          [
            ['paymentId', own.payment],
            ['numbers', of.number],
          ],
        ],
        [
          'payment.apply',
          [
            ['paymentId', own.payment],
            ['numbers', own.number],
            ['numbers', of.number],
          ],
        ],
        [
          'payment.apply',
          [
            ['paymentId', of.payment],
            ['numbers', own.number],
          ],
        ],
        [
          'payment.apply',
          [
            ['paymentId', own.payment],
            ['numbers', own.number],
            ['creditNotes', of.number],
          ],
        ],
        [
          'credit.apply',
          [
            ['creditNote', own.number],
            ['number', of.number],
          ],
        ],
        ['credit.refund', [['number', of.number]]],
        ['email.resend', [['emailId', of.email]]],
        ['email.dismiss', [['emailId', of.email], why]],
        ['payment.close_exception', [['exception', `payment-${of.payment}`], why]],
        ['payment.forget_account', [['account', of.number]]],
        ['work.assign', [['item', `dispute:${of.number}`]]],
      ];
    };
    const before = await facts();
    const theirs = { number: other.number, payment: other.payment, client: other.client, email: String(email) };
    for (const of of [theirs, nothing]) {
      for (const [action, fields] of guesses(of)) {
        const answer = await preview(action, fields);
        expect([action, fields, answer.status, alertOf(answer)]).toEqual([action, fields, 422, OUTSIDE]);
      }
    }
    expect(await facts()).toBe(before);
  });

  test('does nothing that is about all partners, or about partners of which one is not theirs', async () => {
    const before = await facts();
    for (const [action, ...fields] of [
      ['invoice.rerun', ['month', '2026-07']],
      ['invoice.rerun', ['month', '2026-07'], ['partnerId', 'p-2']],
      ['statement.send', ['month', '2026-07']],
      ['month.close', ['month', '2026-07']],
      [
        'payment.record',
        ['amount', '1'],
        ['currency', 'USD'],
        ['method', 'wire'],
        ['receivedOn', '2026-07-30'],
        ['reference', 'R'],
        ['partnerId', 'p-2'],
      ],
      ['payment.assign', ['paymentId', own.payment], ['partnerId', 'p-2']],
    ] as [string, ...[string, string][]][]) {
      const answer = await preview(action, fields);
      expect([action, answer.status, alertOf(answer)]).toEqual([action, 422, OUTSIDE]);
    }
    const both = JSON.stringify([partner({ name: 'Mine' }), partner({ partner_id: 'p-2', name: 'Theirs' })]);
    const sent = await lee.upload(
      '/console/actions/partner.import',
      { step: 'preview' },
      { file: new File([both], 'p.json') },
    );
    expect([sent.status, alertOf(sent)]).toEqual([422, OUTSIDE]);
    expect(await facts()).toBe(before);
  });

  test("takes no money of another partner's account by naming an own quote", async () => {
    const answer = await preview('processor.match', [
      ['balance_transaction', 'txn_other'],
      ['quoteId', 'q-3'],
      ['partnerId', 'p-3'],
      ['otherAccount', 'yes'],
      ['reason', 'x'],
    ]);
    expect([answer.status, alertOf(answer)]).toEqual([422, OUTSIDE]);
  });
});

describe('text from outside', () => {
  test('is text on every page, in titles and filters too', async () => {
    const inside = routes.filter((route) => route.method === 'GET' && !isOpen(route));
    const wrong: string[] = [];
    let shown = 0;
    for (const route of inside) {
      const path = addressOf(route, objects);
      for (const address of [path, `${path}?q=${encodeURIComponent(PAYLOAD)}&month=${encodeURIComponent(PAYLOAD)}`]) {
        const { text, headers, status } = await ada.get(address);
        if (status >= 500) wrong.push(`${status} ${address}`);
        if (!headers.get('content-type')?.startsWith('text/html')) continue;
        if (text.includes('&lt;img src=x')) shown += 1;
        if (RAW.test(text)) wrong.push(address);
      }
    }
    expect(wrong).toEqual([]);
    expect(shown).toBeGreaterThan(10);
  });

  test('leads to no action, whatever command it names', async () => {
    const { text } = await ada.get('/console/queue?queue=disputes');
    expect(text).toContain(COMMAND);
    expect(text).not.toContain('/console/actions/invoice.write_off');
  });

  test('that is no text, no month or no page is refused within the console, in a sentence', async () => {
    const odd = {
      number: '%00',
      partnerId: '%00',
      exception: '%00',
      month: '9999-12',
      requestId: '999999',
      size: '%00',
      task: '999',
    };
    // One refused value hides the others of its address.
    const questions = ['q=%00', 'month=9999-11&as_of=9999-12-31', 'as_of=0000-01-01&from=0000-02-29'];
    const wrong: string[] = [];
    for (const route of routes.filter((each) => each.method === 'GET' && !isOpen(each))) {
      const last = { ...odd, month: '9999-12' };
      for (const address of [
        addressOf(route, odd),
        addressOf(route, last),
        ...questions.map((each) => `${addressOf(route, objects)}?${each}`),
      ]) {
        const { status } = await ada.get(address);
        if (status >= 500) wrong.push(`${status} ${address}`);
      }
    }
    for (const path of ['/console/actions/nope', '/console/settings/nope']) {
      const { status, text } = await ada.get(path);
      if (status !== 404 || !text.includes('/console/queue')) wrong.push(path);
    }
    expect(alertOf(await ada.get('/console/invoices?month=soon'))).toContain("'soon' is not a month such as 2026-10");
    const sent = await ada.post('/console/actions/invoice.void', { number: 'INV\0', reason: '\0', step: 'preview' });
    expect(sent.status).toBe(400);
    expect(wrong).toEqual([]);
  });

  test('is text in forms of actions, in what they refuse and in the names of files', async () => {
    const wrong: string[] = [];
    for (const route of routes.filter(({ method, path }) => method === 'POST' && path.startsWith('/actions/'))) {
      const path = `/console${route.path}`;
      const filled = await ada.get(
        `${path}?${['number', 'reason', 'item', 'exception', 'account', 'partnerId', 'login', 'name', 'grant'].map((name) => `${name}=${encodeURIComponent(PAYLOAD)}`).join('&')}`,
      );
      const sent = await ada.post(path, {
        number: PAYLOAD,
        item: PAYLOAD,
        exception: PAYLOAD,
        account: PAYLOAD,
        login: PAYLOAD,
        step: 'preview',
      });
      for (const { text, status } of [filled, sent])
        if (RAW.test(text) || status >= 500) wrong.push(`${status} ${path}`);
    }
    const file = new File(['date,amount\n'], PAYLOAD);
    const named = await ada.upload('/console/actions/payment.import', { step: 'preview' }, { file });
    if (RAW.test(named.text) || named.status >= 500) wrong.push('payment.import');
    expect(wrong).toEqual([]);
  });
});

describe('an upload', () => {
  const importing = '/console/actions/payment.import';
  const upload = (file: File) => ada.upload(importing, { step: 'preview' }, { file });

  test('that is too large is refused before it is read, and so are several that are too large together', async () => {
    expect((await upload(new File([Buffer.alloc(7 * 1024 * 1024)], 'bank.csv'))).status).toBe(413);
    expect((await upload(new File([Buffer.alloc(4.5 * 1024 * 1024)], 'bank.csv'))).status).toBe(413);
  });

  test('of another kind is refused in words', async () => {
    // A workbook of a few bytes that unpacks to very much is never unpacked.
    const zip = Buffer.concat([Buffer.from('504b0304', 'hex'), Buffer.alloc(2000, 7)]);
    for (const [content, name] of [
      [zip, 'bank.xlsx'],
      [Buffer.from([0, 1, 2, 255, 254]), 'bank.csv'],
      [Buffer.from('%PDF-1.7'), 'bank.pdf'],
      [Buffer.from('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><Document>&b;</Document>'), 'bank.xml'],
    ] as const) {
      const { status, text } = await upload(new File([content], name));
      expect([name, status]).toEqual([name, 422]);
      expect(text).not.toMatch(/\bat \w+ \(|root:|node_modules/);
    }
  });

  test('has a name without folders and without what a terminal obeys', async () => {
    const { text } = await upload(new File(['x'], '../../../etc/\u001b[31mpasswd\u202e.csv'));
    expect(['../', '\u001b', '\u202e'].filter((each) => text.includes(each))).toEqual([]);
  });

  test('is taken by no form that takes none', async () => {
    const sent = await ada.upload('/console/actions/invoice.void', { step: 'preview' }, { file: new File(['x'], 'x') });
    expect(sent.status).toBe(403);
  });
});

describe('a browser', () => {
  const all = () => routes.filter((route) => route.method === 'GET' && !isOpen(route));

  test('keeps no page and no file, and shows none in a frame of another site', async () => {
    const wrong: string[] = [];
    for (const route of all()) {
      const path = addressOf(route, objects);
      const { headers, status } = await ada.get(path);
      const policy = headers.get('content-security-policy') ?? '';
      if (headers.get('cache-control') !== 'no-store') wrong.push(`${status} ${path} ${headers.get('cache-control')}`);
      if (!/frame-ancestors '(none|self)'/.test(policy) || /unsafe|\*/.test(policy)) wrong.push(`${path} ${policy}`);
      if (!/^(DENY|SAMEORIGIN)$/.test(headers.get('x-frame-options') ?? '')) wrong.push(`${path} frames`);
      if (headers.get('x-content-type-options') !== 'nosniff') wrong.push(`${path} sniffs`);
      const disposition = headers.get('content-disposition');
      if (disposition !== null && !/^(inline|attachment); filename="[\w.-]+"$/.test(disposition))
        wrong.push(disposition);
    }
    expect(wrong).toEqual([]);
  });

  test('gets no more by another method, and changes nothing by one that only looks', async () => {
    const before = await facts();
    const path = `/console/invoices/${own.number}`;
    const nobody = new Browser(served.url);
    const send = (address: string, init: RequestInit) =>
      fetch(`${served.url}${address}`, { redirect: 'manual', ...init });
    expect((await send(path, { method: 'HEAD' })).status).toBe(404);
    const cookie = [...ada.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND'].filter((each) => each !== 'TRACE')) {
      const answer = await send(path, {
        method,
        headers: { cookie, origin: served.url, 'sec-fetch-site': 'same-origin' },
      });
      expect([method, answer.status >= 400]).toEqual([method, true]);
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    }
    for (const address of [
      '/console/sign-out',
      '/console/account/sign-out-everywhere',
      '/console/account/sessions/end',
    ]) {
      expect((await ada.get(address)).status).toBe(404);
      const overridden = await ada.get(`${address}?_method=POST&form_token=${ada.formToken}`, {
        'x-http-method-override': 'POST',
      });
      expect(overridden.status).toBe(404);
    }
    expect((await ada.get('/console/account')).status).toBe(200);
    expect((await nobody.get('/console/actions/invoice.void?step=confirm')).status).toBe(303);
    await ada.get(`/console/actions/invoice.void?number=${own.number}&reason=x&step=confirm&shown=x`);
    expect(await facts()).toBe(before);
  });

  test('sends the token of its own session: that of another one of the same user is refused', async () => {
    const first = await signedIn(served, await invite(books, 'two@issuer.example'));
    const second = await signedIn(served, await invite(books, 'two@issuer.example'));
    for (const form_token of [first.formToken, ada.formToken, '', 'undefined']) {
      const answer = await second.post('/console/account/sign-out-everywhere', { form_token });
      expect(answer.status).toBe(403);
    }
    expect(first.formToken).not.toBe(second.formToken);
    expect((await first.get('/console/account')).status).toBe(200);
  });

  test('that is led back to a page is led to one of the console', async () => {
    for (const path of [
      '//evil.example',
      '/%2f%2fevil.example',
      '/console//evil.example',
      '/console/%0d%0aset-cookie:a=b',
    ]) {
      const answer = await new Browser(served.url).get(path);
      if (answer.location === null) expect([path, answer.status]).toEqual([path, 404]);
      else expect([path, new URL(answer.location, served.url).origin]).toEqual([path, served.url]);
    }
    const page = await new Browser(served.url).get(`/console/sign-in?to=${encodeURIComponent(`/console/x${PAYLOAD}`)}`);
    expect(RAW.test(page.text)).toBe(false);
  });
});

test('the host that a request names is in no link, and in no cookie', async () => {
  const secure = await serveConsole(books, { public_url: 'https://billing.example' });
  try {
    const { port } = new URL(secure.url);
    const link = await invite(books, 'host@issuer.example');
    const answer = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const headers = {
        ...{ host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' },
        ...{ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
      };
      const asked = httpRequest({ port, host: '127.0.0.1', path: link, method: 'POST', headers }, (got) => {
        let text = JSON.stringify(got.headers);
        got.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        got.on('end', () => resolve({ status: got.statusCode, text }));
      });
      asked.on('error', reject);
      asked.end();
    });
    expect(answer.status).toBe(403);
    expect(answer.text).not.toContain('evil.example');
  } finally {
    await secure.end();
  }
});

describe('a role that is taken back', () => {
  test('in the middle of an action keeps the action from being done', async () => {
    const login = 'soon@issuer.example';
    const soon = await signedIn(served, await invite(books, login, { roles: ['viewer', 'finance'] }));
    const path = '/console/actions/invoice.write_off';
    const fields = { number: other.number, reason: 'gone' };
    const page = await soon.post(path, { ...fields, step: 'preview' });
    const shown = /name="shown" value="([^"]*)"/.exec(page.text)?.[1] ?? '';
    expect([page.status, shown === '']).toEqual([200, false]);
    const actor = await books.database.reading((tx) =>
      identify(tx, books.actor, { login: ADMINISTRATOR, unattended: false }),
    );
    await books.database.transaction((tx) =>
      changeRoles(tx, { ...books, actor }, { login, grant: [], revoke: [{ role: 'finance', partner_id: null }] }),
    );
    const before = await facts();
    const { location } = await soon.post(path, { ...fields, shown, step: 'confirm' });
    expect(location).toMatch(/^\/console\/sign-in\?to=.*&ended=1$/);
    expect(await facts()).toBe(before);
  });

  test('while many requests are in flight lets none in that came after', async () => {
    const login = 'many@issuer.example';
    const browser = await signedIn(served, await invite(books, login));
    const flying = Array.from({ length: 20 }, () => browser.get('/console/account'));
    const ended = browser.post('/console/account/sign-out-everywhere');
    const twice = browser.post('/console/account/sign-out-everywhere');
    await Promise.all([...flying, ended, twice]);
    const [{ live } = { live: -1 }] = await books.sql<{ live: number }>(
      `SELECT count(*)::int AS live FROM sessions JOIN users USING (user_id) WHERE personal(login) = $1 AND ended_at IS NULL`,
      [login],
    );
    expect(live).toBe(0);
  });
});

describe('sessions of everybody', () => {
  test('are ended by an administrator, with an event of who did it, and by nobody else', async () => {
    const victim = await signedIn(served, await invite(books, 'victim@issuer.example'));
    const page = await ada.get('/console/settings/sessions');
    expect(page.text).toContain('victim@issuer.example');
    const [{ id } = { id: 0 }] = await books.sql<{ id: number }>(
      `SELECT max(session_id)::int AS id FROM sessions JOIN users USING (user_id) WHERE personal(login) = 'victim@issuer.example'`,
    );
    expect((await lee.get('/console/settings/sessions')).status).toBe(403);
    expect((await lee.post('/console/settings/sessions/end', { session: String(id) })).status).toBe(403);
    expect((await victim.get('/console/account')).status).toBe(200);
    for (const session of ['x', '-1', '9e9', '999999999999999999999', '']) {
      expect((await ada.post('/console/settings/sessions/end', { session })).status).toBe(303);
    }
    expect((await ada.post('/console/settings/sessions/end', { session: String(id) })).location).toBe(
      '/console/settings/sessions',
    );
    expect((await victim.get('/console/account')).status).toBe(303);
    expect(
      await books.sql(
        `SELECT personal(u.login) AS login, e.via FROM audit_events e JOIN users u USING (user_id)
         WHERE e.action = 'user.sign_out' AND personal(e.subject) = 'victim@issuer.example'`,
      ),
    ).toEqual([{ login: ADMINISTRATOR, via: 'console' }]);
  });
});
