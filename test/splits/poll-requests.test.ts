/** Requests to read an account: read soon, once for many requests, and one account at a time. */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { pollOnRequest } from '../../src/splits/poll-requests.ts';

/** Readings that end when the test lets them. */
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

test('requests during a reading cause one more, whatever their number', async () => {
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

test('an account that cannot be read does not block the others', async () => {
  const { hints, begun, failures, end } = reader();
  hints.take(['acct_1', 'acct_2']);
  await end(new Error('no way to it'));
  expect({ begun, failures }).toEqual({ begun: ['acct_1', 'acct_2'], failures: ['acct_1: no way to it'] });
  await end();
  await hints.stop();
});

test('stopping finishes the current reading and begins no other', async () => {
  const { hints, begun, end } = reader();
  hints.take(['acct_1', 'acct_2']);
  const stopped = hints.stop();
  await end();
  await stopped;
  hints.take(['acct_3']);
  expect(begun).toEqual(['acct_1']);
});
