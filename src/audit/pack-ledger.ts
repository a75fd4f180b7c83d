/** The ledger rows in a pack, by the month that bills them, generated from the lines of the log in the same pass. */
import { wholeLines } from '#database/copy';
import { Transaction } from '#database/transaction';
import { Amount } from '#money';
import { Month } from '#month';
import { TableFormat } from './columns.sql.ts';
import { BilledMonth, readDocumentNumbers, readLedgerTotals } from './exports.sql.ts';
import { LEDGER_HEADER, ledgerRows, readOtherLines, runsByMonth } from './ledger-rows.ts';
import { FileInPack, Pack, Scratch } from './pack.ts';
import { LogOfPack, writeLog } from './pack-log.ts';

/** Writes `ledger.csv` or `ledger.jsonl`, and the log. */
export async function writeLedger(
  { tx, pack, log, months }: { tx: Transaction; pack: Pack; log: LogOfPack; months: readonly BilledMonth[] },
  format: TableFormat,
  onProgress: (bytes: number) => void,
) {
  const lastNo = log.to.last_no;
  const file = await pack.file(`ledger.${format}`);
  if (format === 'csv') await file.write(LEDGER_HEADER);
  const rows = new RowsByMonth(pack, file, months);
  for (const { month } of months) {
    const numbers = await readDocumentNumbers(tx, month, lastNo);
    rows.toRows.set(month, ledgerRows(format, { month, numbers, grounds: rows.grounds }));
  }
  const take = wholeLines(async (lines) => onProgress(await rows.write(lines)));
  await writeLog(tx, pack, log, async (piece) => {
    onProgress(piece.length);
    await take(piece);
  });
  await rows.end();
  await file.end(await readTotals(tx, months, lastNo));
}

/**
 * Writes the rows month by month. Until a month is closed in the log, rows of later months are recorded among its rows;
 * these wait in files of their own.
 */
class RowsByMonth {
  readonly toRows = new Map<Month, (lines: Buffer) => Buffer>();
  /** What allowed the reversals whose rows are still to come. */
  readonly grounds = new Map<string, string>();
  private readonly pack: Pack;
  private readonly file: FileInPack;
  private readonly months: readonly BilledMonth[];
  /** The month whose rows are written, by its place in `months`. */
  private current = 0;
  private readonly waiting = new Map<Month, Scratch>();

  constructor(pack: Pack, file: FileInPack, months: readonly BilledMonth[]) {
    [this.pack, this.file, this.months] = [pack, file, months];
  }

  /** Writes the rows among these lines of the log. Returns how many bytes were written. */
  async write(lines: Buffer) {
    let bytes = 0;
    for (const { month, run } of runsByMonth(lines, this.months)) {
      if (month === undefined) {
        for (const closed of readOtherLines(run, this.grounds)) await this.writeAfter(closed);
        continue;
      }
      const rows = (this.toRows.get(month) as (lines: Buffer) => Buffer)(run);
      bytes += rows.length;
      if (this.months.findIndex((billed) => billed.month === month) <= this.current) await this.file.write(rows);
      else await (await this.waitingOf(month)).write(rows);
    }
    return bytes;
  }

  /** Writes all rows that still wait. */
  end() {
    return this.writeAfter('9999-12');
  }

  private async writeAfter(closed: string) {
    for (let billed = this.months[this.current]; billed && billed.month <= closed; billed = this.months[this.current]) {
      this.current += 1;
      const next = this.months[this.current]?.month;
      await (next && this.waiting.get(next))?.moveTo(this.file);
    }
  }

  private async waitingOf(month: Month) {
    const scratch = this.waiting.get(month) ?? (await this.pack.scratch());
    this.waiting.set(month, scratch);
    return scratch;
  }
}

async function readTotals(tx: Transaction, months: readonly BilledMonth[], lastNo: number) {
  const totals = new Map<string, Record<'spotPrice' | 'partnerCut' | 'invoiceAmount', Amount>>();
  let rows = 0;
  for (const billed of months) {
    for (const { currency, rows: counted, ...sums } of await readLedgerTotals(tx, billed, lastNo)) {
      rows += counted;
      const before = totals.get(currency);
      const add = (name: keyof typeof sums) => {
        const sum = Amount.of(sums[name], currency);
        return before ? before[name].plus(sum) : sum;
      };
      totals.set(currency, {
        spotPrice: add('spotPrice'),
        partnerCut: add('partnerCut'),
        invoiceAmount: add('invoiceAmount'),
      });
    }
  }
  return { rows, totals: totalsJson(totals) };
}

const totalsJson = (totals: ReadonlyMap<string, Readonly<Record<string, Amount>>>) =>
  Object.fromEntries(
    [...totals]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([currency, sums]) => [
        currency,
        Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum.toString()])),
      ]),
  );
