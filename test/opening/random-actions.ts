/**
 * Openings in random histories: open items of a system before are carried over in the middle of everything, and taken back.
 * Each history keeps a plain list of what it carried over, in whole units of the currency, which says beforehand what the
 * control totals are, which file is refused, and which item can still be reversed.
 */
import { expect } from 'vitest';
import { openingImport, openingReverse } from '../../src/actions/opening.ts';
import { todayOf } from '../../src/config/today.ts';
import { type Currency, DIGITS, inMajorUnits } from '../close/model.ts';
import { outcomeOf, pick } from '../people/random-actions.ts';
import type { Action, History } from '../property/actions.ts';
import { confirmed } from '../property/confirmed.ts';
import { csvOf, type Item } from './file.ts';

interface Carried {
  readonly item: Item;
  readonly units: number;
  reversed: boolean;
}

const known = new WeakMap<History, Carried[]>();
const carriedOf = (history: History): Carried[] => {
  const there = known.get(history) ?? [];
  known.set(history, there);
  return there;
};

const KINDS = ['invoice', 'invoice', 'credit', 'cash'] as const;
const CURRENCIES = ['USD', 'USD', 'JPY', 'KWD'] as const;

/** Some items that were open today, with numbers of their own. */
function someItems(history: History, today: string): Carried[] {
  const first = carriedOf(history).length + 1;
  return Array.from({ length: 1 + Math.floor(history.random() * 3) }, (_, index) => {
    const kind = pick(history, KINDS) as Item['kind'];
    const currency = pick(history, CURRENCIES) as Currency;
    const units = 100 + Math.floor(history.random() * 5000) * 10;
    const amount = inMajorUnits(units, DIGITS[currency]);
    const partner_id = pick(history, ['p-1', 'p-2']) as string;
    const due_on = kind === 'invoice' ? today : '';
    const item = { kind, number: `R-${first + index}`, partner_id, date: today, due_on, currency, amount };
    return { item, units, reversed: false };
  });
}

/** What is owed less credit and cash, added up here. */
function controlOf(items: readonly Carried[]): string[] {
  const sums = new Map<Currency, number>();
  for (const { item, units } of items) {
    const currency = item.currency as Currency;
    sums.set(currency, (sums.get(currency) ?? 0) + (item.kind === 'invoice' ? units : -units));
  }
  return [...sums].map(([currency, sum]) => `${currency}=${inMajorUnits(sum, DIGITS[currency])}`);
}

/** What is open of each item that was carried over and not reversed, by its kind and number. */
async function openItems({ world }: History): Promise<Map<string, { open: string; touched: boolean }>> {
  const found = await world.sql<{ key: string; open: string; touched: boolean }>(
    `SELECT CASE d.document WHEN 'invoice' THEN 'invoice ' ELSE 'credit ' END || d.number AS key, b.balance::text AS open,
            EXISTS (SELECT FROM live_documents n WHERE n.credits = d.document_id) AS touched
     FROM documents d JOIN document_balances b USING (document_id)
     WHERE d.purpose = 'opening' AND b.status <> 'void'
     UNION ALL
     SELECT 'cash ' || p.opening_number, b.unapplied::text, b.reversed <> 0
     FROM payments p JOIN payment_balances b USING (payment_id)
     WHERE p.source = 'opening' AND b.status <> 'reversed'`,
  );
  return new Map(found.map(({ key, ...rest }) => [key, rest]));
}

const keyOf = ({ item: { kind, number } }: Carried): string => `${kind} ${number}`;

/** One file: whole, with a total that is a unit off, with a number that is there already, or once more the same. */
async function carryOver(history: History): Promise<boolean> {
  const { world } = history;
  const carried = carriedOf(history);
  const today = todayOf(world);
  const items = someItems(history, today);
  const before = await openItems(history);
  // Cash that was given back or booked to another account is none of a partner's any more: its number is free again.
  const live = carried.filter((each) => !each.reversed && before.has(keyOf(each)));
  const how = pick(history, ['whole', 'whole', 'whole', 'a unit off', 'a number twice', 'again'] as const);
  const taken = how === 'a number twice' ? pick(history, live) : undefined;
  const clashing = taken === undefined ? items : [{ ...taken, item: { ...taken.item, date: today } }, ...items];
  const sent = clashing.map((each) =>
    each.item.kind === 'invoice' ? { ...each, item: { ...each.item, due_on: today } } : each,
  );
  const control = controlOf(sent);
  const [one = ''] = control;
  const wrong = how === 'a unit off' ? [one.replace(/\d$/, (last) => String((Number(last) + 1) % 10))] : [];
  const input = {
    file: { name: 'open-items.csv', bytes: Buffer.from(csvOf(sent.map(({ item }) => item))) },
    ...{ cutOver: today, count: sent.length, control: [...wrong, ...control.slice(wrong.length)] },
  };
  const carry = () => outcomeOf(confirmed(world, openingImport, input));
  const expected = wrong.length > 0 ? 'opening_control_differs' : taken === undefined ? 'done' : 'opening_clash';
  expect([input.control, await carry()]).toEqual([input.control, expected]);
  if (expected === 'done') {
    carried.push(...items);
    // The same file is carried over once.
    if (how === 'again') expect(await carry()).toBe('done');
    for (const each of items) before.set(keyOf(each), { open: each.item.amount, touched: false });
  }
  expect(await openItems(history)).toEqual(before);
  return expected === 'done';
}

/** One item is taken back: not what was paid, credited or applied since, and not twice. */
async function reverse(history: History): Promise<boolean> {
  const { world, random } = history;
  const carried = carriedOf(history);
  const live = carried.filter(({ reversed }) => !reversed);
  const chosen = pick(history, live.length > 0 && random() < 0.9 ? live : carried);
  if (chosen === undefined) return false;
  const before = await openItems(history);
  const now = before.get(keyOf(chosen));
  const input = { numbers: [chosen.item.number], reason: 'it was wrong' };
  const done = await outcomeOf(confirmed(world, openingReverse, input));
  const isWhole = now?.open === chosen.item.amount;
  if (now === undefined) expect([chosen, done]).toEqual([chosen, 'opening_item_unknown']);
  else if (isWhole && !now.touched) expect([chosen, done]).toEqual([chosen, 'done']);
  else expect([chosen, now, done]).toEqual([chosen, now, 'opening_items_used']);
  if (done === 'done') {
    chosen.reversed = true;
    before.delete(keyOf(chosen));
  }
  expect(await openItems(history)).toEqual(before);
  return done === 'done';
}

export const OPENING_ACTS: readonly Action[] = [
  { name: 'open items of a system before are carried over', weight: 2, run: carryOver },
  { name: 'what was carried over is reversed', weight: 1, run: reverse },
];
