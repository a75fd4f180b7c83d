/** Three months of fourteen partners, every invoice and line of which was computed independently of this program. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, type World } from '../support/world.ts';

const path = (name: string) => fileURLToPath(new URL(`three-months/${name}`, import.meta.url));

interface ExpectedMonth {
  accepted: number;
  duplicates: number;
  invoices: Record<
    string,
    {
      enrollments: number;
      spotPrice: string;
      partnerCut: string;
      invoiceAmount: string;
      lines: Record<string, [count: number, spotPrice: string, partnerCut: string, invoiceAmount: string]>;
    }
  >;
}

const expected = JSON.parse(readFileSync(path('expected.json'), 'utf8')) as Record<string, ExpectedMonth>;
/** A morning after the month has ended everywhere, Pago Pago included. */
const AFTERWARDS = { '2026-07': '2026-08-02T06:00:00Z', '2026-08': '2026-09-02T06:00:00Z', '2026-09': '2026-10-02T06:00:00Z' };

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

test('the golden set is there: three months of fourteen invoices each', () => {
  expect(Object.keys(expected)).toEqual(Object.keys(AFTERWARDS));
  for (const month of Object.values(expected)) expect(Object.keys(month.invoices)).toHaveLength(14);
});

test('the fourteen partners are imported', async () => {
  const partners = JSON.parse(readFileSync(path('partners.json'), 'utf8')) as object[];
  expect(await world.partners(partners)).toEqual({ created: 14, updated: 0, unchanged: 0 });
});

for (const [month, instant] of Object.entries(AFTERWARDS)) {
  const wanted = expected[month] as ExpectedMonth;

  test(`the rows of ${month} are accepted, ${wanted.accepted} of them`, async () => {
    world.at(instant);
    const report = await world.importFiles([path(`${month}.ndjson`)]);
    expect(report).toMatchObject({ accepted: wanted.accepted, duplicates: wanted.duplicates, rejected: 0, errors: [] });
  });

  test(`the close of ${month} gives exactly the expected invoices, to the cent and to the line`, async () => {
    expect(await world.close(month)).toEqual([month]);
    const documents = (await world.documents()).filter((document) => document.month === month);
    const invoices = documents.map((document) => {
      const { partner_id, currency, enrollments, spotPrice, partnerCut, invoiceAmount, lines } = document;
      const totals = { enrollments, spotPrice, partnerCut, invoiceAmount };
      return [
        `${partner_id}|${currency}`,
        {
          ...totals,
          lines: Object.fromEntries(
            lines.map((line) => [
              `${line.policy_id}|${line.kind}|${line.month}`,
              [line.count, line.spotPrice, line.partnerCut, line.invoiceAmount],
            ]),
          ),
        },
      ];
    });
    expect(Object.fromEntries(invoices)).toEqual(wanted.invoices);
    expect(documents.every((document) => document.document === 'invoice')).toBe(true);
  });

  test(`closing ${month} again changes nothing`, async () => {
    const before = await world.documents();
    expect(await world.close(month)).toEqual([]);
    expect(await world.documents()).toEqual(before);
  });
}

test('numbers run from 1 to 42 without a gap, by month, partner and currency', async () => {
  const documents = await world.documents();
  expect(documents.map((document) => document.sequence)).toEqual(Array.from({ length: 42 }, (_, index) => index + 1));
  const order = documents.map((document) => `${document.month} ${document.partner_id} ${document.currency}`);
  expect(order).toEqual([...order].sort());
});
