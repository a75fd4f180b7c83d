import { Transaction } from '#database/transaction';
import { reverseRows } from '#documents/reverse-rows';
import { readRowsNumbered } from '#documents/rows-to-correct.sql';
import { failpoint } from '#failpoint';
import { NOBODY } from '#people/roles';
import { SEE } from '#remedy';
import { Amount, plural, sumsOf } from '#values';
import { defineAction, Facts, ledgerRows, reason } from './action.ts';
import { amountsIn } from './documents.ts';

type Named = Readonly<{ rows: readonly number[] }>;

const factsOf = async (tx: Transaction, { rows: ids }: Named): Promise<Facts> =>
  Object.fromEntries(
    (await readRowsNumbered(tx, { ids })).map((row) => [
      `row ${row.entry_id}`,
      {
        sale: `${row.partner_id} ${row.requote_id ?? row.quote_id}`,
        amount: Amount.of(row.invoice_amount, row.currency),
        reversal: row.reversed_by ?? 'none',
      },
    ]),
  );

export const rowsReverse = defineAction({
  name: 'rows.reverse',
  title: 'Reverse sales',
  command: { called: 'ledger reverse', arguments: { rows: '<rows...>' } },
  role: 'finance',
  input: { rows: ledgerRows('The numbers of the rows of the sales.'), reason: reason() },
  subject: ({ rows }) => rows.join(' '),
  async partners(tx, { rows: ids }) {
    const rows = await readRowsNumbered(tx, { ids });
    const known = rows.map(({ partner_id }) => partner_id);
    return [...new Set(rows.length === new Set(ids).size ? known : [...known, NOBODY])];
  },
  locksImporters: true,
  perform: reverseRows,
  committed: () => failpoint('reversal.committed'),
  facts: factsOf,
  amounts: ({ before }) => amountsIn(before, Object.keys(before), 'amount'),
  async report({ result: { rows, recorded, requested } }) {
    const sums = sumsOf(rows.map(({ invoice_amount, currency }) => Amount.of(invoice_amount, currency)));
    return {
      json: { rows: rows.map(({ entry_id }) => entry_id), recorded, requested },
      text:
        `${plural(rows.length, 'sale')} of ${sums.map((each) => each.forPeople()).join(', ')}: ` +
        `${plural(recorded, 'reversal')} recorded, billed with the open month` +
        (requested === 0
          ? '.'
          : `; ${plural(requested, 'reversal')} that the terms do not cover ${requested === 1 ? 'waits' : 'wait'} for a decision.`),
      ...(requested > 0 && { remedies: [SEE.requested] }),
    };
  },
});
