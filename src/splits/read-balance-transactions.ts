/**
 * Reads a file with one balance transaction per line, as the processor's API returns it with `source` expanded.
 * Refusals: balance_transactions_invalid, file_items_too_many.
 */
import { FieldProblem, reasonOf, refuse } from '#errors/refusals';
import { parseExactJson } from '#json';
import { PROCESSOR } from '#processors/processors';
import { GivenFile, readerOf } from '#reading/aside';
import { linesOf, readUntilTold } from '#reading/limits';

export const balanceTransactionFile = readerOf(
  import.meta.url,
  'balanceTransactionFile',
  ({ name, bytes, live }: GivenFile & { readonly live: boolean }) =>
    readBalanceTransactions(name, Buffer.from(bytes).toString('utf8'), live),
);

export function readBalanceTransactions(source: string, text: string, live: boolean) {
  const problems: FieldProblem[] = [];
  const transactions = readUntilTold(linesOf(source, text), problems, (line) => {
    const read = readLine(line.text, live);
    if ('balance_transaction' in read) return read.balance_transaction;
    problems.push({ path: `line ${line.number}`, reason: read.problem });
    return undefined;
  });
  if (problems.length > 0) throw refuse('balance_transactions_invalid', { source, problems });
  return transactions;
}

function readLine(line: string, live: boolean) {
  try {
    return PROCESSOR.balanceTransactions.read(parseExactJson(line), line, live);
  } catch (error) {
    return { id: '', problem: `is not JSON: ${reasonOf(error)}` };
  }
}
