/**
 * Account statements against aging on past dates: for every partner and currency the opening balance and the activity give
 * the closing balance, which is what aging has as open less credit and unapplied cash, and the buckets add up.
 */
import { DateTime } from 'luxon';
import { expect } from 'vitest';
import { readAccountStatement } from '../../src/reports/account-statement.ts';
import { BUCKETS, readAging } from '../../src/reports/aging.ts';
import type { World } from './world.ts';

/** In minor units: an amount has as many digits as its currency. */
const minor = (text: string): bigint => BigInt(text.replace('.', ''));
const sum = (texts: readonly string[]): bigint => texts.reduce((total, text) => total + minor(text), 0n);

/** So many days, evenly spaced from the first entry of the journal to today. */
async function pastDates(world: World, today: string, count: number): Promise<string[]> {
  const [{ first } = { first: null }] = await world.sql<{ first: string | null }>(
    'SELECT min(entry_on)::text AS first FROM journal WHERE entry_on <= $1',
    [today],
  );
  const start = DateTime.fromISO(first ?? today, { zone: 'utc' });
  const days = DateTime.fromISO(today, { zone: 'utc' }).diff(start, 'days').days;
  const dates = Array.from({ length: count }, (_, index) => Math.round((days * index) / Math.max(1, count - 1)));
  return [...new Set(dates)].map((each) => start.plus({ days: each }).toISODate() as string);
}

/** Gives the number of accounts compared. */
export async function expectStatementsToTie(
  world: World,
  { today, dates: count = 10, told = '' }: { today: string; dates?: number; told?: string },
): Promise<number> {
  const dates = await pastDates(world, today, count);
  const partners = await world.sql<{ partner_id: string }>('SELECT partner_id FROM partners ORDER BY partner_id');
  let compared = 0;
  await world.database.reading(async (tx) => {
    const closings = new Map<string, string>();
    let before: string | undefined;
    for (const asOf of dates) {
      const aging = await readAging(tx, { asOf, today });
      const from = before && (DateTime.fromISO(before).plus({ days: 1 }).toISODate() as string);
      for (const { partner_id: partnerId } of partners) {
        const statement = await readAccountStatement(tx, { partnerId, from, asOf, today });
        const own = aging.partners.filter((row) => row.partner_id === partnerId);
        for (const account of statement.accounts) {
          const { currency, opening, closing, lines, open_items } = account;
          const where = [told, partnerId, currency, asOf].join(' ');
          const key = `${partnerId} ${currency}`;
          const row = own.find((each) => each.currency === currency);
          const open = open_items.filter(({ document }) => document === 'invoice').map(({ balance }) => balance);
          const credit = open_items.filter(({ document }) => document === 'credit_note').map(({ balance }) => balance);
          if (before !== undefined) expect(minor(opening), where).toBe(minor(closings.get(key) ?? '0'));
          expect(minor(opening) + sum(lines.map(({ amount }) => amount)), where).toBe(minor(closing));
          expect(sum(open) - sum(credit) - minor(account.unapplied), where).toBe(minor(closing));
          const side = row ?? { open: '0', credit: '0', unapplied: '0', net: '0' };
          expect(minor(side.open) - minor(side.credit) - minor(side.unapplied), where).toBe(minor(closing));
          expect(minor(side.net), where).toBe(minor(closing));
          const buckets = BUCKETS.map((bucket) => account.aging[bucket]);
          expect(sum(buckets), where).toBe(minor(side.open));
          expect(buckets.map(minor), where).toEqual(BUCKETS.map((bucket) => minor(row?.[bucket] ?? '0')));
          expect({ where, ties: statement.ties }).toEqual({ where, ties: true });
          closings.set(key, closing);
          compared += 1;
        }
        // Aging has no account that the statement lacks.
        expect(own.map(({ currency }) => currency).sort()).toEqual(
          statement.accounts.map(({ currency }) => currency).filter((each) => own.some((row) => row.currency === each)),
        );
      }
      before = asOf;
    }
  });
  return compared;
}
