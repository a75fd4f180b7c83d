/** kill -9 between an approval and its act: neither is there, and approving again does both once. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LEE, MARA, openApproving, RULES } from '../support/approving.ts';
import { reckoner } from '../support/program.ts';
import type { World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openApproving();
  const { logo: _, ...issuer } = world.settings.issuer;
  const settings = { ...world.settings, issuer, approvals: RULES };
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify(settings));
});
afterAll(() => world.end());

const run = (by: string, args: readonly string[], failpoint?: string) =>
  reckoner(['--json', '--by', by, ...args], {
    env: {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-02T10:00:00Z' },
      ...(failpoint && { RECKONER_FAILPOINT: failpoint }),
    },
  });
const counts = () =>
  world.sql(
    `SELECT (SELECT count(*)::int FROM approval_decisions) AS decisions, (SELECT count(*)::int FROM voids) AS voids`,
  );

test('a command that is killed after the approval is recorded leaves neither it nor the act', async () => {
  const asked = await run(MARA, ['invoice', 'void', 'INV-2026-000002', '--reason', 'wrong price']);
  expect([asked.status, asked.json()]).toMatchObject([3, { error: { code: 'approval_needed' } }]);
  const approve = ['approval', 'approve', '1', '--no-deliver'];
  for (const place of ['approval.decided', 'void.recorded']) {
    await run(LEE, approve, place);
    expect(await counts()).toEqual([{ decisions: 0, voids: 0 }]);
  }
  expect((await run(LEE, approve)).status).toBe(0);
  expect(await counts()).toEqual([{ decisions: 1, voids: 1 }]);
});
