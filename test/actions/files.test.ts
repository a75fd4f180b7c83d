/** Actions with a file: whoever may not do one is refused before the file is opened. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Action } from '../../src/actions/action.ts';
import { fieldsOf } from '../../src/actions/fields.ts';
import { ACTIONS } from '../../src/actions/loaded.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { as, openApproving } from '../support/approving.ts';
import { invite } from '../support/console.ts';
import type { World } from '../support/world.ts';

const NARROW = 'nfin@issuer.example';
const VIEWER = 'vera@issuer.example';
const WITH_FILES = [...ACTIONS.values()].filter(({ input }) => fieldsOf(input).some(({ kind }) => kind === 'file'));

let world: World;
beforeAll(async () => {
  world = await openApproving();
  await invite(world, NARROW, { roles: ['finance'], partnerId: 'p-1' });
  await invite(world, VIEWER, { roles: ['viewer'] });
});
afterAll(() => world.end());

const inputOf = ({ input }: Action): object => {
  const file = { name: 'rows.csv', bytes: Buffer.from('[{},') };
  const known: Readonly<Record<string, unknown>> = {
    ...{ file, files: [file], account: 'acct_1' },
    ...{ cutOver: '2026-06-30', control: ['USD=1.00'], count: 1, section: 'holds' },
  };
  return Object.fromEntries(Object.keys(input.shape).flatMap((name) => (name in known ? [[name, known[name]]] : [])));
};

test('actions with files are known', () => {
  expect(WITH_FILES.map(({ name }) => name).sort()).toEqual([
    'email.bounces',
    'ledger.import',
    'opening.import',
    'partner.import',
    'payment.events',
    'payment.import',
    'processor.import',
    'settings.adopt',
  ]);
});

test.each(WITH_FILES.map((action) => [action.name, action] as const))(
  '%s opens no file of who may not do it',
  async (_, action) => {
    let opened = 0;
    const counting: Action = {
      ...action,
      read: async (context, input) => {
        opened += 1;
        return action.read?.(context, input);
      },
    };
    for (const login of [NARROW, VIEWER]) {
      const context = await as(world, login, {});
      for (const attempt of [previewAction, runAction] as const) {
        await expect(attempt(context, counting, inputOf(action))).rejects.toThrow(
          expect.objectContaining({ code: 'role_needed' }),
        );
      }
    }
    expect(opened).toBe(0);
    // The same input is opened for who may.
    await previewAction(await as(world, 'mara@issuer.example', {}), counting, inputOf(action)).catch(() => undefined);
    expect(opened).toBe(1);
  },
);
