/** Importing a partner's settlement file, or balance transactions (splits/import.ts). */
import { refuse } from '../../errors/refusals.ts';
import { type ImportReport, importBalanceTransactions, importSettlement } from '../../splits/import.ts';
import { plural } from '../../text.ts';
import { defineAct, type Facts } from '../act.ts';
import { file, text } from '../fields.ts';

export const processorImport = defineAct({
  name: 'processor.import',
  title: 'Import a settlement file or balance transactions',
  role: 'finance',
  input: {
    file: file('File', "A partner's settlement file, or balance transactions as NDJSON."),
    partnerId: text('Partner', "This partner's settlement file (quote_id, transfer, payment, amount).").optional(),
    account: text('Account', 'Balance transactions of this account, with the source expanded.').optional(),
  },
  check: checkImport,
  subject: ({ file }) => file.name,
  partners: async (_tx, { partnerId }) => (partnerId === undefined ? 'all' : [partnerId]),
  perform(tx, context, { file: { name, bytes }, partnerId, account }) {
    const given = { name, text: bytes.toString('utf8') };
    return partnerId === undefined
      ? importBalanceTransactions(tx, context, given, account as string)
      : importSettlement(tx, context, given, partnerId);
  },
  facts: async (_tx, { file }, report): Promise<Facts> =>
    report === undefined ? {} : { [file.name]: { recorded: String(report.recorded), matched: String(report.matched) } },
  amounts: () => [],
  report: async (_tx, _context, { result }) => ({ json: result, text: describedImport(result) }),
});

export function checkImport({
  partnerId,
  account,
}: {
  partnerId?: string | undefined;
  account?: string | undefined;
}): void {
  if ((partnerId === undefined) !== (account === undefined)) return;
  const reason = "'processor import' takes --partner with a settlement file, or --account with balance transactions";
  throw refuse('usage', { reason });
}

export const describedImport = ({ read, recorded, duplicates, matched }: ImportReport): string =>
  `${read} read: ${recorded} recorded, ${plural(duplicates, 'duplicate')}; ${plural(matched, 'transfer')} matched to quotes.`;
