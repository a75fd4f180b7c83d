/**
 * Decides which reversals are recorded without a person. A reversal is judged by the cancellation terms of its policy on
 * the day of the sale. Without terms, for 30 days, it may take the cut and our share in proportion, or all that is left.
 * Reversals are judged in the order of their times, each with those before it, so that parts cannot add up to more than
 * one of them may take. All functions are pure. Amounts are counted in minor units of their currency.
 */
import { minorDigits } from '#money';
import { daysBetween } from '#month';
import { CancellationTerms, DAYS_WITHOUT_TERMS, termsOn } from '#partners/cancellation';
import { inMinorUnits } from './row.ts';

/** Why a reversal waits for a person. */
export const OUTSIDE_TERMS = {
  too_late: 'later than the policy allows',
  more_than_left: 'more than the policy gives back now',
  other_split: 'a split of cut and share other than the sale',
  cover_began: 'after cover began',
  cover_unknown: 'of a sale whose days of cover are unknown',
  ceiling: "above the ceiling of the partner's reversals of the month",
} as const;
export type Outside = keyof typeof OUTSIDE_TERMS;

/** The rules that record a reversal, and the others that allow one. */
export const GROUNDS = {
  window: 'within the window of the terms',
  pro_rata: 'pro rata by the days of cover',
  full: 'by the terms after their window',
  proportion: 'in proportion, within 30 days',
  remainder: 'all that was left, within 30 days',
  person: 'granted by a person',
  processor: 'already reversed by the processor',
} as const;
export type Ground = keyof typeof GROUNDS;

/** A row of a quote, in the ledger or new (`seq`). `judged_on` of a reversal is the day by which it is judged. */
export type QuoteRow = Readonly<{
  seq: number | null;
  kind: 'quote_accepted' | 'requote_accepted' | 'reversal';
  partner_id: string;
  quote_id: string;
  requote_id: string | null;
  policy_id: string;
  currency: string;
  /** The local day. */
  day: string;
  judged_on: string;
  posted_month: string;
  spot_price: string;
  partner_cut: string;
  invoice_amount: string;
  cover_from: string | null;
  cover_to: string | null;
  ground: Ground | null;
  /** Null if it is new. */
  arrangement: string | null;
  /** What the processor has taken back of the quote's shares, at least zero. */
  taken_back: string;
}>;

export type StoredTerms = CancellationTerms &
  Readonly<{
    cancellation_terms_id: number;
  }>;

export type Verdict = Readonly<{
  seq: number;
  /** Null if the reversal waits for a person. */
  ground: Exclude<Ground, 'person'> | null;
  outside: Outside | null;
  cancellation_terms_id: number | null;
  sold_on: string | null;
  judged_on: string;
}>;

type Sums = Readonly<{
  spot: bigint;
  cut: bigint;
  share: bigint;
}>;

const NOTHING: Sums = { spot: 0n, cut: 0n, share: 0n };
const sumsOf = ({ currency, spot_price, partner_cut, invoice_amount }: QuoteRow): Sums => {
  const of = (amount: string) => inMinorUnits(amount, minorDigits(currency) as number);
  return { spot: of(spot_price), cut: of(partner_cut), share: of(invoice_amount) };
};
const plus = (one: Sums, other: Sums): Sums => ({
  spot: one.spot + other.spot,
  cut: one.cut + other.cut,
  share: one.share + other.share,
});
const sumOf = (rows: readonly QuoteRow[]): Sums => rows.map(sumsOf).reduce(plus, NOTHING);
const negated = ({ spot, cut, share }: Sums): Sums => ({ spot: -spot, cut: -cut, share: -share });
const isWithin = (one: Sums, most: Sums) => one.spot <= most.spot && one.cut <= most.cut && one.share <= most.share;
const isSame = (one: Sums, other: Sums) => isWithin(one, other) && isWithin(other, one);

/**
 * Judges the new reversals among all rows of one quote, which are in the order of their times. `isAboveCeiling` counts
 * our share of a reversal that the rules allow, above zero, and returns whether it waits.
 */
export function judgeQuote(
  rows: readonly QuoteRow[],
  terms: readonly StoredTerms[],
  isAboveCeiling: (row: QuoteRow, share: bigint) => boolean = () => false,
): Verdict[] {
  const judged = new Map<QuoteRow, Verdict>();
  for (const [index, row] of rows.entries()) {
    if (row.kind !== 'reversal' || row.seq === null) continue;
    const verdict = judge(row, saleOf(row, rows.slice(0, index), rows, judged), terms);
    const ceiling = verdict.ground !== null && isAboveCeiling(row, -sumsOf(row).share);
    const held = ceiling ? outside(row, verdict.sold_on, 'ceiling') : verdict;
    judged.set(row, held.ground === null && isTakenBack(row, rows, judged) ? byProcessor(held) : held);
  }
  return [...judged.values()];
}

/**
 * Whether the processor has taken back our share of this reversal and of all reversals of the quote before it. The
 * processor routes a sale of a connected account alone: the quote may have been invoiced, and its requote routed.
 */
function isTakenBack(row: QuoteRow, rows: readonly QuoteRow[], judged: ReadonlyMap<QuoteRow, Verdict>) {
  const isRouted = ({ requote_id }: QuoteRow) =>
    rows.find((sale) => sale.kind !== 'reversal' && sale.requote_id === requote_id)?.arrangement ===
    'connected_account';
  if (!isRouted(row)) return false;
  const recorded = rows.filter((each) => each.kind === 'reversal' && groundOf(each, judged) !== null && isRouted(each));
  const back = inMinorUnits(row.taken_back, minorDigits(row.currency) as number);
  return back > 0n && back >= -sumOf([...recorded, row]).share;
}

const groundOf = (row: QuoteRow, judged: ReadonlyMap<QuoteRow, Verdict>): Ground | null =>
  row.ground ?? judged.get(row)?.ground ?? null;

const byProcessor = ({ seq, judged_on }: Verdict): Verdict => ({
  ...{ seq, ground: 'processor', outside: null, cancellation_terms_id: null, sold_on: null, judged_on },
});

const outside = ({ seq, judged_on }: QuoteRow, sold_on: string | null, why: Outside): Verdict => ({
  ...{ seq: seq as number, ground: null, outside: why, cancellation_terms_id: null, sold_on, judged_on },
});

/** What a reversal takes back: a requote that it names, or the quote with its requotes. */
type Sale = Readonly<{
  day: string | null;
  cover_from: string | null;
  cover_to: string | null;
  sold: Sums;
  reversals: readonly Reversed[];
}>;

type Reversed = Readonly<{
  sums: Sums;
  ground: Ground;
  /** Whether it names the sale. A reversal of the whole quote takes back a part of each requote. */
  isOwn: boolean;
}>;

function saleOf(
  { requote_id }: Pick<QuoteRow, 'requote_id'>,
  before: readonly QuoteRow[],
  all: readonly QuoteRow[],
  judged: ReadonlyMap<QuoteRow, Verdict>,
): Sale {
  const isOwn = (row: QuoteRow) => requote_id === null || row.requote_id === requote_id;
  const sold = before.filter((row) => row.kind !== 'reversal' && isOwn(row));
  const [first] = sold;
  const later = first === undefined ? [] : all.slice(all.indexOf(first));
  const quote = before.find(({ kind }) => kind === 'quote_accepted');
  const covered = [first, quote].find((row) => row !== undefined && row.cover_from !== null);
  return {
    day: first?.day ?? null,
    cover_from: covered?.cover_from ?? null,
    cover_to: covered?.cover_to ?? null,
    sold: sumOf(sold),
    reversals: all.flatMap((row) => {
      const ground = row.kind === 'reversal' ? groundOf(row, judged) : null;
      const counts = isOwn(row) || (row.requote_id === null && later.includes(row));
      return ground === null || !counts ? [] : [{ sums: sumsOf(row), ground, isOwn: isOwn(row) }];
    }),
  };
}

const isRule = (ground: Ground) => ground !== 'person' && ground !== 'processor';

function judge(row: QuoteRow, sale: Sale, policyTerms: readonly StoredTerms[]): Verdict {
  const terms = sale.day === null ? undefined : termsOn(policyTerms, sale.day);
  const given = givenBack(sale, terms, row.judged_on);
  const allowed = typeof given === 'string' ? given : allowedBy(row, terms, given);
  if (isOutside(allowed)) return outside(row, sale.day, allowed);
  return {
    ...{ seq: row.seq as number, ground: allowed, outside: null },
    cancellation_terms_id: terms?.cancellation_terms_id ?? null,
    ...{ sold_on: sale.day, judged_on: row.judged_on },
  };
}

const isOutside = (verdict: string): verdict is Outside => verdict in OUTSIDE_TERMS;

type Given = Readonly<{
  ground: 'window' | 'pro_rata' | 'full' | 'proportion';
  /** What was sold, less what was reversed otherwise. */
  base: Sums;
  /** What reversals that count together with the new one have taken, above zero. */
  taken: Sums;
  /** The most that they and the new one may take. */
  most: Sums;
}>;

/** What the terms, or the rule without terms, give back of a sale on a day. */
function givenBack(sale: Sale, terms: CancellationTerms | undefined, on: string): Given | Outside {
  const ground = groundOn(sale, terms, on);
  if (isOutside(ground)) return ground;
  if (ground !== 'pro_rata') {
    const own = sale.reversals.filter(({ isOwn }) => isOwn);
    const parts = divide(sale, own, isRule);
    return { ground, ...parts, most: parts.base };
  }
  // The days that are left give a part of what is left of the sale. Of a requote, a reversal of the whole quote has
  // taken such a part already.
  const parts = divide(sale, sale.reversals, (each) => each === 'pro_rata');
  const { cover_from, cover_to } = sale as { cover_from: string; cover_to: string };
  const days = daysBetween(cover_from, cover_to) + 1;
  const left = Math.min(days, Math.max(0, daysBetween(on, cover_to)));
  const share = partOf(parts.base.share, left, days);
  const cut = partOf(parts.base.cut, left, days);
  return { ground, ...parts, most: { spot: share + cut, cut, share } };
}

function divide(
  { sold }: Sale,
  reversals: readonly Reversed[],
  isTaken: (ground: Ground) => boolean,
): Pick<Given, 'base' | 'taken'> {
  const sum = (taken: boolean) =>
    reversals.filter(({ ground }) => isTaken(ground) === taken).reduce((all, { sums }) => plus(all, sums), NOTHING);
  return { base: plus(sold, sum(false)), taken: negated(sum(true)) };
}

function groundOn(
  { day, cover_from, cover_to }: Sale,
  terms: CancellationTerms | undefined,
  on: string,
): Given['ground'] | Outside {
  if (day === null) return 'more_than_left';
  const passed = daysBetween(day, on);
  if (terms === undefined) return passed <= DAYS_WITHOUT_TERMS ? 'proportion' : 'too_late';
  if (terms.before_cover_only && cover_from === null) return 'cover_unknown';
  if (terms.before_cover_only && cover_from !== null && on >= cover_from) return 'cover_began';
  if (passed <= (terms.window_days as number)) return 'window';
  if (terms.after_window === 'full') return 'full';
  if (terms.after_window === 'none') return 'too_late';
  return cover_from === null || cover_to === null ? 'cover_unknown' : 'pro_rata';
}

/** A part of an amount by days, rounded half up. */
const partOf = (amount: bigint, days: number, of: number) =>
  (2n * amount * BigInt(days) + BigInt(of)) / (2n * BigInt(of));

/** The ground of a reversal that takes no more than is given, in the split of the sale or of the terms. */
function allowedBy(
  row: QuoteRow,
  terms: CancellationTerms | undefined,
  { ground, base, taken, most }: Given,
): Given['ground'] | 'remainder' | Outside {
  const own = negated(sumsOf(row));
  const all = plus(taken, own);
  // Rounding may put one minor unit of a part on the other side.
  const slack = ground === 'pro_rata' && terms?.cut === 'in_proportion' ? 1n : 0n;
  if (all.share > most.share + slack || !isWithin(all, base)) return 'more_than_left';
  if (terms?.cut === 'kept_by_partner') return own.cut === 0n ? ground : 'other_split';
  if (ground !== 'pro_rata' && isSame(all, base)) return ground === 'proportion' ? 'remainder' : ground;
  const skew = all.cut * base.spot - all.spot * base.cut;
  return (skew < 0n ? -skew : skew) <= base.spot ? ground : 'other_split';
}

/** Whether the ledger does not have all that a reversal takes back. */
export const isMoreThanLeft = (row: QuoteRow, rows: readonly QuoteRow[]) =>
  !isWithin(negated(sumsOf(row)), sumOf(rows));

/**
 * The amounts of a reversal that states none, above zero in minor units: what the terms give now, or all that is left if
 * they give nothing.
 */
export function offered(
  { requote_id, judged_on }: Pick<QuoteRow, 'requote_id' | 'judged_on'>,
  rows: readonly QuoteRow[],
  policyTerms: readonly StoredTerms[],
): Readonly<{ cut: bigint; share: bigint }> {
  const sale = saleOf({ requote_id }, rows, rows, new Map());
  const terms = sale.day === null ? undefined : termsOn(policyTerms, sale.day);
  const given = givenBack(sale, terms, judged_on);
  const whole = sumOf(rows);
  const own = sale.reversals.filter(({ isOwn }) => isOwn).reduce((left, { sums }) => plus(left, sums), sale.sold);
  const left = { cut: between(own.cut, whole.cut), share: between(own.share, whole.share) };
  if (typeof given === 'string') return left;
  const { cut, share } = plus(given.most, negated(given.taken));
  if (share <= 0n) return left;
  return {
    share: between(share, left.share),
    cut: terms?.cut === 'kept_by_partner' ? 0n : between(cut, left.cut),
  };
}

/** An amount, but at least zero and at most another one. */
const between = (amount: bigint, most: bigint) => {
  if (amount > most) return most;
  return amount < 0n ? 0n : amount;
};
