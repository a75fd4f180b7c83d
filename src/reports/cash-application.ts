/**
 * The cash application report: of the credits in bank files, how many were applied automatically, how many of these
 * were right, and how many needed no person, by month of receipt.
 */
import type { Transaction } from '../database/transaction.ts';
import { Amount } from '../money.ts';
import type { Sheet } from '../sheet.ts';
import { table } from '../text-table.ts';
import { type JudgedMonth, readJudgedMonths, readUndoneCredits, type UndoneCredit } from './cash-application.sql.ts';

type Counts = Omit<JudgedMonth, 'month'>;

interface Rates extends Counts {
  /** The share of the applied credits that was not undone, in percent; null if none was applied. */
  readonly precision: string | null;
  /** The share of all credits that was applied in full without a person, in percent; null without credits. */
  readonly touchless_share: string | null;
}

export interface CashApplication {
  /** The latest month first. */
  readonly months: readonly (Rates & Pick<JudgedMonth, 'month'>)[];
  readonly total: Rates;
  /** The credits that were applied automatically and undone later, the latest first. */
  readonly undone: readonly UndoneCredit[];
}

const MOST_UNDONE = 100;

export async function readCashApplication(tx: Transaction): Promise<CashApplication> {
  const months = await readJudgedMonths(tx);
  const undone = await readUndoneCredits(tx, { limit: MOST_UNDONE });
  const sum = (name: keyof Counts) => months.reduce((total, month) => total + month[name], 0);
  return {
    months: months.map((month) => ({ ...month, ...ratesOf(month) })),
    total: ratesOf({
      ...{ credits: sum('credits'), applied: sum('applied') },
      ...{ undone: sum('undone'), touchless: sum('touchless') },
    }),
    undone: undone.map((each) => ({ ...each, amount: Amount.of(each.amount, each.currency).toString() })),
  };
}

const ratesOf = (counts: Counts): Rates => ({
  ...counts,
  precision: percent(counts.applied - counts.undone, counts.applied),
  touchless_share: percent(counts.touchless, counts.credits),
});

/** One decimal, rounded down, so that only a faultless month has 100.0. */
const percent = (part: number, whole: number): string | null =>
  whole === 0 ? null : (Math.floor((part * 1000) / whole) / 10).toFixed(1);

export const cashApplicationSheet = ({ months }: CashApplication): Sheet => ({
  name: 'Cash application',
  columns: {
    month: 'text',
    credits: 'count',
    applied: 'count',
    undone: 'count',
    precision: 'amount',
    touchless: 'count',
    touchless_share: 'amount',
  },
  rows: months,
});

export function describeCashApplication({ months, total, undone }: CashApplication): string {
  if (months.length === 0) return 'No bank file has had a credit yet.';
  const share = (text: string | null) => (text === null ? '' : `${text}%`);
  const rows = [...months, { month: 'total', ...total }].map((each) => [
    ...[each.month, each.credits, each.applied, each.undone, share(each.precision)],
    ...[each.touchless, share(each.touchless_share)],
  ]);
  return [
    table(['month', '>credits', '>applied', '>undone', '>precision', '>touchless', '>share'], rows),
    ...(undone.length === 0 ? [] : ['', 'Applied automatically, and undone later:']),
    ...undone.map((each) => `payment ${each.payment_id} of ${each.received_on}: ${each.how} on ${each.undone_on}`),
  ].join('\n');
}
