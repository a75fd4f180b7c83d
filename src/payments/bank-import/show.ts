/**
 * Shows the lines of files that book nothing: interim reports (camt.052, MT942), whose entries a statement books later,
 * and notifications (camt.054), which have the parts of entries that a statement books. A part of a booked entry gets
 * the suggestions for the payment of that entry, and never becomes a payment.
 */
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import { BankLine, BankStatement, identifiers, normalizeReference, signed } from '#payments/bank/statement';
import { Caller } from '#payments/context';
import { match } from '#payments/match';
import { readOpenItems } from '#payments/read-open-items';
import { RecordedLine, readRecordedLines } from './recorded-lines.sql.ts';
import { LineReport, paymentReport, plainReport } from './report.ts';
import { findSameLines, groupBy, moneyOf } from './same-lines.ts';

export async function showLines(
  tx: Transaction,
  caller: Caller,
  format: string,
  statements: readonly BankStatement[],
): Promise<LineReport[]> {
  if (statements.length === 0) return [];
  const { recorded } = await findSameLines(tx, format, statements);
  const batches = await readBatches(tx, format, statements, recorded);
  const parts = [...batches.keys()].filter(({ direction }) => direction === 'credit');
  const items = await readOpenItems(
    tx,
    caller.settings,
    parts.map(({ references }) => references),
    parts.map(({ payer_account }) => payer_account),
  );
  return statements.flatMap(({ account, lines, only }) =>
    lines.map((line) => {
      const each = { account, line };
      const known = recorded.get(line);
      if (known !== undefined) return plainReport(each, 'shown', 'already recorded from a statement', paymentOf(known));
      const batch = batches.get(line);
      if (batch?.payment_id == null)
        return plainReport(each, 'shown', batch === undefined ? UNBOOKED[only ?? 'interim'] : PART);
      const { applied, suggested } = match(line, items);
      items.apply(applied);
      const found = {
        partner_id: undefined,
        applied: [],
        suggested: [...applied, ...suggested],
        why: `${PART}: payment ${batch.payment_id}`,
      };
      const report = paymentReport({ ...each, id: 0, identity: '' }, batch.payment_id, found);
      return { ...report, outcome: 'shown' as const, needs_review: report.suggested.length > 0 };
    }),
  );
}

const PART = 'a part of an entry that a statement booked';
const UNBOOKED = {
  interim: 'an interim report: the statement of the day will book it',
  details: 'no statement has booked this entry yet: import the statement, then this file again',
} as const;

const paymentOf = ({ payment_id }: RecordedLine) => ({ payment_id: payment_id ?? undefined });

/** The recorded line of each entry that is recorded as one line, by the parts of the entry. */
async function readBatches(
  tx: Transaction,
  format: string,
  statements: readonly BankStatement[],
  recorded: ReadonlyMap<BankLine, RecordedLine>,
) {
  const batches = new Map<BankLine, RecordedLine>();
  const details = statements.filter(({ only }) => only === 'details');
  const days = [...new Set(details.flatMap(({ lines }) => lines.map(({ booked_on }) => booked_on)))];
  const known = await readRecordedLines(tx, { accounts: details.map(({ account }) => account), days, format });
  const taken = new Set(recorded.values());
  const byMoney = groupBy(known, (each) => `${each.account} ${each.currency} ${each.booked_on} ${moneyOf(each)}`);
  for (const { account, lines } of details) {
    // The parts of an entry have its position.
    for (const parts of groupBy(lines, ({ position }) => String(position)).values()) {
      if (parts.some((part) => recorded.has(part))) continue;
      const [first] = parts as [BankLine, ...BankLine[]];
      const sum = Amount.sum(first.amount.currency, parts, signed);
      const money = sum.isNegative() ? `debit ${sum.negated()}` : `credit ${sum}`;
      const key = `${account} ${sum.currency} ${first.booked_on} ${money}`;
      const equal = (byMoney.get(key) ?? []).filter((each) => !taken.has(each));
      const reference = normalizeReference(first.entry_reference ?? '');
      const named = equal.filter((each) => identifiers(each).map(normalizeReference).includes(reference));
      const [batch, ...others] = named.length > 0 ? named : equal;
      if (batch === undefined || others.length > 0) continue;
      taken.add(batch);
      for (const part of parts) batches.set(part, batch);
    }
  }
  return batches;
}
