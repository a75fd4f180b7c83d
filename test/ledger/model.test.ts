/**
 * Random imports against a bookkeeper who judges row by row: few ids, so that rows repeat, contradict, miss their quotes
 * and take back too much. After each import the ledger holds exactly what the bookkeeper wrote down.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import fc from '../support/property.ts';
import { openWorld, partner, type World } from '../support/world.ts';
import { csv, ledger, ndjson } from './ledger.ts';

interface Line {
  readonly kind: 'quote_accepted' | 'requote_accepted' | 'reversal';
  readonly quote: number;
  readonly requote: number | undefined;
  readonly reversal: number | undefined;
  readonly policy: string;
  readonly cut: number;
  readonly share: number;
}

const number = fc.integer({ min: 1, max: 3 });
const policy = fc.constantFrom(...Array.from({ length: 5 }, () => 'ticket-protection'), 'parking');
const amount = fc.constantFrom(0, 1, 2, 5);
const line: fc.Arbitrary<Line> = fc.oneof(
  fc.record({ quote: number, policy, cut: amount, share: amount }).map(
    (row): Line => ({
      ...row,
      kind: 'quote_accepted',
      requote: undefined,
      reversal: undefined,
    }),
  ),
  fc.record({ quote: number, requote: number, policy, cut: amount, share: amount }).map(
    (row): Line => ({
      ...row,
      kind: 'requote_accepted',
      reversal: undefined,
    }),
  ),
  fc
    .record({
      quote: number,
      requote: fc.option(number, { nil: undefined }),
      reversal: number,
      policy,
      cut: amount,
      share: amount,
    })
    .map((row): Line => ({ ...row, kind: 'reversal', cut: -row.cut, share: -row.share })),
);
const imports = fc.array(
  fc.record({
    lines: fc.array(line, { minLength: 1, maxLength: 7 }),
    split: fc.nat({ max: 7 }),
    skipInvalid: fc.constantFrom(true, true, false),
  }),
  { minLength: 4, maxLength: 7 },
);

const own = (row: Line): string => `${row.kind} ${row.reversal ?? row.requote ?? row.quote}`;
const content = (row: Line): string => JSON.stringify(row);
const isQuote = (row: Line) => row.kind === 'quote_accepted';

/** What is recorded of an import, or undefined where it is refused as a whole. */
function judged(recorded: readonly Line[], lines: readonly Line[], skipInvalid: boolean): Line[] | undefined {
  let refused = false;
  const keep = (rows: readonly Line[], isGood: (row: Line) => boolean): Line[] =>
    rows.filter((row) => {
      const good = isGood(row);
      if (!good) refused = true;
      return good;
    });

  // A row that is known, or stood earlier in the import: nothing new where it says the same, else a contradiction.
  const known = new Map(recorded.map((row) => [own(row), content(row)]));
  let rows = keep(lines, (row) => (known.get(own(row)) ?? content(row)) === content(row)).filter(
    (row) => !known.has(own(row)),
  );
  const first = new Map<string, Line>();
  for (const row of rows) if (!first.has(own(row))) first.set(own(row), row);
  rows = keep(rows, (row) => content(first.get(own(row)) ?? row) === content(row)).filter(
    (row) => first.get(own(row)) === row,
  );

  const everything = [...recorded, ...rows];
  rows = keep(rows, (row) => {
    const of = everything.find((each) => isQuote(each) && each.quote === row.quote);
    return isQuote(row) || of?.policy === row.policy;
  });
  const requotes = [...recorded, ...rows].filter((row) => row.kind === 'requote_accepted');
  rows = keep(rows, (row) => {
    if (row.kind !== 'reversal' || row.requote === undefined) return true;
    return requotes.some((each) => each.requote === row.requote && each.quote === row.quote);
  });

  const inOrder = skipInvalid
    ? rows
    : [...rows].sort((a, b) => Number(a.kind === 'reversal') - Number(b.kind === 'reversal'));
  const left = new Map<number, { cut: number; share: number }>();
  const add = (row: Line, strict: boolean): boolean => {
    const { cut, share } = left.get(row.quote) ?? { cut: 0, share: 0 };
    const after = { cut: cut + row.cut, share: share + row.share };
    if (strict && row.kind === 'reversal' && Math.min(after.cut, after.share, after.cut + after.share) < 0)
      return false;
    left.set(row.quote, after);
    return true;
  };
  for (const row of recorded) add(row, false);
  const good = keep(inOrder, (row) => add(row, true));
  if (refused && !skipInvalid) return undefined;
  return rows.filter((row) => good.includes(row));
}

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.end());

let partners = 0;

test('random imports leave exactly what a bookkeeper would have written down', async () => {
  let refusals = 0;
  let recordings = 0;
  await fc.assert(
    fc.asyncProperty(imports, async (each) => {
      partners += 1;
      const partner_id = `p-${partners}`;
      await world.partners([partner({ partner_id })]);
      const written = (row: Line) => ({
        kind: row.kind,
        partner_id,
        quote_id: `${partner_id}-${row.quote}`,
        ...(row.requote === undefined ? {} : { requote_id: `rq-${row.requote}` }),
        ...(row.reversal === undefined ? {} : { reversal_id: `rv-${row.reversal}` }),
        policy_id: row.policy,
        currency: 'USD',
        // No two rows of a quote are accepted in one second, so that none repeats another.
        accepted_at: `2026-07-15T12:00:0${row.reversal ?? row.requote ?? 0}Z`,
        spotPrice: row.cut + row.share,
        partnerCut: row.cut,
        invoiceAmount: row.share,
      });
      const recorded: Line[] = [];
      for (const { lines, split, skipInvalid } of each) {
        const before = recorded.length;
        const wanted = judged(recorded, lines, skipInvalid);
        recorded.push(...(wanted ?? []));
        const rows = lines.map(written);
        const files = [
          world.file('model.csv', csv(...rows.slice(0, split))),
          world.file('model.ndjson', ndjson(...rows.slice(split))),
        ];
        const report = await world.importFiles(files, { skipInvalid, allowed: true });
        expect(report).toMatchObject({ accepted: recorded.length - before, refused: wanted === undefined });
        expect(report.accepted === 0 || report.accepted + report.duplicates + report.rejected === lines.length).toBe(
          true,
        );
        if (report.refused) refusals += 1;
        else recordings += report.accepted;
      }
      const entries = (await ledger(world)).filter((entry) => entry.partner_id === partner_id);
      const kept = entries.map((entry) => [
        entry.kind,
        entry.reversal_id ?? entry.requote_id ?? entry.quote_id,
        entry.spot_price,
      ]);
      expect(kept).toEqual(
        recorded
          .map(written)
          .map((row) => [row.kind, row.reversal_id ?? row.requote_id ?? row.quote_id, String(row.spotPrice)]),
      );
    }),
    { numRuns: 20 },
  );
  // The sequences were worth something: some imports were refused, and many rows recorded.
  expect(refusals).toBeGreaterThan(2);
  expect(recordings).toBeGreaterThan(10);
});

test('no quote of theirs was ever taken below zero', async () => {
  const [checked] = await world.sql<{ quotes: string; below: string }>(
    `SELECT count(*) AS quotes, count(*) FILTER (WHERE least(spot, cut, share) < 0) AS below
     FROM (SELECT sum(spot_price) AS spot, sum(partner_cut) AS cut, sum(invoice_amount) AS share
           FROM ledger_rows GROUP BY partner_id, quote_id) AS sums`,
  );
  expect(Number(checked?.quotes)).toBeGreaterThan(5);
  expect(checked?.below).toBe('0');
});
