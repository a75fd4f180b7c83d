/** Both verifiers refuse a pack whose seals fit, and whose approvals nobody could have given. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { approveRequest, endRequest } from '../../src/actions/approve.ts';
import { invoiceHold } from '../../src/actions/invoice/hold.ts';
import { runAction } from '../../src/actions/run.ts';
import { packageRoot } from '../../src/package.ts';
import { refusalOf } from '../close/refusal.ts';
import { as, LEE, MARA, openApproving } from '../support/approving.ts';
import { ADMINISTRATOR } from '../support/console.ts';
import { tool } from '../support/tools.ts';
import { quote, type World } from '../support/world.ts';
import { exported, month } from './books.ts';
import { Forger, type Row } from './forger.ts';

let world: World;
let honest: string;
const ids = new Map<string, string>();
beforeAll(async () => {
  world = await openApproving();
  const ask = async (number: string) =>
    (await refusalOf(runAction(await as(world, MARA), invoiceHold, { number, reason: 'asks' }))).facts['request_id'];
  const quiet = { deliver: false, reason: null };
  await approveRequest(await as(world, LEE), Number(await ask('INV-2026-000001')), quiet);
  await endRequest(await as(world, LEE), Number(await ask('INV-2026-000002')), 'reject', 'no');
  await endRequest(await as(world, MARA), Number(await ask('INV-2026-000002')), 'withdraw', null);
  world.at('2026-08-15T10:00:00Z');
  await world.rows([quote({ accepted_at: '2026-08-10T10:00:00Z' })]);
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  honest = await exported(world, { kind: 'ledger', to: month('2026-08') });
  for (const { login, id } of await world.sql<{ login: string; id: string }>('SELECT login, user_id AS id FROM users'))
    ids.set(login, String(id));
});
afterAll(() => world.end());

function verdicts(folder: string): { status: number | null; output: string }[] {
  return ['verify.mjs', 'verify.py'].map((file) => {
    const program = file === 'verify.mjs' ? process.execPath : tool('python3');
    const { status, stdout, stderr } = spawnSync(program, [join(packageRoot, 'templates/export', file), folder], {
      encoding: 'utf8',
    });
    return { status, output: `${stdout}${stderr}` };
  });
}

const decision = (kind: string, change: (row: Row) => unknown) => (pack: Forger) =>
  pack.retell('approval_decisions', (row) => {
    if (row['decision'] === kind) change(row);
  });
const userOf = (login: string) => ids.get(login) as string;

const FORGERIES: readonly (readonly [name: string, forge: (pack: Forger) => void])[] = [
  ['an approval by whoever asked', decision('approve', (row) => Object.assign(row, { decided_by: userOf(MARA) }))],
  [
    'an approval by whoever asked, with an event that says so',
    (pack) => {
      decision('approve', (row) => Object.assign(row, { decided_by: userOf(MARA) }))(pack);
      pack.retell('audit_events', (row) => {
        if (row['action'] === 'approval.approve') row['user_id'] = userOf(MARA);
      });
    },
  ],
  ['a rejection that becomes an approval', decision('reject', (row) => Object.assign(row, { decision: 'approve' }))],
  [
    'an approval by a user who was no approver',
    (pack) => {
      decision('approve', (row) => Object.assign(row, { decided_by: userOf(ADMINISTRATOR) }))(pack);
      pack.retell('audit_events', (row) => {
        if (row['action'] === 'approval.approve') row['user_id'] = userOf(ADMINISTRATOR);
      });
    },
  ],
  ['an approval of another request', decision('approve', (row) => Object.assign(row, { request_id: '3' }))],
  [
    'an approval of a request that had expired',
    (pack) =>
      pack.retell('approval_requests', (row) => Object.assign(row, { expires_at: row['requested_at'] as string })),
  ],
  [
    'an action that is said to be done by one person while somebody else could approve it',
    (pack) =>
      pack.retell('audit_events', (row) => {
        const { approval: _, ...details } = JSON.parse(row['details'] as string) as Record<string, unknown>;
        const alone = { ...details, one_person: { action: 'invoice.hold', partners: ['p-1'] } };
        if (row['action'] === 'invoice.hold') row['details'] = JSON.stringify(alone);
      }),
  ],
];

test('an honest pack holds, and both count its decisions', () => {
  for (const { status, output } of verdicts(honest)) {
    expect(output).toMatch(/^ok {4}approvals +3 decisions$/m);
    expect(status).toBe(0);
  }
});

describe('is refused:', () => {
  test.each(FORGERIES.map(([name, forge], at) => [name, forge, at] as const))('%s', (_, forge, at) => {
    const pack = new Forger(honest, join(world.home, `approvals-${at}`));
    forge(pack);
    pack.reseal();
    for (const { status, output } of verdicts(pack.folder)) {
      expect(output).toMatch(/^FAIL {2}approvals /m);
      expect(status).toBe(1);
    }
  });
});
