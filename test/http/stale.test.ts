/** What an acceptance was judged by may change before it is recorded: then it is judged again. */
import pg from 'pg';
import { expect, test } from 'vitest';
import type { Transaction } from '../../src/database/transaction.ts';
import { importRows } from '../../src/ledger/import.ts';
import type { SourceFile } from '../../src/ledger/read.ts';
import { PRICED, serveWorld } from '../support/service.ts';
import { openWorld, partner } from '../support/world.ts';

const soon = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

test('a requote that waits for others is not accepted after its quote is reversed', async () => {
  const world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
  await world.partners([partner(PRICED)]);
  const served = await serveWorld(world);
  const caller = await served.caller('p-1');
  const quoted = async () =>
    (await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' })).body[
      'quote_id'
    ] as string;
  const [one, other, id] = [await quoted(), await quoted(), await quoted()];
  const accepted = await caller.get(`/api/v1/quote/${id}/accept`);
  const raised = (await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' })).body['requote_id'];
  // Somebody else is recording two of the quotes, and does not end.
  const blocker = new pg.Client(world.databaseUrl);
  await blocker.connect();
  await blocker.query('BEGIN');
  await blocker.query(
    `INSERT INTO ledger_rows (partner_id, posted_month, kind, quote_id, enrollment_id, policy_id, currency, accepted_at,
       spot_price, partner_cut, invoice_amount, time_zone, month, arrangement, recorded_at, event_id)
     SELECT 'p-1', '2026-08', 'quote_accepted', id, 'e-x', 'ticket-protection', 'USD', '2026-08-03T09:00:00Z', 21.25, 6.38,
            14.87, 'America/New_York', '2026-08', 'invoicing', now(), (SELECT max(event_id) FROM audit_events)
     FROM unnest($1::text[]) AS id`,
    [[one, other]],
  );
  const waiting = [];
  for (const path of [`quote/${one}`, `quote/${other}`, `requote/${raised}`]) {
    waiting.push(caller.get(`/api/v1/${path}/accept`));
    await soon(200);
  }
  const reversal = {
    ...{ kind: 'reversal', partner_id: 'p-1', quote_id: id, reversal_id: 'rv-1', policy_id: 'ticket-protection' },
    ...{ enrollment_id: accepted.body['enrollment_id'], currency: 'USD', accepted_at: '2026-08-03T09:59:00Z' },
    ...{ spotPrice: '-21.25', partnerCut: '-6.38', invoiceAmount: '-14.87' },
  };
  expect(await world.rows([reversal])).toMatchObject({ accepted: 1 });
  await blocker.query('ROLLBACK');
  await blocker.end();
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  const rows = await world.sql<{ kind: string }>(`SELECT kind FROM ledger_rows WHERE quote_id = $1 ORDER BY entry_id`, [
    id,
  ]);
  // On a machine in a hurry it may have been recorded before the reversal; after it, never.
  const before = statuses[2] === 200;
  expect({ statuses, rows: rows.map(({ kind }) => kind) }).toEqual({
    statuses: [200, 200, before ? 200 : 422],
    rows: ['quote_accepted', ...(before ? ['requote_accepted'] : []), 'reversal'],
  });
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});

test('an import that reverses a quote while a requote of it is accepted is as one that came after', async () => {
  const world = await openWorld();
  world.at('2026-08-03T10:00:00Z');
  await world.partners([partner(PRICED)]);
  const served = await serveWorld(world);
  const caller = await served.caller('p-1');
  const reversalOf = (quote_id: string): SourceFile => ({
    ...{ name: 'reversals.ndjson', format: 'ndjson' },
    text: JSON.stringify({
      ...{ kind: 'reversal', partner_id: 'p-1', quote_id, reversal_id: `rv-${quote_id}`, currency: 'USD' },
      ...{ policy_id: 'ticket-protection', accepted_at: '2026-08-03T10:00:00Z' },
      ...{ spotPrice: '-21.25', partnerCut: '-6.38', invoiceAmount: '-14.87' },
    }),
  });
  const importing = (tx: Transaction, id: string) =>
    importRows(tx, [reversalOf(id)], {
      skipInvalid: false,
      now: world.environment.now(),
      actor: world.actor,
      ceilings: world.settings.reversals,
      environment: world.environment,
    });
  const raised = async () => {
    const quote = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    const id = quote.body['quote_id'] as string;
    await caller.get(`/api/v1/quote/${id}/accept`);
    const requote = await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' });
    return { id, accept: () => caller.get(`/api/v1/requote/${requote.body['requote_id']}/accept`) };
  };
  const outcomeOf = async (id: string, { status }: { status: number }, { accepted }: { accepted: number }) => ({
    ...{ status, accepted },
    rows: await world.sql(`SELECT kind, invoice_amount::text FROM ledger_rows WHERE quote_id = $1 ORDER BY kind`, [id]),
    quote: (await caller.get(`/api/v1/quote/${id}`)).body['status'],
  });
  const [together, after, before] = [await raised(), await raised(), await raised()];
  // The reversal is recorded and not yet committed while the requote is accepted on another connection.
  const interleaved = await world.database.transaction(async (tx) => {
    const report = await importing(tx, together.id);
    return { report, answer: await together.accept() };
  });
  const answer = await after.accept();
  const report = await world.database.transaction((tx) => importing(tx, after.id));
  const expected = {
    ...{ status: 200, accepted: 1, quote: 'reversed' },
    rows: [
      { kind: 'quote_accepted', invoice_amount: '14.87' },
      { kind: 'requote_accepted', invoice_amount: '2.98' },
      { kind: 'reversal', invoice_amount: '-14.87' },
    ],
  };
  // A row says what it takes back, unlike a call without amounts: what the requote added stays, in either case.
  expect(await outcomeOf(after.id, answer, report)).toEqual(expected);
  expect(await outcomeOf(together.id, interleaved.answer, interleaved.report)).toEqual(expected);
  await world.database.transaction((tx) => importing(tx, before.id));
  expect(await before.accept()).toMatchObject({ status: 422, body: { code: 'quote_reversed' } });
  expect(await world.verify()).toMatchObject({ differences: 0 });
  await served.end();
  await world.end();
});
