/** The e-mail of a month's seal to the auditor: sent once, and after a crash repeated with the same bytes. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SealKey } from '../../src/config/seal-key.ts';
import { Claims } from '../../src/database/claims.ts';
import { dueOtherEmails } from '../../src/mail/outbox.sql.ts';
import { type EmailResult, sendOtherEmails } from '../../src/mail/outbox.ts';
import { booksSealEmail, sealEmail } from '../../src/month-end/emails/seal.ts';
import { noteOf, vkeyOf } from '../../src/seals/signature.ts';
import type { SealSignature } from '../../src/seals/signatures.sql.ts';
import { startOver } from '../close/start-over.ts';
import { newSealPem, SEAL_KEY, sealKeyOf } from '../support/seal-keys.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
});
afterAll(() => world.end());

const outbox = () => join(world.home, 'outbox');
const emails = () => readdirSync(outbox()).filter((name) => name.startsWith('seal.'));

async function send(changes: Partial<World> = {}): Promise<EmailResult[]> {
  const results: EmailResult[] = [];
  await sendOtherEmails({ ...world, ...changes, composers: [sealEmail], onEmail: (result) => results.push(result) });
  return results;
}

/** As a worker leaves it that was killed after it began to send. */
async function interrupted(): Promise<Buffer> {
  const [name = ''] = emails();
  const raw = readFileSync(join(outbox(), name));
  rmSync(join(outbox(), name));
  await world.sql(`ALTER TABLE emails DISABLE TRIGGER emails_facts_stay`);
  await world.sql(
    `UPDATE emails SET status = 'sending', sent_at = NULL, message = $1, attempts = attempts + 1,
            unclear_attempts = 0, due_at = now()
     WHERE kind = 'seal'`,
    [raw],
  );
  await world.sql(`ALTER TABLE emails ENABLE TRIGGER emails_facts_stay`);
  return raw;
}

test('without an address no e-mail is queued', async () => {
  await world.close();
  expect(await send({ settings: { ...world.settings, auditor_email: '' } })).toEqual([]);
  expect(await world.sql('SELECT FROM emails WHERE document_id IS NULL')).toEqual([]);
});

test('an address that is set later gets the latest seal, and from then on each', async () => {
  const none = { settings: { ...world.settings, auditor_email: '' } };
  world.at('2026-09-01T12:00:00Z');
  await world.close();
  expect(await send(none)).toEqual([]);
  world.at('2026-09-20T12:00:00Z');
  expect(await send()).toMatchObject([{ email: { kind: 'seal', month: '2026-08' }, status: 'sent' }]);
  world.at('2026-10-01T12:00:00Z');
  await world.close();
  expect(await send()).toMatchObject([{ email: { month: '2026-09' }, status: 'sent' }]);
  expect(await send()).toEqual([]);
  expect(emails()).toHaveLength(2);
});

test('if the address is removed before the e-mail is sent, it is held', async () => {
  await startOver(world);
  await world.partners([partner()]);
  await world.rows([quote()]);
  await world.close();
  const nowhere = { ...world.environment, smtpUrl: 'smtp://127.0.0.1:1' };
  expect(await send({ environment: nowhere })).toMatchObject([{ status: 'deferred' }]);
  expect(await send({ settings: { ...world.settings, auditor_email: '' } })).toMatchObject([
    { status: 'held', detail: 'settings.json has no auditor_email' },
  ]);
  expect(await send()).toMatchObject([{ email: { month: '2026-07' }, status: 'sent' }]);
});

test('it contains the seal and the record that hashes to it', async () => {
  const [name = ''] = emails();
  const mail = await simpleParser(readFileSync(join(outbox(), name)));
  const [{ seal = '', record = '' } = {}] = await world.sql<{ seal: string; record: string }>('SELECT * FROM seals');
  expect(mail.to).toMatchObject({ text: '"Auditor" <auditor@protection.example>' });
  expect(mail.subject).toBe(`[SANDBOX] Seal of July 2026: ${seal.slice(0, 16)}`);
  const text = mail.text ?? '';
  const said = text.slice(text.search(/^reckoner seal \d/m)).trimEnd();
  expect(createHash('sha256').update(`${said}\n`).digest('hex')).toBe(seal);
  expect(`${said}\n`).toBe(record);
});

test('it is sent once; repeated after a crash, it has the same Message-ID and bytes', async () => {
  expect(await send()).toEqual([]);
  const raw = await interrupted();
  world.at('2026-08-05T10:00:00Z');
  expect(await send()).toMatchObject([{ status: 'sent' }]);
  expect(readFileSync(join(outbox(), emails()[0] ?? ''))).toEqual(raw);
});

test('while one process sends it, another leaves it alone', async () => {
  await interrupted();
  const other = await Claims.open(world.database.connection);
  expect(await other.claim(dueOtherEmails(null), 1)).toHaveLength(1);
  expect(await send()).toEqual([]);
  await other.end();
  expect(emails()).toEqual([]);
});

test('if the mail server cannot be reached, the next run sends it', async () => {
  const environment = { ...world.environment, smtpUrl: 'smtp://127.0.0.1:1' };
  expect(await send({ environment })).toMatchObject([{ status: 'deferred' }]);
  expect(await send()).toMatchObject([{ status: 'sent' }]);
});

test('when books close, their seal is sent once, with the record that hashes to it', async () => {
  const sendBooks = async () => {
    const results: EmailResult[] = [];
    const onEmail = (result: EmailResult) => results.push(result);
    await sendOtherEmails({ ...world, composers: [booksSealEmail], onEmail });
    return results;
  };
  expect(await sendBooks()).toEqual([]);
  await world.closeBooks('2026-07');
  expect(await sendBooks()).toMatchObject([{ email: { kind: 'books_seal', month: '2026-07' }, status: 'sent' }]);
  expect(await sendBooks()).toEqual([]);
  const [name = ''] = readdirSync(outbox()).filter((each) => each.startsWith('books-seal.'));
  const mail = await simpleParser(readFileSync(join(outbox(), name)));
  const [{ seal = '', record = '' } = {}] = await world.sql<{ seal: string; record: string }>(
    'SELECT seal, record FROM book_closes',
  );
  expect(mail.to).toMatchObject({ text: '"Auditor" <auditor@protection.example>' });
  expect(mail.subject).toBe(`[SANDBOX] Seal of the books of July 2026: ${seal.slice(0, 16)}`);
  const text = mail.text ?? '';
  const said = `${text.slice(text.search(/^reckoner books \d/m)).trimEnd()}\n`;
  expect(said).toBe(record);
  expect(createHash('sha256').update(said).digest('hex')).toBe(seal);
});

describe('a seal that is signed', () => {
  const other = sealKeyOf(newSealPem());
  /** Closes a month with a key and gives the plain text of the letter, and its attachment. */
  async function letterOf(instant: string, sealKey: SealKey) {
    world.at(instant);
    Object.assign(world.environment, { sealKey });
    await world.close();
    const before = new Set(emails());
    expect(await send()).toMatchObject([{ status: 'sent' }]);
    const name = emails().find((each) => !before.has(each)) ?? '';
    const { text = '', attachments } = await simpleParser(readFileSync(join(outbox(), name)));
    return { text, attachments };
  }

  test('is told as a signed note, in the text and as a file, with the key to check it by', async () => {
    await startOver(world);
    await world.partners([partner()]);
    await world.rows([quote()]);
    const { text, attachments } = await letterOf('2026-08-01T10:00:00Z', SEAL_KEY);
    const [{ record = '', ...signature } = {}] = await world.sql<SealSignature & { record: string }>(
      `SELECT record, key_name, public_key, signature FROM seals JOIN seal_signatures ON name = month`,
    );
    const note = noteOf(record, signature as SealSignature);
    expect(text.slice(text.search(/^reckoner seal \d/m)).trimEnd()).toBe(note.trimEnd());
    expect(attachments.map(({ filename, content }) => [filename, content.toString()])).toEqual([
      ['seal-2026-07.note.txt', note],
    ]);
    expect(text).toContain(`\n  ${vkeyOf(signature as SealSignature)}\n`);
    expect(text).toMatch(/This is the first signed letter\. Compare this key with the operator by\ntelephone/);
    expect(text).not.toContain('NEW KEY');
  });

  test('by the key of the one before needs no warning; by another key it has one', async () => {
    const same = await letterOf('2026-09-01T12:00:00Z', SEAL_KEY);
    expect(same.text).not.toMatch(/first letter|NEW KEY/);
    const changed = await letterOf('2026-10-01T12:00:00Z', other);
    expect(changed.text).toMatch(
      /WARNING: the signature below was made with a NEW KEY\. The previous letter\nwas signed/,
    );
    expect(changed.text).not.toMatch(/first letter/);
  });
});
