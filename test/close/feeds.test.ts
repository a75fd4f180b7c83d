/** Expected feeds: a month does not close without the rows of a partner that always has some, unless somebody says so. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { monthClose } from '../../src/actions/close.ts';
import { previewAction } from '../../src/actions/run.ts';
import { withCommands } from '../../src/cli/remedies.ts';
import { firstSettings } from '../../src/config/first-settings.ts';
import { reverseRows } from '../../src/documents/reverse-rows.ts';
import type { Refusal } from '../../src/errors/refusals.ts';
import type { Month } from '../../src/month.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import { command, job } from '../support/program.ts';
import { readStatus } from '../support/status.ts';
import { lenientPolicies, openWorld, partner, quote, type World } from '../support/world.ts';
import { refusalOf } from './refusal.ts';
import { startOver } from './start-over.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

/** p-1 and p-2 had rows in July and August, both closed; p-3 had some in August only. September is over. */
beforeEach(async () => {
  writeSettings(false);
  await startOver(world);
  await world.partners(
    ['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id, name: `Partner ${partner_id}` })),
  );
  world.at('2026-09-01T10:00:00Z');
  await world.rows([row('p-1', '07'), row('p-2', '07'), row('p-1', '08'), row('p-2', '08'), row('p-3', '08')]);
  expect(await world.close()).toEqual(['2026-07', '2026-08']);
  world.at('2026-10-01T10:00:00Z');
});

const row = (partner_id: string, month: string) => quote({ partner_id, accepted_at: `2026-${month}-15T12:00:00Z` });

function writeSettings(allow_empty: boolean | string[]): void {
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify({ ...firstSettings('sandbox'), allow_empty }));
  world.settings = { ...world.settings, allow_empty };
}

const closed = async () =>
  (await world.sql<{ month: string }>('SELECT month FROM closed_months ORDER BY month')).map(({ month }) => month);

/** What the event of a close says of feeds. */
const eventOf = async (month: string) =>
  (
    await world.sql<{ details: object }>(
      `SELECT details - '{program,schema,approvers,approvers_of_some,approval_rules}'::text[] AS details FROM audit_events
       WHERE action = 'month.close' AND subject = '${month}'`,
    )
  )[0]?.details;

const status = () => world.database.reading((tx) => readStatus(tx, world));

const env = (now: string) => ({ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: now });

test('a month without the rows of a partner that had some in each of the last two closed months stays open', async () => {
  await world.rows([row('p-1', '09')]);
  expect(await refusalOf(world.close())).toEqual({
    code: 'feeds_in_doubt',
    facts: {
      month: '2026-09',
      doubts: [
        {
          partner_id: 'p-2',
          name: 'Partner p-2',
          kind: 'missing',
          evidence: 'has no rows, but had rows in each of the last closed months',
        },
      ],
    },
  });
  expect(await closed()).toEqual(['2026-07', '2026-08']);
});

test('late rows are not the feed of the month: a partner that sent only rows of August is missing in September', async () => {
  await world.rows([row('p-1', '09'), row('p-2', '08')]);
  expect(await refusalOf(world.close())).toMatchObject({
    code: 'feeds_in_doubt',
    facts: { doubts: [{ partner_id: 'p-2' }] },
  });
});

test('it closes without the partner that the operator names, and the event keeps the name', async () => {
  await world.rows([row('p-1', '09')]);
  expect(await world.close('2026-09', { without: ['p-2'] })).toEqual(['2026-09']);
  expect(await eventOf('2026-09')).toEqual({ without: ['p-2'], empty: false });
  expect(await eventOf('2026-08')).toEqual({});
});

test('every missing partner must be named, and no other', async () => {
  await world.rows([row('p-3', '09')]);
  expect(await refusalOf(world.close('2026-09', { without: ['p-1'] }))).toMatchObject({
    code: 'feeds_in_doubt',
    facts: { doubts: [{ partner_id: 'p-2' }] },
  });
  for (const stranger of ['p-3', 'p-9']) {
    expect(await refusalOf(world.close('2026-09', { without: ['p-1', 'p-2', stranger] }))).toEqual({
      code: 'feed_not_in_doubt',
      facts: { month: '2026-09', partner_id: stranger, field: 'without' },
    });
  }
  expect(await closed()).toEqual(['2026-07', '2026-08']);
});

test('the command that a refusal names keeps the partners that were named already', async () => {
  world.at('2026-12-02T10:00:00Z');
  await world.partners([partner({ partner_id: 'p-4', name: 'Partner p-4' })]);
  const all = ['p-1', 'p-2', 'p-3'];
  await world.rows([...all.map((id) => row(id, '09')), ...all.map((id) => row(id, '10')), row('p-4', '11')]);
  await world.close('2026-09');
  await world.close('2026-10');
  let named: string[] = [];
  for (const asked of [[], ['p-2'], ['p-3', 'p-1']]) {
    const refused = await world.close('2026-11', { without: asked }).then(
      () => undefined,
      async (error: Refusal) => withCommands(error.message, error.remedies),
    );
    named = [...(refused ?? '').matchAll(/--without ([\w-]+)/g)].map(([, id]) => id as string);
    expect([...named].sort()).toEqual(['p-1', 'p-2', 'p-3']);
  }
  expect(await world.close('2026-11', { without: named })).toEqual(['2026-11']);
});

test('a preview heeds --without: it refuses one that has rows, and says that the month closes as given', async () => {
  await world.rows([row('p-1', '09')]);
  const asked = (...args: string[]) =>
    command(['close', '2026-09', '--dry-run', ...args], { env: env('2026-10-01T10:00:00Z') });
  const refused = await asked('--without', 'p-1');
  expect([refused.status, refused.stderr]).toEqual([3, expect.stringContaining('Omit --without p-1')]);
  const given = await asked('--without', 'p-2');
  expect(given.stdout).not.toContain('It does not close automatically');
  expect(given.stdout).toContain('It closes as it is, as requested.');
});

test('an inactive partner is not expected', async () => {
  await world.rows([row('p-1', '09')]);
  await world.partners([partner({ partner_id: 'p-2', name: 'Partner p-2', active: false })]);
  expect(await world.close()).toEqual(['2026-09']);
});

test('a partner that skipped a month with the consent of the operator is expected again after two months with rows', async () => {
  await world.rows([row('p-1', '09')]);
  await world.close('2026-09', { without: ['p-2'] });
  world.at('2026-11-01T10:00:00Z');
  await world.rows([row('p-1', '10')]);
  expect(await world.close()).toEqual(['2026-10']);
  // The rows of September and October arrive late after all: the feed is a regular one again.
  world.at('2026-12-02T10:00:00Z');
  await world.rows([row('p-2', '09'), row('p-2', '10'), row('p-1', '11')]);
  expect(await refusalOf(world.close())).toMatchObject({
    code: 'feeds_in_doubt',
    facts: { month: '2026-11', doubts: [{ partner_id: 'p-2' }] },
  });
});

test('a month without any rows stays open even where nobody is expected, and --allow-empty closes it', async () => {
  await world.close('2026-09', { allowEmpty: true });
  expect(await eventOf('2026-09')).toEqual({ without: ['p-1', 'p-2'], empty: true });
  world.at('2026-11-01T10:00:00Z');
  expect(await refusalOf(world.close())).toEqual({ code: 'month_empty', facts: { month: '2026-10' } });
  expect(await world.close('2026-10', { allowEmpty: true })).toEqual(['2026-10']);
});

test('a month without any row closes only with --allow-empty, also the first one and without any partner', async () => {
  for (const partners of [[], ['p-1'], ['p-1', 'p-2']]) {
    await startOver(world);
    world.at('2026-10-01T10:00:00Z');
    await world.partners(partners.map((partner_id) => partner({ partner_id, name: partner_id })));
    expect(await world.close(undefined)).toEqual([]);
    for (const asked of [{}, { firstMonth: '2026-07' }, { firstMonth: '2026-08' }]) {
      expect(await refusalOf(world.close('2026-08', asked))).toMatchObject({ code: 'month_empty' });
    }
    expect(await closed()).toEqual([]);
    expect((await world.preview('2026-08' as Month)).feeds).toMatchObject([{ empty: true }]);
    expect(await world.close('2026-08', { allowEmpty: true })).toEqual(['2026-08']);
    expect(await eventOf('2026-08')).toEqual({ without: [], empty: true });
  }
});

test('no partner that is named stands in for --allow-empty, nor do partners that all left', async () => {
  const refused = await refusalOf(world.close('2026-09', { without: ['p-1', 'p-2'] }));
  expect(refused).toEqual({ code: 'month_empty', facts: { month: '2026-09' } });
  await world.partners(
    ['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id, name: `Partner ${partner_id}`, active: false })),
  );
  expect(await refusalOf(world.close())).toEqual({ code: 'month_empty', facts: { month: '2026-09' } });
  expect(await closed()).toEqual(['2026-07', '2026-08']);
});

test('after a month that was closed empty by mistake, the months without rows close with the one that has them', async () => {
  await startOver(world);
  await world.partners([partner({ partner_id: 'p-1', name: 'Partner p-1' })]);
  await world.close('2026-03', { allowEmpty: true });
  await world.rows([row('p-1', '07')]);
  expect(await refusalOf(world.close())).toEqual({ code: 'month_empty', facts: { month: '2026-04' } });
  // A later month that is refused closes none of them.
  expect(await refusalOf(world.close('2026-06'))).toEqual({ code: 'month_empty', facts: { month: '2026-06' } });
  expect(await closed()).toEqual(['2026-03']);
  expect(await world.close('2026-07')).toEqual(['2026-04', '2026-05', '2026-06', '2026-07']);
});

test('an earlier month without rows does not close silently with a later one if it lacks an expected feed', async () => {
  world.at('2026-11-01T10:00:00Z');
  await world.rows([row('p-1', '10'), row('p-2', '10')]);
  const refused = await refusalOf(world.close('2026-10', { allowEmpty: true }));
  expect(refused).toEqual({ code: 'month_empty', facts: { month: '2026-09' } });
  writeSettings(true);
  expect(await world.close('2026-10')).toEqual(['2026-09', '2026-10']);
});

test('allow_empty of the settings names seasonal partners, and true expects no feed', async () => {
  await world.rows([row('p-1', '09')]);
  writeSettings(['p-2']);
  expect(await world.close()).toEqual(['2026-09']);
  expect(await eventOf('2026-09')).toEqual({ without: ['p-2'], empty: false });
  world.at('2026-11-01T10:00:00Z');
  writeSettings(true);
  expect(await world.close()).toEqual(['2026-10']);
});

test('a preview shows what is missing, of a running month too, and is not refused', async () => {
  await world.rows([row('p-1', '09')]);
  const { months, feeds } = await world.preview('2026-09' as Month);
  expect(months.map((each) => each.month)).toEqual(['2026-09']);
  expect(feeds[0]?.expected.map(({ partner_id, arrived }) => [partner_id, arrived])).toEqual([
    ['p-1', true],
    ['p-2', false],
  ]);
  const ran = await command(['close', '2026-09', '--dry-run'], { env: env('2026-09-20T10:00:00Z') });
  expect(ran.status).toBe(0);
  expect(ran.stdout).toContain('It does not close automatically.');
  expect(ran.stdout).toContain("Close without them with 'reckoner close 2026-09 --without p-2' if they had no sales.");
});

test('what a user confirms or approves is refused as the close is, unlike a dry run', async () => {
  await world.rows([row('p-1', '09')]);
  const shown = (month: string, more: object = {}) =>
    refusalOf(previewAction(world, monthClose, { month: month as Month, ...more }));
  for (const month of ['2026-09', '2026-10']) {
    const refused = await shown(month);
    expect([month, refused]).toEqual([month, await refusalOf(world.close(month))]);
  }
  expect(
    (await previewAction({ ...world, forecast: true }, monthClose, { month: '2026-09' as Month })).report,
  ).toMatchObject({
    text: expect.stringContaining('It does not close automatically.'),
    remedies: [{ action: 'month.close', input: { month: '2026-09', without: ['p-2'] } }],
  });
  const given = await previewAction(world, monthClose, { month: '2026-09' as Month, without: ['p-2'] });
  expect(given.changes).toContainEqual({ of: '2026-09', field: 'status', before: null, after: 'closed' });
});

test('the status lists the expected feeds before the month ends, and asks for a decision after it', async () => {
  await world.rows([row('p-1', '09')]);
  world.at('2026-09-20T10:00:00Z');
  const asked = async () => (await status()).attention.filter((each) => each.startsWith('2026-09'));
  expect((await status()).feeds).toMatchObject({ month: '2026-09', due: false });
  expect(await asked()).toEqual([]);
  const shown = await command(['status'], { env: env('2026-09-20T10:00:00Z') });
  expect(shown.stdout).toContain('Feeds        1 of 2 expected for 2026-09 arrived; not here yet: p-2');
  world.at('2026-10-01T10:00:00Z');
  expect(await asked()).toEqual([
    '2026-09 is waiting. p-2 (Partner p-2) has no rows, but had rows in each of the last closed months. Close without ' +
      "them with 'reckoner close 2026-09 --without p-2' if they had no sales.",
  ]);
});

test('the hourly job prints a stop when it begins, when a doubt is added, and once a day; finance decides, and it goes on', async () => {
  await world.rows([row('p-1', '09')]);
  const runs: [string, number | null, string][] = [];
  const run = async (instant: string) => {
    const ran = await job('month-close', { env: env(instant) });
    runs.push([instant, ran.status, ran.stdout]);
  };
  await run('2026-10-01T11:07:00Z');
  await run('2026-10-01T12:07:00Z');
  expect(await closed()).toEqual(['2026-07', '2026-08']);
  const delivery = [1, 2, 3].map((day) => quote({ partner_id: 'p-3', accepted_at: `2026-09-0${day}T12:00:00Z` }));
  await world.rows(delivery);
  await world.rows(delivery.map((sold, nth) => ({ ...sold, quote_id: `x-${nth}`, enrollment_id: `x-${nth}` })));
  await run('2026-10-01T13:07:00Z');
  await run('2026-10-02T11:07:00Z');
  const missing = 'p-2 (Partner p-2) has no rows, but had rows in each of the last closed months.';
  const stop = (doubts: string, named: string, when: string) =>
    `2026-09 was not closed. ${doubts} Import what is missing. ${named} if ${when}.\n`;
  const first = stop(missing, "Close without them with 'reckoner close 2026-09 --without p-2'", 'they had no sales');
  const imports = await world.sql<{ event_id: string }>(
    `SELECT event_id FROM audit_events WHERE action = 'ledger.import' ORDER BY event_id DESC LIMIT 2`,
  );
  const [again, delivered] = imports.map(({ event_id }) => `2026-10-01 10:00 UTC (event ${event_id})`);
  const twice =
    'p-3 (Partner p-3) delivered the same 3 rows of 21.00 USD twice under different ids, ' +
    `at ${delivered} and at ${again}.`;
  const second = stop(
    `${missing} ${twice}`,
    "Close it as it is with 'reckoner close 2026-09 --without p-2 --accept-feed p-3'",
    'the rows are right',
  );
  expect(runs).toEqual([
    ['2026-10-01T11:07:00Z', 4, first],
    ['2026-10-01T12:07:00Z', 0, ''],
    ['2026-10-01T13:07:00Z', 4, second],
    ['2026-10-02T11:07:00Z', 4, second],
  ]);
  const emails = await world.sql(`SELECT status, recipients FROM emails WHERE kind = 'feed_doubts'`);
  const sent = { status: 'sent', recipients: ['finance@protection.example', 'operations@protection.example'] };
  expect(emails).toEqual([sent, sent]);
  for (const id of ['p-2', 'p-3']) {
    const accepted = await command(['feed', 'accept', id, '2026-09', '--reason', 'confirmed'], {
      env: env('2026-10-02T11:30:00Z'),
    });
    expect([accepted.status, accepted.stderr]).toEqual([0, '']);
  }
  await run('2026-10-02T12:07:00Z');
  expect(runs.at(-1)).toEqual(['2026-10-02T12:07:00Z', 0, '']);
  expect(await closed()).toEqual(['2026-07', '2026-08', '2026-09']);
});

test('the e-mail is withdrawn if the month was closed before it was sent', async () => {
  await world.rows([row('p-1', '09')]);
  const { mail_from, ...settings } = world.settings;
  await sendEmails({ ...world, settings: { ...settings, mail_from: '' } }, {});
  await world.close('2026-09', { without: ['p-2'] });
  await sendEmails({ ...world, settings: { ...settings, mail_from } }, {});
  expect(await world.sql(`SELECT status, reason FROM emails WHERE kind = 'feed_doubts'`)).toEqual([
    { status: 'withdrawn', reason: 'the month is closed, or nothing about it is in doubt now' },
  ]);
});

test('months that are complete are delivered before the refusal of a later one', async () => {
  await world.rows([row('p-1', '09'), row('p-2', '09')]);
  const ran = await command(['--json', 'close'], { env: env('2026-11-01T10:00:00Z') });
  expect(ran.status).toBe(4);
  expect(ran.json()).toMatchObject({ error: { code: 'month_empty', month: '2026-10' } });
  expect(await closed()).toContain('2026-09');
  expect(await world.sql(`SELECT FROM emails WHERE document_id IS NOT NULL AND status <> 'sent'`)).toEqual([]);
});

test('a feed is not here yet until the day by which it came in the months before, and missing from then on', async () => {
  await startOver(world);
  await world.partners(['p-1', 'p-2'].map((partner_id) => partner({ partner_id, name: `Partner ${partner_id}` })));
  for (const month of ['07', '08']) {
    const early = (partner_id: string) => quote({ partner_id, accepted_at: `2026-${month}-01T12:00:00Z` });
    world.at(`2026-${month}-02T10:00:00Z`);
    await world.rows([early('p-1')]);
    world.at(`2026-${month}-05T10:00:00Z`);
    await world.rows([early('p-2')]);
  }
  world.at('2026-09-01T10:00:00Z');
  await world.close();
  const states = async (now: string) => {
    world.at(now);
    return (await status()).feeds?.expected.map(({ partner_id, arrived, missing }) => [partner_id, arrived, missing]);
  };
  const [waiting, late] = [false, true];
  expect(await states('2026-09-02T10:00:00Z')).toEqual([
    ['p-1', false, waiting],
    ['p-2', false, waiting],
  ]);
  expect(await states('2026-09-03T10:00:00Z')).toEqual([
    ['p-1', false, late],
    ['p-2', false, waiting],
  ]);
  const shown = await command(['status'], { env: env('2026-09-03T10:00:00Z') });
  expect(shown.stdout).toContain('0 of 2 expected for 2026-09 arrived; missing: p-1; not here yet: p-2');
  await world.rows([quote({ partner_id: 'p-1', accepted_at: '2026-09-02T12:00:00Z' })]);
  expect(await states('2026-10-01T10:00:00Z')).toEqual([
    ['p-1', true, false],
    ['p-2', false, late],
  ]);
});

test('a reversal that finance records is not the feed of its partner', async () => {
  const [sold] = await world.sql<{ entry_id: string }>(
    `SELECT entry_id FROM ledger_rows WHERE partner_id = 'p-2' AND month = '2026-08'`,
  );
  world.at('2026-09-20T10:00:00Z');
  await world.partners([partner({ partner_id: 'p-2', name: 'Partner p-2', policies: lenientPolicies() })]);
  await world.rows([row('p-1', '09')]);
  await world.database.transaction((tx) =>
    reverseRows(tx, world, { rows: [Number(sold?.entry_id)], reason: 'canceled' }),
  );
  world.at('2026-10-01T10:00:00Z');
  expect(await world.sql(`SELECT kind FROM ledger_rows WHERE partner_id = 'p-2' AND month = '2026-09'`)).toEqual([
    { kind: 'reversal' },
  ]);
  const { facts } = await refusalOf(world.close());
  expect(facts['doubts']).toMatchObject([{ partner_id: 'p-2', kind: 'missing' }]);
});
