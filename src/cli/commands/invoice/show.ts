import { disputeJson } from '#actions/dispute';
import { documentNumbered } from '#actions/documents';
import { blocksText } from '#blocks';
import { CommandContext, Definition, EXIT, outputWidth, printable, reading, wrapped } from '#cli/command';
import { OpenDispute, readOpenDisputes } from '#documents/disputes.sql';
import { documentJson } from '#documents/document';
import { DocumentRow } from '#documents/documents.sql';
import { afterwords, HistoryLine, readHistory } from '#documents/history';
import { documentTitle } from '#documents/present';
import { amountFacts, documentFacts, linesBlocks } from '#lists/document';

export const define: Definition = (invoice, action) => {
  invoice
    .command('show <number>')
    .description('Show a document with its lines and its history')
    .action(action(reading(invoiceShow)));
};

async function invoiceShow({ database, output }: CommandContext, number: string): Promise<number> {
  const [row, history, dispute] = await database.reading(async (tx) => {
    const document = await documentNumbered(tx, number);
    const [disputed = null] = await readOpenDisputes(tx, { number });
    return [document, await readHistory(tx, document.document_id), disputed] as const;
  });
  output.print(
    { ...documentJson(row), ...(dispute === null ? {} : { dispute: disputeJson(dispute) }), story: history },
    () => `${described(row, dispute)}\n\n${historyText(history)}`,
  );
  return EXIT.done;
}

function described(row: DocumentRow, dispute: OpenDispute | null) {
  const facts = [...documentFacts(row, dispute), ...amountFacts(row)];
  return blocksText(
    [{ title: `${documentTitle(row.document)} ${row.number}`, facts }, ...linesBlocks(row)],
    outputWidth(),
  );
}

function historyText(history: readonly HistoryLine[]) {
  const lines = history.flatMap(({ at, says, technical, by, ...more }) => {
    const who =
      by === null ? '' : ` (${by.claimed_by === null ? '' : `${by.claimed_by}, as `}${by.os_user} on ${by.host})`;
    return wrapped(printable(says + afterwords(more) + (technical === null ? '' : `; ${technical}`) + who), 57).map(
      (line, index) => `  ${index === 0 ? at.slice(0, 19) : ' '.repeat(19)}  ${line}`,
    );
  });
  return ['History', ...lines].join('\n');
}
