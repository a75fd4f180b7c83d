import type { Transaction } from '../../src/database/transaction.ts';
import type { BankFile } from '../../src/payments/bank/format.ts';
import { readBankFileAside } from '../../src/payments/bank/read-aside.ts';
import * as bankImport from '../../src/payments/bank-import/import.ts';
import type { Caller } from '../../src/payments/context.ts';

/** Reads and imports a file in one transaction, with the reports of its lines in an array. */
export async function importBankFile(tx: Transaction, acting: Caller, file: BankFile): Promise<bankImport.BankImport> {
  const read = await readBankFileAside(file, acting.settings.bank_csv);
  const report = await bankImport.importBankFile(tx, acting, read);
  return { ...report, new_lines: [...report.new_lines] };
}
