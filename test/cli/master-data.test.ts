/** How partners and settings changed: which field, from what to what, when and by whom. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { changesBetween, fieldsOf } from '../../src/people/field-changes.ts';
import { makeDatabase, type OwnDatabase } from '../support/databases.ts';
import { command as reckoner } from '../support/program.ts';
import { partner } from '../support/world.ts';

let folder: string;
let database: OwnDatabase;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reckoner-master-data-'));
  database = await makeDatabase('master_data');
});
afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

const home = () => join(folder, 'home');
async function run(args: string, by = 'Ada Lovelace') {
  const env = { RECKONER_HOME: home(), DATABASE_URL: database.url, RECKONER_NOW: '2026-07-01T10:00:00Z' };
  const ran = await reckoner(['--by', by, ...args.split(' ')], { env });
  expect([args, ran.status, ran.stderr]).toEqual([args, 0, '']);
  return ran;
}

const policy = { policy_id: 'parking', name: 'Parking', kind: 'insurance', partner_cut_rate: '0.30' };
async function importPartner(overrides: Record<string, unknown>, by?: string) {
  const file = join(folder, 'partners.json');
  writeFileSync(file, JSON.stringify([partner({ policies: [policy], ...overrides })]));
  return run(`partner import ${file}`, by);
}

test('an import tells of each partner which field changed, from what to what, and by whom', async () => {
  await run('init');
  await importPartner({});
  const address = { line1: '2 Quay', city: 'Boston', country: 'US' };
  const changed = { address, policies: [{ ...policy, partner_cut_rate: '0.25' }], tax_id: '12-3456789' };
  const { stdout } = await importPartner(changed, 'Grace Hopper');
  expect(stdout).toMatch(/^Partners: 0 new, 1 updated, 0 unchanged\.\n/);
  expect(stdout).toMatch(/p-1 +City +\S.* +Boston/);
  await importPartner(changed, 'Nobody');

  const [created, updated, ...more] = (await run('--json partner history p-1')).json() as Event[];
  expect(more).toEqual([]);
  expect(created).toMatchObject({ action: 'partner.create', claimed_by: 'Ada Lovelace' });
  expect(created?.changes).toContainEqual({ field: 'policies.parking.partner_cut_rate', old: null, new: '0.30' });
  expect(updated).toMatchObject({ action: 'partner.update', claimed_by: 'Grace Hopper' });
  expect(updated?.changes).toContainEqual({ field: 'policies.parking.partner_cut_rate', old: '0.30', new: '0.25' });
  expect(updated?.changes).toContainEqual({ field: 'tax_id', old: null, new: '12-3456789' });
  expect((await run('partner history p-1 --format csv')).stdout).toContain(
    'partner.update,policies.parking.partner_cut_rate,0.30,0.25,Grace Hopper',
  );
});

interface Event {
  readonly action: string;
  readonly claimed_by: string;
  readonly changes: readonly unknown[];
}

test('a changed bank account is recorded once, by the next command that may change something, and not by a dry run', async () => {
  const file = join(home(), 'settings.json');
  const settings = JSON.parse(readFileSync(file, 'utf8'));
  const { account_number: old } = settings.instructions.USD.wire;
  settings.instructions.USD.wire.account_number = '4400112233';
  writeFileSync(file, JSON.stringify(settings));
  const changes = async () => ((await run('--json settings history')).json() as Event[]).slice(1);

  await run('remind --dry-run');
  expect(await changes()).toEqual([]);
  await run('deliver', 'Mallory');
  await run('deliver', 'Ada Lovelace');
  expect(await changes()).toMatchObject([
    {
      action: 'settings.change',
      claimed_by: 'Mallory',
      changes: [{ field: 'instructions.USD.wire.account_number', old, new: '4400112233' }],
    },
  ]);
  expect((await run('settings history')).stdout).toMatch(
    /2026-07-01 10:00 +instructions\.USD\.wire\.account_number +\S+ +4400112233 +Mallory/,
  );
});

test('a field that is emptied, filled or replaced is a change; a list is one value', () => {
  const before = fieldsOf({ name: 'A', tax_id: '', contact: { cc: ['a', 'b'], email: 'x' }, limit: 0, active: true });
  const after = fieldsOf({ name: 'A', tax_id: '1', contact: { cc: ['b', 'a'], email: '' }, limit: 0, active: false });
  expect(changesBetween(before, after)).toEqual([
    { field: 'active', old: true, new: false },
    { field: 'contact.cc', old: ['a', 'b'], new: ['b', 'a'] },
    { field: 'contact.email', old: 'x', new: null },
    { field: 'tax_id', old: null, new: '1' },
  ]);
  expect(changesBetween(after, after)).toEqual([]);
});

test('a backup is restored into a home that init has just made, whose own events it replaces', async () => {
  const backup = join(folder, 'a.backup');
  await run(`backup ${backup}`);
  const other = await makeDatabase('master_data_restored');
  const env = {
    RECKONER_HOME: join(folder, 'restored'),
    DATABASE_URL: other.url,
    RECKONER_NOW: '2026-07-02T10:00:00Z',
  };
  try {
    for (const args of [['init'], ['restore', backup]])
      expect(await reckoner(args, { env })).toMatchObject({ status: 0 });
    const history = (await reckoner(['--json', 'settings', 'history'], { env })).json() as Event[];
    expect(history.map(({ claimed_by }) => claimed_by)).toEqual(['Ada Lovelace', 'Mallory']);
  } finally {
    await other.drop();
  }
}, 60_000);
