/** A backup has what was true when it was recorded: an approver who is none any more, bank details that have changed since. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { approveRequest } from '../../src/actions/approve.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { runAction } from '../../src/actions/run.ts';
import { verify } from '../../src/audit/verify.ts';
import { writeBackup } from '../../src/database/backup.ts';
import { checkBackup, restoreBackup } from '../../src/database/restore.ts';
import { changeRoles, identify } from '../../src/people/users.ts';
import { refusalOf } from '../close/refusal.ts';
import { adopt } from '../support/adopting.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { openWorld, quote } from '../support/world.ts';

test('a backup with approvals is restored, whatever became of the approver and of the bank details', async () => {
  const world = await openApproving();
  const target = await openWorld();
  try {
    const asking = runAction(await as(world, MARA), invoiceHold, { number: 'INV-2026-000001', reason: 'asks' });
    const { facts } = await refusalOf(asking);
    await approveRequest(await as(world, LEE), Number(facts['request_id']), { deliver: false, reason: null });
    await world.database.transaction(async (tx) => {
      const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
      const revoke = [{ role: 'approver', partner_id: null } as const];
      return changeRoles(tx, { ...world, actor }, { login: LEE, grant: [], revoke });
    });
    const { USD } = world.settings.instructions;
    const wire = { ...USD?.wire, account_number: '987654321' } as NonNullable<typeof USD>['wire'];
    world.settings = { ...world.settings, approvals: {} };
    await adopt(world, 'instructions', { USD: { wire } });
    world.at('2026-09-02T10:00:00Z');
    await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
    await world.close();
    await world.deliver();
    const file = join(world.home, 'approvals.backup');
    await writeBackup(world.database, world.environment, file);
    const checked = await checkBackup(file, { name: 'sandbox' });
    const { proof } = await restoreBackup(target.database, checked, async (tx) => verify(tx, undefined));
    expect(proof).toMatchObject({ differences: 0 });
  } finally {
    await target.end();
    await world.end();
  }
});
