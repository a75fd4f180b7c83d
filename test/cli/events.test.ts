/** Who did what: every command that changes something leaves an event, and a command that changes nothing leaves none, except an export. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';
import { job, command as reckoner } from '../support/program.ts';
import { partner, quote } from '../support/world.ts';

interface Event {
  readonly action: string;
  readonly subject: string;
  readonly claimed_by: string | null;
  readonly os_user: string;
  readonly host: string;
  readonly via: string;
}

let folder: string;
let database: OwnDatabase;
let owner: pg.Client;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-events-'));
  database = await makeDatabase('events');
  owner = new pg.Client(database.url);
  await owner.connect();
});
afterAll(async () => {
  await owner.end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

const env = (now: string) => ({ RECKONER_HOME: join(folder, 'home'), DATABASE_URL: database.url, RECKONER_NOW: now });

function written(file: string, content: unknown): string {
  const path = join(folder, file);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** The commands of a company's first weeks, in order, each with the events that it leaves. */
const STORY: readonly [
  args: string,
  now: string,
  ...events: (readonly [action: string, subject: string | RegExp])[],
][] = [
  ['init', '2026-07-01T10:00:00Z', ['database.migrate', /^\d/], ['settings.change', 'settings.json']],
  ['init', '2026-07-01T10:00:00Z'],
  ['migrate', '2026-07-01T10:00:00Z'],
  [
    'partner import PARTNERS',
    '2026-07-01T10:00:00Z',
    ['partner.import', 'partners.json'],
    ['partner.create', 'p-1'],
    ['partner.create', 'p-2'],
  ],
  ['partner import PARTNERS', '2026-07-01T10:00:00Z'],
  ['ledger import ROWS --dry-run', '2026-08-01T10:00:00Z'],
  ['ledger import ROWS', '2026-08-01T10:00:00Z', ['ledger.import', 'rows.ndjson']],
  ['ledger import ROWS', '2026-08-01T10:00:00Z'],
  ['close --dry-run', '2026-08-01T10:00:00Z'],
  ['close --no-deliver', '2026-08-01T10:00:00Z', ['month.close', '2026-07']],
  ['close --no-deliver', '2026-08-01T10:00:00Z'],
  [
    'deliver',
    '2026-08-01T10:00:00Z',
    ['settings.adopt', 'instructions'],
    ['delivery.run', '2 sent'],
    ['report.close', '2026-07'],
  ],
  ['deliver', '2026-08-01T10:00:00Z'],
  ['invoice resend INV-2026-000001', '2026-08-02T10:00:00Z', ['invoice.resend', 'INV-2026-000001']],
  [
    'invoice link INV-2026-000001 --rotate --reason r',
    '2026-08-02T10:00:00Z',
    ['invoice.link_rotate', 'INV-2026-000001'],
  ],
  [
    'invoice link INV-2026-000001 --revoke --reason r',
    '2026-08-02T10:00:00Z',
    ['invoice.link_revoke', 'INV-2026-000001'],
  ],
  ['invoice link INV-2026-000001', '2026-08-02T10:00:00Z'],
  ['invoice hold INV-2026-000001', '2026-08-02T10:00:00Z', ['invoice.hold', 'INV-2026-000001']],
  ['invoice release INV-2026-000001', '2026-08-02T10:00:00Z', ['invoice.release', 'INV-2026-000001']],
  [
    'invoice credit INV-2026-000001 --amount 1.00 --reason r',
    '2026-08-02T10:00:00Z',
    ['invoice.credit', 'INV-2026-000001'],
  ],
  ['invoice void INV-2026-000002 --reason r', '2026-08-02T10:00:00Z', ['invoice.void', 'INV-2026-000002']],
  ['invoice rerun --month 2026-07 --changed', '2026-08-02T10:00:00Z', ['invoice.rerun', /./]],
  ['invoice write-off INV-2026-000001 --reason r', '2026-08-02T10:00:00Z', ['invoice.write_off', 'INV-2026-000001']],
  [
    'payment record --amount 1 --currency USD --method wire --received-on 2026-08-02 --reference FT-1 --invoice INV-2026-000003',
    '2026-08-03T10:00:00Z',
    ['payment.record', 'INV-2026-000003'],
  ],
  ['client create p-1', '2026-08-03T10:00:00Z', ['client.create', /^c-/]],
  ['close 2026-08 --allow-empty', '2026-09-01T10:00:00Z', ['month.close', '2026-08'], ['report.close', '2026-08']],
  ['invoice list', '2026-09-01T10:00:00Z'],
  ['verify', '2026-09-01T10:00:00Z'],
  ['status', '2026-09-01T10:00:00Z'],
  ['invoice list --format csv', '2026-09-01T10:00:00Z', ['audit.export', 'invoice list']],
  ['report aging --format csv', '2026-09-01T10:00:00Z', ['audit.export', 'report aging']],
  ['export events --month 2026-07 --out OUT', '2026-09-01T10:00:00Z', ['audit.export', 'events 2026-07']],
  [
    'export all --month 2026-07 --to 2026-08 --out ALL',
    '2026-09-01T10:00:00Z',
    ['audit.export', 'all 2026-07 to 2026-08'],
  ],
  ['export proof --partner p-1 --month 2026-07 --out PROOF', '2026-09-01T10:00:00Z', ['audit.export', 'proof 2026-07']],
  ['backup BACKUP', '2026-09-01T10:00:00Z', ['backup.take', 'a.backup']],
];

async function eventsAfter(id: number): Promise<(Event & { event_id: number })[]> {
  const there = await owner.query(`SELECT to_regclass('audit_events') IS NOT NULL AS there`);
  if (!(there.rows[0] as { there: boolean }).there) return [];
  return (
    await owner.query(
      `SELECT *, personal(subject) AS subject, personal(claimed_by) AS claimed_by, personal_json(details) AS details
       FROM audit_events WHERE event_id > $1 ORDER BY event_id`,
      [id],
    )
  ).rows;
}

test('each command records its event, with the name given by --by', async () => {
  const rows = [quote(), quote({ partner_id: 'p-2' })].map((row) => `${JSON.stringify(row)}\n`).join('');
  const files: Record<string, string> = {
    PARTNERS: written('partners.json', [partner(), partner({ partner_id: 'p-2' })]),
    ROWS: written('rows.ndjson', rows),
    OUT: join(folder, 'pack'),
    ALL: join(folder, 'all.zip'),
    PROOF: join(folder, 'proof'),
    BACKUP: join(folder, 'a.backup'),
  };
  let last = 0;
  for (const [command, now, ...expected] of STORY) {
    const args = command.split(' ').map((word) => files[word] ?? word);
    const ran = await reckoner(['--by', 'Ada Lovelace', ...args], { env: env(now) });
    expect([command, ran.status, ran.stderr]).toEqual([
      command,
      expect.any(Number),
      expect.not.stringMatching(/failed:/),
    ]);
    expect([0, 4]).toContain(ran.status);
    const found = await eventsAfter(last);
    last = found.at(-1)?.event_id ?? last;
    expect([command, found.map(({ action, subject }) => [action, subject])]).toEqual([
      command,
      expected.map(([action, subject]) => [
        action,
        typeof subject === 'string' ? subject : expect.stringMatching(subject),
      ]),
    ]);
    for (const event of found) {
      expect(event).toMatchObject({
        claimed_by: 'Ada Lovelace',
        os_user: userInfo().username,
        host: hostname(),
        via: 'command',
      });
    }
  }
}, 600_000);

test('jobs record their events under their own names', async () => {
  const before = (await eventsAfter(0)).at(-1)?.event_id ?? 0;
  const settings = join(folder, 'home', 'settings.json');
  written('home/settings.json', { ...JSON.parse(readFileSync(settings, 'utf8')), allow_empty: true });
  expect(await job('month-close', { env: env('2026-10-01T10:00:00Z') })).toMatchObject({ status: 0 });
  expect(await eventsAfter(before)).toMatchObject([
    { action: 'settings.change', subject: 'settings.json', claimed_by: 'month-close', via: 'job' },
    { action: 'month.close', subject: '2026-09', claimed_by: 'month-close', via: 'job' },
    { action: 'report.close', subject: '2026-09', claimed_by: 'month-close', via: 'job' },
  ]);
}, 60_000);

test('events cannot be changed or deleted', async () => {
  for (const change of [
    'UPDATE audit_events SET claimed_by = NULL',
    'DELETE FROM audit_events',
    'TRUNCATE audit_events CASCADE',
  ]) {
    await expect(owner.query(change)).rejects.toMatchObject({ constraint: 'audit_events_append_only' });
  }
});

test('the event of an import has the SHA-256 of each file', async () => {
  const { rows } = await owner.query(`SELECT details FROM audit_events WHERE action = 'ledger.import'`);
  const sha256 = createHash('sha256')
    .update(readFileSync(join(folder, 'rows.ndjson')))
    .digest('hex');
  expect(rows).toMatchObject([{ details: { files: [join(folder, 'rows.ndjson')], sha256: [sha256] } }]);
});
