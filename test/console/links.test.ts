/** Every link of the console, followed by every kind of user: none leads to what its reader may not do or see. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Action } from '../../src/actions/action.ts';
import { disputeOpen } from '../../src/actions/dispute.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { invoiceVoid } from '../../src/actions/invoice/void.ts';
import { invoiceWriteOff } from '../../src/actions/invoice/write-off.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { runAction } from '../../src/actions/run.ts';
import { webhookSet } from '../../src/actions/webhook.ts';
import { type PresentRole, type Role, requireRole } from '../../src/people/roles.ts';
import { deactivateUser, identify } from '../../src/people/users.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { ADMINISTRATOR, type Browser, invite, signedIn } from '../support/console.ts';
import { serveRoutes } from '../support/console-routes.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote } from '../support/world.ts';

const OWN = 'p-1';
const USERS: readonly (readonly [name: string, roles: readonly Role[], partnerId?: string])[] = [
  ['viewer', ['viewer']],
  ['approver', ['approver']],
  ['finance', ['finance', 'administrator']],
  ['viewer-of-one', ['viewer'], OWN],
  ['approver-of-one', ['approver'], OWN],
  ['finance-of-one', ['finance'], OWN],
];

/** Actions that are linked beside what waits for them alone. */
const WHERE_ONE_WAITS: readonly string[] = [
  'month.archive', // for the owner of the tables, at a terminal (test/archive)
  'month.unarchive', // the same
  'feed.accept', // the close, beside what is in doubt (close.test.ts)
  'payment.settle', // the receipt of a payout
  'bank.book', // a bank line that is in no account of the books (test/payments/bank-lines.test.ts)
  'bank.unbook', // a bank line that is booked
  'payment.close_exception', // a receipt that may be a duplicate
  'reminder.resume', // a partner whose reminders are paused
  'rows.release', // a row that is held
  'rows.discard', // the same
  'reversal.grant', // a reversal that is held
  'reversal.refuse', // the same
  'rows.separate', // rows of the API that repeat each other
  'email.resend', // the work queue, beside an e-mail that carries no document
  'email.dismiss', // the same
];

let books: Books;
let served: Served;
const browsers = new Map<string, Browser>();
let unapplied = 0;

beforeAll(async () => {
  const world = await openWorld();
  books = booksOf(world);
  await world.partners([partner({ parent: 'p-2' }), partner({ partner_id: 'p-2', name: 'Northern Lantern' })]);
  const amounts = { spotPrice: '50.00', partnerCut: '0', invoiceAmount: '50.00' };
  const currencies = ['CAD', 'CHF', 'EUR', 'GBP', 'SEK', 'USD'];
  await world.rows([
    ...currencies.map((currency) => quote({ currency, ...amounts })),
    quote({ partner_id: 'p-2', currency: 'USD', ...amounts }),
  ]);
  await world.close();
  await world.deliver();
  world.at('2026-10-15T15:00:00Z');
  const environment = { ...world.environment, webhookKey: 'k'.repeat(64) };
  const context = { ...books.acting, environment, database: world.database };
  const run = <Input>(action: Action<Input, never, never, never> | Action, input: Input) =>
    runAction(context, action as Action, input as never, { deliver: false });
  const documents = await world.documents();
  const numberIn = (currency: string, owner = OWN): string =>
    documents.find((each) => each.partner_id === owner && each.currency === currency)?.number ?? '';
  const reason = 'INV-2026-000001 was wrong';
  await run(invoiceHold as Action, { number: numberIn('CAD'), reason });
  await run(disputeOpen as Action, { number: numberIn('CHF'), reason });
  await run(invoiceWriteOff as Action, { number: numberIn('EUR'), reason });
  await run(invoiceVoid as Action, { number: numberIn('GBP'), reason });
  await books.record({ number: numberIn('SEK'), currency: 'SEK', amount: '50.00', reference: 'WHOLE' });
  await run(invoiceCredit as Action, { number: numberIn('SEK'), amount: '5.00', reason });
  await run(invoiceCredit as Action, { number: numberIn('USD'), amount: '5.00', reason });
  await run(webhookSet as Action, { partnerId: OWN, url: 'https://partner.example/events' });
  const shared = await books.record({ partnerId: OWN, amount: '9.00', currency: 'USD', reference: 'SHARED' });
  await books.apply(shared.paymentId, numberIn('USD', 'p-2'), '2.00');
  unapplied = (await books.record({ partnerId: OWN, amount: '80.00', currency: 'USD', reference: 'LATER' })).paymentId;
  await invite(world, ADMINISTRATOR);
  await invite(world, 'former@issuer.example');
  await world.database.transaction(async (tx) => {
    const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
    return deactivateUser(tx, { ...world, actor }, { login: 'former@issuer.example', reason: null });
  });
  ({ served } = await serveRoutes(world));
  await served.client(OWN);
  for (const [name, roles, partnerId] of USERS) {
    const link = await invite(world, `${name}@issuer.example`, {
      roles,
      ...(partnerId !== undefined && { partnerId }),
    });
    browsers.set(name, await signedIn(served, link));
  }
});
afterAll(async () => {
  await served.end();
  await books.end();
});

const text = (html: string) => html.replaceAll('&amp;', '&');

/** One address for each page and the names of what is asked of it. */
const shapeOf = ({ pathname, searchParams }: URL): string => `${pathname}?${[...searchParams.keys()].sort().join('&')}`;

interface Crawled {
  /** Actions that a page links or has a form for, with where. */
  readonly actions: ReadonlyMap<string, { readonly url: URL; readonly on: string }>;
  readonly refused: readonly string[];
}

async function crawl(browser: Browser): Promise<Crawled> {
  const actions = new Map<string, { url: URL; on: string }>();
  const refused: string[] = [];
  const seen = new Set<string>();
  const next: [path: string, on: string][] = [['/console', 'the rail']];
  for (const [path, on] of next) {
    const page = await browser.get(path);
    if (page.status >= 400) refused.push(`${path} on ${on}: ${page.status}`);
    if (page.location !== null) next.push([page.location, path]);
    for (const [, href = ''] of text(page.text).matchAll(
      /(?:href|action|formaction|name="go" value)="(\/console[^"]*)"/gi,
    )) {
      const url = new URL(href, 'http://console.example');
      const isAction = url.pathname.startsWith('/console/actions/');
      if (isAction && !path.startsWith('/console/actions/')) actions.set(href, { url, on: path });
      if (seen.has(shapeOf(url)) || /assets|sign-out|\.(csv|xlsx|pdf)$/.test(url.pathname)) continue;
      // A form alone is no page.
      if (![`href="${href}`, `name="go" value="${href}`].some((each) => text(page.text).includes(each))) continue;
      seen.add(shapeOf(url));
      next.push([href, path]);
    }
  }
  expect(seen.size).toBeGreaterThan(20);
  return { actions, refused };
}

/** The actions of these that the user may not do: by the role, and by whose things they are. */
async function forbidden(
  { actions }: Crawled,
  [name, roles, narrowedTo]: (typeof USERS)[number],
): Promise<readonly string[]> {
  const partnerId = narrowedTo ?? null;
  const present: PresentRole[] = roles.map((role) => ({ role, partner_id: partnerId }));
  const user = { user_id: 1, kind: 'person', login: name, name, roles: present, limits: null } as const;
  const wrong: string[] = [];
  for (const [href, { url, on }] of actions) {
    const action = ACTIONS.get(url.pathname.replace('/console/actions/', ''));
    if (action === undefined) {
      wrong.push(`${href} on ${on}: no such action`);
      continue;
    }
    const input = Object.fromEntries(
      [...url.searchParams].map(([key, value]) => [
        key,
        /Id$/.test(key) && /^\d+$/.test(value) ? Number(value) : value,
      ]),
    );
    // What the form asks for is not known yet.
    const asked = () => books.database.reading((tx) => action.partners(tx, input as never, books as never));
    const partners = await asked().catch(() => ['what the form says']);
    const known =
      partners === 'all' ? undefined : partners.filter((each) => typeof each === 'string' && /^p-/.test(each));
    try {
      requireRole(user, action.role, known?.length === 0 ? (partnerId === null ? undefined : [partnerId]) : known);
    } catch {
      wrong.push(`${href} on ${on}`);
    }
  }
  return wrong;
}

describe.each(USERS.map((user) => [user[0], user] as const))('%s', (name, user) => {
  test('finds no link that is refused, and no link to an action that is not theirs', { timeout: 400_000 }, async () => {
    const crawled = await crawl(browsers.get(name) as Browser);
    expect(crawled.refused).toEqual([]);
    expect(await forbidden(crawled, user)).toEqual([]);
    if (name !== 'finance') return;
    const linked = new Set(
      [...crawled.actions.values()].map(({ url }) => url.pathname.replace('/console/actions/', '')),
    );
    const missing = [...ACTIONS.keys()].filter((each) => !linked.has(each) && !WHERE_ONE_WAITS.includes(each));
    expect(missing).toEqual([]);
  });
});

test('what is chosen for a receipt, its fee and its amount stay while more is searched for', async () => {
  const finance = browsers.get('finance') as Browser;
  const [own, other] = (
    await books.sql<{ number: string }>(
      `SELECT number FROM documents JOIN document_balances USING (document_id)
     WHERE currency = 'USD' AND document = 'invoice' ORDER BY partner_id`,
    )
  ).map(({ number }) => number);
  const found = await finance.post(`/console/payments/${unapplied}`, {
    ...{ paymentId: String(unapplied), q: String(other), numbers: String(own), fee: '1.50', amount: '3.00' },
  });
  expect(found.status).toBe(200);
  const box = (number = '') => found.text.match(new RegExp(`<input type="checkbox"[^>]*value="${number}"[^>]*>`))?.[0];
  expect(box(own)).toContain('checked');
  expect(box(other)).not.toContain('checked');
  expect(found.text).toMatch(/name="fee" value="1.50"/);
  expect(found.text).toMatch(/name="amount" value="3.00"/);
  const preview = await finance.post('/console/actions/payment.apply', [
    ['paymentId', String(unapplied)],
    ['numbers', String(own)],
    ['numbers', String(other)],
    ['step', 'preview'],
  ]);
  expect(preview.text).toContain('When it is done');
  for (const each of [own, other]) expect(preview.text).toContain(String(each));
});

test('the statement is e-mailed of the month that is shown, or the button says that a month is asked for', async () => {
  const finance = browsers.get('finance') as Browser;
  const month = await finance.get(`/console/partners/${OWN}/statement?from=2026-07-01&as_of=2026-07-31`);
  expect(text(month.text)).toContain(`/console/actions/statement.send?partnerId=${OWN}&month=2026-07"`);
  expect(month.text).toContain('E-mail the statement of 2026-07');
  const part = await finance.get(`/console/partners/${OWN}/statement?from=2026-07-03&as_of=2026-07-31`);
  expect(text(part.text)).toContain(`/console/actions/statement.send?partnerId=${OWN}"`);
  expect(part.text).toContain('E-mail a month’s statement');
});

test('a reason that reads like a number is text, not a link', async () => {
  const finance = browsers.get('finance') as Browser;
  const [{ number } = { number: '' }] = await books.sql<{ number: string }>(
    `SELECT number FROM documents JOIN document_balances USING (document_id) WHERE status = 'void'`,
  );
  const { text: page } = await finance.get(`/console/invoices/${number}`);
  expect(page).toContain('<dd>INV-2026-000001 was wrong</dd>');
});
