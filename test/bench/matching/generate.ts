/**
 * The benchmark's world from a seed: partners, rows, documents, bank files, and the truth about each receipt. It was
 * written from descriptions of bank files and of payers, without reading the matcher (docs/performance.md).
 */
import { type Bank, type BankFile, CSV_MAP, writeFiles } from './banks.ts';
import { drawFrom } from './draw.ts';
import { type Document, type Ledger, MONTH_INDEXES, type MonthIndex, makeLedger, partnerJson } from './ledger.ts';
import { CALENDAR, makeReceipts, type Receipt, SMALL_DIFFERENCE } from './receipts.ts';

export interface Benchmark {
  readonly seed: number;
  /** What `partner import` reads. */
  readonly partners: readonly object[];
  readonly rows: Readonly<Record<MonthIndex, string>>;
  readonly documents: readonly Document[];
  readonly files: readonly BankFile[];
  readonly receipts: readonly Receipt[];
  /** What settings.json has in place of the sandbox's own. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Parents come first. */
const inOrderOfParents = (ledger: Ledger): object[] =>
  [...ledger.partners]
    .sort((one, other) => Number(one.parent !== null) - Number(other.parent !== null))
    .map(partnerJson);

export function generate(seed: number, { references = false }: { readonly references?: boolean } = {}): Benchmark {
  const draw = drawFrom(seed);
  const ledger = makeLedger(draw);
  const receipts = makeReceipts(draw, ledger, references);
  const openings = new Map<Bank, number>();
  const files = MONTH_INDEXES.flatMap((month) => {
    const lines = receipts.filter((receipt) => receipt.month === month).map(({ line }) => line);
    return writeFiles(draw, { month, calendar: CALENDAR[month], lines, openings });
  });
  return {
    seed,
    partners: inOrderOfParents(ledger),
    rows: ledger.rows,
    documents: ledger.documents,
    files,
    receipts,
    settings: { credit_at_close: 'none', small_difference: SMALL_DIFFERENCE, bank_csv: { jp: CSV_MAP } },
  };
}
