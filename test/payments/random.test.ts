/** Random actions on payments in any order: nothing is lost, and verify finds nothing. */
import { expect, test } from 'vitest';
import { readBankReconciliation } from '../../src/reports/bank-reconciliation.ts';
import { seeded } from '../support/random.ts';
import { times } from '../support/sweep.ts';
import { type Books, openBooks } from './books.ts';
import { PAYMENT_ACTS } from './random-actions.ts';

/** RECKONER_SEED=… RECKONER_HISTORIES=1 repeats one. */
const HISTORIES = times({ few: 1, short: 2, long: 25 }, 'RECKONER_HISTORIES');
/** Each action looks at all payments so far. */
const ACTIONS = times({ few: 100, short: 200, long: 200 });
const { seed: SEED } = seeded();

/** Of each currency: what came in is applied, unapplied or gone again, and what invoices say is paid is what is applied. */
const TIES = `
  SELECT currency, sum(amount) - sum(applied) - sum(reversed) = sum(unapplied) AS payments_tie, min(unapplied) >= 0 AS none_below_zero,
         sum(applied) = (SELECT coalesce(sum(b.amount_paid), 0) FROM document_balances b JOIN documents d USING (document_id)
                         WHERE d.currency = p.currency AND d.document = 'invoice') AS invoices_tie
  FROM payment_balances p GROUP BY currency`;

test(`${HISTORIES} of ${ACTIONS} random actions on payments (from seed ${SEED}): the books tie after each`, {
  timeout: 120_000 + HISTORIES * 300_000,
}, async () => {
  const done = Object.fromEntries(Object.keys(PAYMENT_ACTS).map((name) => [name, 0]));
  for (let seed = SEED; seed < SEED + HISTORIES; seed += 1) {
    const books = await openBooks({ small_difference: { USD: '0.05' } });
    await actionAtRandom(books, seed, done).finally(() => books.end());
  }
  process.stdout.write(`random actions on payments: ${JSON.stringify(done)}\n`);
  expect(Object.entries(done).filter(([, times]) => times === 0)).toEqual([]);
});

async function actionAtRandom(books: Books, seed: number, done: Record<string, number>): Promise<void> {
  const { random } = seeded(seed);
  const names = Object.keys(PAYMENT_ACTS);
  for (let index = 0; index < ACTIONS; index += 1) {
    const name = names[Math.floor(random() * names.length)] as string;
    const day = `2026-10-${String(1 + Math.floor(random() * 15)).padStart(2, '0')}`;
    try {
      await PAYMENT_ACTS[name]?.(books, random, day);
      done[name] = (done[name] ?? 0) + 1;
      for (const ties of await books.sql(TIES))
        expect(ties).toMatchObject({ payments_tie: true, none_below_zero: true, invoices_tie: true });
      if (index % 20 !== 19) continue;
      await books.verified();
      const { accounts } = await books.database.reading((tx) => readBankReconciliation(tx, { today: '2026-10-15' }));
      expect(accounts.map(({ account, difference }) => [account, Number(difference)])).toEqual(
        accounts.map(({ account }) => [account, 0]),
      );
    } catch (error) {
      throw new Error(`RECKONER_SEED=${seed} RECKONER_HISTORIES=1, action ${index}, ${name}`, { cause: error });
    }
  }
}
