/** The life of the link of a payment page: replaced, taken back, closed after the payment; and what a void page tells. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { changeLink } from '../../src/delivery/change-link.ts';
import { readHistory } from '../../src/documents/history.ts';
import { rerunDocument } from '../../src/documents/rerun.ts';
import { recordPayment } from '../../src/payments/record.ts';
import { ask, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  await world.partners(['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id })));
  await world.rows(['p-1', 'p-2', 'p-3'].map((partner_id) => quote({ partner_id })));
  await world.close('2026-07');
  await world.deliver();
  served = await serveWorld(world);
});
afterAll(async () => {
  const { differences } = await world.verify();
  expect(differences).toBe(0);
  await served.end();
  await world.end();
});

const pathOf = async (number: string): Promise<string> => {
  const document = (await world.documents()).find((each) => each.number === number);
  return new URL(document?.payment_link ?? 'http://nothing.example/none').pathname;
};
const statusesOf = (path: string) =>
  Promise.all(['', '/invoice.pdf', '/rows.csv'].map(async (file) => (await ask(`${served.url}${path}${file}`)).status));
const change = (number: string, to: 'rotate' | 'revoke') =>
  world.database.transaction((tx) => changeLink(tx, world, { number, to, reason: 'forwarded by mistake' }));
const [ONE, TWO, THREE] = ['INV-2026-000001', 'INV-2026-000002', 'INV-2026-000003'];

test('a replaced link opens nothing any more; the new one does, and no event names either', async () => {
  const old = await pathOf(ONE);
  expect(await statusesOf(old)).toEqual([200, 200, 200]);
  await change(ONE, 'rotate');
  const fresh = await pathOf(ONE);
  expect(fresh).not.toBe(old);
  expect(await statusesOf(old)).toEqual([404, 404, 404]);
  expect(await statusesOf(fresh)).toEqual([200, 200, 200]);
  const events = await world.sql(`SELECT string_agg(details::text, '') AS told FROM audit_events`);
  for (const path of [old, fresh]) expect(JSON.stringify(events)).not.toContain(path.split('/').at(-1));
});

test('a link that was taken back opens nothing until there is a new one', async () => {
  const old = await pathOf(ONE);
  await change(ONE, 'revoke');
  expect(await statusesOf(old)).toEqual([404, 404, 404]);
  expect(await pathOf(ONE)).toBe('/none');
  await expect(change(ONE, 'revoke')).rejects.toMatchObject({ code: 'link_revoked' });
  await change(ONE, 'rotate');
  expect(await statusesOf(await pathOf(ONE))).toEqual([200, 200, 200]);
  const [{ document_id: id }] = (await world.sql(`SELECT document_id FROM documents WHERE number = '${ONE}'`)) as [
    { document_id: string },
  ];
  const history = await world.database.reading((tx) => readHistory(tx, Number(id)));
  expect(JSON.stringify(history)).toContain('payment link taken back: forwarded by mistake');
});

test('the page of a void invoice names its replacement without a link to it', async () => {
  await world.partners([partner({ partner_id: 'p-2', name: 'Renamed Rides' })]);
  const old = await pathOf(TWO as string);
  await world.database.transaction((tx) => rerunDocument(tx, world, TWO as string, { newTerms: false }));
  await world.deliver();
  const { text, status } = await ask(`${served.url}${old}`);
  expect(status).toBe(200);
  expect(text).toContain('It was replaced by INV-2026-000004');
  expect(text).not.toContain('/pay/');
  expect(await statusesOf(await pathOf('INV-2026-000004'))).toEqual([200, 200, 200]);
});

test('the page of a paid invoice closes some time after the payment', async () => {
  const path = await pathOf(THREE as string);
  const payment = {
    amount: '7.00',
    currency: 'USD',
    method: 'wire',
    receivedOn: '2026-08-01',
    reference: 'FT-1',
  } as const;
  await world.database.transaction((tx) => recordPayment(tx, world, { ...payment, number: THREE as string }));
  expect(await statusesOf(path)).toEqual([200, 200, 200]);
  world.at('2026-10-30T12:00:00Z');
  expect(await statusesOf(path)).toEqual([200, 200, 200]);
  world.at('2026-10-31T12:00:00Z');
  expect(await statusesOf(path)).toEqual([404, 404, 404]);
  expect(await statusesOf(await pathOf(ONE as string))).toEqual([200, 200, 200]);
});
