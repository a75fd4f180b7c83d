/** What an export holds, that it comes back in, and that a stranger's verifier finds it whole. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXPORT_KINDS, exportPack } from '../../src/audit/export.ts';
import { readRules } from '../../src/audit/rules.ts';
import { ROW_FIELDS } from '../../src/ledger/row.ts';
import { type Checkpoint, readLastCheckpoint, readOrigin } from '../../src/log/checkpoints.sql.ts';
import { LOG_FORMS } from '../../src/log/forms.ts';
import { noteOf, vkeyOf } from '../../src/log/note.ts';
import { signCheckpoints } from '../../src/log/sign.ts';
import { readSignatureLines } from '../../src/log/signatures.sql.ts';
import { recordEvent } from '../../src/people/audit-events.ts';
import { booksOf } from '../payments/books.ts';
import { LOG_KEY } from '../support/log-keys.ts';
import { tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { checkpoint, exported, month, openBooks, verifyPack, verifyTwice } from './books.ts';

let world: World;
beforeAll(async () => {
  world = await openBooks({ logKey: LOG_KEY });
  await checkpoint(world);
  await signCheckpoints(world);
});
afterAll(() => world.end());

const MONTH = LOG_FORMS[0]?.columns.findIndex(({ name }) => name === 'month') ?? 0;
/** The key that the operator told, and the last checkpoint as it was mailed. */
const key = async () => vkeyOf({ name: await world.database.reading(readOrigin), publicKey: LOG_KEY.publicKey });
const held = async () => {
  const note = await world.database.reading(async (tx) => {
    const last = (await readLastCheckpoint(tx)) as Checkpoint;
    return noteOf(last, (await readSignatureLines(tx, [last.size])).get(last.size) ?? []);
  });
  return world.file('held.txt', note);
};

const rowsOf = (path: string) => parse(readFileSync(path), { columns: true }) as Record<string, string>[];
const manifestOf = (pack: string) => JSON.parse(readFileSync(join(pack, 'manifest.json'), 'utf8'));
const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

test('the ledger has the columns of an import, what was recorded with each row, and its document', async () => {
  const pack = await exported(world, { kind: 'ledger' });
  const rows = rowsOf(join(pack, 'ledger.csv'));
  expect(Object.keys(rows[0] ?? {})).toEqual([
    ...ROW_FIELDS,
    'entry_id',
    'posted_month',
    'recorded_at',
    'document',
    'allowed_by',
  ]);
  expect(rows.map((row) => [row['posted_month'], row['partner_id'], row['spotPrice'], row['document']])).toEqual([
    ['2026-07', 'p-1', '40.00', 'INV-2026-000004'],
    ['2026-07', 'p-1', '5.00', 'INV-2026-000004'],
    ['2026-07', 'p-1', '10.00', 'INV-2026-000004'],
    ['2026-07', 'p-2', '1000', 'INV-2026-000005'],
    ['2026-07', 'p-3', '1.005', 'INV-2026-000003'],
    ['2026-08', 'p-1', '-40.00', 'CN-2026-000003'],
    ['2026-08', 'p-2', '1000', 'INV-2026-000006'],
    ['2026-08', 'p-2', '1000', 'INV-2026-000006'],
    ...[1, 2, 3, 4, 5].map(() => ['2026-09', 'p-1', '10.00', 'INV-2026-000007']),
  ]);
  const reversals = rows.filter(({ kind }) => kind === 'reversal');
  expect(reversals.map(({ allowed_by }) => allowed_by)).toEqual(['proportion']);
  expect(rows.filter(({ kind, allowed_by }) => kind !== 'reversal' && allowed_by !== '')).toEqual([]);
  expect(manifestOf(pack).files.find(({ name }: { name: string }) => name === 'ledger.csv')).toMatchObject({
    rows: 13,
    totals: {
      JPY: { spotPrice: '3000', partnerCut: '900', invoiceAmount: '2100' },
      KWD: { spotPrice: '1.005', partnerCut: '0.300', invoiceAmount: '0.705' },
      USD: { spotPrice: '65.00', partnerCut: '19.50', invoiceAmount: '45.50' },
    },
  });
});

test('a pack of one month names what allowed its reversals, and the verifiers compare it with the log', async () => {
  const months = { from: month('2026-08'), to: month('2026-08') };
  const pack = await exported(world, { kind: 'ledger', ...months, format: 'jsonl' });
  const path = join(pack, 'ledger.jsonl');
  const text = readFileSync(path, 'utf8');
  expect(text.match(/"allowed_by" : "proportion"/g)).toHaveLength(1);
  expect(verifyTwice([pack, '--allow']).output).toContain('ledger.jsonl: as in the log');
  writeFileSync(path, text.replace('"proportion"', '"person"'));
  expect(verifyTwice([pack, '--allow']).output).toMatch(/WRONG .*ledger.jsonl: /);
});

test.each(['csv', 'jsonl'] as const)(
  'an exported ledger in %s comes back as nothing but duplicates',
  async (format) => {
    const pack = await exported(world, { kind: 'ledger', format, to: month('2026-10') });
    const report = await world.importFiles([join(pack, `ledger.${format}`)], { preview: true });
    expect(report).toMatchObject({ accepted: 0, duplicates: 14, rejected: 0, errors: [] });
  },
);

test('a stranger who holds the key and the last checkpoint finds every check to hold, but for files not compared', async () => {
  for (const [at, kind] of EXPORT_KINDS.entries()) {
    const pack = await exported(world, { kind, format: at % 2 === 0 ? 'csv' : 'jsonl' });
    const { output, status } = verifyTwice([pack, '--allow', '--key', await key(), '--held', await held()]);
    expect({ kind, status }).toEqual({ kind, status: 0 });
    const lines = output.trimEnd().split('\n');
    const others = /^ok |not compared with the log$|^Nothing is wrong|^All checks hold/;
    expect(lines.filter((line) => !others.test(line))).toEqual([]);
    const { rules } = readRules();
    expect(rules.length).toBeGreaterThan(80);
    expect(lines).toContain(`ok    rules: ${rules.length} of ${rules.length} hold`);
  }
}, 300_000);

test('a stranger who holds neither is told so', async () => {
  const { status, output } = verifyTwice([await exported(world, { kind: 'events' })]);
  expect(status).toBe(2);
  expect(output).toContain('open  signatures: the key is that of the pack; compare it with yours (--key)');
  expect(output).toMatch(
    /^open {2}held: no checkpoint that you hold covers the leaves from 0 on, and the close of 2026-07, /m,
  );
});

test('a spreadsheet takes no cell for a formula, and taking one apostrophe away gives the text back', async () => {
  const pack = await exported(world, { kind: 'invoices' });
  const names = rowsOf(join(pack, 'invoices.csv')).map((row) => row['partner_name'] ?? '');
  expect(names.filter((name) => /^[=+@-]/.test(name))).toEqual([]);
  expect(names).toContain(`'=Sum(A1) "Über", Ltd`);
  expect(names.map((name) => name.replace(/^'/, ''))).toContain('=Sum(A1) "Über", Ltd');
  const reasons = rowsOf(join(pack, 'write-offs.csv')).map((row) => row['reason']);
  expect(reasons).toEqual(expect.arrayContaining(["' =insolvent", "' \t@too small"]));
  const negative = rowsOf(join(await exported(world, { kind: 'ledger' }), 'ledger.csv')).map((row) => row['spotPrice']);
  expect(negative).toContain('-40.00');
});

test('every line of every document of a closed month can be traced to its rows', async () => {
  const ledger = await exported(world, { kind: 'ledger' });
  const invoices = await exported(world, { kind: 'invoices' });
  const rows = rowsOf(join(ledger, 'ledger.csv'));
  const ownMonth = new Map<string | undefined, string | undefined>();
  for (const line of readFileSync(join(ledger, 'log.tsv'), 'utf8').split('\n')) {
    const [kind, entryId, ...fields] = line.split('\t');
    if (kind === 'ledger_rows') ownMonth.set(entryId, fields[MONTH]);
  }
  const documents = new Map(rowsOf(join(invoices, 'invoices.csv')).map((row) => [row['number'], row]));
  let traced = 0;
  for (const line of rowsOf(join(invoices, 'invoice-lines.csv'))) {
    if (documents.get(line['number'])?.['status'] === 'void') continue;
    const own = rows.filter(
      (row) =>
        row['document'] === line['number'] &&
        row['policy_id'] === line['policy_id'] &&
        row['kind'] === line['kind'] &&
        ownMonth.get(row['entry_id']) === line['month'],
    );
    expect(own).toHaveLength(Number(line['count']));
    traced += own.length;
  }
  expect(traced).toBe(rows.length);
});

test('the manifest names every file with its hash, and the last leaf; checkpoints are those of the database', async () => {
  const pack = await exported(world, { kind: 'events' });
  const manifest = manifestOf(pack);
  expect(manifest.files.length).toBeGreaterThan(7);
  for (const { name, sha256: hash } of manifest.files) expect([name, sha256(join(pack, name))]).toEqual([name, hash]);
  const checkpoints = await world.sql<{ size: string; origin: string; root: string }>(
    `SELECT size, origin, encode(root, 'base64') AS root FROM log_checkpoints WHERE size <= $1 ORDER BY size`,
    [manifest.size],
  );
  expect(readdirSync(join(pack, 'checkpoints')).sort()).toEqual(checkpoints.map(({ size }) => size).sort());
  for (const { size, origin, root } of checkpoints) {
    const note = readFileSync(join(pack, 'checkpoints', size), 'utf8');
    expect(note).toContain(`${origin}\n${size}\n${root}\n\n— ${origin} `);
  }
  expect(manifest).toMatchObject({ format: 'reckoner-pack', version: 2, origin: checkpoints[0]?.origin, first: 0 });
  const leaves = readFileSync(join(pack, 'log.tsv'), 'utf8').trimEnd().split('\n');
  expect(leaves).toHaveLength(manifest.size);
});

test('a pack ends with the close of the books of its last month, and begins before its first row', async () => {
  const closes = async (from: string, to: string) => {
    const { first, size } = manifestOf(await exported(world, { kind: 'ledger', from: month(from), to: month(to) }));
    const names = await world.sql<{ size: string; closes: string | null }>('SELECT size, closes FROM log_checkpoints');
    const nameOf = (at: number) => names.find((each) => Number(each.size) === at)?.closes ?? at;
    return [nameOf(first), nameOf(size)];
  };
  expect(await closes('2026-07', '2026-07')).toEqual([0, 'books 2026-07']);
  expect(await closes('2026-08', '2026-08')).toEqual(['month 2026-07', 'books 2026-08']);
  // While the books of a month are open, its pack ends with the last checkpoint.
  const [{ last } = { last: 0 }] = await world.sql<{ last: number }>(
    'SELECT max(size)::int AS last FROM log_checkpoints',
  );
  expect(await closes('2026-09', '2026-09')).toEqual(['month 2026-08', last]);
});

test('a ledger without rows has its header all the same', async () => {
  const pack = await exported(world, { kind: 'ledger', from: month('2026-01'), to: month('2026-01') });
  const text = readFileSync(join(pack, 'ledger.csv'), 'utf8');
  const whole = await exported(world, { kind: 'ledger' });
  expect(text).toBe(`${readFileSync(join(whole, 'ledger.csv'), 'utf8').split('\n')[0]}\n`);
});

test('an export of an open month has its rows', async () => {
  const pack = await exported(world, { kind: 'ledger', from: month('2026-10'), to: month('2026-10') });
  expect(rowsOf(join(pack, 'ledger.csv')).map((row) => row['document'])).toEqual(['']);
});

test('a .zip holds the same files', async () => {
  const pack = await exported(world, { kind: 'ledger' });
  const zip = await exported(world, { kind: 'ledger', out: join(world.home, 'pack.zip') });
  const into = join(world.home, 'unzipped');
  execFileSync(tool('python3'), ['-m', 'zipfile', '-e', zip, into]);
  expect(readdirSync(into, { recursive: true }).sort()).toEqual(readdirSync(pack, { recursive: true }).sort());
  expect(verifyPack([into, '--allow'])).toMatchObject({ status: 0 });
  expect(readdirSync(world.home).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

test('nothing that is there is replaced, and an empty folder is as good as none', async () => {
  const out = join(world.home, 'taken');
  mkdirSync(out);
  await exported(world, { kind: 'events', out });
  expect(existsSync(join(out, 'manifest.json'))).toBe(true);
  const before = sha256(join(out, 'manifest.json'));
  await expect(exported(world, { kind: 'ledger', out })).rejects.toMatchObject({ code: 'export_exists' });
  expect(sha256(join(out, 'manifest.json'))).toBe(before);
  const file = join(world.home, 'notes');
  writeFileSync(file, 'mine');
  await expect(exported(world, { kind: 'ledger', out: file })).rejects.toMatchObject({ code: 'export_exists' });
  expect(readFileSync(file, 'utf8')).toBe('mine');
});

test('a pack is verified alone or after the one before it, but not after another', async () => {
  const july = await exported(world, { kind: 'events', to: month('2026-07') });
  const september = await exported(world, { kind: 'ledger', from: month('2026-09') });
  const alone = verifyTwice([september, '--allow']);
  expect(alone).toMatchObject({ status: 0, output: expect.stringContaining('Not decidable from this pack.') });
  // July's books closed after September's first row, so the packs overlap.
  const inOrder = verifyTwice([july, september, '--allow']);
  expect(inOrder).toMatchObject({ status: 0, output: expect.not.stringContaining('Not decidable') });
  expect(verifyTwice([september, july])).toMatchObject({ status: 1, output: expect.stringMatching(/^WRONG /m) });
});

test('a checkpoint on paper is compared with those of the pack', async () => {
  const pack = await exported(world, { kind: 'events' });
  const note = await held();
  expect(verifyTwice([pack, '--allow', '--held', note]).output).toMatch(
    /^ok {4}held: .*: its \d+ leaves belong to this log$/m,
  );
  const [origin, size] = readFileSync(note, 'utf8').split('\n');
  const other = world.file('other.txt', `${origin}\n${size}\n${Buffer.alloc(32).toString('base64')}\n\n`);
  expect(verifyTwice([pack, '--held', other])).toMatchObject({
    status: 1,
    output: expect.stringMatching(/^WRONG held: .*: NOT OF THESE LEAVES$/m),
  });
});

test('the verifier names a file that was changed, taken away or added', async () => {
  const pack = await exported(world, { kind: 'ledger' });
  const verifiedWith = (says: RegExp) =>
    expect(verifyTwice([pack])).toMatchObject({ status: 1, output: expect.stringMatching(says) });
  writeFileSync(join(pack, 'extra.csv'), 'x');
  verifiedWith(/^WRONG .*extra\.csv is not/m);
  rmSync(join(pack, 'extra.csv'));
  writeFileSync(join(pack, 'ledger.csv'), readFileSync(join(pack, 'ledger.csv'), 'utf8').replace('40.00', '41.00'));
  verifiedWith(/^WRONG .*ledger\.csv.*: not the file of the manifest/m);
  rmSync(join(pack, 'ledger.csv'));
  verifiedWith(/^WRONG .*ledger\.csv is missing/m);
});

/** Changes a file and makes the manifest fit to it, as somebody would who means to deceive. */
function forge(pack: string, name: string, change: (text: string) => string): void {
  const before = readFileSync(join(pack, name), 'utf8');
  const text = change(before);
  expect(text).not.toBe(before);
  writeFileSync(join(pack, name), text);
  const manifest = readFileSync(join(pack, 'manifest.json'), 'utf8');
  const entry = new RegExp(`("name": "${name}",\\s+"bytes": )\\d+(,\\s+"sha256": ")[0-9a-f]{64}`);
  expect(manifest).toMatch(entry);
  const fitted = manifest.replace(entry, `$1${Buffer.byteLength(text)}$2${sha256(join(pack, name))}`);
  writeFileSync(join(pack, 'manifest.json'), fitted);
}

test('no changed data file passes although the manifest fits: it differs from the log, or is said to be not compared', async () => {
  const otherEnd = (text: string) =>
    text.replace(/([A-Za-z0-9])([^A-Za-z0-9]*)$/, (_, last, end) => `${last === '1' ? '2' : '1'}${end}`);
  for (const kind of EXPORT_KINDS) {
    const pack = await exported(world, { kind });
    const changed: string[] = [];
    for (const { name, rows } of manifestOf(pack).files as { name: string; rows?: number }[]) {
      if (!name.endsWith('.csv') || name === 'dictionary.csv' || !rows) continue;
      forge(pack, name, otherEnd);
      changed.push(name);
    }
    const { status, output } = verifyPack([pack]);
    expect(status).not.toBe(0);
    const told = output.split('\n').filter((line) => /^(WRONG|open)/.test(line));
    for (const name of changed)
      expect([name, told.filter((line) => line.includes(`/${name}:`)).length]).toEqual([name, 1]);
  }
}, 300_000);

test('a line of the log that is changed is named, whatever the manifest says', async () => {
  const pack = await exported(world, { kind: 'events' });
  forge(pack, 'log.tsv', (text) => text.replace('a wrong address', 'a right address'));
  expect(verifyTwice([pack])).toMatchObject({
    status: 1,
    output: expect.stringMatching(/^WRONG checkpoints: .*not the root of these leaves/m),
  });
});

test('an export says that it is preliminary while the books of its months are open', async () => {
  const preliminary = async (to: string) => {
    const request = { kind: 'journal', from: month('2026-07'), to: month(to), format: 'csv' } as const;
    const out = join(world.home, `until-${to}`);
    return (await exportPack(world.database, world.environment, { ...request, out })).preliminary;
  };
  expect([await preliminary('2026-08'), await preliminary('2026-09')]).toEqual([false, true]);
});

test('the events of a month that is open are those after the last close, whether it has rows or not', async () => {
  const ids = async (from: string, to = from) =>
    rowsOf(join(await exported(world, { kind: 'events', from: month(from), to: month(to) }), 'events.csv')).map((row) =>
      Number(row['event_id']),
    );
  await world.database.transaction((tx) =>
    recordEvent(tx, world.actor, {
      action: 'report.close',
      subject: '2026-09',
      details: {},
      now: '2026-10-02T10:00:00Z',
    }),
  );
  await checkpoint(world);
  const all = (await world.sql<{ id: number }>('SELECT event_id::int AS id FROM audit_events ORDER BY 1')).map(
    ({ id }) => id,
  );
  const closed = await ids('2026-07', '2026-09');
  const open = all.filter((id) => !closed.includes(id));
  expect(open.length).toBeGreaterThan(0);
  expect(await ids('2026-10')).toEqual(open);
  expect(await ids('2026-12')).toEqual(open);
  expect(await ids('2026-07', '2026-10')).toEqual(all);
});

test('payments are exported with what they were applied to, taken off again and what took them back', async () => {
  const books = booksOf(world);
  const [open] = (await world.documents()).filter((each) => each.status === 'open' && each.document === 'invoice');
  const { number, currency } = open as { number: string; currency: string };
  const receivedOn = world.environment.now().toISODate();
  const paid = await books.record({ amount: '5', number, currency, reference: '=FT-1', receivedOn });
  await books.unapply(paid.paymentId);
  await checkpoint(world);
  const of = month(receivedOn.slice(0, 7));
  const pack = await exported(world, { kind: 'payments', from: of, to: of });
  const [payment] = rowsOf(join(pack, 'payments.csv'));
  expect(payment).toMatchObject({ currency, status: 'unapplied', reference: expect.stringMatching(/^#\S{43}=$/) });
  expect(Number(payment?.['amount'])).toBe(5);
  const moves = rowsOf(join(pack, 'payment-moves.csv'));
  expect(moves.map((row) => [row['move'], row['document'], Number(row['amount'])])).toEqual([
    ['applied', number, 5],
    ['unapplied', number, -5],
  ]);
  const files = manifestOf(pack).files as { name: string; rows: number; totals?: object }[];
  expect(files.find(({ name }) => name === 'payments.csv')).toMatchObject({ rows: 1, totals: { [currency]: {} } });
  expect(files.find(({ name }) => name === 'payment-moves.csv')).toMatchObject({ rows: 2 });
  expect(rowsOf(join(pack, 'credit-moves.csv')).map((each) => each['move'])).toEqual(
    (
      await world.sql<{ move: string }>(
        `SELECT move FROM (SELECT 'applied' AS move, log_no, entry_on FROM credit_applications
         UNION ALL SELECT 'released', log_no, entry_on FROM credit_releases) AS moved
         WHERE to_char(entry_on, 'YYYY-MM') = $1 ORDER BY log_no`,
        [of],
      )
    ).map(({ move }) => move),
  );
});
