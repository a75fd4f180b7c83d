/**
 * The terms on which reversals of a policy's sales are recorded without a person (docs/files.md, Reversals), for sales
 * accepted from a day on in the partner's time zone. Pure.
 */
import { plural } from '#text';

/** Inclusive, of a policy without terms. */
export const DAYS_WITHOUT_TERMS = 30;

export const AFTER_WINDOW = ['none', 'pro_rata', 'full'] as const;
export const CUTS = ['in_proportion', 'kept_by_partner'] as const;

/** Without `window_days`, the earlier terms end on the day `from`, and there are none. */
export type CancellationTerms = Readonly<{
  /** `YYYY-MM-DD`; null: from the beginning. */
  from: string | null;
  /** Days after the acceptance on which all that is left may be reversed. */
  window_days: number | null;
  /** What may be reversed after the window: nothing, the share of the days of cover that are left, or all. */
  after_window: (typeof AFTER_WINDOW)[number] | null;
  cut: (typeof CUTS)[number] | null;
  /** Nothing may be reversed from the first day of cover on. */
  before_cover_only: boolean | null;
}>;

/** The terms of sales accepted on a day; undefined if there are none then. */
export function termsOn<Terms extends Pick<CancellationTerms, 'from' | 'window_days'>>(
  terms: readonly Terms[],
  day: string,
) {
  const found = terms.findLast(({ from }) => from === null || from <= day);
  return found?.window_days === null ? undefined : found;
}

/** The terms in force on a day, and those that come. */
export function termsFrom<Terms extends Pick<CancellationTerms, 'from' | 'window_days'>>(
  terms: readonly Terms[] | null,
  day: string,
): readonly Terms[] {
  const isOver = (index: number) => {
    const next = terms?.[index + 1]?.from ?? null;
    return next !== null && next <= day;
  };
  const isEnd = ({ from, window_days }: Terms) => window_days === null && (from === null || from <= day);
  return (terms ?? []).filter((each, index) => !isOver(index) && !isEnd(each));
}

/** The terms after an import. Sales before the first day of a file keep theirs. */
export function mergedTerms(
  stored: readonly CancellationTerms[] | null,
  file: readonly CancellationTerms[] | null,
): readonly CancellationTerms[] {
  const first = file?.[0]?.from ?? null;
  const kept = first === null ? [] : (stored ?? []).filter(({ from }) => from === null || from < first);
  const all = [...kept, ...(file ?? [])];
  return all[0]?.window_days === null ? all.slice(1) : all;
}

/** What applies to a sale without terms. */
export const WITHOUT_TERMS = `${plural(DAYS_WITHOUT_TERMS, 'day')}, in proportion`;

/** Returns `14 days, then pro rata by cover, cut kept by partner; none from 2026-08-10`. */
export function cancellationText(terms: readonly CancellationTerms[] | null) {
  if (terms === null || terms.length === 0) return null;
  return terms.map((each) => termsText(each) + (each.from === null ? '' : ` from ${each.from}`)).join('; ');
}

function termsText({ window_days, after_window, cut, before_cover_only }: CancellationTerms) {
  if (window_days === null) return 'none';
  const then = { none: 'nothing', pro_rata: 'pro rata by cover', full: 'all' }[after_window ?? 'none'];
  return [
    `${plural(window_days, 'day')}, then ${then}`,
    ...(cut === 'kept_by_partner' ? ['cut kept by partner'] : []),
    ...(before_cover_only ? ['before cover only'] : []),
  ].join(', ');
}
