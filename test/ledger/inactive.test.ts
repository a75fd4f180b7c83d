/** Inactive partners and policies sell nothing from then on; what was sold before lives on. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openWorld, partner, quote, requote, reversal, type World } from '../support/world.ts';
import { type Row, told } from './ledger.ts';

const policy = (active: boolean) => ({
  policy_id: 'ticket-protection',
  name: 'Ticket Protection',
  kind: 'non_insurance',
  partner_cut_rate: '0.30',
  active,
});

/** Two ways to stop a sale: the whole partner, or one of its policies. */
const WAYS = [
  {
    who: 'partner',
    field: 'partner_id',
    code: 'partner_inactive',
    as: (active: boolean) => partner({ partner_id: 'p-stopped', active, policies: [policy(true)] }),
  },
  {
    who: 'policy',
    field: 'policy_id',
    code: 'policy_inactive',
    as: (active: boolean) => partner({ partner_id: 'p-withdrawn', policies: [policy(active)] }),
  },
] as const;

for (const { who, field, code, as } of WAYS) {
  describe(`a ${who} that became inactive at noon on 10 July`, () => {
    const partner_id = as(true)['partner_id'];
    const sold = quote({ partner_id, accepted_at: '2026-07-01T12:00:00Z' });
    const at = (accepted_at: string): Row => quote({ partner_id, accepted_at });
    let world: World;
    beforeAll(async () => {
      world = await openWorld();
      world.at('2026-07-01T13:00:00Z');
      await world.partners([as(true)]);
      await world.rows([sold]);
      world.at('2026-07-10T12:00:00Z');
      expect(await world.partners([as(false)])).toEqual({ created: 0, updated: 1, unchanged: 0 });
      world.at('2026-08-01T00:00:00Z');
    });
    afterAll(() => world.end());

    test('still gets its quotes of before, to the last microsecond', async () => {
      const rows = [at('2026-07-09T12:00:00Z'), at('2026-07-10T11:59:59.999999Z'), at('2026-07-10T13:59:59+02:00')];
      expect(await world.rows(rows)).toMatchObject({ accepted: 3, rejected: 0 });
    });

    test('is refused a quote of that instant and any later one', async () => {
      const report = await world.rows([
        at('2026-07-10T12:00:00Z'),
        at('2026-07-10T12:00:00.000001Z'),
        at('2026-07-31T00:00:00Z'),
      ]);
      expect(told(report)).toEqual([1, 2, 3].map((line) => `${line} ${field} ${code}`));
    });

    test('still gets requotes and reversals of what it sold, however late', async () => {
      const late = { accepted_at: '2026-07-31T12:00:00Z' };
      expect(await world.rows([requote(sold, late), reversal(sold, late)])).toMatchObject({ accepted: 2, rejected: 0 });
    });

    test('is inactive since then, however often that is imported', async () => {
      expect(await world.partners([as(false)])).toEqual({ created: 0, updated: 0, unchanged: 1 });
      expect(await world.rows([at('2026-07-10T11:00:00Z')])).toMatchObject({ accepted: 1 });
      expect(told(await world.rows([at('2026-07-20T12:00:00Z')]))).toEqual([`1 ${field} ${code}`]);
    });

    test('sells again once it is active again', async () => {
      await world.partners([as(true)]);
      expect(await world.rows([at('2026-07-31T12:00:00Z')])).toMatchObject({ accepted: 1 });
    });
  });
}
