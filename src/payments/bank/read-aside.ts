/**
 * Reads a bank file in a separate process (reading/aside.ts), which sends the lines packed: they stay packed in the
 * process that imports the file. Refusals: those of read.ts.
 */
import { createHash } from 'node:crypto';
import { BankCsvMap } from '#config/bank-csv';
import { Amount } from '#money';
import { Piece, readAside, readerOf } from '#reading/aside';
import { ListOf, mapped, PackedList, pack } from '#reading/packed-list';
import { BankFile } from './format.ts';
import { BankFilePart, ReadBankFile, readBankParts } from './read.ts';
import { BankLine, BankLines, BankStatement } from './statement.ts';

type Maps = Readonly<Record<string, BankCsvMap>>;

/** Amounts are sent as text, because processes cannot exchange class instances. */
type SentAmount = readonly [text: string, currency: string];
type SentLine = Omit<BankLine, 'amount' | 'deducted'> & Readonly<{ amount: SentAmount; deducted?: SentAmount }>;
type Header = Omit<BankStatement, 'lines'>;
type SentHeader = Omit<Header, 'opening' | 'closing'> & Partial<Record<'opening' | 'closing', SentAmount | undefined>>;

type Sent =
  | Readonly<{ format: string }>
  | Readonly<{ of: number; statement: SentHeader }>
  | Readonly<{ of: number; length: number; packed: Uint8Array }>;

const LINES_IN_A_PIECE = 500;

/** The reading process imports this constant by name, so it must be exported. */
export const bankFile = readerOf(
  import.meta.url,
  'bankFile',
  function* ({ maps, ...file }: BankFile & { readonly maps: Maps }): Generator<Piece<readonly Sent[]>> {
    const lines = new Map<number, SentLine[]>();
    let others: Sent[] = [];
    let waiting = 0;
    let at = 0;
    const piece = () => {
      const packed = [...lines].map(([of, those]) => ({ of, length: those.length, packed: pack(those) }));
      const all = [...packed, ...others];
      lines.clear();
      [others, waiting] = [[], 0];
      return all;
    };
    for (const part of readBankParts(file, maps)) {
      waiting += 1;
      if ('format' in part) others.push(part);
      else if ('statement' in part) others.push(sentStatement(part));
      else {
        at = part.at ?? at;
        const those = lines.get(part.of);
        if (those === undefined) lines.set(part.of, [sentLine(part.line)]);
        else those.push(sentLine(part.line));
      }
      if (waiting === LINES_IN_A_PIECE) yield { piece: piece(), at };
    }
    yield { piece: piece(), at: file.bytes.length };
  },
);

/** A file that was read and can be recorded, without its bytes. */
export type RecordableFile = ReadBankFile<BankLines> & ReturnType<typeof digestOf>;

/** What is recorded of a file itself. */
export const digestOf = ({ name, bytes }: Pick<BankFile, 'name' | 'bytes'>) => ({
  name,
  sha256: createHash('sha256').update(bytes).digest('hex'),
  bytes: bytes.length,
});

export async function readBankFileAside(file: BankFile, maps: Maps): Promise<RecordableFile> {
  const given = { ...file, maps };
  const digest = digestOf(given);
  return { ...collected((await readAside(bankFile, given)) as readonly Sent[]), ...digest };
}

function collected(parts: readonly Sent[]): ReadBankFile<BankLines> {
  const formats = new Set<string>();
  const lines = new Map<number, PackedList<SentLine>>();
  const headers: [number, SentHeader][] = [];
  for (const part of parts) {
    if ('format' in part) formats.add(part.format);
    else if ('statement' in part) headers.push([part.of, part.statement]);
    else {
      const those = lines.get(part.of) ?? new PackedList();
      lines.set(part.of, those);
      those.add(part.packed, part.length);
    }
  }
  const statements = headers.map(([of, { opening, closing, ...header }]) => {
    const packed = lines.get(of) ?? [];
    return {
      ...{ ...header, opening: amountOf(opening), closing: amountOf(closing) },
      lines: new ListOf(packed.length, () => mapped(packed, receivedLine)),
    };
  });
  return { format: [...formats].join(' '), statements };
}

const sentAmount = (amount: Amount): SentAmount => [amount.toString(), amount.currency];
const amountOf = (sent: SentAmount | undefined) => sent && Amount.of(...sent);

function sentStatement({ of, statement }: Extract<BankFilePart, { statement: unknown }>): Sent {
  const { opening, closing, ...header } = statement;
  const balances = { opening: opening && sentAmount(opening), closing: closing && sentAmount(closing) };
  return { of, statement: { ...header, ...balances } };
}

const sentLine = ({ amount, deducted, ...line }: BankLine): SentLine => ({
  ...line,
  amount: sentAmount(amount),
  ...(deducted !== undefined && { deducted: sentAmount(deducted) }),
});

const receivedLine = ({ amount, deducted, ...line }: SentLine): BankLine => ({
  ...line,
  amount: Amount.of(...amount),
  ...(deducted !== undefined && { deducted: Amount.of(...deducted) }),
});
