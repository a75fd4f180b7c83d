/**
 * Partners reverse and requote quotes whose rows are in the archive. The calls are requests, which a worker answers; then
 * everything is as without an archive.
 */
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { monthArchive } from '../../src/actions/archive.ts';
import { runAction } from '../../src/actions/run.ts';
import { needRows } from '../../src/archive/rows.ts';
import { query } from '../../src/database/transaction.ts';
import { readLateRequests } from '../../src/findings/machine.ts';
import { answerLateRequests } from '../../src/http/late-requests.ts';
import type { Month } from '../../src/month.ts';
import { applyPayment } from '../../src/payments/apply.ts';
import { thisProcess } from '../../src/people/audit-events.ts';
import { readBalances } from '../../src/reports/balances.sql.ts';
import { readCoverage } from '../../src/reports/coverage.ts';
import { importBankFile } from '../payments/import-file.ts';
import { type Answer, type Caller, type Served, serveWorld } from '../support/service.ts';
import { quote, reversal, type World } from '../support/world.ts';
import { worldOfOldQuotes } from './archived-world.ts';

const DAY = '2026-07-20T12:00:00Z';

interface Place {
  readonly world: World;
  readonly served: Served;
  readonly caller: Caller;
  readonly other: Caller;
  /** Accepted in January, the third with an accepted requote. */
  readonly quotes: readonly string[];
}

async function open({ archived }: { archived: boolean }): Promise<Place> {
  const { world, quotes } = await worldOfOldQuotes();
  if (archived) for (const month of ['2026-01', '2026-02']) await archive(world, month);
  const served = await serveWorld(world);
  return { world, served, quotes, caller: await served.caller('p-1'), other: await served.caller('p-2') };
}

async function end({ world, served }: Place): Promise<void> {
  await served.end();
  await world.end();
}

const archive = (world: World, month: string) =>
  runAction({ ...world, reporter: {} } as never, monthArchive, { month: month as Month, store: 'cold' });

const inDatabase = (world: World, id: string) =>
  world.sql<{ kind: string }>('SELECT kind FROM ledger_rows WHERE quote_id = $1 ORDER BY entry_id', [id]);

/** Answers what is pending. Returns why requests stay pending. */
async function work({ world }: Place): Promise<string[]> {
  const failures: string[] = [];
  const settings = { ...world.settings, public_url: 'http://127.0.0.1' };
  await answerLateRequests({ ...world, settings, onLateFailed: (error) => failures.push(String(error)) });
  return failures;
}

/** The address of a late request that a call became. */
function pending({ status, headers, body }: Answer): string {
  expect([status, body['status']]).toEqual([202, 'pending']);
  expect(headers.get('location')).toBe(body['location']);
  return body['location'] as string;
}

/** The answer of a call: its own, or that of the late request that it became. */
async function settled(place: Place, answer: Answer): Promise<{ status: number; body: Record<string, unknown> }> {
  if (answer.body['location'] === undefined) return { status: answer.status, body: answer.body };
  const location = pending(answer);
  expect(await work(place)).toEqual([]);
  return (await place.caller.get(location)).body['answer'] as { status: number; body: Record<string, unknown> };
}

const REFUND = { spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: '-1.40' };

/** What a partner does in July with quotes of January, and what everyone reads afterwards. */
async function july(place: Place): Promise<unknown> {
  const { world, caller, quotes } = place;
  const [first, second, third] = quotes as [string, string, string];
  const reverse = (id: string, body: object) => caller.post(`/api/v1/quote/${id}/reverse`, body);
  const before = [];
  for (const id of quotes)
    before.push(await caller.get(`/api/v1/quote/${id}`), await caller.get(`/api/v1/quote/${id}/accept`));
  const answers: { status: number; body: unknown }[] = [];
  const asked = async (call: Promise<Answer>) => answers.push(await settled(place, await call));
  await asked(reverse(first, { reversal_id: 'refund-1', order_reference: 'RMA 1' }));
  await asked(reverse(second, { reversal_id: 'refund-2', ...REFUND }));
  await asked(reverse(second, { reversal_id: 'refund-2', ...REFUND, invoiceAmount: '-2.00', spotPrice: '-2.60' }));
  await asked(reverse(third, { reversal_id: 'refund-3', spotPrice: '-99', partnerCut: '-9', invoiceAmount: '-90' }));
  await asked(caller.post(`/api/v1/quote/${third}/requote`, { insured_amount: '200' }));
  await asked(caller.post(`/api/v1/quote/${third}/requote`, { insured_amount: '400' }));
  const requote = (answers.at(-1) as { body: { requote_id: string } }).body.requote_id;
  answers.push(await caller.get(`/api/v1/requote/${requote}/accept`), await caller.get(`/api/v1/requote/${requote}`));
  answers.push(await caller.get(`/api/v1/quote/${first}`));
  const bank = await receive(world);
  world.at('2026-08-02T12:00:00Z');
  await world.close();
  const read = await world.database.reading(async (tx) => {
    await needRows(tx, {});
    return {
      rows: await query(
        tx,
        `SELECT kind, partner_id, quote_id, requote_id, reversal_id, enrollment_id, policy_id, currency, accepted_at,
                spot_price, partner_cut, invoice_amount, month, posted_month, recorded_at, order_reference
         FROM ledger_rows ORDER BY entry_id`,
      ),
      held: await query(tx, 'SELECT reversal_id, quote_id, spot_price, invoice_amount FROM undecided_rows ORDER BY 1'),
      balances: await readBalances(tx, '2026-08-02'),
      coverage: await readCoverage(tx, { asOf: undefined }),
    };
  });
  const documents = (await world.documents()).map(({ payment_link: _, ...document }) => document);
  const { differences } = await world.verify();
  const text = JSON.stringify({
    before,
    answers: answers.map(({ status, body }) => ({ status, body })),
    bank,
    read,
    documents,
    differences,
  });
  return JSON.parse(named(text));
}

/** Imports a bank file that pays the invoice of January. */
async function receive(world: World): Promise<unknown> {
  const [invoice] = await world.documents({ months: ['2026-01' as Month], partnerId: 'p-1' });
  const { number, amount_due: due } = invoice as { number: string; amount_due: string };
  const cents = due.replace('.', '');
  const lines = [
    ...['01,BANK,OURS,260720,0600,1,80,,2/', '02,OURS,BANK,1,260719,,USD,2/', '03,0007,USD,,,,/'],
    ...[
      `16,195,${cents},,WIRE-1,,/`,
      `88,PAYMENT OF ${number}`,
      `49,${cents},4/`,
      `98,${cents},1,6/`,
      `99,${cents},1,8/`,
    ],
  ];
  const file = { name: 'july.bai', bytes: Buffer.from(`${lines.join('\n')}\n`) };
  const acting = { ...world, actor: thisProcess('command', 'finance') };
  const { event_id: _, ...imported } = await world.database.transaction((tx) => importBankFile(tx, acting, file));
  const paymentId = imported.new_lines[0]?.payment_id as number;
  await world.database.transaction((tx) => applyPayment(tx, acting, { paymentId, numbers: [number] }));
  return { imported, invoice: await world.documents({ months: ['2026-01' as Month], partnerId: 'p-1' }) };
}

/** Ids of quotes and requotes are random; here they are named in the order in which they appear. */
function named(text: string): string {
  const names = new Map<string, string>();
  return text
    .replace(/urn:(request|late-request):[\w-]+/g, 'urn')
    .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, (id) => {
      names.set(id, names.get(id) ?? `id-${names.size + 1}`);
      return names.get(id) as string;
    });
}

test('late reversals and requotes leave the same rows, documents and statements as without an archive', async () => {
  const [cold, hot] = [await open({ archived: true }), await open({ archived: false })];
  try {
    expect(await inDatabase(cold.world, cold.quotes[0] as string)).toEqual([]);
    const expected = await july(hot);
    expect(await july(cold)).toEqual(expected);
    expect(expected).toMatchObject({ differences: 0, bank: { invoice: [{ status: 'paid' }] } });
  } finally {
    await end(cold);
    await end(hot);
  }
});

describe('while the rows of a quote are in the archive', () => {
  let place: Place;
  let id: string;
  beforeAll(async () => {
    place = await open({ archived: true });
    id = place.quotes[0] as string;
  });
  afterAll(() => end(place));
  const reverse = (quoteId: string, body: object, headers = {}) =>
    place.caller.post(`/api/v1/quote/${quoteId}/reverse`, body, headers);
  const state = async (location: string) => (await place.caller.get(location)).body;
  const requests = async () => (await place.world.sql('SELECT FROM late_requests')).length;

  test('the quote is read and accepted again at once, and a preview is refused', async () => {
    const { caller } = place;
    const accepted = await caller.get(`/api/v1/quote/${id}/accept`);
    expect(accepted).toMatchObject({ status: 200, body: { quote_id: id, accepted_at: '2026-01-10T12:00:00.000Z' } });
    expect((await caller.get(`/api/v1/quote/${id}`)).body).toMatchObject({
      ...{ status: 'accepted', enrollment_id: accepted.body['enrollment_id'] },
    });
    const preview = await caller.get(`/api/v1/quote/${id}/reverse/preview`);
    expect(preview).toMatchObject({ status: 409, body: { code: 'quote_archived' } });
  });

  test('a call is validated before it is recorded', async () => {
    const before = await requests();
    expect(await reverse(id, {})).toMatchObject({ status: 400 });
    expect(await place.caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '-1' })).toMatchObject({
      status: 400,
    });
    expect(await place.caller.post('/api/v1/quote/q-none/requote', { insured_amount: '1' })).toMatchObject({
      status: 404,
    });
    expect(await requests()).toBe(before);
  });

  test('a reversal of an unknown quote is refused later', async () => {
    const location = pending(await reverse('q-unknown', { reversal_id: 'refund-unknown' }));
    expect(await state(location)).toMatchObject({ status: 'pending', answer: null, answered_at: null });
    expect(await work(place)).toEqual([]);
    expect(await state(location)).toMatchObject({
      ...{ status: 'refused', quote_id: 'q-unknown' },
      answer: { status: 404, body: { code: 'quote_unknown', quote_id: 'q-unknown' } },
    });
    // Another partner's quote is unknown, and so is another partner's request.
    expect((await place.other.get(location)).body).toMatchObject({ status: 404, code: 'late_request_unknown' });
    expect((await place.caller.get('/api/v1/late-requests/x')).body).toMatchObject({ code: 'late_request_unknown' });
    expect(
      await settled(
        { ...place, caller: place.other },
        await place.other.post(`/api/v1/quote/${id}/reverse`, { reversal_id: 'r' }),
      ),
    ).toMatchObject({
      status: 404,
    });
    expect(await inDatabase(place.world, id)).toEqual([]);
  });

  test('an imported sale is reversed too', async () => {
    const location = pending(await reverse('imported', { reversal_id: 'refund-imported' }));
    expect(await work(place)).toEqual([]);
    expect(await state(location)).toMatchObject({
      status: 'done',
      answer: { status: 202, body: { status: 'requested' } },
    });
  });

  test('a reversal that an import recorded meanwhile counts', async () => {
    const [, second = ''] = place.quotes;
    const { body } = await place.caller.get(`/api/v1/quote/${second}/accept`);
    const sale = quote({ quote_id: second, enrollment_id: body['enrollment_id'] as string, accepted_at: DAY });
    const amounts = { spotPrice: '-21.25', partnerCut: '-6.38', invoiceAmount: '-14.87' };
    await place.world.rows([
      reversal(sale, { reversal_id: 'by-file', ...amounts, accepted_at: '2026-07-20T10:00:00Z' }),
    ]);
    expect((await place.caller.get(`/api/v1/quote/${second}`)).body).toMatchObject({ status: 'reversed' });
    const again = await settled(place, await reverse(second, { reversal_id: 'refund-again' }));
    expect(again).toMatchObject({ status: 422, body: { code: 'reversal_exceeds' } });
  });

  test('the same call with its key is one request, and stays pending while the store is away', async () => {
    const { world, caller } = place;
    const before = await requests();
    const body = { reversal_id: 'refund-away' };
    const key = { 'idempotency-key': 'once' };
    const first = await reverse(id, body, key);
    const again = await reverse(id, body, key);
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(pending(again)).toBe(pending(first));
    expect(await requests()).toBe(before + 1);
    const store = join(world.home, 'cold');
    renameSync(store, `${store}-away`);
    try {
      expect(await work(place)).toEqual([expect.stringContaining('2026-01')]);
      expect(await state(pending(again))).toMatchObject({ status: 'pending' });
      const made = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
      expect((await caller.get(`/api/v1/quote/${made.body['quote_id']}/accept`)).status).toBe(200);
      const found = (hours: number) =>
        world.database.reading((tx) =>
          readLateRequests(tx, {
            scope: null,
            today: '2026-07-20',
            now: Date.parse(DAY) + hours * 3_600_000,
            limit: null,
          }),
        );
      expect(await found(0)).toEqual([]);
      expect(await found(2)).toMatchObject([
        { item: 'late_requests', urgent: expect.stringContaining('wait for the archive: 1.') },
      ]);
    } finally {
      renameSync(`${store}-away`, store);
    }
    expect(await work(place)).toEqual([]);
    expect(await state(pending(first))).toMatchObject({ status: 'done', answer: { status: 202 } });
    expect(await inDatabase(world, id)).toEqual([{ kind: 'quote_accepted' }]);
    // The rows stay until nothing needs them, and every row counts once.
    await archive(world, '2026-01');
    expect(await inDatabase(world, id)).toEqual([{ kind: 'quote_accepted' }]);
    const rows = await world.database.reading(async (tx) => {
      await needRows(tx, {});
      return query(tx, 'SELECT FROM ledger_rows WHERE quote_id = :id', { id });
    });
    expect(rows).toHaveLength(1);
    expect(readdirSync(store)).toHaveLength(1);
    expect(await world.verify()).toMatchObject({ differences: 0 });
  });
});

test('an open requote, and a sale that an import recorded under a quote of the API, stay in the database', async () => {
  const { world } = await worldOfOldQuotes({ open: true });
  try {
    await archive(world, '2026-01');
    const kept = await world.sql(`SELECT quote_id FROM ledger_rows WHERE month = '2026-01' AND quote_id LIKE 'q-%'`);
    expect(kept).toHaveLength(2);
  } finally {
    await world.end();
  }
});
