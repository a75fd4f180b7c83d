/** kill -9 of a close at random instants, from a printed seed. */
import { expect, test } from 'vitest';
import { killed } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { assertNothingLostOrDoubled, beginStory, outcome, PARTNERS, ROWS, type Story } from './story.ts';

const KILLS = times({ few: 2, short: 12, long: 200 });
const { random, seed } = seeded();

async function waiting(): Promise<Story> {
  const story = await beginStory();
  await story.world.partners(PARTNERS);
  await story.world.rows(ROWS);
  return story;
}

test(
  `a close killed at ${KILLS} random instants ends each time as an undisturbed one (seed ${seed})`,
  async () => {
    const calm = await waiting();
    /** Gives how long it took where it ended by itself. */
    const close = async (story: Story, killAfter: number): Promise<number | undefined> => {
      const begun = performance.now();
      return (await killed(['close'], story.env, killAfter)) ? undefined : performance.now() - begun;
    };
    let duration = (await close(calm, 60_000)) as number;
    const undisturbed = await outcome(calm);
    await calm.end();

    let struck = 0;
    for (let round = 0; round < KILLS; round += 1) {
      const story = await waiting();
      const took = await close(story, random() * duration);
      // The first close of a process that has loaded nothing before takes longer than those that follow.
      if (took === undefined) struck += 1;
      else duration = Math.min(duration, took);
      const again = await story.run(['close']);
      expect({ seed, round, status: again.status, stderr: again.stderr }).toMatchObject({ seed, round, status: 0 });
      expect({ seed, round, outcome: await outcome(story) }).toEqual({ seed, round, outcome: undisturbed });
      await assertNothingLostOrDoubled(story, 1);
      await story.end();
    }
    expect(struck).toBeGreaterThan(0);
    tally('kills survived', 'of a close at random instants', struck);
  },
  180_000 + KILLS * 30_000,
);
