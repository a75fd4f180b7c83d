/** Time stamps of checkpoints by a stand-in authority: what is recorded, what OpenSSL says of it, and bad answers. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bodyOf } from '../../src/log/note.ts';
import { checkTimeStamp, requestTimeStamp } from '../../src/log/time-stamp.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { exported, month, verifyPack } from '../audit/books.ts';
import { startOver } from '../close/start-over.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { readStatus } from '../support/status.ts';
import { type Answering, openAuthority, type TimeStampAuthority } from '../support/time-stamp-authority.ts';
import { has, needs, tool } from '../support/tools.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let authority: TimeStampAuthority;
let world: World;
beforeAll(async () => {
  if (!has('openssl')) return;
  authority = await openAuthority();
  world = await openWorld({ logKey: LOG_KEY });
});
afterAll(async () => {
  await world?.end();
  await authority?.end();
});
beforeEach((context) => {
  needs('openssl', context);
  authority.answer();
});

const RECORD = 'ledger.example/0123456789ab\n1\n';
const HASH = createHash('sha256').update(RECORD).digest();
const ask = (timeoutMs?: number) => requestTimeStamp(authority.url, RECORD, timeoutMs);

/** The outside check. */
function opensslVerifies(response: Buffer, record: string, ca = authority.ca): boolean {
  const [data, file] = [join(authority.folder, 'record.txt'), join(authority.folder, 'record.tsr')];
  writeFileSync(data, record);
  writeFileSync(file, response);
  return spawnSync(tool('openssl'), ['ts', '-verify', '-data', data, '-in', file, '-CAfile', ca]).status === 0;
}

describe('an answer', () => {
  test('that is a time stamp is accepted, and OpenSSL verifies it for this record alone', async () => {
    const answer = await ask();
    if ('problem' in answer) throw new Error(answer.problem);
    expect(Math.abs(Date.parse(answer.stampedAt) - Date.now())).toBeLessThan(60_000);
    expect(opensslVerifies(answer.response, RECORD)).toBe(true);
    expect(opensslVerifies(answer.response, `${RECORD}x`)).toBe(false);
  });

  test('by an authority with an RSA key is accepted, too', async () => {
    const other = await openAuthority({ key: 'rsa' });
    try {
      expect(await requestTimeStamp(other.url, RECORD)).toMatchObject({ stampedAt: expect.stringMatching(/Z$/) });
    } finally {
      await other.end();
    }
  });

  test.each<[what: string, answering: Answering, says: RegExp]>([
    ['for another record', () => authority.stamp(authority.query({ data: 'x' })), /stamped a hash other than/],
    [
      'for another request, with the same hash',
      () => authority.stamp(authority.query({ hash: HASH.toString('hex') })),
      /its nonce differs from the one sent/,
    ],
    [
      'that refuses',
      (query) => authority.stamp(query, 'refusing'),
      /refused the request with status 2: Message digest/,
    ],
    ['that is garbage', () => 'no such page', /something other than a time stamp/],
    ['that is empty', () => '', /something other than a time stamp/],
    ['that is cut off', (query) => authority.stamp(query).subarray(0, 400), /something other than a time stamp/],
    ['that is huge', () => Buffer.alloc(70_000, 0x30), /more than 65536 bytes/],
    [
      'with a damaged signature',
      (query) => {
        const damaged = authority.stamp(query);
        damaged.writeUInt8((damaged.at(-1) as number) ^ 1, damaged.length - 1);
        return damaged;
      },
      /an invalid signature/,
    ],
    [
      'by a certificate that had expired',
      (query) => authority.signedBy(query, 'expired'),
      /was not valid at that time/,
    ],
    ['by the certificate of a web server', (query) => authority.signedBy(query, 'web'), /not only for time stamping/],
    [
      'without its certificate',
      (query) => authority.signedBy(query, 'web', '-nocerts'),
      /omitted its signing certificate/,
    ],
    [
      'with an error',
      (_, response) => {
        response.statusCode = 503;
        return 'later';
      },
      /HTTP status 503/,
    ],
    [
      'that sends us elsewhere',
      (_, response) => {
        response.writeHead(302, { location: 'http://127.0.0.1:1/' });
        return '';
      },
      /cannot be reached/,
    ],
  ])('%s is refused with a sentence', async (_, answering, says) => {
    authority.answer(answering);
    expect(await ask()).toEqual({ problem: expect.stringMatching(says) });
  });

  test('that never comes is waited for no longer than the timeout', async () => {
    authority.answer(() => undefined);
    expect(await ask(300)).toEqual({ problem: 'did not answer within 0.3 seconds' });
    authority.answer((_, response) => void response.write('0'));
    expect(await ask(300)).toEqual({ problem: 'did not answer within 0.3 seconds' });
  });

  test('cannot come from a server that is not there', async () => {
    expect(await requestTimeStamp('http://127.0.0.1:1/', RECORD)).toEqual({
      problem: expect.stringMatching(/^cannot be reached: /),
    });
  });
});

describe('checkpoints', () => {
  const begin = async () => {
    await startOver(world);
    Object.assign(world, { settings: { ...world.settings, time_stamping_url: authority.url } });
    await world.partners([partner()]);
    await world.rows([quote()]);
    world.at('2026-08-01T10:00:00Z');
    await world.close();
    await world.closeBooks('2026-07');
  };
  beforeEach(begin);

  const failed: string[] = [];
  const run = async () => {
    failed.length = 0;
    await sendEmails(world, { onNotStamped: ({ size }, reason) => failed.push(`${size}: ${reason}`) });
    return failed;
  };
  const stamps = async () =>
    (
      await world.sql<{ size: string; origin: string; root: Buffer; closes: string; response: Buffer }>(
        'SELECT size, origin, root, closes, response FROM log_stamps JOIN log_checkpoints USING (size) ORDER BY size',
      )
    ).map((each) => ({ ...each, size: Number(each.size) }));
  const differences = async () => {
    const { checks } = await world.verify();
    return checks.flatMap(({ check, differences: all }) => all.map(({ detail }) => `${check}: ${detail}`));
  };

  test('of a month and of its books are stamped once, when e-mails are sent; packs have the answers', async () => {
    expect(await run()).toEqual([]);
    const requests = authority.requests();
    expect(await run()).toEqual([]);
    expect(authority.requests()).toBe(requests);
    const found = await stamps();
    expect(found.map(({ closes }) => closes)).toEqual(['month 2026-07', 'books 2026-07']);
    for (const each of found) expect(opensslVerifies(each.response, bodyOf(each))).toBe(true);
    expect(await differences()).toEqual([]);
    const pack = await exported(world, { kind: 'ledger', from: month('2026-07'), to: month('2026-07') });
    for (const { size, response } of found) {
      expect(readFileSync(join(pack, `checkpoints/${size}.tsr`))).toEqual(response);
      expect(readFileSync(join(pack, `checkpoints/${size}`), 'utf8').split('\n\n')[0]).toBe(
        bodyOf(found.find((each) => each.size === size) as never).trimEnd(),
      );
    }
    expect(verifyPack([pack, '--allow']).status).toBe(0);
  });

  test('without an authority are not stamped, and nobody is asked', async () => {
    Object.assign(world, { settings: { ...world.settings, time_stamping_url: '' } });
    const requests = authority.requests();
    expect(await run()).toEqual([]);
    expect([authority.requests(), await stamps()]).toEqual([requests, []]);
  });

  test('keep waiting after a bad answer: nothing is recorded, e-mails go out, and the next run asks again', async () => {
    authority.answer(() => authority.stamp(authority.query({ data: 'x' })));
    const requests = authority.requests();
    expect(await run()).toEqual([expect.stringMatching(/^\d+: http:\S+ stamped a hash other than/)]);
    // An authority that fails is asked no more in this run.
    expect(authority.requests()).toBe(requests + 1);
    expect(await stamps()).toEqual([]);
    expect(await world.sql(`SELECT DISTINCT status FROM emails WHERE kind = 'checkpoint'`)).toEqual([
      { status: 'sent' },
    ]);
    authority.answer();
    expect(await run()).toEqual([]);
    expect(await stamps()).toHaveLength(2);
  });

  test('that wait for more than a day need attention', async () => {
    authority.answer(() => 'down');
    await run();
    const attention = async () =>
      (await world.database.reading((tx) => readStatus(tx, world))).attention.filter((each) => /time stamp/.test(each));
    expect(await attention()).toEqual([]);
    world.at('2026-08-02T10:01:00Z');
    expect(await attention()).toEqual([
      expect.stringMatching(/^2 checkpoints without a time stamp for more than a day/),
    ]);
  });

  test('two runs that ask at once record one stamp', async () => {
    await Promise.all([run(), run()]);
    expect(await stamps()).toHaveLength(2);
  });

  test('a stored stamp that is changed, moved or of no checkpoint is found', async () => {
    await run();
    const damages = [
      [`SET stamped_at = stamped_at - interval '1 day'`, /was stamped at .* but is recorded as stamped at/],
      ['SET response = set_byte(response, length(response) - 1, 0)', /has an invalid time stamp/],
      ['SET response = (SELECT response FROM log_stamps ORDER BY size DESC LIMIT 1)', /stamped a hash other than/],
      ['SET size = size + 1', /has a time stamp, but was not taken/],
    ] as const;
    for (const [damage, says] of damages) {
      const first = 'WHERE size = (SELECT min(size) FROM log_stamps)';
      await world.sql(`${GUARDS_OFF} UPDATE log_stamps ${damage} ${first}; ${GUARDS_ON}`);
      const found = await differences();
      expect(found.filter((each) => each.startsWith('time_stamps_hold'))).toEqual([expect.stringMatching(says)]);
      await begin();
      await run();
    }
  });

  test('a stored answer is checked without its nonce, but never against another hash', async () => {
    await run();
    const [stamp] = await stamps();
    const response = stamp?.response ?? Buffer.alloc(0);
    expect(await checkTimeStamp(response, bodyOf(stamp as never))).toMatchObject({ stampedAt: expect.any(String) });
    expect(await checkTimeStamp(response, RECORD)).toMatchObject({
      problem: expect.stringMatching(/a hash other than/),
    });
  });
});
