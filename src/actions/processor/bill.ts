import { defineAction, month } from '#actions/action';
import { amountsIn, deliver, factsOf } from '#actions/documents';
import { readDocuments, readIdsOf } from '#documents/documents.sql';
import { billMissingShares } from '#splits/bill';

export const billMissing = defineAction({
  name: 'shares.bill',
  command: { called: 'reconcile --bill-missing', arguments: { month: '<month>' } },
  title: 'Issue invoices for transfers that never arrived',
  role: 'finance',
  input: { month: month('Month', 'The closed month of the quotes.') },
  subject: ({ month }) => month,
  perform: (tx, context, { month }) => billMissingShares(tx, context, month),
  async after(context, { result: numbers }) {
    if (numbers.length > 0) await deliver(context, numbers);
  },
  async facts(tx, _input, numbers = []) {
    const issued = numbers.length === 0 ? [] : await readDocuments(tx, { ids: await readIdsOf(tx, { numbers }) });
    return Object.fromEntries(
      issued.map((row) => [`missing shares of ${row.partner_id} in ${row.currency}`, factsOf(row)]),
    );
  },
  amounts: ({ after }) => amountsIn(after, Object.keys(after), 'amount'),
  report: async ({ result: numbers }) => ({
    json: numbers,
    text: numbers.length === 0 ? 'Nothing to bill.' : `Billed missing shares: ${numbers.join(', ')}.`,
  }),
});
