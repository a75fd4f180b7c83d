/** Two closed months of two partners, one of them named like a script, with payments: what the console's screens show. */

import { render } from 'preact-render-to-string';
import { ListPage, type ListView, readList } from '../../src/console/list.tsx';
import { type PageUser, page, type Screen } from '../../src/console/page.tsx';
import type { List } from '../../src/lists/list.ts';
import type { Scope } from '../../src/people/scope.ts';
import { type Books, booksOf } from '../payments/books.ts';
import { openWorld, partner, quote } from '../support/world.ts';

export const SCRIPT = '<script>alert(1)</script>';
export const TODAY = '2026-10-15';

export interface ConsoleBooks extends Books {
  /** What every read takes beside its question. */
  readonly seen: (scope?: Scope) => {
    today: string;
    scope: Scope;
    period: null;
    environment: Books['environment'];
    settings: Books['settings'];
  };
}

export async function openConsole(): Promise<ConsoleBooks> {
  const world = await openWorld();
  await world.partners([
    partner(),
    partner({ partner_id: 'p-2', name: SCRIPT, currency: 'EUR', invoicing_contact: { name: '', email: '', cc: [] } }),
  ]);
  await world.rows([quote(), quote({ currency: 'EUR' }), quote({ partner_id: 'p-2', currency: 'EUR' })]);
  await world.close();
  world.at('2026-09-01T10:00:00Z');
  await world.rows([
    quote({ accepted_at: '2026-08-10T12:00:00Z' }),
    quote({ partner_id: 'p-2', currency: 'EUR', accepted_at: '2026-08-11T12:00:00Z' }),
  ]);
  await world.close();
  world.at(`${TODAY}T15:00:00Z`);
  const books = booksOf(world);
  await books.record({ number: 'INV-2026-000001', currency: 'EUR', amount: '2.00', reference: 'PART' });
  await books.record({ partnerId: 'p-2', amount: '3.00', currency: 'EUR', reference: 'UNAPPLIED' });
  return {
    ...books,
    seen: (scope = null) => ({
      today: TODAY,
      scope,
      period: null,
      environment: world.environment,
      settings: world.settings,
    }),
  };
}

export const READER: PageUser = {
  name: 'Mara',
  role: 'finance',
  issuer: 'Issuer',
  sandbox: true,
  version: '1',
  theme: null,
  keys: true,
  login: 'mara@issuer.example',
  formToken: '',
  roles: [{ role: 'finance', partner_id: null }],
  limits: null,
};

/** A user who may do what finance may, for all partners. */
export const FINANCE = { user: { roles: [{ role: 'finance', partner_id: null }], limits: null } } as const;

/** A list as finance sees it: its rows, and its page. */
export async function listed<Row>(
  { database, environment, settings }: ConsoleBooks,
  list: List<Row>,
  question: Readonly<Record<string, string>> = {},
  scope: Scope = null,
): Promise<ListView<Row> & { readonly screen: Screen }> {
  const seen = { scope, period: null, today: TODAY, context: { environment, settings } };
  const view = await database.reading((tx) => readList(tx, list, question, seen));
  return { ...view, screen: { place: null, title: '', content: ListPage({ view, path: '/console', ...FINANCE }) } };
}

/** The whole page of a screen. */
export const html = (screen: Screen): string => page(READER, screen);

/** The content of a screen alone, as text without tags. */
export const textOf = (screen: Screen): string =>
  render(screen.content as never)
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');
