/** Compares what the program did with each receipt with the truth, and counts it by category. */
import { decimal, inMinor } from './ledger.ts';
import type { Receipt } from './receipts.ts';
import { CATEGORIES, type Category, type Currency, SHARES } from './shares.ts';

/** What the program did with a receipt by itself, and what it offers to a person. */
export interface Outcome {
  /** The partner that the money belongs to. */
  readonly payer: string | null;
  readonly applications: readonly { readonly number: string; readonly amount: string }[];
  /** The invoices that the first suggestion would pay. */
  readonly suggested: readonly string[];
  /** The bank's reference of the receipt that a return has reversed. */
  readonly reversed: string | null;
}

export interface Facts {
  /** By the bank's reference of the line. A line that is missing was ignored. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  readonly balances: ReadonlyMap<string, string>;
  readonly ownerOf: (number: string) => string | undefined;
}

/** `part`: only to the right invoices of the right payer, but not all of it. */
export type Verdict = 'right' | 'part' | 'wrong' | 'held';
export type Suggestion = 'right' | 'other' | 'wrong payer' | 'none';

export interface Judged {
  readonly receipt: Receipt;
  readonly verdict: Verdict;
  /** Of what is left to a person; null if nothing is. */
  readonly suggestion: Suggestion | null;
}

const NOTHING: Outcome = { payer: null, applications: [], suggested: [], reversed: null };

function verdictOf(
  { category, payer, allocation, closes, line, takesBack }: Receipt,
  done: Outcome,
  facts: Facts,
): Verdict {
  if (takesBack !== null) {
    if (done.reversed === null) return 'held';
    return done.reversed === takesBack ? 'right' : 'wrong';
  }
  // Money that is put on another partner's account is wrong even before it pays an invoice.
  if (done.payer !== null && done.payer !== payer) return 'wrong';
  if (done.applications.length === 0) return 'held';
  if (!SHARES[category].mayApply) return 'wrong';
  const currency: Currency = line.bank === 'EUR' || line.bank === 'GBP' || line.bank === 'JPY' ? line.bank : 'USD';
  const due = new Map(allocation.map(({ number, amount }) => [number, amount]));
  const isTooMuch = ({ number, amount }: Outcome['applications'][number]) =>
    inMinor(amount, currency) > (due.get(number) ?? -1);
  if (done.payer !== payer || done.applications.some(isTooMuch)) return 'wrong';
  const paid = new Map(done.applications.map(({ number, amount }) => [number, amount]));
  const isPaid = allocation.every(({ number, amount }) => paid.get(number) === decimal(amount, currency));
  const isClosed = closes.every((number) => Number(facts.balances.get(number)) === 0);
  return isPaid && isClosed ? 'right' : 'part';
}

function suggestionOf({ payer, allocation }: Receipt, done: Outcome, { ownerOf }: Facts): Suggestion {
  if (done.suggested.length === 0) return 'none';
  const applied = done.applications.map(({ number }) => number);
  const wanted = allocation.map(({ number }) => number).filter((number) => !applied.includes(number));
  if (wanted.toSorted().join() === done.suggested.toSorted().join()) return 'right';
  // A parent's invoices are its children's: what belongs to none of the payers of the truth is another partner's.
  const owners = new Set([payer, ...allocation.map(({ number }) => ownerOf(number))]);
  return done.suggested.every((number) => owners.has(ownerOf(number))) ? 'other' : 'wrong payer';
}

export function judge(receipts: readonly Receipt[], facts: Facts): Judged[] {
  return receipts.map((receipt) => {
    const done = facts.outcomes.get(receipt.line.reference) ?? NOTHING;
    const verdict = verdictOf(receipt, done, facts);
    const isLeft = verdict === 'held' || verdict === 'part';
    // No invoice is right for money that pays none, or that is nobody's: it has no right suggestion.
    const isSuggestible = isLeft && receipt.allocation.length > 0 && receipt.takesBack === null;
    return { receipt, verdict, suggestion: isSuggestible ? suggestionOf(receipt, done, facts) : null };
  });
}

export interface Row {
  readonly category: Category;
  readonly title: string;
  readonly receipts: number;
  readonly right: number;
  readonly part: number;
  readonly wrong: number;
  readonly heldRightly: number;
  readonly suggestedRight: number;
  readonly suggestedWrongPayer: number;
  /** Left to a person, with another suggestion of the same payer, or with none. */
  readonly left: number;
}

export interface Totals {
  readonly receipts: number;
  readonly right: number;
  readonly part: number;
  readonly wrong: number;
  /** Of what was applied, the share that is not wrong, in percent. */
  readonly precision: number;
  /** Of all receipts, the share that was applied right and in full, in percent. */
  readonly touchless: number;
  readonly suggestedRight: number;
  readonly suggestedWrongPayer: number;
  /** Receipts with a suggestion that could be right or wrong. */
  readonly suggested: number;
}

export function count(judged: readonly Judged[]): { readonly rows: readonly Row[]; readonly totals: Totals } {
  const rows = CATEGORIES.map((category): Row => {
    const own = judged.filter(({ receipt }) => receipt.category === category);
    const { title, mayApply } = SHARES[category];
    const verdicts = (verdict: Verdict) => own.filter((each) => each.verdict === verdict).length;
    const suggestions = (...of: readonly Suggestion[]) =>
      own.filter(({ suggestion }) => suggestion !== null && of.includes(suggestion)).length;
    return {
      category,
      title,
      receipts: own.length,
      right: verdicts('right'),
      part: verdicts('part'),
      wrong: verdicts('wrong'),
      heldRightly: mayApply ? 0 : verdicts('held'),
      suggestedRight: suggestions('right'),
      suggestedWrongPayer: suggestions('wrong payer'),
      left: suggestions('other', 'none'),
    };
  });
  const sum = (key: 'receipts' | 'right' | 'part' | 'wrong' | 'suggestedRight' | 'suggestedWrongPayer') =>
    rows.reduce((all, row) => all + row[key], 0);
  const [receipts, right, part, wrong] = [sum('receipts'), sum('right'), sum('part'), sum('wrong')];
  return {
    rows,
    totals: {
      receipts,
      right,
      part,
      wrong,
      precision: right + part + wrong === 0 ? 100 : (100 * (right + part)) / (right + part + wrong),
      touchless: receipts === 0 ? 0 : (100 * right) / receipts,
      suggestedRight: sum('suggestedRight'),
      suggestedWrongPayer: sum('suggestedWrongPayer'),
      suggested: judged.filter(({ suggestion }) => suggestion !== null && suggestion !== 'none').length,
    },
  };
}
