/** The rows of a document as CSV: the attachment of its e-mail and what is downloaded are the same to the byte. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDocumentRows, readRowsOfDocuments } from '../../src/delivery/documents.sql.ts';
import { rowsHeader } from '../../src/delivery/rows.ts';
import { voidDocument } from '../../src/documents/void.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

const CONNECTED = {
  arrangement: 'connected_account',
  connected_account_id: 'acct_1',
  merchant_of_record: 'platform',
  split: 'sequential',
};

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-yen', currency: 'JPY', time_zone: 'Asia/Tokyo' })]);
});
afterAll(() => world.end());

test('rows that are streamed are those that are attached, with requotes, reversals and currencies without digits', async () => {
  const first = quote({ quote_id: 'q-1', accepted_at: '2026-07-10T12:00:00.25Z' });
  const { enrollment_id: _, ...facts } = first;
  const orders = ['=1+1', '-5', "'quoted'", 'a, "b"', '+49, "c"', '#1001', '@x', ' ＝1'.trim()];
  const report = await world.rows([
    first,
    quote({ quote_id: 'q-2', spotPrice: '10', partnerCut: '3', invoiceAmount: '7' }),
    requote(facts),
    reversal(facts),
    quote({
      ...{ partner_id: 'p-yen', quote_id: 'q-yen', currency: 'JPY' },
      ...{ spotPrice: '1000', partnerCut: '300', invoiceAmount: '700' },
    }),
    quote({ quote_id: 'q-eur', currency: 'EUR' }),
    ...orders.map((order_reference) => quote({ order_reference, cover_from: '2026-07-10', cover_to: '2026-07-31' })),
  ]);
  expect(report).toMatchObject({ rejected: 0 });
  world.at('2026-08-02T12:00:00Z');
  await world.close('2026-07');
  await expectSameRows(3);
});

test('so are the rows of the next month, with late ones of another arrangement, and of a void document', async () => {
  world.at('2026-08-20T12:00:00Z');
  await world.partners([partner({ ...CONNECTED, arrangement_from: '2026-08' })]);
  await world.rows([
    quote({ quote_id: 'q-late', accepted_at: '2026-07-31T12:00:00Z' }),
    quote({ quote_id: 'q-3', accepted_at: '2026-08-10T12:00:00Z' }),
  ]);
  world.at('2026-09-02T12:00:00Z');
  await world.close('2026-08');
  await world.database.transaction((tx) =>
    voidDocument(tx, world, { number: 'INV-2026-000001', reason: 'wrong contact' }),
  );
  await expectSameRows(5);
});

test('so are the rows of a first close that bills two months', async () => {
  const other = await openWorld();
  try {
    await other.partners([partner()]);
    other.at('2026-08-02T12:00:00Z');
    await other.rows([
      quote({ quote_id: 'q-june', accepted_at: '2026-06-10T12:00:00Z' }),
      quote({ quote_id: 'q-july', accepted_at: '2026-07-10T12:00:00Z' }),
    ]);
    await other.close('2026-07', { firstMonth: '2026-07' });
    await expectSameRows(1, other);
    const months = await other.sql('SELECT DISTINCT posted_month FROM ledger_rows');
    expect(months).toHaveLength(2);
  } finally {
    await other.end();
  }
});

async function expectSameRows(least: number, of: World = world): Promise<void> {
  const documents = await of.sql<{ document_id: string; purpose: string }>(
    `SELECT document_id, purpose FROM documents ORDER BY document_id`,
  );
  expect(documents.length).toBeGreaterThanOrEqual(least);
  for (const { document_id, purpose } of documents) {
    const id = Number(document_id);
    const { streamed, attached } = await of.database.reading(async (tx) => {
      let text = '';
      for await (const part of readDocumentRows(tx, id)) text += part;
      return { streamed: text, attached: (await readRowsOfDocuments(tx, [id])).get(id) };
    });
    expect(attached?.count).toBeGreaterThan(0);
    expect(attached?.count).toBe(streamed.split('\r\n').length - 2);
    expect(streamed).toBe(`${rowsHeader(purpose)}${attached?.lines}`);
  }
}
