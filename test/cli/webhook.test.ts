/** `reckoner webhook`: what it prints and in which shape, and that the secret appears once. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startReceiver } from '../partner-events/receiver.ts';
import { command } from '../support/program.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote(), quote()]);
});
afterAll(() => world.end());

const run = (...args: string[]) =>
  command(args, {
    env: {
      ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-08-10T10:00:00Z' },
      WEBHOOK_SIGNING_KEY: 'a-key-of-the-tests-that-is-long-enough',
    },
  });

test('a webhook is set, shown, rotated, resumed and removed', async () => {
  expect((await run('webhook', 'list')).stdout).toContain('There are no webhooks.');
  const set = await run('webhook', 'set', 'p-1', '--url', 'https://partner.example/in');
  expect(set.stdout).toMatch(
    /^ {2}secret {8}whsec_[A-Za-z0-9+/]{43}=\n[\s\S]*\nWebhook of p-1 for sandbox:\n {2}url +https:\/\/partner\.example\/in\n {2}state +active\n {2}sent up to +position 2, 0 events waiting\n/,
  );
  expect((await run('--json', 'webhook', 'set', 'p-1', '--url', 'https://partner.example/in2')).json()).toEqual({
    ...{ partner_id: 'p-1', url: 'https://partner.example/in2', state: 'active', acknowledged: 2, waiting: 0 },
    ...{ failing_since: null, last_failure: null, next_attempt_at: null, paused_at: null },
    ...{ previous_secret_until: null, secret: null },
  });
  const rotated = (await run('--json', 'webhook', 'rotate', 'p-1')).json() as { secret: string };
  expect(rotated).toMatchObject({
    secret: expect.stringMatching(/^whsec_/),
    previous_secret_until: '2026-08-11T10:00:00Z',
  });
  expect((await run('webhook', 'resume', 'p-1', '--after', '0')).stdout).toContain('position 0, 2 events waiting');
  const shown = [await run('webhook', 'show', 'p-1'), await run('--json', 'webhook', 'list'), await run('status')];
  for (const { stdout } of shown) expect(stdout).not.toContain('whsec_');
  expect(shown[2]?.stdout).toContain('Webhooks     1 active, 0 not; 2 events waiting');
  expect((await run('webhook', 'remove', 'p-1')).stdout).toContain('The webhook of p-1 is removed.');
  expect((await run('--json', 'webhook', 'list')).json()).toEqual([]);
});

test('a delivery says what it sent to webhooks and who did not take an event', async () => {
  const receiver = await startReceiver();
  receiver.answer = ({ position }) => (position === 1 ? 204 : 500);
  await run('webhook', 'set', 'p-1', '--url', receiver.url, '--after', '0');
  const ran = await run('deliver');
  expect(ran.stdout).toContain(
    'Sent to webhooks: 1 event.\n' +
      "The webhook of p-1 did not accept an event: it answered 500. 'reckoner webhook show p-1' shows when it is " +
      'tried again.',
  );
  expect(receiver.received.map(({ position }) => position)).toEqual([1, 2]);
  await receiver.end();
});
