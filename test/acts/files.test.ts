/** Acts with a file: whoever may not do one is refused before the file is opened. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Act } from '../../src/acts/act.ts';
import { fieldsOf } from '../../src/acts/fields.ts';
import { ACTS } from '../../src/acts/loaded.ts';
import { previewAct, runAct } from '../../src/acts/run.ts';
import { as, openApproving } from '../support/approving.ts';
import { invite } from '../support/console.ts';
import type { World } from '../support/world.ts';

const NARROW = 'nfin@issuer.example';
const VIEWER = 'vera@issuer.example';
const WITH_FILES = [...ACTS.values()].filter(({ input }) => fieldsOf(input).some(({ kind }) => kind === 'file'));

let world: World;
beforeAll(async () => {
  world = await openApproving();
  await invite(world, NARROW, { roles: ['finance'], partnerId: 'p-1' });
  await invite(world, VIEWER, { roles: ['viewer'] });
});
afterAll(() => world.end());

const inputOf = ({ input }: Act): object => {
  const file = { name: 'rows.csv', bytes: Buffer.from('[{},') };
  const known: Readonly<Record<string, unknown>> = {
    ...{ file, files: [file], account: 'acct_1' },
    ...{ cutOver: '2026-06-30', control: ['USD=1.00'], count: 1 },
  };
  return Object.fromEntries(Object.keys(input.shape).flatMap((name) => (name in known ? [[name, known[name]]] : [])));
};

test('acts with files are known', () => {
  expect(WITH_FILES.map(({ name }) => name).sort()).toEqual([
    'email.bounces',
    'ledger.import',
    'opening.import',
    'partner.import',
    'payment.events',
    'payment.import',
    'processor.import',
  ]);
});

test.each(WITH_FILES.map((act) => [act.name, act] as const))(
  '%s opens no file of who may not do it',
  async (_, act) => {
    let opened = 0;
    const counting: Act = {
      ...act,
      read: async (context, input) => {
        opened += 1;
        return act.read?.(context, input);
      },
    };
    for (const login of [NARROW, VIEWER]) {
      const context = await as(world, login, {});
      for (const attempt of [previewAct, runAct] as const) {
        await expect(attempt(context, counting, inputOf(act))).rejects.toThrow(
          expect.objectContaining({ code: 'role_needed' }),
        );
      }
    }
    expect(opened).toBe(0);
    // The same input is opened for who may.
    await previewAct(await as(world, 'mara@issuer.example', {}), counting, inputOf(act)).catch(() => undefined);
    expect(opened).toBe(1);
  },
);
