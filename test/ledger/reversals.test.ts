/**
 * Forty cases of reversals by API and by file, good and bad, which people wrote from the rules before the code
 * (reversals/forty.json). A good one is recorded at once. A bad one waits for a person, and our share stays.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importBalanceTransactions } from '../../src/splits/import.ts';
import { ndjson, reversedTransfers, share } from '../splits/balance-transactions.ts';
import { PRICED, type Served, serveWorld } from '../support/service.ts';
import { openWorld, partner, type World } from '../support/world.ts';

interface Amounts {
  readonly spotPrice?: string;
  readonly partnerCut?: string;
  readonly invoiceAmount?: string;
}

interface Case {
  readonly name: string;
  readonly settings?: { readonly reversals: { readonly above?: Record<string, string>; readonly share?: string } };
  readonly partner: {
    readonly time_zone: string;
    readonly currency: string;
    readonly arrangement: 'invoicing' | 'connected_account';
    readonly cancellation: readonly object[] | null;
  };
  readonly now: string;
  readonly rows: readonly (Amounts & { readonly recorded_at: string; readonly quote_id: string })[];
  readonly processor_took_back?: Readonly<Record<string, string>>;
  readonly reversals: readonly (Amounts & {
    readonly via: 'api' | 'file';
    readonly quote_id: string;
    readonly requote_id?: string;
    readonly reversal_id: string;
    readonly accepted_at?: string;
    readonly want: 'recorded' | 'waits';
    readonly share_lost_without_person: string;
  })[];
}

const CASES = JSON.parse(readFileSync(new URL('reversals/forty.json', import.meta.url), 'utf8')) as readonly Case[];
const CONNECTED = { connected_account_id: 'acct_p1', merchant_of_record: 'platform', split: 'real_time' };

let world: World;
let served: Served;
beforeAll(async () => {
  world = await openWorld();
  served = await serveWorld(world);
});
afterAll(async () => {
  await served.end();
  await world.end();
});

test.each(CASES.map((each, index) => [each.name, each, index] as const))('%s', async (_name, given, index) => {
  const id = `p-${index}`;
  const policy = { policy_id: 'ticket-protection', currency: given.partner.currency };
  const own = { ...given.partner, partner_id: id };
  world.at(given.rows.map(({ recorded_at }) => recorded_at).sort()[0] as string);
  await world.partners([partnerOf(own)]);
  for (const at of [...new Set(given.rows.map(({ recorded_at }) => recorded_at))].sort()) {
    world.at(at);
    const rows = given.rows.filter(({ recorded_at }) => recorded_at === at);
    const recorded = rows.map(({ recorded_at: _, ...row }) => ({ ...row, partner_id: id, ...policy }));
    expect(await world.rows(recorded)).toMatchObject({ accepted: rows.length, held: 0, errors: [] });
  }
  world.at(given.now);
  await takeBack(given, id);
  const { reversals: ceilings = {} } = given.settings ?? {};
  const settings = { ...world.settings, reversals: { above: {}, share: null, ...ceilings } };
  const seen: Record<string, string> = {};
  const files = given.reversals.filter(({ via }) => via === 'file');
  if (files.length > 0) {
    const before = world.settings;
    world.settings = settings;
    const rows = files.map(({ via: _, want: __, share_lost_without_person: ___, ...row }) => ({
      ...{ ...row, kind: 'reversal', partner_id: id, ...policy },
    }));
    const { errors, held, accepted } = await world.rows(rows, { holds: true });
    world.settings = before;
    expect({ errors, all: held + accepted }).toEqual({ errors: [], all: files.length });
  }
  const api = given.reversals.filter(({ via }) => via === 'api');
  if (api.length > 0) {
    const limited = await serveWorld(world, { settings: { reversals: settings.reversals } });
    const caller = await limited.caller(id);
    for (const { via: _, quote_id, want, share_lost_without_person: __, ...body } of api) {
      const query = new URLSearchParams(
        Object.entries(body).filter(([name]) => name !== 'reversal_id') as [string, string][],
      );
      const foreseen = await caller.get(`/api/v1/quote/${quote_id}/reverse/preview?${query}`);
      const answer = await caller.post(`/api/v1/quote/${quote_id}/reverse`, body);
      if (answer.status === 500) console.log(limited.log().slice(-3000));
      expect(answer).toMatchObject({ status: want === 'recorded' ? 201 : 202 });
      expect(foreseen.body).toMatchObject({ outcome: want === 'recorded' ? 'recorded' : 'requested' });
      // The same call again is answered the same.
      expect((await caller.post(`/api/v1/quote/${quote_id}/reverse`, body)).text).toBe(answer.text);
    }
    await limited.end();
  }
  for (const { reversal_id } of await world.sql<{ reversal_id: string }>(
    `SELECT reversal_id FROM ledger_rows WHERE partner_id = $1 AND kind = 'reversal'`,
    [id],
  )) {
    seen[reversal_id] = 'recorded';
  }
  for (const { reversal_id } of await world.sql<{ reversal_id: string }>(
    `SELECT reversal_id FROM undecided_rows WHERE partner_id = $1 AND kind = 'reversal'`,
    [id],
  )) {
    seen[reversal_id] = 'waits';
  }
  expect(Object.fromEntries(given.reversals.map(({ reversal_id }) => [reversal_id, seen[reversal_id]]))).toEqual(
    Object.fromEntries(given.reversals.map(({ reversal_id, want }) => [reversal_id, want])),
  );
});

test('our share that was lost without a rule or a person is 0.00, and every ground is what the rules say', async () => {
  expect((await world.verify()).checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  const grounds = await world.sql<{ ground: string; n: number }>(
    `SELECT ground, count(*)::int AS n FROM reversal_grounds GROUP BY ground ORDER BY ground`,
  );
  expect(grounds.map(({ ground }) => ground)).toEqual([
    'full',
    'pro_rata',
    'processor',
    'proportion',
    'remainder',
    'window',
  ]);
});

const partnerOf = ({ arrangement, cancellation, ...changes }: Case['partner'] & { partner_id: string }) =>
  partner({
    ...{ ...changes, arrangement },
    ...(arrangement === 'connected_account' && { ...CONNECTED, connected_account_id: `acct_${changes.partner_id}` }),
    policies: PRICED.policies.map((policy, at) =>
      at === 0 && cancellation !== null ? { ...policy, cancellation } : policy,
    ),
  });

/** The processor routes the share of each quote, and takes back what the case says. */
async function takeBack({ processor_took_back = {}, now }: Case, id: string): Promise<void> {
  const told = Object.entries(processor_took_back).flatMap(([quote_id, amount]) => {
    const before = new Date(Date.parse(now) - 3_600_000).toISOString();
    const came = share(7000, before, { quote_id });
    return [came, reversedTransfers(came, Number(amount.replace('.', '')), before)];
  });
  if (told.length === 0) return;
  await world.database.transaction((tx) =>
    importBalanceTransactions(tx, world, { name: 'balance_transactions', text: ndjson(told) }, `acct_${id}`),
  );
}
