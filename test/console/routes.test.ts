/**
 * Who may go where: every route of the console with every role, over all partners and over one of two. What is expected is
 * written down here, so a route that nobody thought about fails.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Field, fieldsOf } from '../../src/actions/fields.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { holdDocument } from '../../src/documents/hold.ts';
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
  /^\/(close(\/:month(\/preview)?)?|payments\/lines(\.\w+)?|reports\/(trial-balance|bank-reconciliation|general-ledger|cash-application)(\.\w+|\/.*)?|audit\/(checkpoints|checks|settings|packs).*|settings(\/[\w.]+)?)$/;
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
  if (path === '/close/:month/preview') return { role: 'finance', ledger: true };
  if (ADMINISTRATORS.test(path)) return { role: 'administrator', ledger: true };
  if (method === 'GET') return { role: 'viewer', ledger: LEDGER.test(path) };
  const role = SENT.find(([each]) => each.test(path))?.[1];
  if (role === undefined) throw new Error(`say in SENT who may ${method} ${path}`);
  return { role, ledger: LEDGER.test(path) };
}

/** The partner that a narrowed user has, and the one that is not there for that user. */
const OWN = 'p-1';
const OTHER = 'p-northern';
/** What nobody may read who has only the first one. */
const SECRETS = /Northern Lantern|lantern\.example|8[,.]?765[,.]?43|LANTERN-FT/;

/** What a script of ours sends as JSON: an empty form is none, whoever sends it. */
const CALLS = /^\/account\/passkeys(\/options)?$/;

/** Tables that a request may be counted in, or that hold when a session was last seen. */
const COUNTED = ['request_counts', 'security_events', 'sessions'];

interface Reader {
  readonly name: string;
  readonly role: Role | 'none';
  readonly narrowed: boolean;
}
const READERS: readonly Reader[] = [
  { name: 'nobody', role: 'none', narrowed: false },
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
  for (const { name, role, narrowed } of READERS) {
    if (role === 'none') browsers.set(name, new Browser(served.url));
    else {
      const login = `${role}${narrowed ? '-of-one' : ''}@issuer.example`;
      const link = await invite(world, login, { roles: [role], ...(narrowed && { partnerId: OWN }) });
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
  return (role === 'viewer' || role === reader.role || other === reader.role) && !(ledger && reader.narrowed);
}

const state = () => contentOf(books, COUNTED);

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
    const wrong: string[] = [];
    for (const route of inside('GET')) {
      for (const owner of namesObject(route) ? [OWN, OTHER] : [OWN]) {
        const address = at(route, owner);
        const page = await browserOf(reader).get(address);
        const expected = answerTo(reader, route, owner);
        if (!expected.includes(page.status)) wrong.push(`${address}: ${page.status}, not ${expected.join(' or ')}`);
        if (reader.role === 'none' && page.location?.startsWith('/console/sign-in') !== true) wrong.push(address);
        if (reader.narrowed && SECRETS.test(page.text)) wrong.push(`${address} tells of ${OTHER}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(await state()).toEqual(before);
  });

  function answerTo(reader: Reader, route: Route, owner: string): readonly number[] {
    if (reader.role === 'none') return [303];
    if (!may(reader, route)) return [403];
    if (reader.narrowed && owner === OTHER) return [404];
    // No document here is void.
    if (route.path.endsWith('/void-copy.pdf')) return [422];
    return isMoved(route) ? [303] : [200];
  }

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
    for (const reader of READERS.filter(({ narrowed }) => narrowed)) {
      for (const address of asked) {
        const { status, text } = await browserOf(reader).get(`/console/${address}`);
        const told = text.replaceAll(/value="[^"]*"/g, '').match(SECRETS)?.[0];
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
