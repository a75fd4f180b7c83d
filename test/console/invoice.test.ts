/** The actions that an invoice's page offers, in the order of their use. */

import { h } from 'preact';
import { render } from 'preact-render-to-string';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { invoiceScreen, readInvoice } from '../../src/console/screens/invoice.tsx';
import { type ConsoleBooks, FINANCE, openConsole, TODAY } from './books.ts';

let books: ConsoleBooks;
beforeAll(async () => {
  books = await openConsole();
});
afterAll(() => books.end());

test('an open invoice has one main action and three others; the rest, and what is dangerous, is under “More actions”', async () => {
  const view = await books.database.reading((tx) =>
    readInvoice(tx, { scope: null, period: null, params: { number: 'INV-2026-000003' }, today: TODAY }),
  );
  const page = render(h('div', null, invoiceScreen(view, FINANCE).actions));
  const [buttons = '', more = ''] = page.split('<details');
  const names = (html: string) =>
    [...html.matchAll(/<a class="([\w ]+)"[^>]*>([^<]+)</g)].map(([, look, name]) => [look, name]);
  expect(names(buttons)).toEqual([
    ['button main', 'Record payment'],
    ['button', 'Credit'],
    ['button', 'Dispute'],
    ['button', 'Resend'],
  ]);
  expect(names(more)).toEqual([
    ['danger', 'Write off'],
    ['danger', 'Void'],
  ]);
  expect(more).toContain('>Hold</a>');
});
