/** Erasing what the ledger knows of a person changes no fact, no checkpoint and no check. */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { personErase } from '../../src/actions/erase.ts';
import { previewAction, runAction } from '../../src/actions/run.ts';
import { verify } from '../../src/audit/verify.ts';
import { writeBackup } from '../../src/database/backup.ts';
import { openDatabase } from '../../src/database/database.ts';
import { checkBackup, restoreBackup } from '../../src/database/restore.ts';
import { repeatErasures } from '../../src/erasures/erase.ts';
import { readErasureFile } from '../../src/erasures/file.ts';
import { takeCheckpoint } from '../../src/log/checkpoint.ts';
import { readPayerAccounts } from '../../src/payments/payer-accounts.ts';
import { readUsers } from '../../src/people/users.sql.ts';
import { deactivateUser } from '../../src/people/users.ts';
import { type Books, inv, openBooks, refusalOf } from '../payments/books.ts';
import { settingsWith } from '../payments/settings.ts';
import { as } from '../support/approving.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { makeDatabase } from '../support/databases.ts';
import { GUARDS_OFF, GUARDS_ON } from '../support/guards.ts';
import { linesTo } from '../support/log-lines.ts';
import { partner } from '../support/world.ts';

const LEAVER = 'grace.hopper@issuer.example';
const PAYER = 'Konrad Zuse';
const IBAN = 'DE02120300000000202051';
const CONTACT = { name: 'Alan Turing', email: 'alan.turing@partner.example', cc: ['bletchley@partner.example'] };
const SUCCESSOR = { name: 'Joan Clarke', email: 'joan.clarke@partner.example', cc: [] };
const SECRETS = [LEAVER, 'Grace Hopper', PAYER, IBAN, CONTACT.name, CONTACT.email, 'bletchley@partner.example'];
const HEAD = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';

let books: Books;
let backup: string;

const asAdministrator = () => as(books, ADMINISTRATOR, {});
const erase = async (input: Record<string, unknown>) =>
  runAction(await asAdministrator(), personErase, { reason: 'requested', ...input });
const refused = async (input: Record<string, unknown>) => refusalOf(erase(input));

/** The lines of the log up to a number. */
const linesUpTo = (last: number) => books.database.reading((tx) => linesTo(tx, last));
const lastNumber = async () =>
  (await books.sql<{ last: number }>(`SELECT last_value::int AS last FROM log_numbers`))[0]?.last ?? 0;
const digest = (lines: readonly string[]) => createHash('sha256').update(lines.join('\n')).digest('hex');
const texts = async () =>
  (await books.sql<{ text: string }>('SELECT text FROM personal_texts')).map(({ text }) => text);
const knowing = async (secret: string) => (await texts()).filter((text) => text.includes(secret));
const kept = async (secret: string) => (await knowing(secret)).length;

/** The differences that `verify` finds, as `check: detail`. */
const found = async () => {
  const { checks } = await books.verify();
  return checks.flatMap(({ check, differences }) => differences.map(({ detail }) => `${check}: ${detail}`));
};

beforeAll(async () => {
  books = await openBooks({ bank_csv: settingsWith({}).bank_csv }, async (world) => {
    await world.partners([partner({ invoicing_contact: CONTACT })]);
  });
  await books.deliver();
  await books.partners([partner({ invoicing_contact: SUCCESSOR })]);
  await invite(books, ADMINISTRATOR);
  await invite(books, LEAVER, { roles: ['finance'], name: 'Grace Hopper' });
  await books.bankText(
    'bank.csv',
    `${HEAD}2026-10-14,1250.00,USD,0001,B-1,${inv(1)} from ${PAYER},${PAYER},${IBAN}\n` +
      `2026-10-14,33.00,USD,0001,B-2,deposit,Ada Byron,DE89370400440532013000\n`,
    { map: 'plain' },
  );
  await books.apply(1, inv(1));
  await takeCheckpoint(books.database, books.acting);
  backup = join(books.home, 'before.backup');
  await writeBackup(books.database, books.environment, backup);
});
afterAll(async () => {
  rmSync(backup);
  await books.end();
});

test('no line of the log has the name, address or account of a person', async () => {
  const log = (await linesUpTo(await lastNumber())).join('\n');
  for (const secret of SECRETS) expect(log.includes(secret), secret).toBe(false);
  for (const secret of SECRETS) expect(await kept(secret), secret).toBeGreaterThan(0);
  expect(log).toMatch(/\tusers\t|^users\t\d+\t\d+\tperson\t#[A-Za-z0-9+/]{43}=\t#/m);
  expect(await found()).toEqual([]);
});

test('no two facts have the same commitment, whoever they name', async () => {
  const [{ commitments, texts: different } = { commitments: 0, texts: 0 }] = await books.sql<Record<string, number>>(
    `SELECT count(*)::int AS commitments, count(DISTINCT text)::int AS texts FROM personal_texts`,
  );
  expect(commitments).toBeGreaterThan(different as number);
});

describe('an erasure is refused', () => {
  test('of an active user, and of a person of whom nothing is known', async () => {
    expect(await refused({ user: LEAVER })).toBe('user_active');
    expect(await refused({ user: 'nobody@issuer.example' })).toBe('nothing_to_erase');
    expect(await refused({ payerAccount: 'DE00' })).toBe('nothing_to_erase');
    expect(await refused({ payment: 999 })).toBe('payment_unknown');
    expect(await refused({ partnerContact: 'p-9' })).toBe('partner_unknown');
    expect(await refused({ user: LEAVER, payment: 1 })).toBe('argument_invalid');
    expect(await refused({})).toBe('argument_invalid');
  });

  test('of a payer whose payment is not applied yet', async () => {
    expect(await refused({ payerAccount: 'DE89370400440532013000' })).toBe('payment_unsettled');
  });
});

describe('the texts can be erased only with a record', () => {
  const attacked = async (statement: string, role: string) => {
    const client = new pg.Client(books.databaseUrl);
    await client.connect();
    try {
      await client.query(`BEGIN; SET LOCAL ROLE ${role}; ${statement}`);
      return 'allowed';
    } catch (error) {
      return (error as pg.DatabaseError).constraint ?? (error as Error).message;
    } finally {
      await client.end();
    }
  };
  test.each(['none', 'reckoner_app'])('by %s', async (role) => {
    for (const statement of [
      `DELETE FROM personal_texts`,
      `UPDATE personal_texts SET text = 'another'`,
      `TRUNCATE personal_texts`,
      `SELECT erase_texts(ARRAY(SELECT commitment FROM personal_texts))`,
    ]) {
      expect(await attacked(statement, role)).toMatch(/^personal_texts_append_only$|^permission denied/);
    }
  });
});

describe('after an erasure', () => {
  let before: { readonly last: number; readonly lines: string; readonly roots: unknown };
  const rootsTo = (last: number) =>
    books.sql(`SELECT size, encode(root, 'hex') AS root FROM log_checkpoints WHERE last_no <= ${last} ORDER BY size`);
  beforeAll(async () => {
    const last = await lastNumber();
    before = { last, lines: digest(await linesUpTo(last)), roots: await rootsTo(last) };
  });

  test('a preview says in which tables the person is named, and erases nothing', async () => {
    const { changes } = await previewAction(await asAdministrator(), personErase, {
      payerAccount: IBAN,
      reason: 'requested',
    });
    expect(changes.map(({ of }) => of)).toEqual([
      'bank_line_outcomes',
      'bank_lines',
      'payment_applications',
      'payment_sources',
      'payment_suggestions',
      'payments',
    ]);
    expect(await kept(PAYER)).toBeGreaterThan(3);
  });

  test('a payer and his account are unknown, and what he paid stays paid', async () => {
    const [payment] = (await books.payments()).filter(({ payer }) => payer.name === PAYER);
    await erase({ payerAccount: IBAN });
    expect(await kept(PAYER)).toBe(0);
    expect(await kept(IBAN)).toBe(0);
    expect(await books.payment(payment?.payment_id ?? 0)).toMatchObject({
      ...{ payer: { name: '(erased)', account: '(erased)' }, reference: '(erased)', unapplied: '0.00' },
      applications: [{ number: inv(1), evidence: { why: '(erased)' } }],
    });
    const accounts = await books.database.reading((tx) => readPayerAccounts(tx));
    expect(accounts.map(({ payer_account }) => payer_account)).not.toContain('(erased)');
  });

  test('a user who left has no name, and the events still say that a user did them', async () => {
    const context = await asAdministrator();
    await context.database.transaction((tx) => deactivateUser(tx, context, { login: LEAVER, reason: 'moved to Yale' }));
    await erase({ user: LEAVER.toUpperCase() });
    for (const secret of [LEAVER, 'Grace Hopper', 'moved to Yale']) expect(await kept(secret), secret).toBe(0);
    const users = await books.database.reading((tx) => readUsers(tx, { now: '2026-10-15T15:00:00Z' }));
    expect(users.map(({ login, name }) => [login, name])).toContainEqual(['(erased)', '(erased)']);
    // The address may be used again, by a new user.
    await invite(books, LEAVER, { roles: ['finance'] });
  });

  test('documents name no former contact, and the present one stays', async () => {
    await erase({ partnerContact: 'p-1' });
    for (const secret of [CONTACT.name, CONTACT.email]) expect(await knowing(secret)).toEqual([]);
    expect(await kept(SUCCESSOR.email)).toBeGreaterThan(0);
    const documents = await books.documents({ partnerId: 'p-1' });
    expect(new Set(documents.map((document) => JSON.stringify(document).includes('(erased)')))).toEqual(
      new Set([true]),
    );
  });

  test('every line and root of the log is as before, and every check passes', async () => {
    expect(digest(await linesUpTo(before.last))).toBe(before.lines);
    expect(await rootsTo(before.last)).toEqual(before.roots);
    expect(await found()).toEqual([]);
    const [event] = await books.sql<{ whole: string }>(
      `SELECT string_agg(personal(subject) || personal_json(details)::text, ' ') AS whole FROM audit_events
       WHERE action = 'person.erase'`,
    );
    for (const secret of SECRETS) expect(event?.whole).not.toContain(secret);
  });

  test('a backup from before still has the texts, and its restore erases them again', async () => {
    const erased = readErasureFile(books.environment) ?? [];
    expect(erased).toHaveLength((await books.sql('SELECT FROM erasures')).length);
    const target = await makeDatabase('erased', { template: inject('template') });
    const database = await openDatabase({ ...books.environment, databaseUrl: target.url });
    const knows = () =>
      database.reading(async (tx) => {
        const { rows } = await tx.client.query(`SELECT text FROM personal_texts WHERE strpos(text, '${PAYER}') > 0`);
        return rows.length;
      });
    try {
      const checked = await checkBackup(backup, { name: 'sandbox', logKey: undefined });
      await restoreBackup(database, checked, (tx) => verify(tx, undefined));
      expect(await knows()).toBeGreaterThan(0);
      const repeated = await database.transaction((tx) => repeatErasures(tx, books.acting, erased));
      expect(repeated).toBeGreaterThan(0);
      expect(await knows()).toBe(0);
      expect(await database.readingBeside((tx, beside) => verify(tx, undefined, { beside }))).toMatchObject({
        differences: 0,
      });
      expect(await database.transaction((tx) => repeatErasures(tx, books.acting, erased))).toBe(0);
    } finally {
      await database.close();
      await target.drop();
    }
  });
});

describe('verify names a personal text', () => {
  const damaged = async (damage: string, repair: string) => {
    await books.sql(`${GUARDS_OFF} ${damage}; ${GUARDS_ON}`);
    const differences = await found();
    await books.sql(`${GUARDS_OFF} ${repair}; ${GUARDS_ON}`);
    return differences.filter((each) => each.startsWith('personal_texts_kept_or_erased')).join('\n');
  };
  const SOME = `(SELECT login FROM users WHERE kind = 'program')`;

  test('that was deleted without a record', async () => {
    const moved = `CREATE TABLE taken AS SELECT * FROM personal_texts WHERE commitment = ${SOME};
      DELETE FROM personal_texts WHERE commitment = ${SOME}`;
    books.schema = undefined;
    expect(await damaged(moved, 'INSERT INTO personal_texts SELECT * FROM taken; DROP TABLE taken')).toMatch(
      /whose text is missing and was not erased/,
    );
  });

  test('that was replaced by another', async () => {
    const change = (text: string) => `ALTER TABLE personal_texts DROP CONSTRAINT personal_text_matches;
      UPDATE personal_texts SET text = '${text}' WHERE commitment = ${SOME}`;
    const add = `ALTER TABLE personal_texts ADD CONSTRAINT personal_text_matches
      CHECK (commitment = commitment_of(salt, text))`;
    const repair = `UPDATE personal_texts SET text = 'cron' WHERE commitment = ${SOME}; ${add}`;
    expect(await damaged(change('cronos'), repair)).toMatch(/whose text is another/);
  });

  test('that nothing names', async () => {
    const add = `INSERT INTO personal_texts VALUES (commitment_of('0123456789abcdef', 'x'), '0123456789abcdef', 'x')`;
    expect(await damaged(add, `DELETE FROM personal_texts WHERE text = 'x'`)).toMatch(/is kept, but nothing names it/);
  });
});
