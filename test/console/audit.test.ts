/** The console's audit and settings: events by filter and page, checkpoints, and nothing secret. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  checksScreen,
  packsScreen,
  readChecks,
  readPacks,
  settingsLogScreen,
} from '../../src/console/screens/audit.tsx';
import { checkpointScreen, readCheckpoint } from '../../src/console/screens/checkpoints.tsx';
import { readSettingsView, settingsScreen } from '../../src/console/screens/settings.tsx';
import type { Transaction } from '../../src/database/transaction.ts';
import { holdDocument } from '../../src/documents/hold.ts';
import { checkpoints } from '../../src/lists/checkpoints.ts';
import { clients } from '../../src/lists/clients.ts';
import { auditEvents, type ListedEvent } from '../../src/lists/events.ts';
import { cellOf, type List } from '../../src/lists/list.ts';
import { users } from '../../src/lists/users.ts';
import { readNote } from '../../src/log/note.ts';
import { noteClientUse, readClients } from '../../src/partners/clients.sql.ts';
import { createClient } from '../../src/partners/clients.ts';
import { recordEvents } from '../../src/people/audit-events.ts';
import type { Scope } from '../../src/people/scope.ts';
import { readSettingsChanges, recordSettingsChanges } from '../../src/people/settings-changes.ts';
import { readCheckpointLetters } from '../../src/reports/checkpoint-letters.sql.ts';
import { recordAttention, recordJobRun } from '../../src/reports/jobs.sql.ts';
import { ADMINISTRATOR, invite } from '../support/console.ts';
import { type ConsoleBooks, FINANCE, html, listed, openConsole, READER, SCRIPT, TODAY, textOf } from './books.ts';

const READS = { ...FINANCE, reader: READER };

let books: ConsoleBooks;
beforeAll(async () => {
  books = await openConsole();
  await recordSettingsChanges(books.database, books);
  await books.database.transaction((tx) =>
    holdDocument(tx, books.acting, { number: 'INV-2026-000003', reason: SCRIPT }),
  );
});
afterAll(() => books.end());

const reading = <Result>(read: (tx: Transaction) => Promise<Result>): Promise<Result> => books.database.reading(read);
const events = (asked: Readonly<Record<string, string>> = {}, scope: Scope = null) =>
  listed(books, auditEvents, asked, scope);
const actionsOf = async (...given: Parameters<typeof events>) =>
  (await events(...given)).rows.map(({ action, subject }) => `${action} ${subject}`);

describe('audit events', () => {
  test('are found by action, subject, person and day', async () => {
    expect(await actionsOf({ action: 'invoice.hold' })).toEqual(['invoice.hold INV-2026-000003']);
    expect(await actionsOf({ action: 'invoice' })).toEqual(['invoice.hold INV-2026-000003']);
    expect(await actionsOf({ subject: 'p-2' })).toEqual(['payment.record p-2', 'partner.create p-2']);
    expect(await actionsOf({ by: 'A Bookkeeper', action: 'invoice' })).toEqual(['invoice.hold INV-2026-000003']);
    expect(await actionsOf({ by: 'nobody' })).toEqual([]);
    expect(await actionsOf({ from: '2026-09-01', to: '2026-09-01', action: 'month' })).toEqual(['month.close 2026-08']);
  });

  test('are read page by page, each once, latest first', async () => {
    const { actor } = books;
    const now = books.environment.now().toISO();
    const many = Array.from({ length: 120 }, (_, at) => ({ action: 'test.page', subject: `${at}`, details: {}, now }));
    await books.database.transaction((tx) => recordEvents(tx, actor, many));
    const subjects: string[] = [];
    for (let after: string | null = ''; after !== null; ) {
      const page = await events({ action: 'test.page', after });
      subjects.push(...page.rows.map(({ subject }) => subject));
      after = page.next;
    }
    expect(subjects).toEqual(many.map(({ subject }) => subject).reverse());
  });

  test('of a reader of one partner are those of it and of its documents', async () => {
    const { rows: own } = await events({}, ['p-2']);
    expect(own.map(({ action, subject }) => `${action} ${subject}`)).toEqual([
      'invoice.hold INV-2026-000003',
      'payment.record p-2',
      'partner.create p-2',
    ]);
    // Of a payment, which may concern several partners, only that it was recorded.
    expect(own[0]?.details).toEqual({ reason: SCRIPT });
    expect(own[1]?.details).toEqual({});
    expect(await actionsOf({ subject: 'p-1' }, ['p-2'])).toEqual([]);
  });

  test('show a reason like a script as text', async () => {
    const page = html((await events({ action: 'invoice' })).screen);
    expect(page).toContain('&lt;script>alert(1)');
    expect(page).not.toContain(SCRIPT);
  });

  test('say in words what was done, and where it came from if no user is known', async () => {
    const shown = html((await events({ action: 'invoice' })).screen);
    expect(shown).toContain('>Put a document on hold</a>');
    expect(shown).not.toMatch(/[a-z]+_[a-z]+: /);
    const [first] = (await events({ action: 'invoice' })).rows;
    const unknown = { ...(first as ListedEvent), by: 'root', os_user: 'root', via: 'job' };
    expect(cellOf(auditEvents, 'by', unknown, TODAY)).toBe('scheduled job');
    const changes = [{ field: 'console.link_hours', old: 24, new: null }];
    expect(cellOf(auditEvents, 'details', { ...unknown, details: { changes } }, TODAY)).toMatch(/: 24 → none$/);
  });
});

describe('checkpoints', () => {
  test('are those of the command, the latest first, each with what it closes', async () => {
    const letters = await reading(readCheckpointLetters);
    const view = await listed(books, checkpoints, { kind: 'month' });
    const months = letters.filter(({ closes }) => closes?.startsWith('month ')).reverse();
    expect(view.rows.map(({ size, root }) => [size, root])).toEqual(months.map(({ size, root }) => [size, root]));
    expect(view.rows.map(({ closes }) => closes)).toEqual(['month 2026-08', 'month 2026-07']);
    expect(textOf(view.screen)).toContain('August 2026');
    expect(html(view.screen)).toContain(`href="/console/audit/checkpoints/${months[0]?.size}"`);
  });

  test('show their note, the root and the checkpoint before', async () => {
    const [first, second] = await reading(readCheckpointLetters);
    const view = await reading((tx) => readCheckpoint(tx, String(second?.size)));
    expect(readNote(view.note)?.head).toMatchObject({ size: second?.size });
    expect(readNote(view.note)?.head.root.toString('base64')).toBe(second?.root);
    expect(view.previous?.size).toBe(first?.size);
    expect(html(checkpointScreen(view))).toContain(`href="/console/audit/checkpoints/${first?.size}"`);
    expect(textOf(checkpointScreen(view))).toContain(second?.root);
    for (const size of ['1', '2026-08', "'; DROP TABLE log_checkpoints", '\0'])
      await expect(reading((tx) => readCheckpoint(tx, size))).rejects.toMatchObject({ code: 'argument_invalid' });
  });
});

test('the checks say when verify ran last and what it found', async () => {
  const never = await reading((tx) => readChecks(tx));
  expect(textOf(checksScreen(never, READS))).toContain('The nightly checks have not run yet.');
  const at = '2026-10-15T02:00:00Z';
  await books.database.transaction(async (tx) => {
    await recordJobRun(tx, { job: 'verify', startedAt: at, finishedAt: at, exitStatus: 4 });
    await recordAttention(tx, {
      job: 'verify',
      items: [{ item: 'log_derived_again', count: 3 }],
      now: at,
      againAfterHours: 20,
    });
  });
  const found = await reading((tx) => readChecks(tx));
  expect(checksScreen(found, READS).lead).toBe('verify found differences');
  expect(textOf(checksScreen(found, READS))).toMatch(/log_derived_again 3/);
});

test('packs name their contents, and everything of a year is offered', async () => {
  const seen = { user: { login: READER.login } as never, period: null, context: books as never };
  const packs = await reading((tx) => readPacks(tx, { month: '2026-07' }, seen));
  const shown = textOf(packsScreen(packs, READS));
  expect(shown).toContain('Journal entries by entry date');
  expect(shown).toContain('Every pack of every month in one .zip file');
});

test('settings show bank details as printed and no secret', async () => {
  const environment = { ...books.environment, smtpUrl: 'smtps://mailer:hunter2@mail.example:465' };
  const view = await reading((tx) => readSettingsView(tx, { ...books.seen(), environment }));
  const page = html(settingsScreen(view, FINANCE));
  expect(page).toContain('mail.example:465');
  expect(page).not.toContain('hunter2');
  expect(JSON.stringify(view)).not.toContain('hunter2');
  expect(textOf(settingsScreen(view, FINANCE))).toMatch(/Account holder .* Routing number/);
  expect(page).not.toContain(SCRIPT);
  const log = await reading((tx) => readSettingsChanges(tx));
  expect(textOf(settingsLogScreen(log))).toContain('Issuer, legal name');
});

test('users are listed with their roles, and clients with their last use', async () => {
  await invite(books, ADMINISTRATOR, { name: SCRIPT });
  await invite(books, 'kim@auditor.example', { roles: ['viewer'], partnerId: 'p-2' });
  const page = async (list: List) => (await listed(books, list)).screen;
  expect(textOf(await page(users))).toMatch(/kim@auditor.example viewer of p-2 /);
  expect(html(await page(users))).not.toContain(SCRIPT);
  const { environment, actor } = books;
  const now = environment.now();
  const { client_id: clientId, client_secret: secret } = await books.database.transaction((tx) =>
    createClient(tx, 'p-1', {}, { actor, environment: environment.name, now }),
  );
  const note = (at: string) =>
    books.database.transaction((tx) => noteClientUse(tx, { clientId, now: at, atMostEverySeconds: 300 }));
  const lastUse = async () => (await reading((tx) => readClients(tx, { now: now.toISO() })))[0]?.last_used_at;
  expect(textOf(await page(clients))).toMatch(/p-1 2026-10-15 never 1 valid/);
  await note('2026-10-15T15:00:00Z');
  await note('2026-10-15T15:04:59Z');
  expect(await lastUse()).toMatch(/15:00:00/);
  await note('2026-10-15T15:05:01Z');
  expect(await lastUse()).toMatch(/15:05:01/);
  expect(html(await page(clients))).not.toContain(secret);
});
