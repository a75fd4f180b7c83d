/**
 * The report of a close: the month's documents compared with the previous month, late rows, holds, and the status of
 * e-mails. The report is always read from current data. Refusals: month_not_closed.
 */

import { needRows } from '#archive/rows';
import { readFeedDecisions, StoredFeedDecision } from '#close/feeds.sql';
import { MonthFacts, readMonthFacts, readOtherCurrencies } from '#close/months.sql';
import { otherCurrencyJson } from '#close/other-currencies';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { DifferingCuts, readDifferingCuts } from '#ledger/quoted.sql';
import { Amount, Month } from '#values';
import {
  LateRows,
  PartnerChange,
  RecordedClose,
  readChanges,
  readHeld,
  readInactive,
  readLate,
  readRecordedClose,
  readTaxes,
  UnsentDocument,
} from './close.sql.ts';

export type CloseReport = Omit<MonthFacts, 'totals'> &
  RecordedClose &
  Readonly<{
    month: Month;
    totals: ReturnType<typeof totalsJson>;
    /**
     * The tax of the month's documents by currency. The other amounts do not include this tax. The field is omitted if no
     * document is taxed.
     */
    taxes?: Readonly<Record<string, string>>;
    /**
     * The partners, sorted by currency, then by the size of the change; in the first month, by the size of the amount.
     */
    partners: readonly PartnerChange[];
    no_activity: readonly Readonly<{ partner_id: string; name: string }>[];
    late: readonly LateRows[];
    other_currencies: readonly ReturnType<typeof otherCurrencyJson>[];
    differing_cuts: readonly DifferingCuts[];
    held: readonly UnsentDocument[];
    /** What was in doubt about the rows, and accepted by a person. */
    accepted_doubts: readonly StoredFeedDecision[];
  }>;

/** The totals by currency. */
export const totalsJson = (
  totals: MonthFacts['totals'],
): Readonly<Record<string, Readonly<{ spotPrice: string; partnerCut: string; invoiceAmount: string }>>> =>
  Object.fromEntries(
    totals.map(({ currency, spot_price, partner_cut, invoice_amount }) => {
      const text = (amount: string) => Amount.of(amount, currency).toString();
      return [
        currency,
        { spotPrice: text(spot_price), partnerCut: text(partner_cut), invoiceAmount: text(invoice_amount) },
      ];
    }),
  );

/** The part of the report that concerns documents, and that does not read the month's rows. */
export type CloseFigures = Omit<CloseReport, 'late' | 'other_currencies' | 'differing_cuts'>;

/** The report of one month; by default, of the last closed month. The result is undefined if no month is closed. */
export async function readCloseReport(tx: Transaction, asked?: Month): Promise<CloseReport | undefined> {
  const figures = await readCloseFigures(tx, asked);
  if (figures === undefined) return undefined;
  const { month, previous } = figures;
  await needRows(tx, { from: month, to: month });
  return {
    ...figures,
    late: await readLateRows(tx, figures),
    other_currencies: (await readOtherCurrencies(tx, { months: [month] })).map(otherCurrencyJson),
    differing_cuts: await readDifferingCuts(tx, { after: previous, to: month }),
  };
}

export async function readCloseFigures(tx: Transaction, asked?: Month): Promise<CloseFigures | undefined> {
  const [closed] = await readRecordedClose(tx, { month: asked ?? null });
  if (closed === undefined) {
    if (asked !== undefined) throw refuse('month_not_closed', { month: asked });
    return undefined;
  }
  const { month, previous } = closed;
  const [facts] = await readMonthFacts(tx, { months: [month] });
  const { totals, ...counts } = facts as MonthFacts;
  const taxes = await readTaxes(tx, { month });
  return {
    ...counts,
    ...closed,
    totals: totalsJson(totals),
    ...(taxes.length > 0 && {
      taxes: Object.fromEntries(taxes.map(({ currency, tax }) => [currency, Amount.of(tax, currency).toString()])),
    }),
    partners: await readPartnerChanges(tx, { month, previous }),
    no_activity: await readInactive(tx, { month }),
    held: await readHeld(tx, { month }),
    accepted_doubts: await readFeedDecisions(tx, { month }),
  };
}

/** Compares what a closed month bills each partner with the month before. */
export const readPartnerChanges = async (
  tx: Transaction,
  months: Readonly<{ month: Month; previous: Month | null }>,
): Promise<PartnerChange[]> => (await readChanges(tx, months)).map(withDigits);

/** The rows of earlier months that a closed month bills, by partner, month and currency. */
export async function readLateRows(
  tx: Transaction,
  { month }: Pick<CloseReport, 'month'>,
): Promise<CloseReport['late']> {
  return (await readLate(tx, { month })).map((row) => ({
    ...row,
    invoice_amount: Amount.of(row.invoice_amount, row.currency).toString(),
  }));
}

function withDigits({ currency, ...row }: PartnerChange) {
  const text = (amount: string) => Amount.of(amount, currency).toString();
  const { invoice_amount, last_month, change } = row;
  return { ...row, currency, invoice_amount: text(invoice_amount), last_month: text(last_month), change: text(change) };
}
