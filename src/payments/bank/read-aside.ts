/** Reads a bank file in a separate process (reading/aside.ts). Refusals: those of read.ts. */
import { BankCsvMap } from '#config/bank-csv';
import { Amount } from '#money';
import { readAside, readerOf } from '#reading/aside';
import { BankFile } from './format.ts';
import { ReadBankFile, readBankFile } from './read.ts';
import { BankLine, BankStatement } from './statement.ts';

type Maps = Readonly<Record<string, BankCsvMap>>;

/** Amounts are sent as text, because processes cannot exchange class instances. */
type SentStatement = Omit<BankStatement, 'opening' | 'closing' | 'lines'> &
  Readonly<{
    opening: string | undefined;
    closing: string | undefined;
    lines: readonly (Omit<BankLine, 'amount'> & { readonly amount: string })[];
  }>;

/** The reading process imports this constant by name, so it must be exported. */
export const bankFile = readerOf(
  import.meta.url,
  'bankFile',
  ({ maps, ...file }: BankFile & { readonly maps: Maps }) => {
    const { format, statements } = readBankFile(file, maps);
    return { format, statements: statements.map(sent) };
  },
);

export async function readBankFileAside(file: BankFile, maps: Maps): Promise<ReadBankFile> {
  const { format, statements } = await readAside(bankFile, { ...file, maps });
  return { format, statements: statements.map(received) };
}

const sent = ({ opening, closing, lines, ...statement }: BankStatement) => ({
  ...{ ...statement, opening: opening?.toString(), closing: closing?.toString() },
  lines: lines.map((line) => ({ ...line, amount: line.amount.toString() })),
});

function received({ opening, closing, lines, ...statement }: SentStatement) {
  const { currency } = statement;
  const amount = (text: string | undefined) => (text === undefined ? undefined : Amount.of(text, currency));
  return {
    ...{ ...statement, opening: amount(opening), closing: amount(closing) },
    lines: lines.map((line) => ({ ...line, amount: Amount.of(line.amount, currency) })),
  };
}
