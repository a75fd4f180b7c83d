/** The first import of partners in production: the rule holds from the start, and the refusals say how two people do it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { approveRequest } from '../../src/acts/approve.ts';
import { partnerImport } from '../../src/acts/partner.ts';
import { runAct } from '../../src/acts/run.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { readReadiness } from '../../src/reports/readiness.ts';
import { as, LEE } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { openWorld, partner, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  world.settings = { ...world.settings, approvals: RULES };
});
afterAll(() => world.end());

const RULES: Settings['approvals'] = { 'partner.import': { always: true } };
const input = { file: { name: 'partners.json', bytes: Buffer.from(JSON.stringify([partner()])) } };
const gaps = async () => (await world.database.reading((tx) => readReadiness(tx, world))).missing.map(({ id }) => id);

test('asks for two people from the first import on, and says each step', async () => {
  expect(firstSettings('production').approvals).toHaveProperty(['partner.import']);
  expect(await gaps()).toContain('approvals');
  const { actor, database, environment, settings } = world;
  const nobody = { actor, database, environment, settings };
  await expect(runAct(nobody, partnerImport, input)).rejects.toThrow(
    "there are no users yet. 'reckoner user invite EMAIL' makes the first one, and 'reckoner user invite OTHER --role approver' the second",
  );
  await invite(world, ADMINISTRATOR, { roles: ['administrator', 'finance'] });
  await expect(runAct(await as(world, ADMINISTRATOR, RULES), partnerImport, input)).rejects.toThrow(
    /Request 1 was made\. Nobody may approve it yet, and whoever asks cannot\. Invite a second person with 'reckoner user invite EMAIL --role approver', who then runs 'reckoner approval approve 1'\./,
  );
  await invite(world, LEE, { roles: ['approver'] });
  await approveRequest(await as(world, LEE, RULES), 1, { deliver: false, reason: null });
  expect(await world.sql('SELECT partner_id FROM partners')).toEqual([{ partner_id: 'p-1' }]);
});
