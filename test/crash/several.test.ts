/** kill -9 of a rerun of forty documents of two months: nothing or all of it is done, and each partner gets one e-mail. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { killed, type Ran, reckoner } from '../support/program.ts';
import { seeded } from '../support/random.ts';
import { someOf, times } from '../support/sweep.ts';
import { tally } from '../support/tally.ts';
import { type KeptWorld, openWorld, partner, quote, type World } from '../support/world.ts';

const PARTNERS = Array.from({ length: 40 }, (_, at) => `p-${at + 1}`);
const NUMBERS = PARTNERS.map((_, at) => `INV-2026-${String(at + 1).padStart(6, '0')}`);
const RERUN = ['invoice', 'rerun', ...NUMBERS];
const { random, seed } = seeded();
let kept: KeptWorld;
let mail: MailServer;
let world: World;
let survived = 0;

const run = (args: readonly string[], failpoint?: string): Promise<Ran> =>
  reckoner(['--json', ...args], { env: environment(failpoint) });
const environment = (failpoint?: string) => ({
  ...{ RECKONER_HOME: world.home, DATABASE_URL: world.databaseUrl, RECKONER_NOW: '2026-09-02T10:00:00Z' },
  ...{ SMTP_URL: mail.url, ...(failpoint && { RECKONER_FAILPOINT: failpoint }) },
});

beforeAll(async () => {
  mail = await startMailServer();
  world = await openWorld();
  world.at('2026-09-01T10:00:00Z');
  await world.partners(
    PARTNERS.map((partner_id) =>
      partner({ partner_id, invoicing_contact: { name: '', email: `${partner_id}@partner.example`, cc: [] } }),
    ),
  );
  // Twenty documents of each month.
  const { rejected } = await world.rows(
    PARTNERS.map((partner_id, at) =>
      quote({ partner_id, accepted_at: `2026-0${at < 20 ? 7 : 8}-10T12:00:00Z`, quote_id: `q-${at}` }),
    ),
  );
  expect(rejected).toBe(0);
  configure();
  expect((await run(['close'])).status).toBe(0);
  const addressed = { line1: '9 New Street', line2: '', city: 'Boulder', region: 'CO', postal_code: '80302' };
  await world.partners(
    PARTNERS.map((partner_id) =>
      partner({
        ...{ partner_id, invoicing_contact: { name: '', email: `${partner_id}@partner.example`, cc: [] } },
        address: { ...addressed, country: 'US' },
      }),
    ),
  );
  kept = await world.keep();
});
afterAll(async () => {
  tally('kills survived', 'of a rerun of forty documents', survived);
  await mail.close();
  await kept.discard();
});

function configure() {
  const { logo: _, ...issuer } = world.settings.issuer;
  writeFileSync(join(world.home, 'settings.json'), JSON.stringify({ ...world.settings, sections: undefined, issuer }));
}

beforeEach(async () => {
  mail.mails.length = 0;
  world = await openWorld({ from: kept });
  configure();
});
afterEach(async () => {
  const { checks } = await world.verify();
  const wrong = checks.filter(({ differences }) => differences.length > 0);
  await world.end();
  expect(wrong).toEqual([]);
});

const counts = () =>
  world.sql<{ voids: number; replacements: number; events: number }>(
    `SELECT (SELECT count(*)::int FROM voids) AS voids,
            (SELECT count(*)::int FROM documents WHERE replaces IS NOT NULL) AS replacements,
            (SELECT count(*)::int FROM audit_events WHERE action = 'invoice.rerun') AS events`,
  );
const NOTHING = [{ voids: 0, replacements: 0, events: 0 }];
const ALL = [{ voids: 40, replacements: 40, events: 2 }];

/** Whatever the kill left: the same command again ends, and what it does not send, the job sends. */
async function endsOnce() {
  const [left] = await counts();
  expect([NOTHING, ALL]).toContainEqual([left]);
  const again = await run(RERUN);
  if (left?.voids === 0) expect(again.status).toBe(0);
  else expect(again.json()).toMatchObject({ error: { code: 'document_void' } });
  expect((await run(['deliver'])).status).toBe(0);
  expect(await counts()).toEqual(ALL);
  const letters = new Map<string, Set<string>>();
  for (const { to, parsed } of mail.mails) {
    const [address = ''] = to;
    letters.set(address, (letters.get(address) ?? new Set()).add(parsed.messageId ?? ''));
  }
  expect(Object.fromEntries([...letters].map(([address, ids]) => [address, ids.size]))).toEqual(
    Object.fromEntries(PARTNERS.map((each) => [`${each}@partner.example`, 1])),
  );
}

const POINTS = ['rerun.issued:2', 'rerun.committed', 'delivery.sent', 'rerun.compared', 'rerun.issued'] as const;

test.each(someOf(POINTS, times({ few: 3, short: 3, long: POINTS.length })))(
  'a rerun of forty documents that is killed at %s ends as an undisturbed one',
  async (failpoint) => {
    expect((await run(RERUN, failpoint)).signal).toBe('SIGKILL');
    survived += 1;
    await endsOnce();
  },
);

test(`a rerun of forty documents that is killed at any instant ends as an undisturbed one (seed ${seed})`, async () => {
  if (await killed(RERUN, environment(), 2000 + random() * 4000)) survived += 1;
  await endsOnce();
});
