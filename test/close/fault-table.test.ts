/**
 * The fault table (faults/fault-table.ts): 40 partners, 24 honest months, and 197 faulty deliveries. The table was written
 * by someone who had not seen the checks. Each fault is imported and closed after the honest months before it, with and
 * without the totals that the partner states. A fault is named if the import, the close or a held row or document names
 * its partner before the invoice is e-mailed.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closeNext, readFeeds } from '../../src/close/close.ts';
import { undecidedFeeds } from '../../src/close/feeds.ts';
import { stateFeed } from '../../src/close/stated.ts';
import type { Transaction } from '../../src/database/transaction.ts';
import { query } from '../../src/database/transaction.ts';
import { type Control, readTotals, type Totals } from '../../src/ledger/control.ts';
import { type ImportReport, importRows } from '../../src/ledger/import.ts';
import { type Month, monthAfter } from '../../src/month.ts';
import { openWorld, type World } from '../support/world.ts';
import {
  FAULTS,
  type Fault,
  honestMonth,
  MONTHS,
  PARTNERS,
  type Row,
  toCsv,
  totals,
  VARIANCES,
} from './faults/fault-table.ts';

let world: World;
const named: Record<'without' | 'withTotals', Map<string, string>> = { without: new Map(), withTotals: new Map() };
const honest = { stops: [] as string[], held: [] as string[], documents: 0 };

beforeAll(async () => {
  world = await openWorld({ fresh: true });
  world.settings = { ...world.settings, allow_empty: false };
  await world.partners(
    PARTNERS.map(({ partner_id, time_zone, currency, policies }) => ({
      ...{ partner_id, name: partner_id, time_zone, currency },
      // The terms hold no reversal of the table: its faults are found by what history and totals say.
      policies: policies.map((each) => ({
        ...{ ...each, name: each.policy_id, kind: 'insurance', cancellation: { window_days: 3660 } },
      })),
    })),
  );
  for (const [index, month] of MONTHS.entries()) {
    world.at(`${monthAfter(month as Month)}-02T12:00:00Z`);
    const faults = FAULTS.filter((fault) => fault.month === month);
    for (const way of ['without', 'withTotals'] as const) await inject(faults, way);
    await closeHonestly(index, month as Month);
  }
}, 900_000);
afterAll(() => world.end());

const options = () => ({
  skipInvalid: false,
  now: world.environment.now(),
  actor: world.actor,
  ceilings: world.settings.reversals,
  environment: world.environment,
});

/** Imports files of rows as one delivery, with what the sender states of it. */
async function deliver(tx: Transaction, files: readonly Row[][], control?: Control): Promise<ImportReport> {
  await dropTemporary(tx);
  const given = files.map((rows, nth) => {
    const name = world.file(`delivery-${nth}.csv`, toCsv(rows));
    return { name, format: 'csv' as const };
  });
  return importRows(tx, given, { ...options(), ...(control && { control }) });
}

/** The number of rows and their totals by currency. */
function controlOf(rows: readonly Row[]): Control {
  const currencies = [...new Set(rows.map(({ currency }) => currency))];
  const totalOf = (code: string) => totals(rows.filter(({ currency }) => currency === code)).invoiceAmount;
  return { count: rows.length, totals: readTotals(currencies.map((code) => `${code}=${totalOf(code)}`)) };
}

/** The partner's true totals of the month. */
function statedOf({ partner_id, stated }: Fault): { count: number; totals: Totals } {
  const currency = PARTNERS.find((each) => each.partner_id === partner_id)?.currency;
  return { count: stated.count, totals: readTotals([`${currency}=${stated.invoiceAmount}`]) };
}

/** A command would import in a transaction of its own. */
async function dropTemporary(tx: Transaction): Promise<void> {
  const tables = await query<{ name: string }>(
    tx,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'`,
  );
  for (const { name } of tables) await query(tx, `DROP TABLE pg_temp.${name}`);
}

/** Imports and closes a month with its faults, each at another partner, and rolls everything back. */
async function inject(faults: readonly Fault[], way: 'without' | 'withTotals'): Promise<void> {
  const found = named[way];
  const name = ({ id }: Fault, by: string) => found.set(id, [found.get(id) ?? [], by].flat().join(', '));
  await world.database.preview(async (tx) => {
    const month = faults[0]?.month as Month;
    if (month === undefined) return;
    for (const fault of faults) {
      const { deliveries } = fault;
      const isStated = way === 'withTotals';
      // The sender states the totals of files; without a file, the partner states them of its month.
      if (isStated && deliveries.length === 0) await state(tx, fault);
      const given = isStated && deliveries.length > 0 ? [deliveries] : deliveries.map((rows) => [rows]);
      for (const files of given) {
        const report = await deliver(tx, files, isStated ? statedOf(fault) : undefined);
        for (const code of new Set(report.errors.map((error) => error.code))) name(fault, `refused: ${code}`);
        if (report.held > 0) name(fault, 'held rows');
      }
    }
    // The other partners' rows do not matter for these: what is missing of them is accepted.
    const feeds = await readFeeds(tx, world, month);
    const faulty = (id: string) => faults.find(({ partner_id }) => partner_id === id);
    for (const doubt of feeds.doubts) {
      const fault = faulty(doubt.partner_id);
      if (fault !== undefined) name(fault, doubt.stops ? `stopped: ${doubt.kind}` : `doubt: ${doubt.kind}`);
    }
    const { doubts } = undecidedFeeds(feeds);
    const ids = (isMissing: boolean) =>
      doubts.filter(({ kind }) => (kind === 'missing') === isMissing).map(({ partner_id }) => partner_id);
    const decision = { without: ids(true), acceptFeed: ids(false), allowEmpty: feeds.empty };
    await dropTemporary(tx);
    await closeNext(tx, world, { month, ...decision, preview: true });
    for (const { partner_id } of await readHeldPartners(tx)) {
      const fault = faulty(partner_id);
      if (fault !== undefined) name(fault, 'held document');
    }
  });
}

function state(tx: Transaction, fault: Fault) {
  const { count: entries, totals: sums } = statedOf(fault);
  const { partner_id: partnerId, month } = fault;
  return stateFeed(tx, world, { partnerId, month: month as Month, complete: true, stated: { entries, totals: sums } });
}

const readHeldPartners = (tx: Transaction) =>
  query<{ partner_id: string; reason: string }>(
    tx,
    `SELECT d.partner_id, h.reason FROM current_holds h JOIN documents d USING (document_id)
     WHERE d.month = (SELECT max(month) FROM closed_months)`,
  );

async function closeHonestly(index: number, month: Month): Promise<void> {
  // One import of all partners is fast, and leaves a receipt of each.
  const delivered = PARTNERS.map((partner) => honestMonth(partner, month));
  const report = await world.database.transaction((tx) => deliver(tx, delivered, controlOf(delivered.flat())));
  honest.stops.push(...report.errors.map(({ reason }) => `${month}: ${reason}`));
  if (report.held > 0) honest.stops.push(`${month}: ${report.held} rows held`);
  const feeds = await world.database.reading((tx) => readFeeds(tx, world, month));
  for (const each of undecidedFeeds(feeds).doubts) honest.stops.push(`${month} ${each.partner_id}: ${each.evidence}`);
  await world.close(month);
  const held = await world.database.reading(readHeldPartners);
  if (index < 3) expect(held).toEqual([]);
  honest.held.push(...held.map(({ reason }) => `${month} ${reason}`));
  if (index >= 3) honest.documents += PARTNERS.length;
}

test('the table is the one that was written before the checks', () => {
  const sha256 = createHash('sha256')
    .update(readFileSync(join(import.meta.dirname, 'faults/fault-table.ts')))
    .digest('hex');
  expect(sha256).toBe('5f6e1c51a03a884366391d049e039261883bb2060b978ded30c069f5b78bf5ff');
  expect(FAULTS).toHaveLength(197);
});

test('of 24 honest months none stops, and at most one document in 200 is held', () => {
  expect(honest.stops).toEqual([]);
  process.stdout.write(
    `${honest.held.length} of ${honest.documents} honest documents held: ${honest.held.join('; ')}\n`,
  );
  expect(honest.documents).toBe(840);
  expect(honest.held.length).toBeLessThanOrEqual(honest.documents / 200);
});

const unnamed = (way: 'without' | 'withTotals', expected: readonly Fault['expected']['without'][]) =>
  FAULTS.filter((fault) => expected.includes(fault.expected.without) && !named[way].has(fault.id)).map(
    ({ id, degree, partner_id, month }) => `${id} (${degree}) of ${partner_id} in ${month}`,
  );

test('with the totals that the partner states, every fault is named', () => {
  expect(unnamed('withTotals', ['named', 'either', 'not decidable'])).toEqual([]);
});

test('without totals, what can be known from the rows is named, and the share of the rest is printed', () => {
  const lines = ['Found without totals, by the share of rows that arrived:'];
  for (const kind of ['truncated', 'thinned'] as const) {
    for (const variance of VARIANCES) {
      const shares = ['80', '60', '40', '10'].map((degree) => {
        const of = FAULTS.filter(
          (fault) =>
            fault.kind === kind && fault.degree.startsWith(`${degree} %`) && fault.partner_id.endsWith(variance),
        );
        return `${degree} %: ${of.filter(({ id }) => named.without.has(id)).length} of ${of.length}`;
      });
      lines.push(`  ${kind}, ${variance}: ${shares.join(', ')}`);
    }
  }
  for (const kind of new Set(FAULTS.map((fault) => fault.kind))) {
    const of = FAULTS.filter((fault) => fault.kind === kind);
    lines.push(`  ${kind}: ${of.filter(({ id }) => named.without.has(id)).length} of ${of.length}`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
  expect(unnamed('without', ['named'])).toEqual([]);
});
