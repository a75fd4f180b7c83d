/** Invoices with odd totals: issued and due as always, their e-mails held until finance releases them. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { previewClose } from '../../src/close/run.ts';
import { foreseeHolds } from '../../src/delivery/foresee.ts';
import { creditInvoice } from '../../src/documents/credit.ts';
import { holdDocument, releaseDocument } from '../../src/documents/hold.ts';
import { openMetrics } from '../../src/http/metrics.ts';
import { readCloseReport } from '../../src/reports/close.ts';
import { readStatus } from '../support/status.ts';
import { openWorld, partner, quote, reversal, type World } from '../support/world.ts';
import { startOver } from './start-over.ts';

let world: World;
let settings: World['settings'];
beforeAll(async () => {
  world = await openWorld();
  settings = world.settings;
});
afterAll(() => world.end());
beforeEach(async () => {
  world.settings = settings;
  await startOver(world);
  await world.partners([partner(), partner({ partner_id: 'p-2' })]);
});

const hold = (holds: Partial<World['settings']['holds']>) => {
  world.settings = { ...settings, holds: { above: {}, times: null, ...holds } };
};
const sold = (month: string, amount: string, more: object = {}) =>
  quote({ accepted_at: `${month}-10T12:00:00Z`, spotPrice: amount, partnerCut: '0', invoiceAmount: amount, ...more });
const held = async () =>
  (
    await world.sql<{ number: string; reason: string }>(
      `SELECT d.number, h.reason FROM current_holds h JOIN documents d USING (document_id) ORDER BY d.document_id`,
    )
  ).map(({ number, reason }) => [number, reason]);
const checks = async () => (await world.verify()).differences;

/** The states for which the rule of Prometheus tells somebody, with how many documents. */
async function alarmed(): Promise<Record<string, number>> {
  const rules = parse(readFileSync('deploy/prometheus/reckoner.rules.yml', 'utf8')) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  const { expr = '' } = rules.groups[0]?.rules.find(({ alert }) => alert === 'ReckonerDocumentsFailed') ?? {};
  const [, states = ''] = /^max\(reckoner_deliveries\{status=~"([\w|]+)"\}\) by \(status\) > 0$/.exec(expr) ?? [];
  const metrics = await openMetrics(world).read();
  const found = [...metrics.matchAll(/^reckoner_deliveries\{status="(\w+)"\} (\d+)$/gm)];
  expect(found.map(([, state]) => state).sort()).toEqual(['failed', 'held', 'on_hold', 'pending', 'sent', 'uncertain']);
  const loud = found.filter(
    ([, state, count]) => new RegExp(`^(?:${states})$`).test(state as string) && Number(count) > 0,
  );
  return Object.fromEntries(loud.map(([, state, count]) => [state, Number(count)]));
}

test('an invoice that finance puts on hold raises no alarm; one that a rule holds does until it is released', async () => {
  hold({ above: { USD: '100.00' } });
  await world.rows([sold('2026-07', '100.01'), sold('2026-07', '100', { partner_id: 'p-2' })]);
  await world.close();
  const [[odd] = []] = await held();
  const other = (await world.documents()).find(({ number }) => number !== odd)?.number as string;
  await world.database.transaction((tx) => holdDocument(tx, world, { number: other, reason: 'a dispute' }));
  await world.deliver();
  expect(await alarmed()).toEqual({ held: 1 });
  await world.database.transaction((tx) => releaseDocument(tx, world, odd as string));
  await world.deliver();
  expect(await alarmed()).toEqual({});
  const { attention } = await world.database.reading((tx) => readStatus(tx, world));
  expect(attention.join('\n')).not.toContain('held');
  expect((await world.documents()).find(({ number }) => number === other)).toMatchObject({ email: { status: 'held' } });
});

test('without the setting no invoice is held', async () => {
  await world.rows([sold('2026-07', '900000')]);
  await world.close();
  expect(await held()).toEqual([]);
});

test('an invoice above the amount of its currency is issued and held; the amount itself is not', async () => {
  hold({ above: { USD: '100.00' } });
  const dear = { currency: 'JPY' };
  await world.rows([
    sold('2026-07', '100.01'),
    sold('2026-07', '100', { partner_id: 'p-2' }),
    sold('2026-07', '999', dear),
  ]);
  const foreseen = await previewClose(world.database, world, {}, (tx, { documents }) =>
    foreseeHolds(tx, world, documents),
  );
  const reason = '100.01 USD is above 100.00 USD, the limit above which documents are held';
  expect(foreseen.seen?.filter((each) => each.reason.includes('documents are held'))).toMatchObject([
    { partner_id: 'p-1', reason },
  ]);
  await world.close();
  const [[number] = []] = await held();
  expect(await held()).toEqual([[number, reason]]);
  expect(foreseen.seen).toContainEqual({ number, partner_id: 'p-1', reason });
  const [document] = (await world.documents()).filter((each) => each.number === number);
  expect(document).toMatchObject({ status: 'open', balance: '100.01', email: { status: 'held' } });

  expect(await world.deliver()).toContainEqual(expect.objectContaining({ number, status: 'held' }));
  const report = await world.database.reading((tx) => readCloseReport(tx));
  expect(report?.held).toMatchObject([{ number, reason: expect.stringContaining(reason) }]);
  const { findings } = await world.database.reading((tx) => readStatus(tx, world));
  expect(findings).toMatchObject([
    {
      urgent: `${number} was held by the close as unusual: ${reason}. Check it.`,
      remedies: [{ action: 'invoice.release', input: { number } }],
    },
  ]);
  expect(await checks()).toBe(0);

  await world.database.transaction((tx) => releaseDocument(tx, world, number as string));
  expect(await world.deliver()).toContainEqual(expect.objectContaining({ number, status: 'sent' }));
  expect(await held()).toEqual([]);
});

test('an invoice above so many times the largest of the 12 months before is held; a first one is not', async () => {
  hold({ times: '2.5' });
  const back = sold('2026-05', '5000');
  await world.rows([
    sold('2025-06', '1000'),
    sold('2025-07', '40'),
    back,
    reversal(back, { ...amounts('-5000'), accepted_at: '2026-05-11T12:00:00Z' }),
  ]);
  await world.rows([sold('2026-06', '100'), sold('2026-07', '250.01'), sold('2026-07', '900', { partner_id: 'p-2' })]);
  await world.close();
  const months = new Map((await world.documents()).map(({ number, month }) => [number, month]));
  expect((await held()).map(([number, reason]) => [months.get(number as string), reason])).toEqual([
    ['2026-07', '250.01 USD is above 2.5 times 100.00 USD, the largest invoice of the 12 months before'],
  ]);
  expect(await checks()).toBe(0);
});

test('exactly so many times the largest is not held', async () => {
  hold({ times: '2.5' });
  await world.rows([sold('2026-06', '100'), sold('2026-07', '250')]);
  await world.close();
  expect(await held()).toEqual([]);
});

test('the invoice of the same month a year before is one to compare with', async () => {
  hold({ times: '3' });
  await world.rows([sold('2025-07', '40'), sold('2026-07', '120.01')]);
  await world.close();
  expect((await held()).map(([, reason]) => reason)).toEqual([
    '120.01 USD is above 3 times 40.00 USD, the largest invoice of the 12 months before',
  ]);
});

test('an invoice is compared with those of its own currency', async () => {
  hold({ times: '3' });
  await world.rows([sold('2026-06', '10', { currency: 'EUR' }), sold('2026-07', '100')]);
  await world.close();
  expect(await held()).toEqual([]);
});

test('an invoice of zero is no invoice to compare with', async () => {
  hold({ times: '3' });
  const back = sold('2026-06', '5000');
  await world.rows([back, reversal(back, { ...amounts('-5000'), accepted_at: '2026-06-11T12:00:00Z' })]);
  await world.rows([sold('2026-07', '100')]);
  await world.close();
  expect(await held()).toEqual([]);
});

test('a wrong invoice makes no room for the next: one that is held, or was credited, is no measure', async () => {
  hold({ times: '3' });
  await world.rows([sold('2026-05', '100'), sold('2026-06', '100000'), sold('2026-07', '90000')]);
  await world.close();
  const wrong = await held();
  expect(wrong.map(([, reason]) => reason)).toEqual([
    '100,000.00 USD is above 3 times 100.00 USD, the largest invoice of the 12 months before',
    '90,000.00 USD is above 3 times 100.00 USD, the largest invoice of the 12 months before',
  ]);
  for (const [number] of wrong) {
    await world.database.transaction((tx) => releaseDocument(tx, world, number as string));
    await world.database.transaction((tx) =>
      creditInvoice(tx, world, { number: number as string, amount: '89900.00', reason: 'a wrong feed' }),
    );
  }
  world.at('2026-09-02T10:00:00Z');
  await world.rows([sold('2026-08', '70000')]);
  await world.close();
  expect((await held()).map(([, reason]) => reason)).toEqual([
    '70,000.00 USD is above 3 times 10,100.00 USD, the largest invoice of the 12 months before',
  ]);
  expect(await checks()).toBe(0);
});

const amounts = (amount: string) => ({ spotPrice: amount, partnerCut: '0', invoiceAmount: amount });
