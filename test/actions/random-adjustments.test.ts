/**
 * Random credits and granted reversals by several users, one after the other and at once: a plain list in cents says
 * beforehand which of them need a second person, and the rules in SQL recompute every sum.
 */
import { expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { reversalGrant } from '../../src/actions/held.ts';
import { invoiceCredit } from '../../src/actions/invoice/credit.ts';
import { runAction } from '../../src/actions/run.ts';
import type { Settings } from '../../src/config/settings.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { as, LEE, MARA } from '../support/approving.ts';
import { invite } from '../support/console.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { openWorld, partner, quote, reversal } from '../support/world.ts';

const ACTS = times({ few: 30, short: 60, long: 400 });
const SAM = 'sam@issuer.example';
const DAY = 86_400_000;
const [OWN, SHARED] = [7000, 10_000];
const RULES: Settings['approvals'] = {
  'invoice.credit': { above: { USD: '70.00' } },
  adjustments: { above: { USD: '100.00' } },
};
const QUIET = { deliver: false } as const;

interface Act {
  readonly action: 'invoice.credit' | 'reversal.grant';
  readonly by: string;
  readonly partner: 'p-1' | 'p-2';
  readonly cents: number;
  readonly at: number;
}

const dollars = (cents: number): string => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
const sum = (acts: readonly Act[]): number => acts.reduce((cents, each) => cents + each.cents, 0);

test('each adjustment needs a second person exactly if a rule says so with what was done in 30 days', async () => {
  const { random } = seeded();
  const one = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value;
  const world = await openWorld();
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Other Tickets' })]);
  const dear = { spotPrice: '90000.00', partnerCut: '20000.00', invoiceAmount: '70000.00' };
  const sales = ['p-1', 'p-2'].map((partner_id) => quote({ partner_id, ...dear }));
  await world.rows(sales);
  await world.close();
  await invite(world, 'ada@issuer.example');
  await invite(world, MARA, { roles: ['finance', 'approver'] });
  await invite(world, SAM, { roles: ['finance'] });
  await invite(world, LEE, { roles: ['approver'] });
  world.settings = { ...world.settings, approvals: RULES };
  await recordSettingsChanges(world.database, world);
  let at = Date.parse('2026-08-02T10:00:00Z');
  const done: Act[] = [];

  const perform = async ({ action, by, partner: of, cents }: Act): Promise<Refusal | undefined> => {
    const [amount, reason] = [dollars(cents), 'goodwill'];
    const context = await as(world, by, RULES);
    const number = of === 'p-1' ? 'INV-2026-000001' : 'INV-2026-000002';
    const credit = () => runAction(context, invoiceCredit, { number, amount, reason, again: true }, QUIET);
    const grant = async () => {
      const amounts = { spotPrice: `-${amount}`, partnerCut: '0', invoiceAmount: `-${amount}` };
      const asked = { ...amounts, accepted_at: new Date(at - 60_000 - Math.floor(random() * 1e6)).toISOString() };
      const sale = sales[of === 'p-1' ? 0 : 1] as Record<string, unknown>;
      const { held_rows } = await world.rows([reversal(sale, asked)], { holds: true });
      return runAction(context, reversalGrant, { row: held_rows[0]?.held_row_id as number, reason }, QUIET);
    };
    return (action === 'invoice.credit' ? credit() : grant()).then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof Refusal && error.code === 'approval_needed') return error;
        throw error;
      },
    );
  };
  const needsApproval = (act: Act): boolean => {
    const recent = done.filter((each) => each.partner === act.partner && each.at > act.at - 30 * DAY);
    const own = recent.filter((each) => each.action === act.action && each.by === act.by);
    return (act.action === 'invoice.credit' && sum(own) + act.cents > OWN) || sum(recent) + act.cents > SHARED;
  };
  const someAct = (): Act => ({
    action: one(['invoice.credit', 'invoice.credit', 'reversal.grant'] as const),
    ...{ by: one([MARA, SAM]), partner: one(['p-1', 'p-2'] as const), at },
    cents: 1 + Math.floor(random() * 4500),
  });

  const counts = { done: 0, asked: 0, approved: 0 };
  for (let step = 0; step < ACTS; step += 1) {
    at += Math.floor(random() * 6 * DAY);
    world.at(new Date(at).toISOString());
    const act = someAct();
    const refusal = await perform(act);
    expect([step, act, refusal !== undefined]).toEqual([step, act, needsApproval(act)]);
    if (refusal === undefined) done.push(act);
    counts[refusal === undefined ? 'done' : 'asked'] += 1;
    if (refusal === undefined || random() < 0.5) continue;
    const requestId = refusal.facts['request_id'] as number;
    await approveRequest(await as(world, LEE, RULES), requestId, { ...QUIET, reason: null });
    counts.approved += 1;
  }
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(1);

  // Of several at once, each is compared with those before it, in whichever order they come.
  at += 31 * DAY;
  world.at(new Date(at).toISOString());
  const together = Array.from(
    { length: 6 },
    (): Act => ({ ...someAct(), action: 'invoice.credit', partner: 'p-1', at }),
  );
  const refusals = await Promise.all(together.map(perform));
  const without = together.filter((_, index) => refusals[index] === undefined);
  expect(sum(without)).toBeLessThanOrEqual(SHARED);
  const { checks } = await world.verify();
  expect(checks.filter(({ differences }) => differences.length > 0)).toEqual([]);
  await world.end();
});
