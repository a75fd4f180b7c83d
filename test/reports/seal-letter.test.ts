/** The seal of a month reaches the auditor by e-mail: once, as it was made, and again with the same bytes where it must. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mailSeals } from '../../src/reports/seal-letter.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
});
afterAll(() => world.end());

const letters = () => readdirSync(join(world.home, 'outbox')).filter((name) => name.startsWith('seal.'));

test('without an address it is held, and goes out when there is one', async () => {
  await world.close();
  const settings = { ...world.settings, auditor_email: '' };
  expect(await mailSeals({ ...world, settings })).toEqual([
    { month: '2026-07', outcome: 'held', reply: 'settings.json has no auditor_email or no mail_from' },
  ]);
  expect(letters()).toEqual([]);
  expect(await mailSeals(world)).toMatchObject([{ month: '2026-07', outcome: 'sent' }]);
});

test('it has the seal and the record whose hash the seal is', async () => {
  const [name = ''] = letters();
  const mail = await simpleParser(readFileSync(join(world.home, 'outbox', name)));
  const [{ seal = '', record = '' } = {}] = await world.sql<{ seal: string; record: string }>('SELECT * FROM seals');
  expect(mail.to).toMatchObject({ text: '"Auditor" <auditor@protection.example>' });
  expect(mail.subject).toBe(`[SANDBOX] Seal of July 2026: ${seal.slice(0, 16)}`);
  const text = mail.text ?? '';
  const said = text.slice(text.search(/^reckoner seal \d/m)).trimEnd();
  expect(createHash('sha256').update(`${said}\n`).digest('hex')).toBe(seal);
  expect(`${said}\n`).toBe(record);
});

test('it goes out once; repeated after a crash it has the same Message-ID and bytes', async () => {
  expect(await mailSeals(world)).toEqual([]);
  const outbox = join(world.home, 'outbox');
  const [name = ''] = letters();
  const before = readFileSync(join(outbox, name));
  rmSync(join(outbox, name));
  // As a process leaves it that was killed after sending and before it could say so.
  await world.sql(
    `UPDATE seal_letters SET status = 'queued', sent_at = NULL, tried_until = now() - interval '1 minute'`,
  );
  world.at('2026-08-05T10:00:00Z');
  expect(await mailSeals(world)).toMatchObject([{ outcome: 'sent' }]);
  expect(readFileSync(join(outbox, name))).toEqual(before);
});

test('while one process tries, another does not', async () => {
  await world.sql(
    `UPDATE seal_letters SET status = 'queued', sent_at = NULL, tried_until = now() + interval '1 minute'`,
  );
  expect(await mailSeals(world)).toEqual([]);
  await world.sql(`UPDATE seal_letters SET tried_until = NULL`);
});

test('a way out that does not work leaves it to the next run', async () => {
  const environment = { ...world.environment, smtpUrl: 'smtp://127.0.0.1:1' };
  expect(await mailSeals({ ...world, environment })).toMatchObject([{ outcome: 'deferred' }]);
  expect(await mailSeals(world)).toMatchObject([{ outcome: 'sent' }]);
});
