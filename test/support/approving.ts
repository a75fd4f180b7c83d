/** A month with two partners, and users who request approvals and decide them. */
import type { ActionContext } from '../../src/actions/action.ts';
import type { Settings } from '../../src/config/settings.ts';
import { identify } from '../../src/people/users.ts';
import { ADMINISTRATOR, invite } from './console.ts';
import { openWorld, partner, quote, type World } from './world.ts';

/** Has the role finance and may approve, but not her own requests. */
export const MARA = 'mara@issuer.example';
export const LEE = 'lee@issuer.example';
/** May approve only for partner p-1. */
export const PAT = 'pat@issuer.example';

export const RULES: Settings['approvals'] = {
  'invoice.void': { above: { USD: '10.00' } },
  'invoice.write_off': { always: true },
  'invoice.hold': { always: true },
  'month.close': { always: true },
};

/** p-1 owes 7.00 (INV-2026-000001) and p-2 owes 14.00 (INV-2026-000002). */
export async function openApproving(options: Parameters<typeof openWorld>[0] = {}): Promise<World> {
  const world = await openWorld(options);
  await world.partners([partner(), partner({ partner_id: 'p-2', name: 'Other Tickets' })]);
  await world.rows([quote(), quote({ partner_id: 'p-2' }), quote({ partner_id: 'p-2' })]);
  await world.close();
  await world.deliver();
  await invite(world, ADMINISTRATOR);
  await invite(world, MARA, { roles: ['finance', 'approver'] });
  await invite(world, LEE, { roles: ['approver'] });
  await invite(world, PAT, { roles: ['approver'], partnerId: 'p-1' });
  world.settings = { ...world.settings, approvals: RULES };
  return world;
}

/** The context of an action by this user. */
export async function as(world: World, login: string, approvals = RULES): Promise<ActionContext> {
  const { database, environment, settings } = world;
  const actor = await database.reading((tx) => identify(tx, world.actor, { login, unattended: false }));
  return { database, environment, settings: { ...settings, approvals }, actor };
}
