/**
 * Rows that wait for a person, in random histories: sales that a file sends again under another id, and reversals that the
 * cancellation terms do not cover. Terms and ceilings change meanwhile.
 */
import { expect } from 'vitest';
import type { Action as Described } from '../../src/actions/action.ts';
import { reversalGrant, reversalRefuse, rowsDiscard, rowsRelease } from '../../src/actions/held.ts';
import { Refusal } from '../../src/errors/refusals.ts';
import { type HeldRow, readHeldRows } from '../../src/ledger/held.sql.ts';
import { isRequest } from '../../src/ledger/held.ts';
import { Amount, minorDigits } from '../../src/money.ts';
import { readPartners } from '../../src/partners/partners.sql.ts';
import { previewReversal, reverseQuote } from '../../src/quotes/reverse.ts';
import { inMajorUnits } from '../close/model.ts';
import type { Action, History } from '../property/actions.ts';
import { confirmed } from '../property/confirmed.ts';

const pick = <Value>({ random }: History, values: readonly Value[]): Value | undefined =>
  values[Math.floor(random() * values.length)];
const below = ({ random }: History, count: number) => Math.floor(random() * count);

/** Undecided rows: requests, or all others. */
const deciding =
  (requests: boolean, decide: (history: History, row: HeldRow) => Promise<void>): Action['run'] =>
  async (history) => {
    const undecided = await history.world.database.reading((tx) => readHeldRows(tx, { undecided: true }));
    // What follows a held sale or reversal is decided with it, for the most part.
    const row = pick(
      history,
      undecided.filter((each) => isRequest(each) === requests),
    );
    if (row === undefined) return false;
    await decide(history, row);
    return true;
  };

/** Confirms a decision about held rows, and tells the model of the rows that it recorded. */
async function decided<Input, Result, Followed>(
  { world, model }: History,
  action: Described<Input, Result, Followed>,
  input: Input,
): Promise<void> {
  const [{ last } = { last: '0' }] = await world.sql<{ last: string }>(
    'SELECT coalesce(max(entry_id), 0) AS last FROM ledger_rows',
  );
  await confirmed(world, action, input);
  const rows = await world.sql<Parameters<typeof model.recorded>[0] & Record<string, unknown>>(
    `SELECT kind, quote_id, partner_id, policy_id, currency, partner_cut::text, invoice_amount::text
     FROM ledger_rows WHERE entry_id > $1 ORDER BY entry_id`,
    [last],
  );
  for (const row of rows) model.recorded(row);
}

/** A quote of the ledger, what is left of it, and its requotes. */
interface Sold {
  readonly partner_id: string;
  readonly quote_id: string;
  readonly policy_id: string;
  readonly currency: string;
  readonly cut: string;
  readonly share: string;
  readonly requotes: string[] | null;
}

const soldQuotes = ({ world }: History): Promise<Sold[]> =>
  world.sql<Sold & Record<string, unknown>>(
    `SELECT partner_id, quote_id, policy_id, currency, sum(partner_cut)::text AS cut, sum(invoice_amount)::text AS share,
            array_agg(requote_id ORDER BY requote_id) FILTER (WHERE kind = 'requote_accepted') AS requotes
     FROM ledger_rows GROUP BY partner_id, quote_id, policy_id, currency ORDER BY partner_id, quote_id`,
  );

/** A part of an amount, at or below zero. */
function part(amount: string, currency: string, of: number): string {
  const digits = minorDigits(currency) as number;
  return inMajorUnits(-Math.floor((Number(amount) * 10 ** digits) / of + 0.000_001), digits);
}

let reversals = 0;

async function reverseByApi(history: History): Promise<boolean> {
  const { world, model } = history;
  const sold = pick(history, await soldQuotes(history));
  if (sold === undefined) return false;
  const { partner_id: partnerId, quote_id: quoteId, currency } = sold;
  const how = pick(history, ['all', 'all', 'half', 'share', 'cut', 'too much'] as const);
  const of = how === 'half' ? 2 : how === 'too much' ? 0.4 : 1;
  const partnerCut = how === 'share' ? '0' : part(sold.cut, currency, of);
  const invoiceAmount = how === 'cut' ? '0' : part(sold.share, currency, of);
  const spotPrice = Amount.of(partnerCut, currency).plus(Amount.of(invoiceAmount, currency)).toString();
  const amounts = how === 'all' ? undefined : { spotPrice, partnerCut, invoiceAmount };
  const requoteId = below(history, 3) === 0 ? pick(history, sold.requotes ?? []) : undefined;
  reversals += 1;
  const wanted = { quoteId, requoteId, amounts };
  const order = { order_reference: null, cover_from: null, cover_to: null };
  const asked = () => ({
    ...{ caller: { partnerId, clientId: 'c-history' }, now: world.environment.now() },
    ceilings: world.settings.reversals,
    environment: world.environment,
  });
  const reversalId = `api-${reversals}`;
  const foreseen = await world.database
    .reading((tx) => previewReversal(tx, wanted, asked()))
    .catch((error: unknown) => error as Refusal);
  const call = () => world.database.transaction((tx) => reverseQuote(tx, { ...wanted, reversalId, order }, asked()));
  const answer = await call().catch((error: unknown) => {
    // The preview refuses what the call refuses.
    if (error instanceof Refusal)
      expect([error.code, error.facts]).toEqual([(foreseen as Refusal).code, (foreseen as Refusal).facts]);
    throw error;
  });
  if (foreseen instanceof Error)
    throw new Error(`the preview refused ${reversalId}, which was answered`, { cause: foreseen });
  const { row, ground, request } = answer;
  expect([
    ground,
    request?.sign ?? null,
    row.invoice_amount === request?.invoice_amount || request === undefined,
  ]).toEqual([...[foreseen.ground, foreseen.outside, true]]);
  expect(await call()).toEqual(answer);
  if (ground !== null) {
    model.recorded({ ...row, kind: 'reversal', partner_id: partnerId, policy_id: sold.policy_id });
  }
  return true;
}

const withoutNulls = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(withoutNulls)
    : value !== null && typeof value === 'object'
      ? Object.fromEntries(
          Object.entries(value).flatMap(([name, each]) => (each === null ? [] : [[name, withoutNulls(each)]])),
        )
      : value;

function someTerms(history: History): object | null {
  if (below(history, 5) === 0) return null;
  return {
    window_days: pick(history, ['0', '14', '60', '365']),
    after_window: pick(history, ['none', 'pro_rata', 'pro_rata', 'full']),
    cut: pick(history, ['in_proportion', 'in_proportion', 'kept_by_partner']),
    before_cover_only: below(history, 4) === 0,
  };
}

async function changeTerms(history: History): Promise<boolean> {
  const { world } = history;
  const known = await world.database.reading((tx) => readPartners(tx));
  const partner = pick(history, known);
  if (partner === undefined) return false;
  const { arrangements: _, policies, ...own } = partner as typeof partner & { arrangements?: unknown };
  const from = pick(history, [undefined, undefined, history.now.toISOString().slice(0, 10), '2026-05-10']);
  const changed = policies.map((policy) => {
    const terms = someTerms(history);
    const dated = terms === null || from === undefined ? terms : [{ from, ...terms }];
    return { ...(withoutNulls(policy) as object), cancellation: dated };
  });
  await world.partners([{ ...(withoutNulls(own) as object), policies: changed }]);
  return true;
}

export const HELD_ACTIONS: readonly Action[] = [
  {
    name: 'a file sends a sale again under another id',
    weight: 3,
    async run(history) {
      const { world } = history;
      const sales = await world.sql<{ row: Record<string, unknown>; held: number }>(
        `SELECT json_build_object('kind', kind, 'partner_id', partner_id, 'quote_id', quote_id, 'enrollment_id',
                  enrollment_id, 'policy_id', policy_id, 'currency', currency, 'accepted_at', accepted_at, 'spotPrice',
                  spot_price::text, 'partnerCut', partner_cut::text, 'invoiceAmount', invoice_amount::text) AS row,
                (SELECT count(*)::int FROM held_rows) AS held
         FROM ledger_rows WHERE kind = 'quote_accepted' AND enrollment_id IS NOT NULL ORDER BY entry_id`,
      );
      const sale = pick(history, sales);
      if (sale === undefined) return false;
      const again = { ...sale.row, quote_id: `again-${sale.held}-${sale.row['quote_id']}` };
      const report = await world.rows([again]);
      expect(report).toMatchObject({ accepted: 0, held: 1, rejected: 0 });
      return true;
    },
  },
  {
    name: 'a held row is released',
    weight: 1,
    refusals: ['held_row_invalid'],
    run: deciding(false, async (history, row) => {
      await decided(history, rowsRelease, { rows: [row.held_row_id], reason: 'two sales' });
    }),
  },
  {
    name: 'a held row is discarded',
    weight: 1,
    run: deciding(false, async ({ world }, row) => {
      await confirmed(world, rowsDiscard, { rows: [row.held_row_id], reason: 'sent twice' });
    }),
  },
  {
    name: 'a partner reverses a quote by API',
    weight: 5,
    refusals: ['reversal_exceeds', 'request_invalid'],
    run: reverseByApi,
  },
  {
    name: 'a reversal is granted',
    weight: 2,
    // Other reversals have taken what it asks for.
    refusals: ['held_row_invalid'],
    run: deciding(true, async (history, row) => {
      await decided(history, reversalGrant, { row: row.held_row_id, reason: 'goodwill' });
    }),
  },
  {
    name: 'a reversal is granted with other amounts',
    weight: 1,
    refusals: ['held_row_invalid', 'amount_invalid'],
    run: deciding(true, async (history, row) => {
      const { currency, held_row_id } = row;
      const back = (amount: string) => Amount.of(amount, currency).negated().toString();
      const amounts = {
        invoiceAmount: back(part(row.invoice_amount, currency, -2)),
        partnerCut: back(pick(history, ['0', part(row.partner_cut, currency, -3)]) as string),
      };
      await decided(history, reversalGrant, { row: held_row_id, ...amounts, reason: 'half of our share' });
    }),
  },
  {
    name: 'a reversal is refused',
    weight: 1,
    run: deciding(true, async ({ world }, row) => {
      await confirmed(world, reversalRefuse, { row: row.held_row_id, reason: 'it took place' });
    }),
  },
  { name: 'the cancellation terms of a partner change', weight: 3, run: changeTerms },
  {
    name: 'the ceilings of reversals change',
    weight: 1,
    async run(history) {
      const { world } = history;
      const above = pick(history, [{}, { USD: '20.00' }, { USD: '0.50', JPY: '700' }]) as Record<string, string>;
      const reversals = { above, share: pick(history, [null, null, '0.3']) ?? null };
      world.settings = { ...world.settings, reversals };
      return true;
    },
  },
];
