/**
 * Judges a month's sales by the closed months before it. What is unusual is only a suspicion: in honest months at most
 * one of 200 judgments may hold a document (test/close/usual.test.ts). Counts and days are not money, so these
 * functions may use floating-point numbers.
 */

/** History speaks from the fourth month of a feed on. */
const LEAST_MONTHS = 3;
/** The number of closed months that are compared. */
export const MOST_MONTHS = 12;
/** A feed with fewer sales in its middle month is too small to judge. */
const LEAST_SALES = 10;

/** Student's t with a tail of 0.001 at one end, for 2 to 11 degrees of freedom. */
const T = [22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.5, 4.3, 4.14, 4.02];

/**
 * The largest number of sales that is unusually low, or -1 if none is: at most a tenth of the usual number, or below
 * what the spread of the months before allows. The spread is that of the logarithms, as months differ by factors, and
 * at least that of independent sales (Poisson). `sales` has the closed months from the oldest to the latest.
 */
export function fewSales(sales: readonly number[]) {
  if (sales.length < LEAST_MONTHS) return -1;
  const usual = middle(sales);
  if (usual < LEAST_SALES) return -1;
  const logs = sales.map((each) => Math.log(each + 0.5));
  const mean = logs.reduce((sum, each) => sum + each, 0) / logs.length;
  const variance = logs.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (logs.length - 1);
  const spread = Math.sqrt(Math.max(variance, 1 / usual) * (1 + 1 / logs.length));
  const t = T[logs.length - LEAST_MONTHS] as number;
  const low = Math.ceil(Math.exp(mean - t * spread) - 0.5) - 1;
  // If the same month was low a year before, a low month is usual.
  const season = sales.length === MOST_MONTHS ? Math.min(usual, sales[0] as number) : usual;
  return Math.max(low, Math.floor(season / 10), -1);
}

/** The fewest days without a sale at the end of a month that are unusual. */
const LEAST_QUIET_DAYS = 3;
/** The last day of sales is early if the partner usually makes this many sales in the days beyond the longest before. */
const SALES_MISSED = 12;

/**
 * The fewest days without a sale at the end of a month that are unusual, or Infinity if too little is known. `quiet`
 * has the days without a sale at the end of each of the closed months.
 */
export function earlyEnd(sales: readonly number[], quiet: readonly number[]) {
  const usual = middle(sales);
  if (quiet.length < LEAST_MONTHS || usual < LEAST_SALES) return Number.POSITIVE_INFINITY;
  const perDay = usual / 30;
  return Math.max(...quiet) + LEAST_QUIET_DAYS + Math.ceil(SALES_MISSED / perDay);
}

function middle(numbers: readonly number[]) {
  const sorted = [...numbers].sort((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[half] as number)
    : ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
}
