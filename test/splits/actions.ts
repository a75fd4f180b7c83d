/** Actions of a random history on a connected account: shares are received, reversed, matched and billed. */
import { expect } from 'vitest';
import { billMissing } from '../../src/actions/processor/bill.ts';
import { processorImport } from '../../src/actions/processor/import.ts';
import { processorClose, processorMatch, processorUnmatch } from '../../src/actions/processor/match.ts';
import { processorReverse, reconcileReverse } from '../../src/actions/processor/reverse.ts';
import { readHeldRows } from '../../src/ledger/held.sql.ts';
import { isRequest } from '../../src/ledger/held.ts';
import type { Month } from '../../src/month.ts';
import { recordRequestedReversals } from '../../src/splits/requested.ts';
import { type ReversalReport, recordReversals } from '../../src/splits/reverse.ts';
import { sendSettlementFile } from '../../src/splits/settlement-files.ts';
import { booksOf } from '../payments/books.ts';
import type { Action, History } from '../property/actions.ts';
import { confirmed } from '../property/confirmed.ts';
import { converted, ndjson, payout, reversedTransfers, share, type Told } from './balance-transactions.ts';
import { payOut } from './processor-world.ts';

const ACCOUNT = 'acct_1';
const reason = 'the partner says so';

const pick = <Value>({ random }: History, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random() * values.length)];

/** The balance transactions so far, of each history: reversed transfers take from them. */
const told = new WeakMap<History, Told[]>();

async function take(history: History, balance_transactions: readonly Told[]): Promise<void> {
  const { world } = history;
  const file = { name: 'moved.ndjson', bytes: Buffer.from(ndjson(balance_transactions)) };
  await confirmed(world, processorImport, { file, account: ACCOUNT });
  told.set(history, [...(told.get(history) ?? []), ...balance_transactions]);
}

/** Euro cents for the smallest unit of what is sent, where the processor converts it. */
const RATES: Readonly<Record<string, number>> = { usd: 0.9, jpy: 0.6, kwd: 0.29 };

/** As sent, or converted to euros, every fifth time. */
function settled(history: History, sent: Told): Told {
  const rate = RATES[sent.currency];
  const cents = Math.round(Math.abs(sent.amount) * (rate ?? 0));
  return rate === undefined || cents === 0 || history.random() > 0.2 ? sent : converted(sent, cents, String(rate));
}

/** What was sent, in the smallest unit of its currency: the source has it where it was converted. */
const sentAs = ({ amount, currency, source }: Told): { amount: number; currency: string } => ({
  amount: typeof source['amount'] === 'number' ? Math.sign(amount) * source['amount'] : amount,
  currency: typeof source['currency'] === 'string' ? source['currency'] : currency,
});

interface Open {
  readonly partner_id: string;
  readonly quote_id: string;
  readonly currency: string;
  /** In the smallest unit: accepted less reversed, less what was received. */
  readonly units: number;
}

/** Quotes under the connected account. In these currencies the processor's smallest unit is that of ISO 4217. */
const openQuotes = ({ world }: History): Promise<Open[]> =>
  world.sql<Open & Record<string, unknown>>(
    `SELECT e.partner_id, e.quote_id, e.currency,
            ((sum(e.invoice_amount) - coalesce((SELECT sum(r.amount) FROM share_allocations r WHERE r.quote_id = e.quote_id), 0))
              * CASE e.currency WHEN 'JPY' THEN 1 WHEN 'KWD' THEN 1000 ELSE 100 END)::int AS units
     FROM ledger_rows e WHERE e.arrangement = 'connected_account' GROUP BY e.partner_id, e.quote_id, e.currency ORDER BY e.quote_id`,
  );

/** Tells the model what the program has reversed by itself. */
async function learned(history: History, { recorded }: ReversalReport): Promise<boolean> {
  for (const row of recorded.filter((each) => each.balance_transaction !== null)) history.model.reversed(row);
  await learnTakenBack(history);
  return recorded.length > 0;
}

/** The requests that each history knows to be recorded, because the processor has taken our share back. */
const takenBack = new WeakMap<History, Set<number>>();

/** Tells the model of these requests, and of what was held after them. */
async function learnTakenBack(history: History): Promise<void> {
  const { world, model } = history;
  const known = takenBack.get(history) ?? new Set<number>();
  const decided = await world.sql<{ id: number }>(
    `SELECT held_row_id::int AS id FROM held_row_decisions JOIN audit_events USING (event_id)
     WHERE action = 'reversal.taken_back' ORDER BY held_row_id`,
  );
  const ids = decided.map(({ id }) => id).filter((id) => !known.has(id));
  for (const row of await world.database.reading((tx) => readHeldRows(tx, { ids }))) model.recorded(row);
  takenBack.set(history, new Set([...known, ...ids]));
}

/** The processor takes back what a partner has asked for, of a share that it routes now if it has not. */
async function takeBackRequest(history: History): Promise<boolean> {
  const { world } = history;
  const requests = (await world.database.reading((tx) => readHeldRows(tx, { partner: 'p-3', undecided: true }))).filter(
    (row) => isRequest(row) && Number(row.invoice_amount) < 0,
  );
  const request = pick(history, requests);
  if (request === undefined) return false;
  const { quote_id, currency } = request;
  const digits = currency === 'JPY' ? 0 : currency === 'KWD' ? 3 : 2;
  const units = Math.round(-Number(request.invoice_amount) * 10 ** digits);
  const came = share(units, history.now.toISOString(), { quote_id }, currency.toLowerCase());
  const back = reversedTransfers(
    came,
    pick(history, [units, units, Math.ceil(units / 2)]) as number,
    history.now.toISOString(),
  );
  await take(history, [came, back]);
  const isNamed = history.random() < 0.4;
  if (isNamed) {
    const amount = decimalOf(back.amount, currency);
    const head = 'quote_id,transfer,payment,amount,currency,refunded,reversal_id';
    const refunded = decimalOf(-back.amount, currency);
    const text = `${head}\n${quote_id},,${back.source.id},${amount},${currency},${refunded},${request.own_id}\n`;
    const caller = { partnerId: 'p-3', clientId: 'c-history' };
    await world.database.transaction((tx) => sendSettlementFile(tx, world, text, caller));
    const [row] = await world.sql<{ month: Month }>(
      `SELECT posted_month AS month FROM ledger_rows WHERE partner_id = 'p-3' AND quote_id = $1 LIMIT 1`,
      [quote_id],
    );
    const month = row?.month as Month;
    return learned(history, await world.database.transaction((tx) => recordReversals(tx, world, month)));
  }
  const recorded = await world.database.transaction((tx) => recordRequestedReversals(tx, world));
  await learnTakenBack(history);
  return recorded.length > 0;
}

/** Units of the currency as a plain decimal. */
function decimalOf(units: number, currency: string): string {
  const digits = currency === 'JPY' ? 0 : currency === 'KWD' ? 3 : 2;
  return (units / 10 ** digits).toFixed(digits);
}

let lines = 0;

export const SPLIT_ACTS: readonly Action[] = [
  {
    name: 'shares are received',
    weight: 6,
    async run(history) {
      const quotes = (await openQuotes(history)).filter(({ units }) => units > 0);
      const balance_transactions = quotes
        .filter((_, index) => index === 0 || history.random() < 0.4)
        .map(({ quote_id, currency, units }) => {
          const part = Math.max(1, Math.round(units * (pick(history, [1, 1, 1, 0.5, 1.2]) ?? 1)));
          const metadata = history.random() < 0.8 ? { quote_id } : {};
          return settled(history, share(part, history.now.toISOString(), metadata, currency.toLowerCase()));
        });
      if (balance_transactions.length === 0) return false;
      await take(history, balance_transactions);
      return true;
    },
  },
  {
    name: 'a transfer is reversed',
    weight: 3,
    async run(history) {
      const came = pick(
        history,
        (told.get(history) ?? []).filter(({ amount }) => amount > 0),
      );
      if (came === undefined) return false;
      const before = (told.get(history) ?? [])
        .filter(({ source }) => source['charge'] === came.source.id)
        .reduce((sum, each) => sum + sentAs(each).amount, sentAs(came).amount);
      if (before <= 0) return false;
      const part = pick(history, [before, before, Math.ceil(before / 2)]) ?? before;
      const { currency } = sentAs(came);
      await take(history, [
        settled(history, reversedTransfers({ ...came, currency }, part, history.now.toISOString())),
      ]);
      return true;
    },
  },
  {
    name: 'finance matches a balance transaction',
    weight: 2,
    rare: true,
    refusals: ['argument_invalid', 'balance_transaction_matched'],
    async run(history) {
      const balance_transaction = pick(history, told.get(history) ?? []);
      const quote = pick(history, await openQuotes(history));
      if (balance_transaction === undefined || quote === undefined) return false;
      const countsAs = history.random() < 0.3 ? '5' : undefined;
      const request = { balance_transaction: balance_transaction.id, quoteId: quote.quote_id, countsAs, reason };
      await confirmed(history.world, processorMatch, request);
      return true;
    },
  },
  {
    name: 'a partner sends a settlement file',
    weight: 2,
    async run(history) {
      const { world } = history;
      const quote = pick(
        history,
        (await openQuotes(history)).filter(({ units }) => units > 0),
      );
      if (quote === undefined) return false;
      const { partner_id: partnerId, quote_id, currency, units } = quote;
      const moved = share(units, history.now.toISOString(), {}, currency.toLowerCase());
      const told = () => take(history, [moved]);
      const first = history.random() < 0.5;
      if (first) await told();
      const [transfer, payment] = [moved.source['source_transfer'], moved.source.id];
      const named = pick(history, [`${transfer},${payment}`, `${transfer},`, `,${payment}`]);
      const text = `quote_id,transfer,payment,amount,currency\n${quote_id},${named},${decimalOf(units, currency)},${currency}\n`;
      const caller = { partnerId, clientId: 'c-history' };
      const send = () => world.database.transaction((tx) => sendSettlementFile(tx, world, text, caller));
      const [sent, again] = [await send(), await send()];
      if (!first) await told();
      const { file } = await send();
      expect({ fresh: [sent.fresh, again.fresh], file }).toMatchObject({
        fresh: [true, false],
        file: { lines: 1, matched: 1, unmatched: [] },
      });
      return true;
    },
  },
  {
    name: 'finance undoes a match',
    weight: 2,
    refusals: ['argument_invalid', 'share_paid_back'],
    async run(history) {
      const { world } = history;
      const shares = await world.sql<{ balance_transaction: string; quote_id: string }>(
        `SELECT m.id AS balance_transaction, r.quote_id FROM share_allocations r JOIN balance_transactions m USING (balance_transaction_id)
         ORDER BY r.share_allocation_id`,
      );
      const found = pick(history, shares);
      if (found === undefined) return false;
      const request = { balance_transaction: found.balance_transaction, quoteId: found.quote_id, reason };
      await confirmed(world, processorUnmatch, request);
      return true;
    },
  },
  {
    name: 'finance closes money without a quote',
    weight: 1,
    rare: true,
    async run(history) {
      const { world } = history;
      const open = await world.sql<{ id: string }>(
        `SELECT id FROM unexplained_balance_transactions WHERE ended IS NULL ORDER BY balance_transaction_id`,
      );
      const found = pick(history, open);
      if (found === undefined) return false;
      const request = { balance_transactions: [found.id], reason };
      await confirmed(world, processorClose, request);
      return true;
    },
  },
  {
    name: 'reversed transfers are recorded',
    weight: 2,
    rare: true,
    async run(history) {
      const { world } = history;
      const months = await world.sql<{ month: Month }>(
        `SELECT DISTINCT posted_month AS month FROM ledger_rows WHERE arrangement = 'connected_account' ORDER BY 1`,
      );
      const month = pick(history, months)?.month;
      if (month === undefined) return false;
      return learned(history, (await confirmed(world, reconcileReverse, { month })) as ReversalReport);
    },
  },
  {
    name: 'finance supplies the price of a reversed transfer',
    weight: 1,
    rare: true,
    refusals: ['balance_transaction_not_reversible', 'argument_invalid'],
    async run(history) {
      const { world } = history;
      const back = await world.sql<{ balance_transaction: string; amount: string }>(
        `SELECT m.id AS balance_transaction, (-m.share_amount)::text AS amount FROM balance_transactions m
         WHERE m.kind = 'reversal' AND EXISTS (SELECT FROM share_allocations r WHERE r.balance_transaction_id = m.balance_transaction_id)
         ORDER BY m.balance_transaction_id`,
      );
      const found = pick(history, back);
      if (found === undefined) return false;
      const request = { balance_transaction: found.balance_transaction, spotPrice: found.amount };
      return learned(history, (await confirmed(world, processorReverse, request)) as ReversalReport);
    },
  },
  {
    name: 'the processor takes back what a partner asks to reverse',
    weight: 2,
    rare: true,
    run: takeBackRequest,
  },
  {
    name: 'the account pays out',
    weight: 2,
    async run(history) {
      const { world, random } = history;
      const day = history.now.toISOString().slice(0, 10);
      const waiting = await world.sql<{ ids: string[]; amount: string }>(
        `SELECT array_agg(m.id ORDER BY m.balance_transaction_id) AS ids, sum(m.net)::text AS amount FROM balance_transactions m
         WHERE m.account = '${ACCOUNT}' AND m.currency = 'USD' AND m.type <> 'payout'
           AND NOT EXISTS (SELECT FROM payout_contents c WHERE c.balance_transaction_id = m.balance_transaction_id)
         HAVING sum(m.net) > 0`,
      );
      const [out] = waiting;
      if (out === undefined) return false;
      const told = random() < 0.8;
      const arrives = async () => {
        lines += 1;
        const line = `${day},${out.amount},USD,0001 USD,AP-${lines},STRIPE TRANSFER,STRIPE,\n`;
        const head = 'date,amount,currency,account,bank_reference,text,payer,payer_account\n';
        await booksOf(world).bankText('paid-out.csv', head + line);
      };
      const first = random() < 0.3;
      if (first) await arrives();
      const units = Math.round(Number(out.amount) * 100);
      await payOut(world, ACCOUNT, payout(units, history.now.toISOString(), { automatic: told }), told ? out.ids : []);
      if (!first && random() < 0.7) await arrives();
      return true;
    },
  },
  {
    name: 'missing shares are billed',
    weight: 3,
    refusals: ['clock_behind'],
    async run(history) {
      const { world } = history;
      const months = await world.sql<{ month: Month }>(`SELECT month FROM closed_months ORDER BY month`);
      const month = pick(history, months)?.month;
      if (month === undefined) return false;
      return ((await confirmed(world, billMissing, { month })) as string[]).length > 0;
    },
  },
];
