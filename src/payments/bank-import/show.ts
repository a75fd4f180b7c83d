/**
 * Shows the lines of files that book nothing: interim reports (camt.052, MT942), whose entries a statement books later,
 * and notifications (camt.054), which have the parts of entries that a statement books. A part of a booked entry gets
 * the suggestions for the payment of that entry, and never becomes a payment.
 */
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import { BankLine, identifiers, normalizeReference, signed } from '#payments/bank/statement';
import { Caller } from '#payments/context';
import { match } from '#payments/match';
import { readOpenItems } from '#payments/read-open-items';
import { RecordedLine, readRecordedLines } from './recorded-lines.sql.ts';
import { LineReport, paymentReport, plainReport } from './report.ts';
import { daysOf, findSameLines, groupBy, moneyOf, numberedLines, Statement } from './same-lines.ts';

export async function showLines(
  tx: Transaction,
  caller: Caller,
  format: string,
  statements: readonly Statement[],
  report: (line: LineReport) => void,
) {
  if (statements.length === 0) return;
  const { recorded } = await findSameLines(tx, format, statements);
  const batches = await readBatches(tx, format, statements, recorded);
  function* parts() {
    for (const { line, number } of numberedLines(statements)) {
      if (batches.has(number) && line.direction === 'credit') yield line;
    }
  }
  const items = await readOpenItems(tx, caller.settings, parts());
  for (const { line, statement, number } of numberedLines(statements)) {
    const { account, only } = statement;
    const each = { account, line };
    const known = recorded.get(number);
    const batch = batches.get(number);
    if (known !== undefined) report(plainReport(each, 'shown', 'already recorded from a statement', paymentOf(known)));
    else if (batch?.payment_id == null)
      report(plainReport(each, 'shown', batch === undefined ? UNBOOKED[only ?? 'interim'] : PART));
    else {
      const { applied, suggested } = match(line, items);
      items.apply(applied);
      const found = {
        partner_id: undefined,
        applied: [],
        suggested: [...applied, ...suggested],
        why: `${PART}: payment ${batch.payment_id}`,
      };
      const part = paymentReport({ ...each, id: 0, identity: '' }, batch.payment_id, found);
      report({ ...part, outcome: 'shown' as const, needs_review: part.suggested.length > 0 });
    }
  }
}

const PART = 'a part of an entry that a statement booked';
const UNBOOKED = {
  interim: 'an interim report: the statement of the day will book it',
  details: 'no statement has booked this entry yet: import the statement, then this file again',
} as const;

const paymentOf = ({ payment_id }: RecordedLine) => ({ payment_id: payment_id ?? undefined });

/** The recorded line of each entry that is recorded as one line, by the numbers of the parts of the entry. */
async function readBatches(
  tx: Transaction,
  format: string,
  statements: readonly Statement[],
  recorded: ReadonlyMap<number, RecordedLine>,
) {
  const batches = new Map<number, RecordedLine>();
  const details = statements.filter(({ only }) => only === 'details');
  const accounts = details.map(({ account }) => account);
  const known = await readRecordedLines(tx, { accounts, days: daysOf(details), format });
  if (known.length === 0) return batches;
  const taken = new Set(recorded.values());
  const byMoney = groupBy(known, (each) => `${each.account} ${each.currency} ${each.booked_on} ${moneyOf(each)}`);
  const addEntry = (account: string, parts: readonly Part[]) => {
    const [{ line: first }] = parts as [Part, ...Part[]];
    if (parts.some(({ number }) => recorded.has(number))) return;
    const sum = Amount.sum(first.amount.currency, parts, ({ line }) => signed(line));
    const money = sum.isNegative() ? `debit ${sum.negated()}` : `credit ${sum}`;
    const key = `${account} ${sum.currency} ${first.booked_on} ${money}`;
    const equal = (byMoney.get(key) ?? []).filter((each) => !taken.has(each));
    const reference = normalizeReference(first.entry_reference ?? '');
    const named = equal.filter((each) => identifiers(each).map(normalizeReference).includes(reference));
    const [batch, ...others] = named.length > 0 ? named : equal;
    if (batch === undefined || others.length > 0) return;
    taken.add(batch);
    for (const { number } of parts) batches.set(number, batch);
  };
  // The parts of an entry follow each other, and have its position.
  let entry: Part[] = [];
  let of: Statement | undefined;
  for (const { line, statement, number } of numberedLines(statements)) {
    if (statement !== of || line.position !== entry[0]?.line.position) {
      if (of?.only === 'details') addEntry(of.account, entry);
      [entry, of] = [[], statement];
    }
    entry.push({ line, number });
  }
  if (of?.only === 'details') addEntry(of.account, entry);
  return batches;
}

type Part = Readonly<{ line: BankLine; number: number }>;
