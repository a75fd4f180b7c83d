/**
 * Converts a month's postings to lines of general-ledger accounts: maps them, compares them with earlier exports, and
 * summarizes them. All functions are pure.
 */

import { Accounts } from '#config/accounts';
import { Amount, compare, couldRun } from '#values';
import { PostingKey, ruleOf } from './accounts.ts';

/** The sum of a month's postings to one of our accounts, by partner, policy and currency. */
export type Posting = PostingKey &
  Readonly<{
    /** Debits less credits. */
    amount: string;
  }>;

/** The destination of a posting in the general ledger. A field without a value is ''. */
type Target = Readonly<{
  to_account: string;
  class: string;
  location: string;
  name: string;
  /** Our account, which the line in the file names. */
  memo: string;
}>;

export interface GlLine extends Posting, Target {}

const keyOf = ({ account, partner_id, policy_id, currency }: PostingKey) =>
  JSON.stringify([account, partner_id, policy_id, currency]);
/** A key that changes if a line gains or loses a name, but not if the partner is renamed. */
const targetKey = (line: Target) =>
  JSON.stringify([line.to_account, line.class, line.location, line.name !== '', line.memo]);

function targetOf(accounts: Accounts, posted: PostingKey, partnerName: string | undefined): Target | undefined {
  const rule = ruleOf(accounts.accounts, posted);
  if (rule === undefined) return undefined;
  const byPartner = rule.by_partner ?? posted.control.startsWith('assets:receivable:');
  const { partner_id: partner } = posted;
  return {
    to_account: rule.to,
    class: rule.class,
    location: rule.location,
    name: byPartner ? nameOf(accounts, partner, partnerName) : '',
    memo: posted.control,
  };
}

/** Updates the partner names of exported lines, because a customer may have been renamed. */
export const renamed = (accounts: Accounts, lines: readonly GlLine[], names: ReadonlyMap<string, string>) =>
  lines.map((line) =>
    line.name === '' ? line : { ...line, name: nameOf(accounts, line.partner_id, names.get(line.partner_id ?? '')) },
  );

/**
 * The name on a partner's line. hasOwn is needed because an id may be the name of an inherited property, such as
 * `constructor`.
 */
function nameOf({ names, unknown_payer }: Accounts, partner: string | null, ownName: string | undefined) {
  if (partner === null) return unknown_payer;
  return (Object.hasOwn(names, partner) ? names[partner] : ownName) ?? partner;
}

type MappedLines = Readonly<{
  lines: readonly GlLine[];
  unmapped: readonly PostingKey[];
}>;

/** Postings with their targets. A target in `known` takes precedence over the map. */
export function mapped(
  accounts: Accounts,
  postings: readonly Posting[],
  names: ReadonlyMap<string, string>,
  known: ReadonlyMap<string, Target> = new Map(),
): MappedLines {
  const lines: GlLine[] = [];
  const unmapped: PostingKey[] = [];
  for (const posting of postings) {
    const target = known.get(keyOf(posting)) ?? targetOf(accounts, posting, names.get(posting.partner_id ?? ''));
    if (target === undefined) unmapped.push(posting);
    else lines.push({ ...posting, ...target });
  }
  return { lines, unmapped };
}

/** The partners whose names a spreadsheet could run as a formula. The file would contain such names unchanged. */
export const runnableNames = (lines: readonly GlLine[]) => [
  ...new Set(lines.filter(({ name }) => couldRun(name)).map(({ partner_id }) => partner_id ?? '')),
];

/** Several payers with the same name. A partner is null for an unknown payer. */
type SharedName = Readonly<{
  name: string;
  partners: readonly (string | null)[];
}>;

/**
 * The line names that several payers share. A program identifies a customer only by name and would merge payers with
 * the same name. A name that `names` gives to each of these payers is intended and not listed.
 */
export function sharedNames({ names }: Accounts, lines: readonly GlLine[]): SharedName[] {
  const payers = new Map<string, Set<string | null>>();
  for (const { name, partner_id } of lines)
    if (name !== '') payers.set(name, (payers.get(name) ?? new Set()).add(partner_id));
  const isMeant = (partner: string | null) => partner === null || Object.hasOwn(names, partner);
  return [...payers]
    .map(([name, partners]) => ({ name, partners: [...partners].sort() }))
    .filter(({ partners }) => partners.length > 1 && !partners.every(isMeant));
}

export const latestTargets = (exported: readonly GlLine[]): Map<string, Target> =>
  new Map(
    summed(exported, (line) => keyOf(line) + targetKey(line)).map((line) => {
      const { to_account, class: kind, location, name, memo } = line;
      return [keyOf(line), { to_account, class: kind, location, name, memo }];
    }),
  );

/** The postings less the exported amounts, for each of our accounts. */
export function postedSince(postings: readonly Posting[], exported: readonly GlLine[]): Posting[] {
  return summed([...postings, ...exported.map(negated)], keyOf).map(
    ({ control, account, partner_id, policy_id, currency, amount }) => ({
      ...{ control, account, partner_id, policy_id, currency, amount },
    }),
  );
}

/** The amounts that move from the exported accounts to the accounts of `lines`. */
export const moved = (lines: readonly GlLine[], exported: readonly GlLine[]): GlLine[] =>
  summed([...lines, ...exported.map(negated)], (line) => keyOf(line) + targetKey(line));

const negated = (line: GlLine): GlLine => ({
  ...line,
  amount: Amount.of(line.amount, line.currency).negated().toString(),
});

/** Sums lines by key, in order of first occurrence, without sums of zero. */
function summed<Line extends Posting>(lines: readonly Line[], key: (line: Line) => string): Line[] {
  const sums = new Map<string, { line: Line; amount: Amount }>();
  for (const line of lines) {
    const at = key(line);
    const amount = Amount.of(line.amount, line.currency);
    const known = sums.get(at);
    sums.set(at, known ? { line: known.line, amount: known.amount.plus(amount) } : { line, amount });
  }
  return [...sums.values()]
    .filter(({ amount }) => !amount.isZero())
    .map(({ line, amount }) => ({ ...line, amount: amount.toString() }));
}

/** A line of a file: the amount for one account, class, location and name. */
export type JournalLine = Target &
  Readonly<{
    amount: Amount;
  }>;

/** The lines of one currency, by account, name and kind, with debits equal to credits. */
export type CurrencyJournal = Readonly<{
  currency: string;
  lines: readonly JournalLine[];
  total: Amount;
}>;

/** The summarized journal by currency. Throws if debits and credits differ, because that is a bug. */
export function summarise(lines: readonly GlLine[]): CurrencyJournal[] {
  const currencies = [...new Set(lines.map(({ currency }) => currency))].sort();
  return currencies.flatMap((currency) => {
    const own = lines.filter((line) => line.currency === currency);
    const sums = summed(own, ({ to_account, class: kind, location, name, memo }) =>
      JSON.stringify([to_account, kind, location, name, memo]),
    );
    const journal = sums
      .map(({ to_account, class: kind, location, name, memo, amount }) => ({
        ...{ to_account, class: kind, location, name, memo },
        amount: Amount.of(amount, currency),
      }))
      .sort((one, other) => compare(sortKey(one), sortKey(other)));
    const zero = Amount.zero(currency);
    const [debits, credits] = [
      journal.reduce((sum, { amount }) => (amount.isPositive() ? sum.plus(amount) : sum), zero),
      journal.reduce((sum, { amount }) => (amount.isNegative() ? sum.minus(amount) : sum), zero),
    ];
    if (!debits.equals(credits)) throw new Error(`debits ${debits} and credits ${credits} ${currency} differ`);
    return journal.length === 0 ? [] : [{ currency, lines: journal, total: debits }];
  });
}

const sortKey = ({ to_account, memo, name, class: kind, location }: Target) =>
  [to_account, memo, name, kind, location].join('\u0000');
/**
 * Divides a journal into balanced parts with at most `most` lines each. Debits are matched with credits in turn, and a
 * line that does not fit is divided between two parts. A short journal stays one part. `most` is at least 2.
 */
export function balancedParts(lines: readonly JournalLine[], most: number) {
  if (lines.length <= most) return [[...lines]];
  const sides = {
    debits: lines.filter(({ amount }) => amount.isPositive()),
    credits: lines.filter(({ amount }) => amount.isNegative()),
  };
  const left = new Map(lines.map((line) => [line, line.amount.isNegative() ? line.amount.negated() : line.amount]));
  const parts: Map<JournalLine, Amount>[] = [];
  let part = new Map<JournalLine, Amount>();
  for (let [debit, credit] = [sides.debits.shift(), sides.credits.shift()]; debit && credit; ) {
    const pair = [debit, credit];
    if (part.size + pair.filter((line) => !part.has(line)).length > most) {
      parts.push(part);
      part = new Map();
    }
    const [owed, given] = [left.get(debit) as Amount, left.get(credit) as Amount];
    const amount = owed.isLessThan(given) ? owed : given;
    for (const line of pair) {
      left.set(line, (left.get(line) as Amount).minus(amount));
      part.set(line, part.get(line)?.plus(amount) ?? amount);
    }
    if (left.get(debit)?.isZero()) debit = sides.debits.shift();
    if (left.get(credit)?.isZero()) credit = sides.credits.shift();
  }
  parts.push(part);
  return parts.map((each) =>
    lines
      .filter((line) => each.has(line))
      .map((line) => {
        const amount = each.get(line) as Amount;
        return { ...line, amount: line.amount.isNegative() ? amount.negated() : amount };
      }),
  );
}
