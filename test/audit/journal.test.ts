/** The journal of real books, as the three accounting programs read it: every assertion holds, and balances are ours. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accountName, beancountAccount } from '../../src/audit/journal-formats.ts';
import { runProgram } from '../support/journal-programs.ts';
import { needs } from '../support/tools.ts';
import type { World } from '../support/world.ts';
import { exported, month, openBooks } from './books.ts';

let world: World;
beforeAll(async () => {
  world = await openBooks();
}, 120_000);
afterAll(() => world.end());

const byValue = (amount: string) => amount.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');

/** Balances at the end of a month by the database, of accounts that have one. */
async function balances(to: string, name: typeof accountName): Promise<Map<string, string>> {
  const rows = await world.sql<{ control: string; detail: string; currency: string; amount: string }>(
    `SELECT control, substr(account, length(control) + 2) AS detail, currency, sum(amount)::text AS amount
     FROM journal WHERE month <= $1 GROUP BY control, account, currency HAVING sum(amount) <> 0`,
    [to],
  );
  return new Map(rows.map((row) => [`${name(row)} ${row.currency}`, byValue(row.amount)]));
}

const RANGES = [
  ['2026-07', '2026-09'],
  ['2026-08', '2026-08'],
] as const;

describe.each(RANGES)('from %s to %s', (from, to) => {
  const pack = (format: 'hledger' | 'beancount') =>
    exported(world, { kind: 'journal', format, from: month(from), to: month(to) });

  test('hledger checks it strictly and has our balances', async (context) => {
    needs('hledger', context);
    const path = join(await pack('hledger'), 'journal.ledger');
    expect(runProgram('hledger', ['check', '--strict', '-f', path])).toEqual({ status: 0, output: '' });
    const { output } = runProgram('hledger', [
      'balance',
      '-f',
      path,
      '--flat',
      '--no-total',
      '-O',
      'csv',
      '--layout',
      'bare',
    ]);
    const rows = parse(output, { columns: true }) as Record<string, string>[];
    const found = rows.map((row) => [`${row['account']} ${row['commodity']}`, byValue(row['balance'] ?? '')] as const);
    expect(new Map(found.filter(([, amount]) => amount !== '0'))).toEqual(await balances(to, accountName));
    expect(found.length).toBeGreaterThan(5);
  });

  test('ledger reads it pedantically and has our balances', async (context) => {
    needs('ledger', context);
    const path = join(await pack('hledger'), 'journal.ledger');
    const { status, output } = runProgram('ledger', [
      '--strict',
      '--pedantic',
      '-f',
      path,
      'register',
      '--format',
      '%(account)\t%(commodity)\t%(quantity(amount))\n',
    ]);
    expect([status, output.includes('Error')]).toEqual([0, false]);
    const sums = new Map<string, bigint>();
    for (const line of output.trim().split('\n')) {
      const [account, currency, amount = '0'] = line.split('\t');
      const [whole = '', fraction = ''] = amount.split('.');
      const key = `${account} ${currency}`;
      sums.set(key, (sums.get(key) ?? 0n) + BigInt(whole + fraction.padEnd(4, '0')));
    }
    const ours = await balances(to, accountName);
    const ourSums = [...ours].map(([key, amount]) => {
      const [whole = '', fraction = ''] = amount.split('.');
      return [key, BigInt(whole + fraction.padEnd(4, '0'))] as const;
    });
    expect(new Map([...sums].filter(([, amount]) => amount !== 0n))).toEqual(new Map(ourSums));
  });

  test('beancount finds nothing wrong and asserts our balances', async (context) => {
    needs('bean-check', context);
    const path = join(await pack('beancount'), 'journal.beancount');
    expect(runProgram('bean-check', [path])).toEqual({ status: 0, output: '' });
    const next = new Date(Date.UTC(Number(to.slice(0, 4)), Number(to.slice(5)), 1)).toISOString().slice(0, 10);
    const asserted = [...readFileSync(path, 'utf8').matchAll(/^(\S+) balance (\S+) {2}(\S+) ~ 0 (\S+)$/gm)]
      .filter(([, day]) => day === next)
      .map(([, , account, amount = '', currency]) => [`${account} ${currency}`, byValue(amount)] as const);
    expect(new Map(asserted.filter(([, amount]) => amount !== '0'))).toEqual(await balances(to, beancountAccount));
  });
});

test.each(['csv', 'jsonl'] as const)(
  'as %s every entry balances, and opening balances are those of the end before',
  async (format) => {
    const pack = await exported(world, { kind: 'journal', format, from: month('2026-08') });
    const read = (name: string) => {
      const text = readFileSync(join(pack, `${name}.${format}`), 'utf8');
      if (format === 'csv') return parse(text, { columns: true }) as Record<string, string>[];
      return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, string>);
    };
    const sums = new Map<string, number>();
    for (const row of read('journal')) {
      const key = `${row['fact']} ${row['log_no']} ${row['currency']}`;
      sums.set(key, (sums.get(key) ?? 0) + Math.round(Number(row['amount']) * 1000));
    }
    expect(sums.size).toBeGreaterThan(5);
    expect([...sums.values()].filter((sum) => sum !== 0)).toEqual([]);
    const opening = read('opening-balances').map(
      (row) => [`${row['account']} ${row['currency']}`, byValue(row['amount'] ?? '')] as const,
    );
    expect(new Map(opening)).toEqual(await balances('2026-07', accountName));
  },
);
