/** What an export holds, that it comes back in, and that a stranger's verifier finds it whole. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { Decimal } from 'decimal.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXPORT_KINDS } from '../../src/audit/export.ts';
import { ROW_FIELDS } from '../../src/ledger/row.ts';
import { recordEvent } from '../../src/people/audit-events.ts';
import { booksOf } from '../payments/books.ts';
import { tool } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { exported, month, openBooks, verifyPack } from './books.ts';

let world: World;
beforeAll(async () => {
  world = await openBooks();
});
afterAll(() => world.end());

const rowsOf = (path: string) => parse(readFileSync(path), { columns: true }) as Record<string, string>[];
const manifestOf = (pack: string) => JSON.parse(readFileSync(join(pack, 'manifest.json'), 'utf8'));
const sha256 = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex');

test('the ledger has the columns of an import, what was recorded with each row, and its document', async () => {
  const pack = await exported(world, { kind: 'ledger' });
  const rows = rowsOf(join(pack, 'ledger.csv'));
  expect(Object.keys(rows[0] ?? {})).toEqual([...ROW_FIELDS, 'entry_id', 'posted_month', 'recorded_at', 'document']);
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
  expect(manifestOf(pack).files.find(({ name }: { name: string }) => name === 'ledger.csv')).toMatchObject({
    rows: 13,
    totals: {
      JPY: { spotPrice: '3000', partnerCut: '900', invoiceAmount: '2100' },
      KWD: { spotPrice: '1.005', partnerCut: '0.300', invoiceAmount: '0.705' },
      USD: { spotPrice: '65.00', partnerCut: '19.50', invoiceAmount: '45.50' },
    },
  });
});

test.each(['csv', 'jsonl'] as const)(
  'an exported ledger in %s comes back as nothing but duplicates',
  async (format) => {
    const pack = await exported(world, { kind: 'ledger', format, to: month('2026-10') });
    const report = await world.importFiles([join(pack, `ledger.${format}`)], { preview: true });
    expect(report).toMatchObject({ accepted: 0, duplicates: 14, rejected: 0, errors: [] });
  },
);

test.each(EXPORT_KINDS.flatMap((kind) => (['csv', 'jsonl'] as const).map((format) => [kind, format] as const)))(
  'a stranger finds every check of an export of %s in %s to hold',
  async (kind, format) => {
    const pack = await exported(world, { kind, format });
    const { status, output } = verifyPack([pack]);
    expect(output).toMatch(/All checks hold\.\n$/);
    expect(status).toBe(0);
    const files = readdirSync(pack).filter((name) => /[.](csv|jsonl)$/.test(name));
    const checked = [
      'layout',
      'manifest',
      'records',
      'files',
      'tables',
      'seals',
      'documents',
      'books',
      ...files.sort(),
    ];
    if (kind === 'ledger') checked.push('rows');
    expect([...output.matchAll(/^ok {4}(\S+)/gm)].map(([, name]) => name).sort()).toEqual(checked.sort());
    expect(output).toMatch(/books +2 months, \d+ entries, \d+ balances/);
    expect(output).toContain('note  the books of 2026-09 are open');
    expect(output).toMatch(
      kind === 'ledger' ? /seals +3 months, \d\d+ facts, 13 rows/ : /seals +3 months, \d\d+ facts, 0 rows/,
    );
  },
);

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
  for (const each of ['2026-07', '2026-08', '2026-09']) {
    const sealed = readFileSync(join(ledger, 'sealed', each, 'ledger_rows.tsv'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'));
    const [names = [], ...lines] = sealed;
    for (const line of lines) ownMonth.set(line[names.indexOf('entry_id')], line[names.indexOf('month')]);
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

test('the manifest names every file with its hash, and the seals that the database keeps', async () => {
  const pack = await exported(world, { kind: 'events' });
  const manifest = manifestOf(pack);
  expect(manifest.files.length).toBeGreaterThan(10);
  for (const { name, sha256: hash } of manifest.files) expect([name, sha256(join(pack, name))]).toEqual([name, hash]);
  const seals = await world.sql<{ month: string; seal: string }>('SELECT month, seal FROM seals ORDER BY month');
  expect(manifest.months.map(({ month: of, seal }: { month: string; seal: string }) => ({ month: of, seal }))).toEqual(
    seals,
  );
  for (const { month: of, seal } of seals) expect(sha256(join(pack, 'sealed', of, 'record.txt'))).toBe(seal);
  expect(execFileSync(tool('sha256sum'), [join(pack, 'sealed/2026-08/record.txt')], { encoding: 'utf8' })).toContain(
    seals[1]?.seal,
  );
});

/** Nothing that holds nothing holds. */
const NOTHING_SEALED = { status: 2, output: expect.stringContaining('this pack has no seal') };

test('a ledger without rows has its header all the same', async () => {
  const pack = await exported(world, { kind: 'ledger', from: month('2026-01'), to: month('2026-01') });
  const text = readFileSync(join(pack, 'ledger.csv'), 'utf8');
  const whole = await exported(world, { kind: 'ledger' });
  expect(text).toBe(`${readFileSync(join(whole, 'ledger.csv'), 'utf8').split('\n')[0]}\n`);
  expect(verifyPack([pack])).toMatchObject(NOTHING_SEALED);
});

test('an export of an open month says that it is not sealed, and has its rows', async () => {
  const pack = await exported(world, { kind: 'ledger', from: month('2026-10'), to: month('2026-10') });
  expect(manifestOf(pack).months).toEqual([{ month: '2026-10', seal: null, previous: '2026-09', books_seal: null }]);
  expect(rowsOf(join(pack, 'ledger.csv')).map((row) => row['document'])).toEqual(['']);
  expect(verifyPack([pack])).toMatchObject(NOTHING_SEALED);
});

test('a .zip holds the same files', async () => {
  const pack = await exported(world, { kind: 'ledger' });
  const zip = await exported(world, { kind: 'ledger', out: join(world.home, 'pack.zip') });
  const into = join(world.home, 'unzipped');
  execFileSync(tool('python3'), ['-m', 'zipfile', '-e', zip, into]);
  expect(readdirSync(into, { recursive: true }).sort()).toEqual(readdirSync(pack, { recursive: true }).sort());
  expect(verifyPack([into])).toMatchObject({ status: 0 });
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

test('a pack continues the one before it, and not another', async () => {
  const july = await exported(world, { kind: 'events', to: month('2026-07') });
  const both = await exported(world, { kind: 'events', to: month('2026-08') });
  const later = await exported(world, { kind: 'ledger', from: month('2026-08') });
  expect(verifyPack([later, '--previous', july])).toMatchObject({ status: 0 });
  expect(verifyPack([later, '--previous', both])).toMatchObject({ status: 0 });
  const gap = verifyPack([await exported(world, { kind: 'ledger', from: month('2026-09') }), '--previous', july]);
  expect(gap.status).toBe(1);
  expect(gap.output).toMatch(/FAIL {2}previous/);
});

test('a seal on paper is compared with that of the pack', async () => {
  const pack = await exported(world, { kind: 'events' });
  const [first] = await world.sql<{ seal: string }>('SELECT seal FROM seals ORDER BY month');
  expect(verifyPack([pack, '--seal', `2026-07=${first?.seal}`])).toMatchObject({ status: 0 });
  const other = verifyPack([pack, '--seal', `2026-07=${'0'.repeat(64)}`]);
  expect(other.status).toBe(1);
  expect(other.output).toMatch(/2026-07 has [0-9a-f]{64}, but you gave 0{64}: check your copy/);
});

test('the verifier names each file that was changed, taken away or added', async () => {
  const pack = await exported(world, { kind: 'ledger' });
  const verifiedWith = (says: RegExp) =>
    expect(verifyPack([pack])).toMatchObject({ status: 1, output: expect.stringMatching(says) });
  writeFileSync(join(pack, 'extra.csv'), 'x');
  verifiedWith(/FAIL {2}layout[\s\S]*extra\.csv does not belong in a pack/);
  rmSync(join(pack, 'extra.csv'));
  writeFileSync(join(pack, 'ledger.csv'), readFileSync(join(pack, 'ledger.csv'), 'utf8').replace('40.00', '41.00'));
  verifiedWith(/FAIL {2}files[\s\S]*ledger\.csv is not the file that the manifest names/);
  forge(pack, 'ledger.csv', (lines) => lines);
  verifiedWith(/FAIL {2}ledger\.csv[\s\S]*row \d+ is not as it was sealed in spotPrice/);
  rmSync(join(pack, 'ledger.csv'));
  verifiedWith(/FAIL {2}files[\s\S]*ledger\.csv is missing/);
});

/** The sums of a .csv's columns by currency, with the digits that they have there. */
function totalsOf(lines: string[], columns: string[]): Record<string, Record<string, string>> {
  const totals: Record<string, Record<string, string>> = {};
  for (const row of parse(lines.join('\n'), { columns: true }) as Record<string, string>[]) {
    const sums = totals[row['currency'] ?? ''] ?? {};
    for (const column of columns) sums[column] = new Decimal(sums[column] ?? '0').plus(row[column] ?? '0').toString();
    totals[row['currency'] ?? ''] = sums;
  }
  return Object.fromEntries(Object.entries(totals).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Changes a file and makes the manifest fit to it, as somebody would who means to deceive. */
function forge(pack: string, name: string, change: (lines: string[]) => string[]): void {
  const lines = change(readFileSync(join(pack, name), 'utf8').trimEnd().split('\n'));
  writeFileSync(join(pack, name), `${lines.join('\n')}\n`);
  const manifest = manifestOf(pack);
  const entry = manifest.files.find((each: { name: string }) => each.name === name);
  Object.assign(entry, { sha256: sha256(join(pack, name)), bytes: statSync(join(pack, name)).size });
  if (entry.rows !== undefined) entry.rows = lines.length - 1;
  if (entry.totals !== undefined) entry.totals = totalsOf(lines, Object.keys(Object.values(entry.totals)[0] ?? {}));
  writeFileSync(join(pack, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

const changed = (from: RegExp, to: string) => (lines: string[]) =>
  lines.map((line, index) => (index === 1 ? line.replace(from, to) : line));

test.each([
  [
    'a row after the sealed ones',
    'ledger',
    'ledger.csv',
    (lines: string[]) => [...lines, lines.at(-1) ?? ''],
    /row \d+ is none of the sealed rows of 2026-09/,
  ],
  [
    'a document that is left out',
    'invoices',
    'invoices.csv',
    (lines: string[]) => [...lines.slice(0, 1), ...lines.slice(2)],
    /CN-2026-000001 is missing/,
  ],
  [
    'a later date to pay by',
    'invoices',
    'invoices.csv',
    (lines: string[]) => lines.map((line) => line.replace(/^(INV-2026-000001,.*)2026-08-31/, '$12027-08-31')),
    /INV-2026-000001 is not as it was sealed in due_on/,
  ],
  [
    'another amount on a line',
    'invoices',
    'invoice-lines.csv',
    changed(/-?[0-9.]+$/, '1.00'),
    /line 1 of [A-Z]+-2026-\d+ is not as it was sealed in invoiceAmount/,
  ],
  [
    'a line that is left out',
    'invoices',
    'invoice-lines.csv',
    (lines: string[]) => [...lines.slice(0, 1), ...lines.slice(2)],
    /line 1 of [A-Z]+-2026-\d+ is missing/,
  ],
  [
    'another name behind an action',
    'events',
    'events.csv',
    changed(/,[^,]*,([^,]*),([^,]*),([^,]*)$/, ',mallory,$1,$2,$3'),
    /event \d+ is not as it was sealed in os_user/,
  ],
  [
    'another amount in the journal of closed books',
    'journal',
    'journal.csv',
    changed(/,(-?)(\d+)[.](\d+),/, ',$19$2.$3,'),
    /assets:receivable:unbilled:p-1 in USD at the end of 2026-07 is not the balance that was sealed/,
  ],
  [
    'an entry dated in closed books that was not sealed with them',
    'payments',
    'books/2026-08/entries.tsv',
    (lines: string[]) => [...lines, lines.at(-1) ?? ''],
    /books\/2026-08\/entries\.tsv: 17 rows where 16 were sealed[\s\S]*2026-08: .* does not follow from the month before/,
  ],
  [
    'another balance at the end of closed books',
    'ledger',
    'books/2026-08/accounts.tsv',
    changed(/\t(-?)(\d+)/, '\t$19$2'),
    /books\/2026-08\/accounts\.tsv: is not what was sealed[\s\S]*debits and credits in [A-Z]{3} differ/,
  ],
] as const)('the verifier sees %s although the manifest fits', async (_, kind, name, change, says) => {
  const pack = await exported(world, { kind, to: month('2026-09') });
  forge(pack, name, change);
  const { status, output } = verifyPack([pack]);
  expect({ status, output }).toEqual({ status: 1, output: expect.stringMatching(says) });
});

test('no line of a record can say what its seal is', async () => {
  const pack = await exported(world, { kind: 'events' });
  const name = 'sealed/2026-08/record.txt';
  const held = sha256(join(pack, name));
  forge(pack, name, (lines) => [...lines.map((line) => line.replace(/^rows 3$/, 'rows 4')), `seal ${held}`]);
  expect(verifyPack([pack, '--seal', `2026-08=${held}`]).status).toBe(1);
});

test('an export says that it is preliminary while the books of its months are open', async () => {
  const preliminary = async (to: string) =>
    manifestOf(await exported(world, { kind: 'journal', to: month(to) })).preliminary;
  expect([await preliminary('2026-08'), await preliminary('2026-09')]).toEqual([false, true]);
});

test('the seal of closed books is compared with one that you hold, and with an earlier pack', async () => {
  const pack = await exported(world, { kind: 'journal' });
  const [, held] = manifestOf(pack).months as { books_seal: string }[];
  expect(verifyPack([pack, '--books-seal', `2026-08=${held?.books_seal}`])).toMatchObject({ status: 0 });
  const other = verifyPack([pack, '--books-seal', `2026-08=${'0'.repeat(64)}`]);
  expect(other).toMatchObject({ status: 1, output: expect.stringContaining('the books of 2026-08 has') });
});

test('a file that no seal covers is reported as not compared', async () => {
  const { output } = verifyPack([await exported(world, { kind: 'journal', format: 'hledger' })]);
  expect(output).toMatch(/note {2}journal\.ledger is not compared/);
});

test('the events of a month that is open are those that no seal covers, whether it has rows or not', async () => {
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
  const all = (await world.sql<{ id: number }>('SELECT event_id::int AS id FROM audit_events ORDER BY 1')).map(
    ({ id }) => id,
  );
  const sealed = await ids('2026-07', '2026-09');
  const open = all.filter((id) => !sealed.includes(id));
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
  const of = month(receivedOn.slice(0, 7));
  const pack = await exported(world, { kind: 'payments', from: of, to: of });
  const [payment] = rowsOf(join(pack, 'payments.csv'));
  expect(payment).toMatchObject({ currency, status: 'unapplied', reference: "'=FT-1" });
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
        `SELECT move FROM (SELECT 'applied' AS move, fact_id, entry_on FROM credit_applications
         UNION ALL SELECT 'released', fact_id, entry_on FROM credit_releases) AS moved
         WHERE to_char(entry_on, 'YYYY-MM') = $1 ORDER BY fact_id`,
        [of],
      )
    ).map(({ move }) => move),
  );
});
