/** Whatever comes in, is applied, undone and taken back, in whatever order: nothing is lost, and verify finds nothing. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seeded } from '../support/random.ts';
import { type Books, openBooks } from './books.ts';
import { PAYMENT_ACTS } from './random-acts.ts';

/** 200 in `npm test`, 5,000 in `npm run test:long`. */
const ACTS = process.env['RECKONER_LONG'] ? 5000 : 200;
const { random, seed } = seeded();

let books: Books;
beforeAll(async () => {
  books = await openBooks({ small_difference: { USD: '0.05' } });
});
afterAll(() => books.end());

/** Of each currency: what came in is applied, unapplied or gone again, and what invoices say is paid is what is applied. */
const TIES = `
  SELECT currency, sum(amount) - sum(applied) - sum(reversed) = sum(unapplied) AS payments_tie, min(unapplied) >= 0 AS none_below_zero,
         sum(applied) = (SELECT coalesce(sum(b.amount_paid), 0) FROM document_balances b JOIN documents d USING (document_id)
                         WHERE d.currency = p.currency AND d.document = 'invoice') AS invoices_tie
  FROM payment_balances p GROUP BY currency`;

test(`${ACTS} random acts on payments (seed ${seed}): the books tie after each`, {
  timeout: 120_000 + ACTS * 3_000,
}, async () => {
  const names = Object.keys(PAYMENT_ACTS);
  const done: Record<string, number> = {};
  for (let index = 0; index < ACTS; index += 1) {
    const name = names[Math.floor(random() * names.length)] as string;
    const day = `2026-10-${String(1 + Math.floor(random() * 15)).padStart(2, '0')}`;
    try {
      await PAYMENT_ACTS[name]?.(books, random, day);
      for (const ties of await books.sql(TIES))
        expect(ties).toMatchObject({ payments_tie: true, none_below_zero: true, invoices_tie: true });
      if (index % 20 === 19) await books.verified();
    } catch (error) {
      throw new Error(`seed ${seed}, act ${index}, ${name}`, { cause: error });
    }
    done[name] = (done[name] ?? 0) + 1;
  }
  await books.verified();
  process.stdout.write(`random acts on payments: ${JSON.stringify(done)} (seed ${seed})\n`);
  expect(Object.keys(done).sort()).toEqual([...names].sort());
});
