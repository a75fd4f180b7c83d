/** settings.json as people write it: what cannot be read one way only is refused, never guessed at. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readEnvironment } from '../src/config/environment.ts';
import { readSettings, settingsFile } from '../src/config/settings.ts';
import { openWorld, type World } from './support/world.ts';

let world: World;
let text: string;
beforeAll(async () => {
  world = await openWorld();
  text = readFileSync(settingsFile(world.environment), 'utf8');
});
afterAll(() => world.end());

const reading = (written: string) => {
  world.file('settings.json', written);
  return readSettings(world.environment);
};

test('a byte order mark and Windows line ends change nothing', () => {
  const pretty = JSON.stringify(JSON.parse(text), null, 2).replaceAll('\n', '\r\n');
  expect(reading(`\uFEFF${pretty}`)).toEqual(world.settings);
});

test('a setting that is named twice is refused: nobody could say which was meant', () => {
  const twice = text.replace('"mail_from"', '"mail_from":"other@protection.example","mail_from"');
  expect(() => reading(twice)).toThrowError(/mail_from: appears twice in one object/);
  const inside = text.replace('"legal_name"', '"legal_name":"Another","legal_name"');
  expect(() => reading(inside)).toThrowError(/legal_name: appears twice in one object/);
});

test('what is no settings at all is refused with its file, however deep it goes', () => {
  const file = join(world.home, 'settings.json');
  for (const junk of ['', '\0', 'null', '[]', Buffer.from(text, 'utf16le').toString('latin1'), '['.repeat(100_000)]) {
    expect(() => reading(junk)).toThrowError(expect.objectContaining({ code: 'settings_invalid' }));
    expect(() => reading(junk)).toThrowError(file);
  }
});

test('each account has webhook secrets of its own', () => {
  const secretsOf = (variables: object) => [...readEnvironment({ ...variables }).stripeWebhookSecrets];
  const own = { STRIPE_WEBHOOK_SECRET: 'whsec_a, whsec_b' };
  expect(secretsOf({ ...own, STRIPE_WEBHOOK_SECRET_acct_1: 'whsec_c', STRIPE_WEBHOOK_SECRET_acct_2: '' })).toEqual([
    ['', ['whsec_a', 'whsec_b']],
    ['acct_1', ['whsec_c']],
  ]);
  expect(() => secretsOf({ ...own, STRIPE_WEBHOOK_SECRET_acct_1: 'whsec_b' })).toThrowError(
    /STRIPE_WEBHOOK_SECRET_acct_1 has the secret of STRIPE_WEBHOOK_SECRET: each/,
  );
});
