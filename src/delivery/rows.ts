/** The CSV file of a document: the ledger rows that it bills, in the columns of the ledger's export. */
import { RECORDED_FIELDS, ROW_FIELDS } from '#ledger/row';

/**
 * The byte order mark by which Excel recognizes UTF-8, and the names of the columns. The rows of missing shares have only
 * our share, so that the file adds up to the document's totals.
 */
export function rowsHeader(purpose: string | undefined) {
  const lacking: readonly string[] = purpose === 'missing_shares' ? ['spotPrice', 'partnerCut'] : [];
  return `\ufeff${[...ROW_FIELDS, ...RECORDED_FIELDS].filter((each) => !lacking.includes(each)).join()}\r\n`;
}
