/** The letters to the auditor about checkpoints: each sent once, and after a crash repeated with the same bytes. */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { simpleParser } from 'mailparser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Claims } from '../../src/database/claims.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { type Checkpoint, readCheckpoints } from '../../src/log/checkpoints.sql.ts';
import { noteOf, vkeyOf } from '../../src/log/note.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { readSignatureLines } from '../../src/log/signatures.sql.ts';
import { dueOtherEmails } from '../../src/mail/outbox.sql.ts';
import { type EmailResult, sendOtherEmails } from '../../src/mail/outbox.ts';
import { checkpointEmail } from '../../src/month-end/emails/checkpoint.ts';
import { startOver } from '../close/start-over.ts';
import { LOG_KEY, logKeyOf, newLogPem } from '../support/log-keys.ts';
import { openWorld, partner, quote, type World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  await world.partners([partner()]);
  await world.rows([quote()]);
});
afterAll(() => world.end());

const outbox = () => join(world.home, 'outbox');
const emails = () => readdirSync(outbox()).filter((name) => name.startsWith('checkpoint.'));
const withSettings = (changes: Partial<World['settings']>) => ({ settings: { ...world.settings, ...changes } });

async function send(changes: Partial<World> = {}): Promise<EmailResult[]> {
  const results: EmailResult[] = [];
  const onEmail = (result: EmailResult) => results.push(result);
  await sendOtherEmails({ ...world, ...changes, composers: [checkpointEmail], onEmail });
  return results;
}

/** Sends what is due, which must be one letter, and reads it. */
async function letter(changes: Partial<World> = {}) {
  const before = new Set(emails());
  expect(await send(changes)).toMatchObject([{ email: { kind: 'checkpoint' }, status: 'sent' }]);
  const name = emails().find((each) => !before.has(each)) ?? '';
  const { text = '', subject = '', to, attachments } = await simpleParser(readFileSync(join(outbox(), name)));
  return { text, subject, to, files: attachments.map(({ filename, content }) => [filename, content.toString()]) };
}

const checkpoints = (): Promise<Checkpoint[]> => world.database.reading((tx) => readCheckpoints(tx));
const closing = async (closes: string): Promise<Checkpoint> =>
  (await checkpoints()).find((each) => each.closes === closes) as Checkpoint;
const rootOf = ({ root }: Checkpoint) => root.toString('base64');

/** Begins again with one row of July. */
async function beginAgain(): Promise<void> {
  await startOver(world);
  await world.partners([partner()]);
  await world.rows([quote()]);
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
     WHERE kind = 'checkpoint'`,
    [raw],
  );
  await world.sql(`ALTER TABLE emails ENABLE TRIGGER emails_facts_stay`);
  return raw;
}

test('without an address no e-mail is queued', async () => {
  await world.close();
  expect(await send(withSettings({ auditor_email: '' }))).toEqual([]);
  expect(await world.sql('SELECT FROM emails WHERE document_id IS NULL')).toEqual([]);
});

test('an address that is set later gets the latest month, and from then on each', async () => {
  world.at('2026-09-01T12:00:00Z');
  await world.close();
  expect(await send(withSettings({ auditor_email: '' }))).toEqual([]);
  world.at('2026-09-20T12:00:00Z');
  expect((await letter()).subject).toContain('Checkpoint of August 2026');
  world.at('2026-10-01T12:00:00Z');
  await world.close();
  expect((await letter()).subject).toContain('Checkpoint of September 2026');
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
  expect(await send(withSettings({ auditor_email: '' }))).toMatchObject([
    { status: 'held', detail: 'settings.json has no auditor_email' },
  ]);
  const { size } = await closing('month 2026-07');
  expect(await send()).toMatchObject([{ email: { checkpoint_size: size }, status: 'sent' }]);
});

test('it names the month, its counts and totals, the number of facts and the root, and has the note as a file', async () => {
  const [name = ''] = emails();
  const { text = '', to, subject, attachments } = await simpleParser(readFileSync(join(outbox(), name)));
  const checkpoint = await closing('month 2026-07');
  expect(to).toMatchObject({ text: '"Auditor" <auditor@protection.example>' });
  expect(subject).toBe(`[SANDBOX] Checkpoint of July 2026: ${checkpoint.size} facts`);
  expect(text).toContain(`It closes July 2026. ${checkpoint.size} facts in the log`);
  expect(text).toContain(`Root\n${rootOf(checkpoint)}\n`);
  expect(text).toContain('Rows: 1\nOf which late: 0\nPartners with documents: 1\n');
  expect(text).toMatch(
    /^USD\nRows: 1 row\nSales: 10\.00 USD\nLess the partners' share: 3\.00 USD\nInvoiced: 7\.00 USD$/m,
  );
  expect(text).toMatch(/This is the first letter\./);
  const note = noteOf(checkpoint, []);
  expect(text).toContain(`\n\n${note.trimEnd()}\n\n`);
  expect(attachments.map(({ filename, content }) => [filename, content.toString()])).toEqual([
    [`checkpoint-${checkpoint.size}.note.txt`, note],
  ]);
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

test('the letter of a month names the books closed since the previous letter, that letter, and when the next one is due', async () => {
  await beginAgain();
  await world.close();
  await letter();
  world.at('2026-08-12T10:00:00Z');
  await world.closeBooks('2026-07');
  expect(await send()).toEqual([]);
  world.at('2026-09-01T12:00:00Z');
  await world.close();
  const { text } = await letter();
  const [july, books] = [await closing('month 2026-07'), await closing('books 2026-07')];
  expect(text).toContain(
    `Books closed since the previous letter:\n\nthe books of July 2026, checkpoint of ${books.size} facts,\n${rootOf(books)}\n`,
  );
  expect(text).toContain(`The previous letter is: checkpoint of ${july.size} facts,\n${rootOf(july)}. If`);
  expect(text).toMatch(/by the day shown:\n\n2026-10-02 the checkpoint of September 2026\n/);
});

test('with checkpoint_letters every, each daily checkpoint and each close of books has its letter too', async () => {
  const every = withSettings({ checkpoint_letters: 'every' });
  await beginAgain();
  await world.close();
  await letter(every);
  world.at('2026-08-12T10:00:00Z');
  await world.closeBooks('2026-07');
  const books = await letter(every);
  expect(books.subject).toContain('Checkpoint of the books of July 2026: ');
  expect(books.text).toMatch(
    /by the day shown:\n\n2026-08-13 the daily checkpoint\n\n2026-09-02 the checkpoint of August 2026\n/,
  );
  world.at('2026-08-13T10:00:00Z');
  await takeCheckpoint(world.database, world);
  expect((await letter(every)).subject).toMatch(/Checkpoint of 2026-08-13: \d+ facts$/);
  expect(await send(every)).toEqual([]);
});

describe('a letter of a log with a key', () => {
  const signing = (instant: string, key = LOG_KEY, before?: typeof LOG_KEY) => {
    world.at(instant);
    Object.assign(world.environment, { logKey: key, logKeyBefore: before });
  };
  const sign = () => signCheckpoints({ ...world, actor: world.actor });
  const closed = async (instant: string, ...keys: [key?: typeof LOG_KEY, before?: typeof LOG_KEY]) => {
    signing(instant, ...keys);
    await world.close();
    await sign();
    return letter();
  };

  test('waits for the signature, and is a signed note in the text and as a file, with the key to check it by', async () => {
    await beginAgain();
    signing('2026-08-01T10:00:00Z');
    await world.close();
    expect(await send()).toEqual([]);
    await sign();
    const { text, files } = await letter();
    const checkpoint = await closing('month 2026-07');
    const lines = await world.database.reading((tx) => readSignatureLines(tx, [checkpoint.size]));
    const note = noteOf(checkpoint, lines.get(checkpoint.size) ?? []);
    expect(note).toMatch(new RegExp(`\n\n— ${checkpoint.origin.replaceAll('.', '\\.')} \\S+\n$`));
    expect(text).toContain(`\n\n${note.trimEnd()}\n\n`);
    expect(files).toEqual([[`checkpoint-${checkpoint.size}.note.txt`, note]]);
    expect(text).toContain(`\n\n${vkeyOf({ name: checkpoint.origin, publicKey: LOG_KEY.publicKey })}\n`);
    expect(text).toMatch(/This is the first signed letter\. Confirm this key with the operator by\stelephone/);
    expect(text).not.toMatch(/new key|not signed/);
  });

  test('needs no warning if the key is that of the letter before', async () => {
    const { text } = await closed('2026-09-01T12:00:00Z');
    expect(text).not.toMatch(/first (signed )?letter|new key|not signed/);
  });

  test('warns of a new key, and says whether the key before signed it', async () => {
    const second = logKeyOf(newLogPem());
    const rotated = await closed('2026-10-01T12:00:00Z', second, LOG_KEY);
    expect(rotated.text).toMatch(
      /Warning: the signature below was made with a new key\..*That\s+key\s+signed\s+the\s+new\s+one\./s,
    );
    const lost = await closed('2026-11-01T13:00:00Z', logKeyOf(newLogPem()));
    expect(lost.text).toMatch(
      /new key.*That\s+key\s+did\s+not\s+sign\s+the\s+new\s+one:\s+the\s+previous\s+key\s+is\s+lost\./s,
    );
    expect(lost.text).not.toMatch(/first (signed )?letter/);
  });

  test('goes unsigned after an hour without the key, and says so', async () => {
    world.at('2026-12-01T12:00:00Z');
    Object.assign(world.environment, { logKey: undefined, logKeyBefore: undefined });
    await world.close();
    await sign();
    expect(await send()).toEqual([]);
    world.at('2026-12-01T13:00:01Z');
    expect((await letter()).text).toMatch(/Warning: this checkpoint is not signed, although the log has a key\./);
  });
});
