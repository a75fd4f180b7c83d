/** kill -9 at every transaction boundary and every call to the outside: run again, and it ends the same. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINTS, type Failpoint } from '../../src/failpoint.ts';
import { tally } from '../support/tally.ts';
import { assertNothingLostOrDoubled, beginStory, outcome, type Story } from './story.ts';

/** The command that passes a failpoint, by the first word of its name. */
const COMMANDS = ['partners', 'import', 'close'] as const;
const commandOf = (failpoint: Failpoint): (typeof COMMANDS)[number] => {
  const act = failpoint.split('.')[0] as string;
  return act === 'delivery' ? 'close' : (act as (typeof COMMANDS)[number]);
};

function step(story: Story, command: (typeof COMMANDS)[number], env: Record<string, string> = {}) {
  switch (command) {
    case 'partners':
      return story.run(['partner', 'import', story.partnersFile], env);
    case 'import':
      return story.run(['ledger', 'import', story.rowsFile], env);
    case 'close':
      return story.run(['close'], env);
  }
}

let undisturbed: unknown;
let survived = 0;
beforeAll(async () => {
  const story = await beginStory();
  for (const command of COMMANDS) expect((await step(story, command)).status).toBe(0);
  await assertNothingLostOrDoubled(story, 0);
  undisturbed = await outcome(story);
  await story.end();
});

for (const failpoint of FAILPOINTS) {
  test(`killed at ${failpoint}, then run again, everything is as if nothing had happened`, async () => {
    const story = await beginStory();
    for (const command of COMMANDS) {
      if (command === commandOf(failpoint)) {
        const killed = await step(story, command, { RECKONER_FAILPOINT: failpoint });
        expect({ status: killed.status, signal: killed.signal }).toEqual({ status: null, signal: 'SIGKILL' });
      }
      const ran = await step(story, command);
      expect({ command, status: ran.status, stderr: ran.stderr }).toMatchObject({ command, status: 0 });
    }
    expect(await outcome(story)).toEqual(undisturbed);
    await assertNothingLostOrDoubled(story, 1);
    await story.end();
    survived += 1;
  });
}

afterAll(() => {
  tally('kills survived', 'at failpoints', survived);
});

test('a sending killed twice on the way is uncertain, and left to a person', async () => {
  const story = await beginStory();
  for (const command of ['partners', 'import'] as const) await step(story, command);
  for (const _ of [1, 2]) {
    expect((await step(story, 'close', { RECKONER_FAILPOINT: 'delivery.sent' })).signal).toBe('SIGKILL');
  }
  const ran = await step(story, 'close');
  const uncertain = await story.world.sql(`SELECT FROM sendings WHERE status = 'uncertain'`);
  expect({ status: ran.status, some: uncertain.length > 0 }).toEqual({ status: 4, some: true });
  const status = await story.run(['status']);
  expect(status.stdout).toContain('may or may not have arrived');
  survived += 2;
  await story.end();
});

test('production knows no failpoints', async () => {
  const story = await beginStory();
  const ran = await story.run(['status'], {
    RECKONER_ENVIRONMENT: 'production',
    RECKONER_FAILPOINT: 'close.locked',
    RECKONER_NOW: '',
  });
  // A sandbox's database is refused, alive.
  expect(ran.status).toBe(3);
  await story.end();
});
