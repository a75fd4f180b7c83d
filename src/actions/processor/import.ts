import { ActionContext, defineAction, Facts, FileInput, file, partner, text } from '#actions/action';
import { contentBy, contentOf } from '#actions/contents';
import { refuse } from '#errors/refusals';
import { fieldName } from '#field-names';
import { ImportReport, importBalanceTransactions, importSettlement, isLive } from '#splits/import';
import { balanceTransactionFile } from '#splits/read-balance-transactions';
import { recordRequestedReversals } from '#splits/requested';
import { readSentFile } from '#splits/settlement-files';
import { plural } from '#text';

export const processorImport = defineAction({
  name: 'processor.import',
  title: 'Import a settlement file or balance transactions',
  command: {
    summary: "Import a partner's settlement file, or balance transactions as NDJSON",
    arguments: { file: '<file>' },
  },
  role: 'finance',
  input: {
    file: file('File', "A partner's settlement file, or balance transactions as NDJSON."),
    partnerId: partner("This partner's settlement file (quote_id, transfer, payment, amount).").optional(),
    account: text('Account', 'Balance transactions of this account, with the source expanded.', {
      value: 'id',
    }).optional(),
  },
  check: checkImport,
  subject: ({ file }) => file.name,
  partners: async (_tx, { partnerId }) => (partnerId === undefined ? 'all' : [partnerId]),
  read: (context, { file, partnerId }) =>
    partnerId === undefined ? readTransactions(context, file) : readSettlement(context, file, partnerId),
  async perform(tx, context, { file, partnerId, account }) {
    const given = { name: file.name, text: file.bytes.toString('utf8') };
    return partnerId === undefined
      ? importBalanceTransactions(tx, context, given, account as string, await readTransactions(context, file))
      : importSettlement(tx, context, { ...given, reading: await readSettlement(context, file, partnerId) }, partnerId);
  },
  async committed(context) {
    await context.database.transaction((tx) => recordRequestedReversals(tx, context));
  },
  facts: async (_tx, { file }, report): Promise<Facts> =>
    report === undefined ? {} : { [file.name]: { recorded: String(report.recorded), matched: String(report.matched) } },
  report: async ({ result }) => ({ json: result, text: describedImport(result) }),
});

const readTransactions = (context: ActionContext, file: FileInput) =>
  contentOf(file, balanceTransactionFile, { live: isLive(context) });
const readSettlement = (context: ActionContext, file: FileInput, partnerId: string) =>
  contentBy(file, () => readSentFile(context.database, context, file, partnerId));

function checkImport({ partnerId, account }: { partnerId?: string | undefined; account?: string | undefined }) {
  if ((partnerId === undefined) !== (account === undefined)) return;
  const reason = `'processor import' takes ${fieldName('partnerId')} with a settlement file, or ${fieldName('account')} with balance transactions`;
  throw refuse('usage', { reason });
}

export const describedImport = ({ read, recorded, duplicates, matched }: ImportReport) =>
  `${read} read: ${recorded} recorded, ${plural(duplicates, 'duplicate')}; ${plural(matched, 'transfer')} matched to quotes.`;
