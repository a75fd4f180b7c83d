/**
 * Honest months of feeds of several sizes and variances: at most one of 200 judgments holds a document. A month of which
 * at most a tenth arrived is always named, if its feed is large enough to judge.
 */
import { describe, expect, test } from 'vitest';
import { earlyEnd, fewSales } from '../../src/close/usual.ts';
import { seeded } from '../support/random.ts';

const { random } = seeded();
const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

function poisson(mean: number): number {
  if (mean > 60) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal()));
  let count = -1;
  for (let left = 1; left > Math.exp(-mean); left *= random()) count += 1;
  return Math.max(count, 0);
}

/** Months of independent sales, whose expected number varies by a factor from month to month. */
const honest = (months: number, mean: number, spread: number): number[] =>
  Array.from({ length: months }, () => poisson(mean * Math.exp(spread * normal())));

const MEANS = [12, 20, 40, 150, 400, 3000];
const HISTORIES = [3, 4, 6, 12];
const TIMES = 400;

describe('of honest months, at most one document in 200 is held for its number of sales', () => {
  test.each([0, 0.1, 0.2, 0.3, 0.5])('if the months vary by %d', (spread) => {
    let judged = 0;
    let held = 0;
    for (const mean of MEANS) {
      for (const months of HISTORIES) {
        for (let time = 0; time < TIMES; time += 1) {
          const now = honest(1, mean, spread)[0] as number;
          judged += 1;
          held += Number(now > 0 && now <= fewSales(honest(months, mean, spread)));
        }
      }
    }
    expect(judged).toBe(MEANS.length * HISTORIES.length * TIMES);
    expect(held / judged).toBeLessThanOrEqual(1 / 200);
  });

  test('if the months follow the seasons', () => {
    let judged = 0;
    let held = 0;
    for (let time = 0; time < 600; time += 1) {
      const phase = random() * 12;
      const season = (month: number) => 300 * (1 + 0.5 * Math.sin((2 * Math.PI * (month + phase)) / 12));
      const sales = Array.from({ length: 24 }, (_, month) => honest(1, season(month), 0.1)[0] as number);
      for (let month = 3; month < sales.length; month += 1) {
        judged += 1;
        held += Number((sales[month] as number) <= fewSales(sales.slice(Math.max(0, month - 12), month)));
      }
    }
    expect(held / judged).toBeLessThanOrEqual(1 / 200);
  });
});

describe('a month with at most a tenth of the usual sales', () => {
  test.each(MEANS)('is named, of %d a month', (mean) => {
    for (const months of HISTORIES) {
      const sales = Array.from({ length: months }, () => mean);
      expect(fewSales(sales)).toBeGreaterThanOrEqual(Math.floor(mean / 10));
    }
  });

  test('is not named before the fourth month, nor of a feed of fewer than ten sales', () => {
    expect(fewSales([400, 400])).toBe(-1);
    expect(fewSales(Array.from({ length: 12 }, () => 9))).toBe(-1);
  });

  test('is not named if the same month was as low a year before', () => {
    const year = [12, ...Array.from({ length: 11 }, () => 400)];
    expect(fewSales(year)).toBeLessThan(12);
    expect(fewSales(year.map(() => 400))).toBeGreaterThanOrEqual(40);
  });
});

test('a steady feed is named at less than ninety percent of its sales after a year', () => {
  const sales = [9950, 10020, 10080, 9930, 10010, 10060, 9970, 10040, 9990, 10030, 9960, 10000];
  expect(fewSales(sales)).toBeGreaterThan(9000);
  expect(fewSales(sales)).toBeLessThan(9900);
});

/** The days without a sale at the end of a month, and its sales, of a seller that sells on some weekdays. */
function monthOf(mean: number, { days, cluster }: { days: number; cluster: number }): { sales: number; quiet: number } {
  const first = Math.floor(random() * 7);
  const open = Array.from({ length: 30 }, (_, day) => (first + day) % 7 < days);
  const perDay = mean / open.filter(Boolean).length / cluster;
  const sold = open.map((isOpen) => (isOpen ? poisson(perDay) * cluster : 0));
  const last = sold.findLastIndex((sales) => sales > 0);
  return { sales: sold.reduce((sum, each) => sum + each, 0), quiet: 29 - last };
}

describe('of honest months, at most one document in 400 is held for its last day', () => {
  test.each([
    ['sells every day', { days: 7, cluster: 1 }],
    ['sells from Monday to Friday', { days: 5, cluster: 1 }],
    ['sells on weekends', { days: 2, cluster: 1 }],
    ['sells two at a time', { days: 7, cluster: 2 }],
  ])('if the partner %s', (_, kind) => {
    let judged = 0;
    let held = 0;
    for (const mean of MEANS) {
      for (const months of HISTORIES) {
        for (let time = 0; time < TIMES; time += 1) {
          const before = Array.from({ length: months }, () => monthOf(mean, kind));
          const now = monthOf(mean, kind);
          judged += 1;
          const early = earlyEnd(
            before.map(({ sales }) => sales),
            before.map(({ quiet }) => quiet),
          );
          held += Number(now.sales > 0 && now.quiet >= early);
        }
      }
    }
    expect(judged).toBe(MEANS.length * HISTORIES.length * TIMES);
    expect(held / judged).toBeLessThanOrEqual(1 / 400);
  });

  test('a daily feed is named if its last four days are missing', () => {
    const sales = [400, 390, 410];
    expect(earlyEnd(sales, [0, 0, 0])).toBe(4);
    expect(earlyEnd(sales, [0, 0])).toBe(Number.POSITIVE_INFINITY);
    expect(earlyEnd([8, 8, 8], [0, 0, 0])).toBe(Number.POSITIVE_INFINITY);
  });
});
