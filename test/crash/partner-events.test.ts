/** kill -9 while events are published and sent: whoever goes on skips none and doubles none in the index. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setWebhook } from '../../src/partner-events/webhook.ts';
import { expectVerified } from '../documents/correcting.ts';
import { isSignedWith, type Receiver, startReceiver } from '../partner-events/receiver.ts';
import { FAILPOINTS } from '../support/failpoints.ts';
import { reckoner } from '../support/program.ts';
import { someOf, times } from '../support/sweep.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

const KEY = 'the-signing-key-of-these-tests-0123456789';
const NOW = '2026-08-01T10:00:00Z';

let world: World;
let receiver: Receiver;
let secret: string;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  receiver = await startReceiver();
  const context = { ...world, environment: { ...world.environment, webhookKey: KEY } };
  const made = await world.database.transaction((tx) =>
    setWebhook(tx, context, { partnerId: 'p-1', url: receiver.url }),
  );
  secret = made.secret as string;
});
afterAll(async () => {
  await receiver.end();
  await world.end();
});

const deliver = (failpoint: string) =>
  reckoner(['--json', 'deliver'], {
    env: {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: NOW },
      ...{ WEBHOOK_SIGNING_KEY: KEY, RECKONER_FAILPOINT: failpoint },
    },
  });

const PASSINGS = FAILPOINTS.filter((each) => /^(events|webhook)[.]/.test(each)).flatMap((each) =>
  each === 'webhook.sent' || each === 'webhook.acknowledged' ? [each, `${each}:2`] : [each],
);
for (const failpoint of someOf(PASSINGS, times({ few: 3, short: 5, long: PASSINGS.length }))) {
  test(`events whose delivery is killed at ${failpoint} are published once, and sent in order with none skipped`, async () => {
    receiver.received.length = 0;
    const [before] = await world.sql<{ last: number }>('SELECT count(*)::integer AS last FROM partner_events');
    const first = (before?.last ?? 0) + 1;
    await world.rows([quote(), quote(), quote()]);
    const killed = await deliver(failpoint);
    expect({ status: killed.status, signal: killed.signal }, killed.stderr).toEqual({
      status: null,
      signal: 'SIGKILL',
    });
    const delivered = await deliver('');
    expect(delivered.status, delivered.stderr).toBe(0);
    const sent = receiver.received.map(({ position }) => position);
    // What was on its way is sent again, at once: a repetition never comes after a later event.
    expect([...sent].sort((one, other) => one - other)).toEqual(sent);
    expect([...new Set(sent)]).toEqual([first, first + 1, first + 2]);
    expect(sent.length).toBeLessThanOrEqual(4);
    for (const request of receiver.received) expect(isSignedWith(secret, request, new Date(NOW))).toBe(true);
    await expectVerified(world);
  });
}
