/**
 * Who may go where in a partner's place: every route of it with every kind of visitor, and with bad intentions. What is
 * expected is written down here, so a route that nobody thought about fails.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Settings } from '../../src/config/settings.ts';
import { ROLES } from '../../src/people/roles.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { ADMINISTRATOR, Browser, invite, signedIn } from '../support/console.ts';
import { completeSeller, contentOf, type Route, serveRoutes } from '../support/console-routes.ts';
import { contactOf, linkOf } from '../support/contact.ts';
import type { Served } from '../support/service.ts';
import { requestProblem } from '../support/stripe/schemas.ts';
import { type StripeStandIn, startStripe } from '../support/stripe/stand-in.ts';
import { openWorld, partner, quote } from '../support/world.ts';

const [OWN, OTHER] = ['p-1', 'p-northern'] as const;
const NOW = '2026-10-15T15:00:00Z';
/** What nobody else may read of either partner. */
const SECRETS: Readonly<Record<string, RegExp>> = {
  [OWN]: /Harbour Lights|harbour\.example|1[,.]?234[,.]56/,
  [OTHER]: /Northern Lantern|lantern\.example|8[,.]?765[,.]43/,
};

/** Every route behind the sign-in; `object`: it names a document or payment of a partner. */
const KNOWN: Readonly<Record<string, { readonly object: boolean }>> = {
  'GET /': { object: false },
  'GET /documents': { object: false },
  'GET /reversals': { object: false },
  'GET /statement': { object: false },
  'GET /statement.csv': { object: false },
  'GET /statement.xlsx': { object: false },
  'GET /statement.pdf': { object: false },
  'GET /documents/:number': { object: true },
  'GET /documents/:number/document.pdf': { object: true },
  'GET /documents/:number/e-invoice.xml': { object: true },
  'GET /documents/:number/rows.csv': { object: true },
  'GET /documents/:number/dispute': { object: true },
  'POST /documents/:number/dispute': { object: true },
  'POST /payments': { object: false },
  'GET /terms': { object: false },
  'POST /wires': { object: false },
  'GET /wires/:wire': { object: true },
  'GET /payments/:reference': { object: true },
  'POST /payments/:reference/cancel': { object: true },
  'POST /sign-out': { object: false },
};
/** How to come in, for whoever is outside. */
const OPEN = ['GET /sign-in', 'POST /sign-in', 'GET /ask/:token', 'POST /ask/:token'];
/** Tables that a request may be counted in, or that hold when a session was last seen. */
const COUNTED = ['request_counts', 'security_events', 'sessions', 'partner_sessions'];

let books: Books;
let stripe: StripeStandIn;
let served: Served;
let routes: readonly Route[] = [];
const objects: Record<string, { readonly number: string; readonly reference: string; readonly wire: string }> = {};
const contacts: Record<string, Browser> = {};
/** Users of the console, of each role, and nobody. */
const strangers = new Map<string, Browser>();

beforeAll(async () => {
  // The stand-in reads Stripe's types once, which takes longer than a request may.
  requestProblem('checkout_session_create', {});
  stripe = await startStripe({ now: () => books.environment.now().toJSDate() });
  const world = await openWorld({ stripe: stripe.url });
  books = booksOf(world);
  completeSeller(world);
  const of = (partner_id: string, name: string, email: string, currency: string) =>
    partner({
      partner_id,
      name,
      currency,
      invoicing_contact: { name: 'Accounts Payable', email, cc: [] },
      e_invoice: 'facturx',
    });
  await world.partners([
    of(OWN, 'Harbour Lights Ticketing', 'ap@harbour.example', 'USD'),
    of(OTHER, 'Northern Lantern Festival', 'ap@lantern.example', 'EUR'),
  ]);
  const amounts = (amount: string) => ({ spotPrice: amount, partnerCut: '0', invoiceAmount: amount });
  await world.rows([quote(amounts('1234.56')), quote({ partner_id: OTHER, currency: 'EUR', ...amounts('8765.43') })]);
  await world.close();
  await world.deliver();
  world.at(NOW);
  const settings = {
    payment_link: { provider: 'stripe', printed_url: 'page', methods: ['us_bank_account', 'card'] },
    mail_from: 'billing@issuer.example',
  } satisfies Partial<Settings>;
  ({ served, routes } = await serveRoutes(world, settings, '/place'));
  for (const { number, partner_id: owner } of await world.documents()) {
    contacts[owner] = await contactOf(world, served, owner);
    const begun = await contacts[owner].post('/place/payments', { [`invoice:${number}`]: 'on' });
    expect([begun.status, begun.location]).toEqual([303, expect.stringMatching(/^\/place\/payments\/[\w-]{32}$/)]);
    const wire = await contacts[owner].post('/place/wires', { [`invoice:${number}`]: 'on' });
    expect([wire.status, wire.location]).toEqual([303, expect.stringMatching(/^\/place\/wires\/RF\d\dPAY\w+$/)]);
    objects[owner] = {
      number,
      reference: begun.location?.replace('/place/payments/', '') ?? '',
      wire: wire.location?.replace('/place/wires/', '') ?? '',
    };
  }
  await invite(world, ADMINISTRATOR);
  strangers.set('nobody', new Browser(served.url));
  for (const role of ROLES) {
    strangers.set(role, await signedIn(served, await invite(world, `${role}@issuer.example`, { roles: [role] })));
  }
});
afterAll(async () => {
  await served.end();
  await books.verified();
  await books.end();
  await stripe.close();
});
beforeEach(() => books.at(NOW));

const UNKNOWN = { number: 'INV-2026-999999', reference: 'x'.repeat(32) };
const state = () => contentOf(books, COUNTED);
const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
const inside = (method: string) => routes.filter((each) => each.method === method && !OPEN.includes(nameOf(each)));
const contact = (owner: string): Browser => contacts[owner] as Browser;
const otherOf = (owner: string): string => (owner === OWN ? OTHER : OWN);

function at({ path }: Route, values: Readonly<Record<string, string>>): string {
  const address = path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`say what :${name} of ${path} is`);
    return encodeURIComponent(value);
  });
  return address === '/' ? '/place' : `/place${address}`;
}
const ofPartner = (route: Route, owner: string): string => at(route, objects[owner] ?? {});

test('every route of the place is known to this test, and there is no other', () => {
  expect(
    routes
      .map(nameOf)
      .filter((name) => !name.startsWith('HEAD '))
      .sort(),
  ).toEqual([...Object.keys(KNOWN), ...OPEN].sort());
});

describe('whoever is no contact', () => {
  test('reads nothing of the place, signed in to the console or not', async () => {
    const before = await state();
    for (const [name, browser] of strangers) {
      for (const route of inside('GET')) {
        const page = await browser.get(ofPartner(route, OWN));
        expect([name, nameOf(route), page.status, SECRETS[OWN]?.test(page.text)]).toEqual([
          ...[name, nameOf(route), 401, false],
        ]);
      }
    }
    expect(await state()).toEqual(before);
  });

  test('changes nothing in it by any form, with the token of the console or with none', async () => {
    const before = await state();
    for (const [name, browser] of strangers) {
      for (const route of inside('POST')) {
        const { status } = await browser.post(ofPartner(route, OWN), { reason: 'wrong count' });
        expect([name, nameOf(route), status]).toEqual([name, nameOf(route), 401]);
      }
    }
    expect(await state()).toEqual(before);
  });

  test('is no user of the console by the session of a contact either', async () => {
    const before = await state();
    const [session = ''] = contact(OWN).cookies.values();
    const browser = new Browser(served.url);
    for (const cookie of ['reckoner-partner', 'reckoner-session']) browser.cookies.set(cookie, session);
    for (const path of ['', '/invoices', '/queue', '/partners', '/settings']) {
      const page = await browser.get(`/console${path}`);
      expect([path, page.status, page.location?.startsWith('/console/sign-in')]).toEqual([path, 303, true]);
    }
    expect((await browser.post('/console/actions/invoice.void', { step: 'preview' })).status).toBe(401);
    expect(await state()).toEqual(before);
  });
});

describe.each([OWN, OTHER])('the contact of %s', (owner) => {
  test('reads all of its own, nothing of the other partner, and changes nothing by reading', async () => {
    const before = await state();
    const secrets = SECRETS[otherOf(owner)] as RegExp;
    for (const route of inside('GET')) {
      const own = await contact(owner).get(ofPartner(route, owner));
      expect([nameOf(route), own.status, secrets.test(own.text)]).toEqual([nameOf(route), 200, false]);
      if (KNOWN[nameOf(route)]?.object !== true) continue;
      const other = await contact(owner).get(ofPartner(route, otherOf(owner)));
      const unknown = await contact(owner).get(at(route, { ...UNKNOWN, wire: 'RF00PAY00ZZZ0' }));
      expect([nameOf(route), other.status, secrets.test(other.text)]).toEqual([nameOf(route), 404, false]);
      // What is another partner's is as what does not exist.
      const same = (text: string) => text.replaceAll(/INV-2026-\d+|[\w-]{32}|RF\w+/g, 'ID');
      expect([nameOf(route), same(other.text)]).toEqual([nameOf(route), same(unknown.text)]);
    }
    expect(await state()).toEqual(before);
  });

  test('changes nothing of the other partner, whatever its forms name', async () => {
    const before = await state();
    const other = objects[otherOf(owner)] as { number: string; reference: string };
    const wrong: string[] = [];
    for (const route of inside('POST').filter((each) => KNOWN[nameOf(each)]?.object)) {
      const { status } = await contact(owner).post(ofPartner(route, otherOf(owner)), { reason: 'wrong', amount: '1' });
      if (status !== 404) wrong.push(`${nameOf(route)}: ${status}`);
    }
    const own = objects[owner]?.number ?? '';
    for (const fields of [
      { [`invoice:${other.number}`]: 'on' },
      { [`invoice:${own}`]: 'on', [`invoice:${other.number}`]: 'on' },
    ]) {
      const { status, text } = await contact(owner).post('/place/payments', fields);
      if (status !== 404 || SECRETS[otherOf(owner)]?.test(text)) wrong.push(`${JSON.stringify(fields)}: ${status}`);
    }
    for (const fields of [{ [`invoice:${other.number}`]: 'on' }, { all: owner === OWN ? 'EUR' : 'USD' }]) {
      const { status, text } = await contact(owner).post('/place/wires', fields);
      if (status !== 422 || SECRETS[otherOf(owner)]?.test(text)) wrong.push(`${JSON.stringify(fields)}: ${status}`);
    }
    // Of the other partner's currency there is nothing to pay.
    const all = await contact(owner).post('/place/payments', { all: owner === OWN ? 'EUR' : 'USD' });
    if (all.status !== 422) wrong.push(`all: ${all.status}`);
    expect(wrong).toEqual([]);
    expect(await state()).toEqual(before);
  });
});

describe('a form', () => {
  test('without its token, or with that of another session, changes nothing', async () => {
    const before = await state();
    const token = contact(OTHER).formToken;
    for (const route of inside('POST')) {
      const address = ofPartner(route, OWN);
      for (const form_token of ['', 'x', token]) {
        const { status } = await contact(OWN).post(address, { form_token, reason: 'wrong count' });
        expect([nameOf(route), form_token === token, status]).toEqual([nameOf(route), form_token === token, 403]);
      }
    }
    expect(await state()).toEqual(before);
  });

  test('from another site, or from one that does not say, changes nothing', async () => {
    const before = await state();
    const from = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': undefined, origin: 'https://evil.example' },
      { 'sec-fetch-site': undefined, origin: undefined },
    ];
    for (const route of inside('POST')) {
      for (const headers of from) {
        const { status } = await contact(OWN).post(ofPartner(route, OWN), { reason: 'wrong count' }, headers);
        expect([nameOf(route), headers, status]).toEqual([nameOf(route), headers, 403]);
      }
    }
    expect(await state()).toEqual(before);
  });

  test('that is empty or absurd is answered in words, and changes nothing', async () => {
    const before = await state();
    const absurd: readonly Readonly<Record<string, string>>[] = [
      {},
      { reason: '', amount: '-1' },
      { reason: 'x'.repeat(501), amount: '1e9' },
      { reason: 'a\u0000b', amount: '٣' },
      { reason: 'ok', amount: '999999999' },
      { all: '\u0000' },
      { 'invoice:': 'on' },
      { [`invoice:${'9'.repeat(2000)}`]: 'on' },
    ];
    for (const route of inside('POST').filter(({ path }) => !/sign-out|cancel/.test(path))) {
      for (const fields of absurd) {
        const { status } = await contact(OWN).post(ofPartner(route, OWN), fields);
        const isRefused = status >= 400 && status < 500;
        expect([nameOf(route), Object.keys(fields), status, isRefused]).toEqual([
          ...[nameOf(route), Object.keys(fields), status, true],
        ]);
      }
    }
    expect(await state()).toEqual(before);
  });
});

const PAYLOAD = `"'><img src=x onerror=alert(1)><script>alert(2)</script>`;
const RAW = /<img src=x|<script>alert/;

test('a hostile address is answered without an error of ours, and nothing of it reaches the page', async () => {
  const before = await state();
  const values = [PAYLOAD, '\u0000', '../../console', '%2e%2e%2f', 'x'.repeat(3000), '-1', '٣', "' OR 1=1 --", ''];
  const wrong: string[] = [];
  for (const route of inside('GET')) {
    const names = ['after', 'from', 'as_of', 'currency', 'month', 'q'];
    const queries = values.flatMap((value) => names.map((name) => `${name}=${encodeURIComponent(value)}`));
    const asked = [...queries, 'after=1&after=2', 'from=2026-99-99', 'as_of=2026-02-30', 'as_of=9999-12-31'];
    for (const query of ['/documents', '/statement'].includes(route.path) ? asked : asked.slice(0, 12)) {
      const { status, text } = await contact(OWN).get(`${ofPartner(route, OWN)}?${query}`);
      if (status >= 500 || RAW.test(text)) wrong.push(`${nameOf(route)}?${query.slice(0, 60)}: ${status}`);
    }
    if (!route.path.includes(':')) continue;
    for (const value of values.filter((each) => each !== '')) {
      const { status, text } = await contact(OWN).get(at(route, { number: value, reference: value, wire: value }));
      if (![400, 404, 414].includes(status) || RAW.test(text))
        wrong.push(`${nameOf(route)} ${value.slice(0, 60)}: ${status}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(await state()).toEqual(before);
});

describe('a link that has expired', () => {
  test('lets nobody in, however often it is tried, and makes no session', async () => {
    const link = await linkOf(books, OWN);
    const before = await state();
    books.at('2026-10-15T15:15:01Z');
    const browser = new Browser(served.url);
    for (let time = 0; time < 3; time += 1) {
      const { status, headers } = await browser.post(link);
      expect([status, headers.get('set-cookie')]).toEqual([403, null]);
    }
    for (const route of inside('GET')) expect((await browser.get(ofPartner(route, OWN))).status).toBe(401);
    expect(await state()).toEqual(before);
  });

  test('and a session that was idle too long, reads and changes nothing', async () => {
    const idle = await contactOf(books, served, OWN);
    books.at('2026-10-20T15:00:00Z');
    const before = await state();
    for (const route of inside('GET')) expect((await idle.get(ofPartner(route, OWN))).status).toBe(401);
    for (const route of inside('POST')) expect((await idle.post(ofPartner(route, OWN))).status).toBe(401);
    expect(await state()).toEqual(before);
  });
});

test('every link of the place leads to a page of it or to a payment page, and every page is linked', async () => {
  // One address of each page and the names of what is asked of it: there are as many months as one likes.
  const shapeOf = ({ pathname, searchParams }: URL) => `${pathname}?${[...searchParams.keys()].sort().join('&')}`;
  const seen = new Set<string>();
  const next: [path: string, on: string][] = [['/place', 'the sign-in']];
  for (const [path, on] of next) {
    const page = await contact(OWN).get(path);
    expect([path, on, page.status]).toEqual([path, on, 200]);
    if (/^\/pay\/|\.(csv|xlsx|pdf)(\?|$)/.test(path)) continue;
    for (const [, href = ''] of page.text.matchAll(/href="([^"]*)"/g)) {
      const url = new URL(href.replaceAll('&amp;', '&'), `http://place.example${path}`);
      // The processor's page, and our style sheet.
      if (url.host !== 'place.example' || url.pathname.startsWith('/console/assets/')) continue;
      expect([url.pathname, path]).toEqual([expect.stringMatching(/^\/(place(\/|$)|pay\/)/), path]);
      if (seen.has(shapeOf(url))) continue;
      seen.add(shapeOf(url));
      next.push([`${url.pathname}${url.search}`, path]);
    }
  }
  const linked = next.map(([path]) => path.replace(/\?.*/, ''));
  const missing = inside('GET').filter((route) => !linked.includes(ofPartner(route, OWN)));
  expect(missing.map(nameOf)).toEqual([]);
});

test('a contact signs out, and its session is over', async () => {
  const browser = await contactOf(books, served, OTHER);
  expect((await browser.post('/place/sign-out')).status).toBe(303);
  for (const route of inside('GET')) expect((await browser.get(ofPartner(route, OTHER))).status).toBe(401);
});
