/** The list of reversals: what allowed each, what waits and since when, what finance and what the partner reads of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readFindings } from '../../src/findings/findings.ts';
import { grantReversal, refuseReversal } from '../../src/ledger/held.ts';
import { cellOf, type List, type Mark, sheetOf } from '../../src/lists/list.ts';
import { reversals } from '../../src/lists/reversals.ts';
import { Amount } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { recordRequestedReversals } from '../../src/splits/requested.ts';
import { recordReversals } from '../../src/splits/reverse.ts';
import { startOver } from '../close/start-over.ts';
import { ndjson, reversedTransfers, share } from '../splits/balance-transactions.ts';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';

const TERMS = { window_days: 14, after_window: 'none', cut: 'in_proportion' };
const policies = [
  {
    ...{ policy_id: 'ticket-protection', name: 'Ticket Protection', kind: 'non_insurance', partner_cut_rate: '0.30' },
    cancellation: TERMS,
  },
];
const CONNECTED = { arrangement: 'connected_account', merchant_of_record: 'platform', split: 'real_time' };

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await startOver(world);
  world.at('2026-07-20T12:00:00Z');
  await world.partners([
    partner({ policies }),
    partner({ partner_id: 'p-2' }),
    partner({ partner_id: 'p-acct', ...CONNECTED, connected_account_id: 'acct_p' }),
  ]);
});
afterAll(() => world.end());

type Filter = Parameters<typeof reversals.read>[1]['filter'];
/** Imports rows, and grants nothing. */
const send = (given: readonly object[]) => world.rows(given, { holds: true });
const read = (filter: Filter = {}, scope: readonly string[] | null = null) =>
  world.database.reading((tx) =>
    reversals.read(tx, {
      ...{
        filter,
        scope,
        period: null,
        today: today(),
        sort: '-recorded_at',
        after: null,
        limit: null,
        context: world,
      },
    }),
  );
const today = () => world.environment.now().toISODate();
type Row = Awaited<ReturnType<typeof read>>[number];
const cell = (name: string, row: Row | undefined) => {
  const value = cellOf(reversals as List<Row>, name, row as Row, today());
  return value instanceof Amount ? value.toString() : value;
};
const marks = (row: Row | undefined) => (cell('standing', row) as readonly Mark[]).map(({ text }) => text);
const requestOf = async (reversalId: unknown) =>
  (await read()).find(({ reversal_id: id }) => id === reversalId)?.request_id as number;
const amountsOf = (our: string, cut: string) => ({
  invoiceAmount: Amount.of(our, 'USD'),
  partnerCut: Amount.of(cut, 'USD'),
});
const grant = (id: number, amounts?: ReturnType<typeof amountsOf>) =>
  world.database.transaction((tx) => grantReversal(tx, world, { id, amounts, reason: 'event canceled' }));
const refuse = (id: number) =>
  world.database.transaction((tx) => refuseReversal(tx, world, { id, reason: 'after the event' }));
const findings = async (scope: readonly string[] | null = null) => {
  const question = {
    settings: world.settings,
    scope,
    today: today(),
    now: world.environment.now().toMillis(),
    limit: null,
  };
  return (await world.database.reading((tx) => readFindings(tx, question))).filter(({ kind }) => kind === 'rows');
};

/** Sales of July, and three reversals of them that come too late, on Monday 3 August. */
async function askTooLate(overrides: object = {}): Promise<Record<string, unknown>[]> {
  const sales = [1, 2, 3].map((day) => quote({ accepted_at: `2026-07-0${day}T12:00:00Z` }));
  await send(sales);
  world.at('2026-08-03T12:00:00Z');
  const asked = sales.map((sale) => reversal(sale, { accepted_at: '2026-08-03T11:00:00Z', ...overrides }));
  expect(await send(asked)).toMatchObject({ accepted: 0, held: 3, errors: [] });
  return asked;
}

describe('the list', () => {
  test('names the rule that allowed a reversal, its month and the document that bills it', async () => {
    const [own, none] = [quote(), quote({ partner_id: 'p-2' })];
    await send([own, none]);
    await send([reversal(own, { accepted_at: '2026-07-20T11:00:00Z' })]);
    await send([reversal(none, { accepted_at: '2026-07-20T11:00:00Z' })]);
    const [second, first] = await read();
    expect([cell('allowed_by', first), first?.document]).toEqual(['within the window of the terms', null]);
    expect([cell('allowed_by', second), cell('amount', second)]).toEqual([
      'all that was left, within 30 days',
      '-7.00',
    ]);
    world.at('2026-08-02T12:00:00Z');
    await world.close();
    expect((await read()).map(({ partner_id, document }) => [partner_id, document])).toEqual([
      ['p-2', 'INV-2026-000002'],
      ['p-1', 'INV-2026-000001'],
    ]);
    world.at('2026-08-03T12:00:00Z');
    const late = quote({ accepted_at: '2026-07-30T12:00:00Z' });
    await send([late, reversal(late, { accepted_at: '2026-07-31T12:00:00Z' })]);
    const [last] = await read();
    expect(last).toMatchObject({ month: '2026-07', posted_month: '2026-08', document: null });
    expect([cell('late', last), marks(last)]).toEqual(['yes', ['recorded', 'late']]);
    expect((await read({ month: '2026-08' as Month })).map(({ log_no }) => log_no)).toEqual([last?.log_no]);
  });

  test('has requests until a person grants or refuses them, with who did it and why', async () => {
    const [granted, refused, open] = (await askTooLate()).map((row) => row['reversal_id']);
    await grant(await requestOf(granted), amountsOf('3.50', '1.50'));
    await refuse(await requestOf(refused));
    const rows = await read();
    const of = (id: unknown) => rows.find((row) => row.reversal_id === id);
    expect(rows.map(({ reversal_id, status }) => [reversal_id, status])).toEqual([
      [granted, 'recorded'],
      [open, 'requested'],
      [refused, 'rejected'],
    ]);
    expect(of(granted)).toMatchObject({ ground: 'person', decision_reason: 'event canceled' });
    expect(['amount', 'requested_amount', 'why'].map((name) => cell(name, of(granted)))).toEqual([
      ...[
        '-3.50',
        '-7.00',
        `granted by ${world.actor.claimedBy ?? world.actor.osUser} (-7.00 USD requested): event canceled`,
      ],
    ]);
    expect(cell('why', of(open))).toBe('later than the policy allows');
    expect(cell('why', of(refused))).toMatch(/^refused by .*: after the event$/);
    expect((await read({ status: 'requested' })).map(({ reversal_id: id }) => id)).toEqual([open]);
    expect((await read({ status: 'rejected' })).map(({ reversal_id: id }) => id)).toEqual([refused]);
    expect((await read({ ground: 'person' })).map(({ reversal_id: id }) => id)).toEqual([granted]);
    expect(await read({ ground: 'window' })).toEqual([]);
    expect((await read({ month: '2026-08' as Month })).length).toBe(3);
    expect(await read({ month: '2026-07' as Month })).toEqual([]);
    expect(await read({ partner: 'p-2' })).toEqual([]);
    expect(await read({}, ['p-2'])).toEqual([]);
  });

  test('offers to grant or refuse what waits, and nothing for what is decided', async () => {
    const [granted] = await askTooLate();
    await grant(await requestOf(granted?.['reversal_id']));
    const [decided, open] = await read();
    const remediesOf = (row: Row | undefined) =>
      reversals.remedies?.(row as Row).map(({ action, input }) => [action, input]);
    expect(remediesOf(decided)).toEqual([]);
    const row = String(open?.request_id);
    expect(remediesOf(open)).toEqual([
      ['reversal.grant', { row }],
      ['reversal.refuse', { row }],
    ]);
  });

  test('tells the partner what allowed or refused each, but no name and no internal reason', async () => {
    const [granted, refused] = await askTooLate();
    await grant(await requestOf(granted?.['reversal_id']));
    await refuse(await requestOf(refused?.['reversal_id']));
    const told = (await read({}, ['p-1'])).map((row) => cell('partners_why', row));
    expect(told).toEqual([
      'granted by our finance team',
      'waits for our finance team: later than the policy allows',
      'refused by our finance team: after the event',
    ]);
    const rows = await read();
    const place = rows.flatMap((row) => (reversals.place ?? []).map((name) => JSON.stringify(cell(name, row)))).join();
    expect(place).not.toContain('event canceled');
    expect(place).not.toContain(world.actor.osUser);
  });

  test('shows a reversal that may repeat another as a request, and none of a held sale', async () => {
    const sale = quote();
    const first = reversal(sale, {
      ...{ spotPrice: '-2.00', partnerCut: '-0.60', invoiceAmount: '-1.40', accepted_at: '2026-07-20T11:00:00Z' },
    });
    await send([sale, first]);
    await send([{ ...first, reversal_id: 'again' }]);
    const double = { ...sale, quote_id: 'double' };
    await send([
      double,
      { ...first, quote_id: 'double', reversal_id: 'of-double', accepted_at: '2026-07-20T11:30:00Z' },
    ]);
    const rows = await read();
    expect(rows.map(({ reversal_id, status }) => [reversal_id, status])).toEqual([
      ['again', 'requested'],
      [first['reversal_id'], 'recorded'],
    ]);
    expect(cell('why', rows[0])).toBe(`may repeat ${first['reversal_id']}: the same enrollment, second and amounts`);
  });

  test('has a file with all that finance needs, and JSON with the ground by its name', async () => {
    const [granted] = await askTooLate();
    await grant(await requestOf(granted?.['reversal_id']));
    const rows = await read();
    expect(sheetOf(reversals as List<Row>, rows, today()).rows[0]).toMatchObject({
      ...{
        status: 'recorded',
        request_id: rows[0]?.request_id,
        partner_id: 'p-1',
        reversal_id: granted?.['reversal_id'],
      },
      ...{ allowed_by: 'granted by a person', requested_because: 'later than the policy allows' },
      ...{ decision_reason: 'event canceled', posted_month: '2026-08', late: '', document: null },
    });
    const json = await world.database.reading((tx) => reversals.json?.(tx, rows, today()) ?? Promise.resolve([]));
    expect(json[0]).toMatchObject({ allowed_by: 'person', late: false, invoiceAmount: '-7.00', spotPrice: '-10.00' });
  });
});

describe('findings', () => {
  test('requests that wait are one finding of their partner, which becomes overdue after five working days', async () => {
    await askTooLate();
    const [finding, ...others] = await findings();
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      ...{ item: 'requested:p-1', kind: 'rows', state: 'requested', tone: 'warn', count: 3, since: '2026-08-03' },
      ...{ money: { amount: '21.00', currency: 'USD' } },
      urgent: '3 reversals of p-1 wait: our share of 21.00 USD would go back.',
      remedies: [
        {
          command: 'reversal list --status requested --partner p-1',
          page: '/console/queue/reversals?status=requested&partner=p-1',
        },
      ],
    });
    expect(marks((await read())[0])).toEqual(['requested']);
    world.at('2026-08-10T23:00:00Z');
    expect((await findings())[0]).toMatchObject({ state: 'requested' });
    world.at('2026-08-11T00:00:00Z');
    expect((await findings())[0]).toMatchObject({
      ...{ item: 'overdue:p-1', state: 'overdue', tone: 'bad', count: 3 },
      urgent: '3 reversals of p-1 wait, overdue since 2026-08-10: our share of 21.00 USD would go back.',
    });
    expect(marks((await read())[0])).toEqual(['requested', 'overdue']);
    expect(await findings(['p-2'])).toEqual([]);
    for (const { request_id } of await read()) await refuse(request_id as number);
    expect(await findings()).toEqual([]);
  });

  test('one request in each of two currencies names both amounts', async () => {
    const sales = ['USD', 'EUR'].map((currency) => quote({ currency, accepted_at: '2026-07-01T12:00:00Z' }));
    await send(sales);
    await send(sales.map((sale) => reversal(sale, { accepted_at: '2026-07-20T11:00:00Z' })));
    const [finding] = await findings();
    expect(finding).toMatchObject({ money: null, count: 2 });
    expect(finding?.urgent).toBe('2 reversals of p-1 wait: our share of 7.00 EUR and 7.00 USD would go back.');
  });

  test('rows that may repeat sales are another finding, and so is a requote that is held after a reversal', async () => {
    const sale = quote({ accepted_at: '2026-07-01T12:00:00Z' });
    await send([sale]);
    const asked = reversal(sale, { accepted_at: '2026-07-20T10:00:00Z' });
    await send([asked, requote(sale, { accepted_at: '2026-07-20T11:00:00Z' })]);
    expect((await findings()).map(({ urgent }) => urgent)).toEqual([
      '1 row of p-1 is held and not recorded.',
      '1 reversal of p-1 waits: our share of 7.00 USD would go back.',
    ]);
    await refuse(await requestOf(asked['reversal_id']));
    await send([{ ...sale, quote_id: 'again', enrollment_id: sale['enrollment_id'] }]);
    expect((await findings()).map(({ state, urgent }) => [state, urgent])).toEqual([
      ['held', '2 rows of p-1 are held and not recorded.'],
    ]);
  });

  test('a reversal that only the processor allowed is a finding with its amount until its month is closed', async () => {
    const [sale, other] = [1, 2].map((day) =>
      quote({ partner_id: 'p-acct', accepted_at: `2026-07-0${day}T12:00:00Z` }),
    );
    await send([sale, other] as object[]);
    world.at('2026-08-12T12:00:00Z');
    const back = (row: object | undefined, at: string) => {
      const came = share(700, at, { quote_id: (row as Record<string, string>)['quote_id'] as string });
      return [came, reversedTransfers(came, 700, at)];
    };
    const told = [...back(sale, '2026-08-12T10:00:00Z'), ...back(other, '2026-08-12T10:00:00Z')];
    await world.database.transaction((tx) =>
      importBalanceTransactions(tx, world, { name: 'balance_transactions', text: ndjson(told) }, 'acct_p'),
    );
    // What nobody has told is recorded from the processor's transfers, and is no finding.
    const asked = reversal(sale as Record<string, unknown>, { accepted_at: '2026-08-12T11:00:00Z' });
    expect(await send([asked])).toMatchObject({ accepted: 1, held: 0 });
    await world.database.transaction((tx) => recordReversals(tx, world, '2026-07' as Month));
    expect(await read({ ground: 'processor' })).toHaveLength(2);
    const [finding, ...others] = await findings();
    expect(others).toEqual([]);
    expect(finding).toMatchObject({
      ...{ item: 'reversed:p-acct', state: 'reversed by processor', money: { amount: '7.00', currency: 'USD' } },
      urgent:
        '1 reversal of p-acct is outside the terms, but the processor has already taken back our share of 7.00 USD.',
    });
    world.at('2026-09-02T12:00:00Z');
    await world.close();
    expect(await findings()).toEqual([]);
  });

  test('a request that the processor has settled meanwhile is a finding, too, and no person granted it', async () => {
    const sale = quote({ partner_id: 'p-acct', accepted_at: '2026-07-01T12:00:00Z' });
    await send([sale]);
    world.at('2026-08-12T12:00:00Z');
    expect(await send([reversal(sale, { accepted_at: '2026-08-12T11:00:00Z' })])).toMatchObject({ held: 1 });
    const came = share(700, '2026-07-02T12:00:00Z', { quote_id: sale['quote_id'] as string });
    const text = ndjson([came, reversedTransfers(came, 700, '2026-08-12T11:30:00Z')]);
    await world.database.transaction(async (tx) => {
      await importBalanceTransactions(tx, world, { name: 'balance_transactions', text }, 'acct_p');
      await recordRequestedReversals(tx, world);
    });
    expect((await findings()).map(({ item, count }) => [item, count])).toEqual([['reversed:p-acct', 1]]);
    const [row] = await read();
    expect(['why', 'partners_why', 'decided_by'].map((name) => cell(name, row))).toEqual([
      ...['already reversed by the processor', 'already reversed by the processor', null],
    ]);
  });
});
