/** A world of six closed months with few rows, whose books are closed to May, and whose settings have a cold store. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { firstSettings } from '../../src/config/first-settings.ts';
import { readSettings } from '../../src/config/settings.ts';
import type { Month } from '../../src/month.ts';
import { PRICED, serveWorld } from '../support/service.ts';
import { openWorld, partner, quote, requote, reversal, type World, type WorldOptions } from '../support/world.ts';

const MONTHS = ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06'] as Month[];

/** The second store needs a cluster (test/cluster/). */
const STORES = { cold: { parquet: 'cold' }, cluster: { citus: 'cold' } };

export async function worldOfOldMonths({
  chains = false,
  ...options
}: WorldOptions & { chains?: boolean } = {}): Promise<World> {
  const world = await openWorld(options);
  const settings = { ...firstSettings('sandbox'), allow_empty: true, archive: STORES };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  world.at('2026-01-02T12:00:00Z');
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Brightside' })]);
  for (const [at, month] of MONTHS.entries()) {
    world.at(`${month}-25T12:00:00Z`);
    const id = (name: string) => `${name}-${month}`;
    await world.rows([
      quote({ quote_id: id('q-a'), accepted_at: `${month}-10T12:00:00Z`, order_reference: 'ord "1"\\2' }),
      quote({ quote_id: id('q-b'), accepted_at: `${month}-11T12:00:00Z` }),
      quote({ quote_id: id('q-c'), partner_id: 'p-2', accepted_at: `${month}-12T12:00:00Z` }),
      ...(at === 0 ? [] : [quote({ quote_id: id('late'), accepted_at: `${MONTHS[at - 1]}-20T12:00:00Z` })]),
      ...(chains && at > 0 ? chainOf(MONTHS[at - 1] as Month, month) : []),
    ]);
    world.at(`${MONTHS[at + 1] ?? '2026-07'}-02T12:00:00Z`);
    await world.close();
  }
  world.at('2026-07-20T12:00:00Z');
  await world.closeBooks(...MONTHS.slice(0, 5));
  return world;
}

/** In a month, a requote and two reversals of the quotes of the month before. */
function chainOf(before: Month, month: Month): Record<string, unknown>[] {
  const of = (name: string, day: number) =>
    quote({ quote_id: `${name}-${before}`, accepted_at: `${month}-0${day}T12:00:00Z` });
  const requote_id = `rq-${month}`;
  return [
    requote(of('q-a', 2), { requote_id }),
    reversal(of('q-a', 3), {
      reversal_id: `rv-a-${month}`,
      requote_id,
      spotPrice: '-5.00',
      partnerCut: '-1.50',
      invoiceAmount: '-3.50',
    }),
    reversal(of('q-b', 4), { reversal_id: `rv-b-${month}` }),
  ];
}

/**
 * The same months, with quotes that a partner accepted through the API in January: two, a third with a requote, and a sale
 * by file. If `open`, there is also one with an open requote, and one that was quoted but recorded by file. If `reversed`, a
 * part of the second is reversed through the API. Of `many` there are more: the first half from the API, the others by file.
 */
export async function worldOfOldQuotes({
  open = false,
  reversed = false,
  many = 0,
  ...options
}: WorldOptions & { open?: boolean; reversed?: boolean; many?: number } = {}): Promise<{
  world: World;
  quotes: string[];
}> {
  const world = await openWorld(options);
  const quoting = { ...firstSettings('sandbox').quotes, valid_days: null };
  const settings = {
    ...firstSettings('sandbox'),
    quotes: quoting,
    allow_empty: true,
    archive: STORES,
  };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
  world.settings = readSettings(world.environment);
  world.at('2026-01-10T12:00:00Z');
  await world.partners([partner(PRICED), partner({ ...PRICED, partner_id: 'p-2', name: 'Brightside' })]);
  const served = await serveWorld(world);
  const caller = await served.caller('p-1');
  const made = async () => {
    const { body } = await caller.post('/api/v1/quote', { policy_id: 'ticket-protection', insured_amount: '250' });
    return body['quote_id'] as string;
  };
  const quotes: string[] = [];
  const accepted = async () => {
    const id = await made();
    await caller.get(`/api/v1/quote/${id}/accept`);
    return id;
  };
  for (let count = 0; count < 3 + many / 2; count += 1) quotes.push(await accepted());
  const requoted = async (id: string) =>
    (await caller.post(`/api/v1/quote/${id}/requote`, { insured_amount: '300' })).body['requote_id'] as string;
  await caller.get(`/api/v1/requote/${await requoted(quotes[2] as string)}/accept`);
  if (reversed) {
    const part = { reversal_id: 'refund', spotPrice: '-5.00', partnerCut: '-1.50', invoiceAmount: '-3.50' };
    await caller.post(`/api/v1/quote/${quotes[1]}/reverse`, part);
  }
  const sold = Array.from({ length: many / 2 }, (_, index) => quote({ quote_id: `sold-${index}`, partner_id: 'p-2' }));
  await world.rows(
    [quote({ quote_id: 'imported' }), quote({ quote_id: 'other', partner_id: 'p-2' }), ...sold].map(ofJanuary),
  );
  if (open) {
    await requoted(await accepted());
    const amounts = { spotPrice: '21.25', partnerCut: '6.38', invoiceAmount: '14.87' };
    await world.rows([ofJanuary(quote({ quote_id: await made(), ...amounts }))]);
  }
  await served.end();
  for (const [at, month] of MONTHS.entries()) {
    world.at(`${MONTHS[at + 1] ?? '2026-07'}-02T12:00:00Z`);
    await world.close(month);
  }
  world.at('2026-07-20T12:00:00Z');
  await world.closeBooks(...MONTHS.slice(0, 5));
  return { world, quotes };
}

const ofJanuary = (row: Record<string, unknown>) => ({
  ...row,
  enrollment_id: `e-${row['quote_id']}`,
  accepted_at: '2026-01-10T11:00:00Z',
});
