/** PollRequests that something moved: an account is read soon, once for many of them, and never two at a time. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { pollOnRequest } from '../../src/splits/poll-requests.ts';

/** Reads that end when they are let. */
function reader() {
  const begun: string[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const failures: string[] = [];
  const hints = pollOnRequest(
    (account) => {
      begun.push(account);
      return new Promise((resolve, reject) => ends.push((error) => (error ? reject(error) : resolve())));
    },
    (account, error) => failures.push(`${account}: ${(error as Error).message}`),
    1,
  );
  const end = async (error?: Error) => {
    ends.shift()?.(error);
    await pause(20);
  };
  return { hints, begun, failures, end };
}

test('hints that come during a reading make one more, whatever their number', async () => {
  const { hints, begun, end } = reader();
  hints.take(['acct_1']);
  for (let times = 0; times < 100; times += 1) hints.take(['acct_1', 'acct_2']);
  expect(begun).toEqual(['acct_1']);
  await end();
  expect(begun).toEqual(['acct_1', 'acct_1']);
  await end();
  expect(begun).toEqual(['acct_1', 'acct_1', 'acct_2']);
  await end();
  hints.take(['acct_3']);
  expect(begun.at(-1)).toBe('acct_3');
  await end();
  await hints.stop();
});

test('an account that cannot be read keeps no other from being read', async () => {
  const { hints, begun, failures, end } = reader();
  hints.take(['acct_1', 'acct_2']);
  await end(new Error('no way to it'));
  expect({ begun, failures }).toEqual({ begun: ['acct_1', 'acct_2'], failures: ['acct_1: no way to it'] });
  await end();
  await hints.stop();
});

test('when it stops it finishes the reading that is under way, and begins none', async () => {
  const { hints, begun, end } = reader();
  hints.take(['acct_1', 'acct_2']);
  const stopped = hints.stop();
  await end();
  await stopped;
  hints.take(['acct_3']);
  expect(begun).toEqual(['acct_1']);
});
