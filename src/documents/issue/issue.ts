/**
 * Issues the documents that the drafts (`drafts.sql.ts`) describe. The caller holds the ledger's lock exclusively until
 * the commit, so `insertDocuments` can safely assign the next number of a series.
 */
import { Transaction } from '#database/transaction';
import { queueIssuedDocuments } from '#documents/emails.sql';
import {
  applyOpenCredit,
  IssueBatch,
  insertDocumentLines,
  insertDocuments,
  readConservation,
  readIssued,
} from './issue.sql.ts';
import { insertDocumentTaxes } from './tax.sql.ts';

export type IssuedDocument = Readonly<{
  document_id: number;
  number: string;
}>;

/** Issues every draft with its lines and its credit, queues the e-mails, and returns them in number order. */
export async function issueDocuments(tx: Transaction, batch: IssueBatch): Promise<IssuedDocument[]> {
  await insertDocuments(tx, batch);
  await insertDocumentTaxes(tx);
  await insertDocumentLines(tx, { month: batch.month });
  await applyOpenCredit(tx, batch);
  await assertConservation(tx, batch);
  await queueIssuedDocuments(tx, batch);
  return readIssued(tx);
}

async function assertConservation(tx: Transaction, { month, purpose }: IssueBatch) {
  const { drafted, lines, differences } = await readConservation(tx);
  if (drafted !== lines || differences !== 0) {
    throw new Error(
      `the documents of ${month} (${purpose}) do not add up: ${drafted} rows drafted, ${lines} on lines, ` +
        `${differences} documents whose lines or credit have other sums`,
    );
  }
}
