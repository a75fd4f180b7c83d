/**
 * Who may go where: every route of the console with every role, over all partners and over one of two. What is expected is
 * written down here, so a route that nobody thought about fails.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Field, fieldsOf } from '../../src/actions/fields.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import type { Month } from '../../src/month.ts';
import { ROLES, type Role } from '../../src/people/roles.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { ADMINISTRATOR, Browser, invite, signedIn } from '../support/console.ts';
import {
  addressOf,
  askToRelease,
  completeSeller,
  contentOf,
  isMoved,
  isOpen,
  makePack,
  namesObject,
  type Objects,
  type Route,
  serveRoutes,
  sizeIn,
} from '../support/console-routes.ts';
import type { Served } from '../support/service.ts';
import { openWorld, partner, quote } from '../support/world.ts';

/** Whoever reads of some partners only has none of these. */
const LEDGER =
  /^\/(close(\/:month)?|payments\/lines(\.\w+)?|reports\/(trial-balance|tax|unearned|bank-reconciliation|general-ledger|cash-application)(\.\w+|\/.*)?|audit\/(checkpoints|checks|settings|packs|access).*|settings(\/[\w.]+)?)$/;
/** Of administrators, whatever the method. */
const ADMINISTRATORS = /^\/settings\/sessions/;
/** Who may send a form, besides those of the actions. */
const SENT: readonly (readonly [path: RegExp, role: Role])[] = [
  [/^\/(sign-out|account\/.*|audit\/(checks|packs))$/, 'viewer'],
  [/^\/(queue|payments(\/.*)?)$/, 'finance'],
  // Whoever asked withdraws: the request itself says who may decide.
  [/^\/approvals\/:id$/, 'viewer'],
];

function neededFor({ method, path }: Route): { role: Role; other?: Role | undefined; ledger: boolean } {
  const action = /^\/actions\/(.*)$/.exec(path)?.[1];
  if (action !== undefined) {
    const { role = 'viewer', otherRole: other } = ACTIONS.get(action) ?? {};
    return { role, other, ledger: false };
  }
  if (ADMINISTRATORS.test(path)) return { role: 'administrator', ledger: true };
  if (method === 'GET') return { role: 'viewer', ledger: LEDGER.test(path) };
  const role = SENT.find(([each]) => each.test(path))?.[1];
  if (role === undefined) throw new Error(`say in SENT who may ${method} ${path}`);
  return { role, ledger: LEDGER.test(path) };
}

/** What users see who may see some months only. A route that is not here is refused to them. */
const OF_PERIOD =
  /^\/$|^\/(invoices(\.\w+|\/:number(\/.*)?|\/pdfs\.zip)?|(rows|payments\/all|audit|reports\/(close|general-ledger))(\.\w+)?|reports\/general-ledger\/.*|audit\/packs.*|account(\/.*)?|sign-out)$/;

/** The partner that a narrowed user has, and the one that is not there for that user. */
const OWN = 'p-1';
const OTHER = 'p-northern';
/** What nobody may read who has only the first one. */
const SECRETS = /Northern Lantern|lantern\.example|8[,.]?765[,.]?43|LANTERN-FT/;

/** What nobody may read whose month has nothing. */
const OF_ANY = /Northern Lantern|Harbour Lights|lantern\.example|8[,.]?765[,.]?43|(LANTERN|HARBOUR)-FT/;

/** What a script of ours sends as JSON: an empty form is none, whoever sends it. */
const CALLS = /^\/account\/passkeys(\/options)?$/;

/** Tables that a request may be counted in, or that hold when a session was last seen. */
const COUNTED = ['request_counts', 'security_events', 'sessions'];

interface Reader {
  readonly name: string;
  readonly role: Role | 'none';
  readonly narrowed: boolean;
  /** Sees a month that has nothing of these partners, and nothing else. */
  readonly limited?: boolean;
}
const READERS: readonly Reader[] = [
  { name: 'nobody', role: 'none', narrowed: false },
  { name: 'viewer of another month', role: 'viewer', narrowed: false, limited: true },
  ...ROLES.flatMap((role) => [
    { name: role, role, narrowed: false },
    // Nobody manages the users of one partner.
    ...(role === 'administrator' ? [] : [{ name: `${role} of one partner`, role, narrowed: true }]),
  ]),
];

let books: Books;
let served: Served;
let routes: readonly Route[] = [];
/** What each partner has that an address or a form can name. */
const objects: Record<string, Objects & Record<string, string>> = {};
const browsers = new Map<string, Browser>();

beforeAll(async () => {
  const world = await openWorld();
  books = booksOf(world);
  completeSeller(world);
  await world.partners([
    partner({ e_invoice: 'facturx' }),
    partner({
      ...{ partner_id: OTHER, name: 'Northern Lantern Festival', currency: 'EUR', e_invoice: 'facturx' },
      invoicing_contact: { name: 'Lucia', email: 'ap@lantern.example', cc: [] },
    }),
  ]);
  const amounts = { spotPrice: '8765.43', partnerCut: '0', invoiceAmount: '8765.43' };
  await world.rows([quote(), quote({ partner_id: OTHER, currency: 'EUR', ...amounts })]);
  await world.close();
  await world.deliver();
  world.at('2026-10-15T15:00:00Z');
  await invite(world, ADMINISTRATOR);
  ({ served, routes } = await serveRoutes(world));
  const task = await makePack(world);
  const theirs = (await world.documents()).find(({ partner_id }) => partner_id === OTHER)?.number ?? '';
  // Of the first partner by its account, and perhaps of the other by what it names.
  await books.record({ partnerId: OWN, currency: 'EUR', amount: '8000.00', reference: `for ${theirs}` });
  for (const { number, partner_id: owner } of await world.documents()) {
    const [reference, currency] = owner === OWN ? ['HARBOUR-FT', 'USD'] : ['LANTERN-FT', 'EUR'];
    const { paymentId } = await books.record({ number, currency, amount: '1.00', reference });
    await world.database.transaction((tx) => holdDocument(tx, books.acting, { number, reason: 'ask first' }));
    const { client_id: clientId } = await served.client(owner);
    const payment = String(paymentId);
    const requestId = await askToRelease(world, number, owner);
    const known = { number, partnerId: owner, requestId, clientId, month: '2026-07', task, size: await sizeIn(world) };
    objects[owner] = { ...known, exception: payment, paymentId: payment };
  }
  for (const { name, role, narrowed, limited } of READERS) {
    if (role === 'none') browsers.set(name, new Browser(served.url));
    else {
      const login = `${role}${narrowed ? '-of-one' : ''}@issuer.example`;
      const month = '2026-06' as Month;
      const link = await invite(world, limited ? `limited-${login}` : login, {
        roles: [role],
        ...(narrowed && { partnerId: OWN }),
        ...(limited && { limits: { from: month, to: month, until: null } }),
      });
      browsers.set(name, await signedIn(served, link));
    }
  }
});
afterAll(async () => {
  await served.end();
  await books.end();
});

const at = (route: Route, owner: string): string => addressOf(route, objects[owner] as Objects);

/** Whether the role is the reader's, and reaches as far as the route asks for. */
function may(reader: Reader, route: Route): boolean {
  const { role, other, ledger } = neededFor(route);
  if (reader.limited && !OF_PERIOD.test(route.path)) return false;
  return (role === 'viewer' || role === reader.role || other === reader.role) && !(ledger && reader.narrowed);
}

const state = () => contentOf(books, COUNTED);
const events = async () =>
  (await books.sql<{ action: string }>('SELECT action FROM audit_events ORDER BY event_id')).map(
    ({ action }) => action,
  );

const browserOf = ({ name }: Reader): Browser => browsers.get(name) as Browser;
const inside = (method: string) => routes.filter((each) => each.method === method && !isOpen(each));
const byName = READERS.map((reader) => [reader.name, reader] as const);

test('every route of the console is known to this test', () => {
  expect(inside('GET').length).toBeGreaterThan(60);
  expect(inside('POST').length).toBeGreaterThan(40);
  expect(routes.filter(({ method }) => !['GET', 'POST'].includes(method))).toEqual([]);
  for (const route of [...inside('GET'), ...inside('POST')]) expect(() => neededFor(route)).not.toThrow();
});

describe('reading', () => {
  test.each(byName)('%s gets what the role reaches, nothing of others, and changes nothing', async (_name, reader) => {
    const before = await state();
    const recorded = await events();
    const wrong: string[] = [];
    for (const route of inside('GET')) {
      for (const owner of namesObject(route) ? [OWN, OTHER] : [OWN]) {
        const address = at(route, owner);
        const page = await browserOf(reader).get(address);
        const expected = answerTo(reader, route, owner);
        if (!expected.includes(page.status)) wrong.push(`${address}: ${page.status}, not ${expected.join(' or ')}`);
        if (reader.role === 'none' && page.location?.startsWith('/console/sign-in') !== true) wrong.push(address);
        const told = reader.limited ? OF_ANY : SECRETS;
        if ((reader.narrowed || reader.limited) && told.test(page.text)) wrong.push(`${address} tells of ${OTHER}`);
      }
    }
    expect(wrong).toEqual([]);
    // A download of a spreadsheet is recorded.
    const { audit_events: _, personal_texts: __, ...rest } = before;
    expect(await state()).toMatchObject(rest);
    const added = (await events()).slice(recorded.length);
    expect(new Set(added)).toEqual(new Set(reader.role === 'none' ? [] : ['audit.export']));
  });

  function answerTo(reader: Reader, route: Route, owner: string): readonly number[] {
    if (reader.role === 'none') return [303];
    if (!may(reader, route)) return [403];
    if (reader.narrowed && owner === OTHER) return [404];
    if (reader.limited) {
      if (route.path === '/') return [303];
      if (/:month/.test(route.path)) return [403];
      if (/:(number|task|gl)|pdfs\.zip$/.test(route.path)) return [404];
    }
    // No document here is void.
    if (route.path.endsWith('/void-copy.pdf')) return [422];
    return isMoved(route) ? [303] : [200];
  }

  test('a viewer of some months reads what is of them, and no link leads to a page that is refused', async () => {
    const month = '2026-07' as Month;
    const limits = { from: month, to: month, until: null };
    const link = await invite(books, 'july@auditor.example', { roles: ['viewer'], limits });
    const july = await signedIn(served, link);
    const own = objects[OWN] as Objects;
    for (const path of [`invoices/${own.number}`, 'invoices', 'rows', 'reports/close', 'reports/general-ledger']) {
      const { status, text } = await july.get(`/console/${path}`);
      expect([path, status]).toEqual([path, 200]);
      expect(text).toMatch(path === 'reports/general-ledger' ? /gl-2026-07/ : /Harbour Lights/);
      for (const [, href = ''] of text.matchAll(/<a\b[^>]* href="(\/console[^"]*)"/g)) {
        if (href.endsWith('.zip')) continue;
        const linked = await july.get(href.replaceAll('&amp;', '&'));
        expect([path, href, linked.status < 400]).toEqual([path, href, true]);
      }
    }
    // The payments were entered in October.
    expect((await july.get('/console/payments/all')).text).not.toContain('HARBOUR-FT');
    // The pack was made by somebody else, while the books of July were open.
    expect((await july.get('/console/audit/packs')).text).not.toContain('pack.zip');
    const refused = await july.post('/console/audit/packs', { kind: 'ledger', month: '2026-07' });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('books are open')]);
    expect((await july.post('/console/audit/packs', { kind: 'ledger', month: '2026-08' })).status).toBe(403);
  });

  test('access ends with its last day: the session, and every later sign-in', async () => {
    const login = 'last@auditor.example';
    const limits = { from: null, to: null, until: '2026-10-15' };
    const before = books.environment.now().toISO();
    try {
      books.at('2026-10-16T03:50:00Z'); // In New York, ten minutes before midnight.
      const last = await signedIn(served, await invite(books, login, { limits }));
      expect((await last.get('/console/aging')).status).toBe(200);
      const link = await invite(books, login);
      books.at('2026-10-16T04:05:00Z');
      const ended = `The access of ${login} ended on 2026-10-15. An administrator can extend it.`;
      for (const page of [await new Browser(served.url).post(link), await last.get('/console/aging')])
        expect([page.status, page.text]).toEqual([403, expect.stringContaining(ended)]);
      expect((await last.get('/console/aging')).status).toBe(303);
    } finally {
      books.at(before);
    }
  });

  test('a filter in the address reaches no further than the role', async () => {
    const { number, exception } = objects[OTHER] as Objects;
    const asked = [
      ...[
        'invoices',
        'invoices.csv',
        'partners',
        'aging',
        'accounts',
        'audit',
        'reports/coverage',
        'reports/close',
      ].flatMap((path) =>
        [`partner=${OTHER}`, `q=lantern`, `q=8765`, `subject=${number}`, `month=2026-07`].map(
          (query) => `${path}?${query}`,
        ),
      ),
      ...[
        `search?q=${number}`,
        'search?q=8765',
        'search?q=LANTERN',
        `payments/payment-${exception}`,
        'payments/all?text=LANTERN',
      ],
    ];
    asked.push(
      `rows?document=${number}`,
      'rows?quote=q-1',
      'audit?from=2026-07-01&to=2026-12-31',
      'rows?from=2026-07-01',
    );
    for (const reader of READERS.filter(({ narrowed, limited }) => narrowed || limited)) {
      for (const address of asked) {
        const { status, text } = await browserOf(reader).get(`/console/${address}`);
        const told = text.replaceAll(/value="[^"]*"/g, '').match(reader.limited ? OF_ANY : SECRETS)?.[0];
        expect([address, status < 500, told]).toEqual([address, true, undefined]);
      }
    }
  });
});

describe('sending a form', () => {
  const leaves = ({ path }: Route) => /sign-out/.test(path);
  const sent = () => inside('POST').filter((route) => !leaves(route));

  test.each(byName)('%s is refused without the role, and changes nothing by an empty form', async (_name, reader) => {
    const before = await state();
    const wrong: string[] = [];
    for (const route of sent()) {
      const address = at(route, OWN);
      const { status } = await browserOf(reader).post(address);
      const refused = reader.role === 'none' ? 401 : 403;
      const admitted = reader.role !== 'none' && may(reader, route) && !CALLS.test(route.path);
      const is = admitted ? status < 500 && ![401, 403].includes(status) : status === refused;
      if (!is) wrong.push(`${address}: ${status}`);
    }
    expect(wrong).toEqual([]);
    expect(await state()).toEqual(before);
  });

  test.each(byName.filter(([, { narrowed }]) => narrowed))(
    '%s changes nothing of another partner by an action, and learns nothing of it',
    async (_name, reader) => {
      const before = await state();
      for (const action of ACTIONS.values()) {
        const fields = Object.fromEntries(
          fieldsOf(action.input).map(({ name, ...field }) => [name, guess(name, field)]),
        );
        const { status, text } = await browserOf(reader).post(`/console/actions/${action.name}`, {
          ...fields,
          step: 'preview',
        });
        const told = text.replaceAll(/value="[^"]*"/g, '').match(SECRETS)?.[0];
        const admitted = reader.role === action.role || reader.role === action.otherRole;
        expect([action.name, status, told]).toEqual([action.name, admitted ? 422 : 403, undefined]);
      }
      expect(await state()).toEqual(before);
    },
  );

  function guess(name: string, { kind, choices = [] }: Omit<Field, 'name'>): string {
    const known = objects[OTHER]?.[name] ?? objects[OTHER]?.[name.replace(/s$/, '')];
    if (known !== undefined) return known;
    if (kind === 'choice') return choices[0] ?? '';
    const values: Partial<Record<Field['kind'], string>> = { date: '2026-10-14', month: '2026-07', amount: '1.00' };
    return values[kind] ?? (kind === 'whole' ? '1' : kind === 'flag' ? '' : 'x');
  }

  test.each(byName)('%s may sign out, if signed in', async (_name, reader) => {
    const path = '/console/sign-out';
    const { status } = await browserOf(reader).post(path);
    expect(status).toBe(reader.role === 'none' ? 401 : 303);
  });
});

test('what may be large is sent for as long as its reader reads, and not cut off as an answer is', () => {
  const sent = routes.filter(({ bound }) => bound === 'rows').map(({ path }) => path);
  expect(sent.sort()).toEqual(['/audit/packs/files/:task/pack.zip', '/invoices/:number/rows.csv']);
});
