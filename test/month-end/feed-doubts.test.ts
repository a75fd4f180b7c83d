/** Finance hears of doubts about a month before it ends and when it stops, each with the link that accepts it. */
import { beforeEach, expect, test } from 'vitest';
import { acceptDoubts, readNextFeeds } from '../../src/close/close.ts';
import type { Month } from '../../src/month.ts';
import { whenTwoWorkingDaysAreLeft } from '../../src/month-end/emails/feed-doubts.ts';
import { sendEmails } from '../../src/month-end/month-end.ts';
import type { MailServer } from '../support/mail-server.ts';
import { freshMailWorld } from '../support/mail-world.ts';
import { partner, quote, type World } from '../support/world.ts';

let server: MailServer;
let world: World;
freshMailWorld((opened) => {
  ({ world, server } = opened);
});

const sold = (partner_id: string, day: string) => quote({ partner_id, accepted_at: `${day}T12:00:00Z` });

/** p-1, p-2 and p-3 had rows in July, which were recorded in July; July is closed. */
beforeEach(async () => {
  world.settings = { ...world.settings, allow_empty: false };
  await world.partners(
    ['p-1', 'p-2', 'p-3'].map((partner_id) => partner({ partner_id, name: `Partner ${partner_id}` })),
  );
  world.at('2026-07-20T12:00:00Z');
  await world.rows(['p-1', 'p-2', 'p-3'].map((id) => sold(id, '2026-07-15')));
  world.at('2026-08-01T12:00:00Z');
  await world.close();
  server.mails.length = 0;
});

async function mailsAt(instant: string): Promise<string[]> {
  world.at(instant);
  server.mails.length = 0;
  await sendEmails(world, {});
  return server.mails.map(({ parsed }) => parsed.subject ?? '').filter((subject) => subject.includes('August'));
}
/** The e-mail about the feeds. A letter about a checkpoint may be sent beside it. */
const text = () =>
  (server.mails.findLast(({ parsed }) => parsed.subject?.includes('August'))?.parsed.text ?? '').replaceAll(
    /\s+/g,
    ' ',
  );

test('two working days of a month are left on the last or last but one Monday to Friday before', () => {
  const days = { '2026-07': '30', '2026-08': '28', '2026-01': '29', '2026-02': '26', '2026-05': '28', '2026-11': '27' };
  for (const [month, day] of Object.entries(days)) {
    expect(whenTwoWorkingDaysAreLeft(month as Month)).toBe(`${month}-${day}`);
  }
});

test('when two working days are left, one mail names the feeds that are missing', async () => {
  await world.rows([sold('p-1', '2026-08-01')]);
  expect(await mailsAt('2026-08-27T23:00:00Z')).toEqual([]);
  expect(await mailsAt('2026-08-28T12:00:00Z')).toEqual(['[SANDBOX] August 2026 ends soon: 2 feeds are in doubt']);
  expect(text()).toContain('August 2026 ends on 31 August 2026.');
  expect(text()).toContain(
    '- Partner p-2 (p-2) has no rows, but had rows in each of the last closed months. Accept it, if it is right ' +
      'http://127.0.0.1:8080/console/actions/feed.accept?partnerId=p-2&month=2026-08',
  );
  expect(await mailsAt('2026-08-28T12:10:00Z')).toEqual([]);
  expect(await mailsAt('2026-08-31T12:00:00Z')).toEqual([]);
});

test('before the end, rows that may repeat others are named with the page that decides them', async () => {
  const rows = ['p-1', 'p-2', 'p-3'].map((id) => sold(id, '2026-08-01'));
  await world.rows(rows);
  expect(await world.rows([{ ...rows[0], quote_id: 'again' }])).toMatchObject({ accepted: 0, held: 1 });
  expect(await mailsAt('2026-08-28T12:00:00Z')).toEqual(['[SANDBOX] August 2026 ends soon: 1 feed is in doubt']);
  expect(text()).toContain(
    '- 1 row of p-1 may repeat sales and is not recorded. See them and decide http://127.0.0.1:8080/console/queue/rows?partner=p-1',
  );
});

test('before the end, a feed that usually comes after the end is not named', async () => {
  await world.partners([partner({ partner_id: 'p-4', name: 'Partner p-4' })]);
  await world.rows(['p-1', 'p-2', 'p-3'].map((id) => sold(id, '2026-08-01')));
  // p-4 sends its rows of a month after the month.
  world.at('2026-09-01T12:00:00Z');
  await world.rows([sold('p-4', '2026-07-05'), sold('p-4', '2026-08-05')]);
  await world.close();
  world.at('2026-09-05T12:00:00Z');
  await world.rows(['p-1', 'p-2', 'p-3'].map((id) => sold(id, '2026-09-01')));
  world.at('2026-09-30T12:00:00Z');
  await sendEmails(world, {});
  const feeds = await world.database.reading((tx) => readNextFeeds(tx, world));
  expect(feeds?.doubts).toMatchObject([{ partner_id: 'p-4', kind: 'missing' }]);
  expect(await world.sql(`SELECT day FROM emails WHERE kind = 'feed_doubts'`)).toEqual([]);
});

test('a month that stops is mailed once, and again when another doubt stops it, but not when one is gone', async () => {
  await world.rows([sold('p-1', '2026-08-01')]);
  expect(await mailsAt('2026-09-01T12:00:00Z')).toEqual(['[SANDBOX] August 2026 is not closed: 2 feeds are in doubt']);
  expect(text()).toContain('the next hourly run closes the month');
  expect(await mailsAt('2026-09-01T12:10:00Z')).toEqual([]);
  await world.database.transaction((tx) =>
    acceptDoubts(tx, world, { month: '2026-08' as Month, partnerId: 'p-2', reason: 'no sales' }),
  );
  expect(await mailsAt('2026-09-01T13:00:00Z')).toEqual([]);
  const delivery = [1, 2, 3].map((day) => sold('p-1', `2026-08-0${day}`));
  await world.rows(delivery);
  await world.rows(delivery.map((row, nth) => ({ ...row, quote_id: `x-${nth}`, enrollment_id: `x-${nth}` })));
  expect(await mailsAt('2026-09-01T14:00:00Z')).toEqual(['[SANDBOX] August 2026 is not closed: 2 feeds are in doubt']);
  expect(text()).toContain('Partner p-1 (p-1) delivered the same 3 rows of 21.00 USD twice');
  expect(text()).toContain('Partner p-3 (p-3) has no rows');
  expect(text()).not.toContain('Partner p-2');
});

test('a month without rows is mailed with the link that closes it', async () => {
  expect(await mailsAt('2026-09-01T12:00:00Z')).toEqual(['[SANDBOX] August 2026 is not closed: it has no rows']);
  expect(text()).toContain('http://127.0.0.1:8080/console/actions/month.close?month=2026-08&allowEmpty=yes');
});

test('a mail that waits says what is in doubt when it is sent, and is withdrawn if nothing is', async () => {
  await world.rows([sold('p-1', '2026-08-01'), sold('p-2', '2026-08-01')]);
  const { mail_from } = world.settings;
  world.settings = { ...world.settings, mail_from: '' };
  expect(await mailsAt('2026-09-01T12:00:00Z')).toEqual([]);
  world.settings = { ...world.settings, mail_from };
  await world.rows([sold('p-3', '2026-08-02')]);
  await world.close();
  expect(await mailsAt('2026-09-01T13:00:00Z')).not.toContain('not closed');
  expect(await world.sql(`SELECT status, reason FROM emails WHERE kind = 'feed_doubts'`)).toEqual([
    { status: 'withdrawn', reason: 'the month is closed, or nothing about it is in doubt now' },
  ]);
});

test('a mail lists fifty doubts, and counts the others', async () => {
  const ids = Array.from({ length: 60 }, (_, nth) => `q-${String(nth).padStart(2, '0')}`);
  await world.rows(['p-1', 'p-2', 'p-3'].map((id) => sold(id, '2026-08-01')));
  await world.partners(ids.map((partner_id) => partner({ partner_id, name: `Partner ${partner_id}` })));
  await world.rows(ids.flatMap((id) => [sold(id, '2026-07-01'), sold(id, '2026-08-01')]));
  world.at('2026-09-01T12:00:00Z');
  await world.close();
  await world.rows(['p-1', 'p-2', 'p-3'].map((id) => sold(id, '2026-09-01')));
  world.at('2026-10-01T12:00:00Z');
  server.mails.length = 0;
  await sendEmails(world, {});
  const mail = server.mails.find(({ parsed }) => parsed.subject?.includes('not closed'));
  expect(mail?.parsed.subject).toBe('[SANDBOX] September 2026 is not closed: 60 feeds are in doubt');
  expect(mail?.parsed.text?.match(/has no\s+rows/g)).toHaveLength(50);
  expect(mail?.parsed.text).toContain('And 10 more.');
});
