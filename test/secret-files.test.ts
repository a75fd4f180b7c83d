/** Secrets from files: each variable has one, and a file that others can read is no secret. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readEnvironment } from '../src/config/environment.ts';

const folder = mkdtempSync(join(tmpdir(), 'reckoner-secrets-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileWith(content: string, mode = 0o600): string {
  files += 1;
  const file = join(folder, `secret-${files}`);
  writeFileSync(file, content, { mode });
  chmodSync(file, mode);
  return file;
}
const refusalOf = (variables: Record<string, string>): string => {
  try {
    readEnvironment(variables);
  } catch (error) {
    return (error as Error).message;
  }
  return '';
};

test('every secret may come from a file instead, without the line end that editors add', () => {
  const environment = readEnvironment({
    DATABASE_URL_FILE: fileWith('postgres://a:pw@localhost/db\n'),
    DATABASE_URL_READ_FILE: fileWith('postgres://b:pw@localhost/db\n'),
    SMTP_URL_FILE: fileWith('smtp://c:pw@localhost\r\n'),
    STRIPE_SECRET_KEY_FILE: fileWith('sk_test_1'),
    STRIPE_SECRET_KEY_acct_1_FILE: fileWith('rk_test_2\n'),
    STRIPE_WEBHOOK_SECRET_FILE: fileWith('whsec_1,whsec_2\n', 0o640),
    STRIPE_WEBHOOK_SECRET_acct_1_FILE: fileWith('whsec_3\n'),
    WEBHOOK_SIGNING_KEY_FILE: fileWith('w'.repeat(32)),
    WEBHOOK_SIGNING_KEY_BEFORE_FILE: fileWith('v'.repeat(32)),
  });
  expect(environment).toMatchObject({
    databaseUrl: 'postgres://a:pw@localhost/db',
    databaseReadUrl: 'postgres://b:pw@localhost/db',
    smtpUrl: 'smtp://c:pw@localhost',
    stripeKey: 'sk_test_1',
    webhookKey: 'w'.repeat(32),
    webhookKeyBefore: 'v'.repeat(32),
  });
  expect([...environment.connectedKeys]).toEqual([['acct_1', 'rk_test_2']]);
  expect([...environment.stripeWebhookSecrets]).toEqual([
    ['', ['whsec_1', 'whsec_2']],
    ['acct_1', ['whsec_3']],
  ]);
});

test('a variable and its file together are refused: nobody could say which was meant', () => {
  const both = { SMTP_URL: 'smtp://a:topsecret@localhost', SMTP_URL_FILE: fileWith('smtp://b:topsecret@localhost') };
  expect(refusalOf(both)).toContain('SMTP_URL and SMTP_URL_FILE are both set: keep one of them');
  expect(refusalOf(both)).not.toContain('topsecret');
});

test('a file that others can read, an empty one, a missing one, and one with more lines are refused by name', () => {
  const open = fileWith('sk_test_1', 0o644);
  expect(refusalOf({ STRIPE_SECRET_KEY_FILE: open })).toContain(
    `STRIPE_SECRET_KEY_FILE names ${open}, which every user of this machine can read or change: run 'chmod 600 ` +
      `${open}'`,
  );
  expect(refusalOf({ SMTP_URL_FILE: fileWith('\n') })).toContain('which is empty');
  expect(refusalOf({ SMTP_URL_FILE: fileWith('one\ntwo') })).toContain('which has more than one line');
  expect(refusalOf({ SMTP_URL_FILE: join(folder, 'none') })).toContain('which cannot be read: ENOENT');
});

test('an empty name of a file is none, and a variable that is no secret has no file', () => {
  expect(readEnvironment({ SMTP_URL_FILE: '', RECKONER_ENVIRONMENT_FILE: '/nowhere' }).smtpUrl).toBeUndefined();
});
