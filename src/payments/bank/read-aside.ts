/** Reads a bank file in a separate process (reading/aside.ts). Refusals: those of read.ts. */
import { BankCsvMap } from '#config/bank-csv';
import { Amount } from '#money';
import { Piece, readAside, readerOf } from '#reading/aside';
import { BankFile } from './format.ts';
import { BankFilePart, collectBankFile, ReadBankFile, readBankParts } from './read.ts';

type Maps = Readonly<Record<string, BankCsvMap>>;

/** Amounts are sent as text, because processes cannot exchange class instances. */
type Sent = readonly unknown[];

const PARTS_IN_A_PIECE = 200;

/** The reading process imports this constant by name, so it must be exported. */
export const bankFile = readerOf(
  import.meta.url,
  'bankFile',
  function* ({ maps, ...file }: BankFile & { readonly maps: Maps }): Generator<Piece<Sent>> {
    let piece: unknown[] = [];
    let at = 0;
    for (const part of readBankParts(file, maps)) {
      piece.push(sent(part));
      if ('at' in part) at = part.at ?? at;
      if (piece.length < PARTS_IN_A_PIECE) continue;
      yield { piece, at };
      piece = [];
    }
    yield { piece, at: file.bytes.length };
  },
);

export async function readBankFileAside(file: BankFile, maps: Maps): Promise<ReadBankFile> {
  const parts = await readAside(bankFile, { ...file, maps });
  return collectBankFile(received(parts));
}

const asText = (amount: Amount | undefined) => amount && [amount.toString(), amount.currency];

function sent(part: BankFilePart) {
  if ('format' in part) return part;
  if ('statement' in part) {
    const { opening, closing, ...statement } = part.statement;
    return { of: part.of, statement: { ...statement, opening: asText(opening), closing: asText(closing) } };
  }
  const { amount, deducted, ...line } = part.line;
  const more = deducted === undefined ? {} : { deducted: asText(deducted) };
  return { of: part.of, line: { ...line, amount: asText(amount), ...more } };
}

function* received(parts: Sent): Generator<BankFilePart> {
  for (const part of parts) {
    const values = Object.values(part as object)[1] as Record<string, unknown> | undefined;
    for (const name of ['amount', 'deducted', 'opening', 'closing']) {
      const text = values?.[name] as [string, string] | undefined;
      if (values !== undefined && text !== undefined) values[name] = Amount.of(...text);
    }
    yield part as BankFilePart;
  }
}
