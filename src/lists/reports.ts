/** The reports of the ledger that are not lists. */
import { z } from 'zod';
import { refuse, refuseField } from '#errors/refusals';
import { fieldName } from '#field-names';
import { isInPeriod, isInScope, Period, Scope } from '#people/scope';
import {
  agingBlocks,
  agingDocumentsBlock,
  agingDocumentsSheet,
  agingSheet,
  differencesBlocks,
  LISTED,
  readAging,
} from '#reports/aging';
import { readPresentDay } from '#reports/balances.sql';
import {
  bankReconciliationBlocks,
  bankReconciliationSheet,
  readBankReconciliation,
  summaryOf,
} from '#reports/bank-reconciliation';
import { CloseReport, readCloseReport } from '#reports/close';
import { closeBlocks } from '#reports/close-text';
import { coverageBlocks, coverageSheet, readCoverage } from '#reports/coverage';
import { readClosedMonths } from '#reports/coverage.sql';
import { refuseFutureDay } from '#reports/future-day';
import { closeSheet, trialBalanceSheet } from '#reports/sheets';
import { readTaxReport, taxBlocks, taxSheet } from '#reports/tax';
import { TAX_BASES } from '#reports/tax.sql';
import { readTrialBalance, trialBlocks } from '#reports/trial-balance';
import { readUnearned, unearnedBlocks, unearnedSheet } from '#reports/unearned';
import { dateName, lastDay, Month, monthName, plural } from '#values';
import { choice, date, defineReport, flag, month, partner, text, Verdict } from './report.ts';

const as_of = date('As of', 'As of the end of this day. Default: now.').optional();
const onDay = (as_of: string) => `as of ${dateName(as_of)}`;
const tied = ({ ties }: { readonly ties: boolean }): Verdict => ({
  good: ties,
  text: ties ? 'ties to the journal' : 'does not tie to the journal: verify the ledger',
});

export const aging = defineReport({
  command: 'aging',
  summary: 'Show open receivables by days overdue; exit 4 if they do not tie to the journal',
  title: 'Aging',
  asked: z.strictObject({
    as_of,
    partner: partner('Only documents of this partner, one by one.', { value: 'id' }).optional(),
    currency: text('Currency', 'Only documents in this currency, one by one.').optional(),
    bucket: choice('Age', 'Only documents of this age, one by one.', LISTED).optional(),
    detail: flag('By document', 'List the open documents, longest overdue first.').optional(),
  }),
  async read(tx, { as_of: asOf, partner: of, currency, bucket, detail }, { today, scope }) {
    await refuseFutureDay(tx, asOf, today);
    const found = await readAging(tx, { asOf, today, scope });
    const documents = found.documents.filter(
      (each) =>
        (of === undefined || each.partner_id === of) &&
        (currency === undefined || each.currency === currency) &&
        (bucket === undefined || (each.bucket ?? 'credit') === bucket),
    );
    return { found: { ...found, documents }, detail: (detail ?? of ?? currency ?? bucket) !== undefined };
  },
  inForce: ({ found: { as_of } }) => ({ as_of }),
  lead: ({ found: { as_of } }) => onDay(as_of),
  blocks: ({ found, detail }, on) => [
    ...differencesBlocks(found),
    ...(!detail ? agingBlocks(found, on) : found.documents.length === 0 ? [] : [agingDocumentsBlock(found)]),
  ],
  nothing: 'Nothing is open on this day.',
  verdict: ({ found }) => tied(found),
  day: ({ found }) => found,
  json: ({ found }) => found,
  sheet: ({ found, detail }) => (detail ? agingDocumentsSheet(found) : agingSheet(found)),
});

export const coverage = defineReport({
  command: 'coverage',
  summary: 'List documents by partner and closed month; exit 4 if rows have no document',
  title: 'Coverage',
  asked: z.strictObject({
    as_of: date('Closed by', 'Only months closed by that date.').optional(),
    gaps: flag('With a gap', 'Only partners with a gap.').optional(),
  }),
  async read(tx, { as_of: asOf, gaps }, { today, scope }) {
    await refuseFutureDay(tx, asOf, today);
    const { partners, ...found } = await readCoverage(tx, { asOf, scope });
    const isGap = ({ state }: { readonly state: string }) => state === 'gap';
    return { ...found, partners: gaps ? partners.filter(({ cells }) => cells.some(isGap)) : partners };
  },
  inForce: () => ({}),
  lead: ({ months }) => (months.length === 0 ? 'before the first close' : `${months[0]} to ${months.at(-1)}`),
  blocks: (found, on) => coverageBlocks(found, on === 'page' ? 13 : 3),
  nothing: 'No partner has closed months.',
  verdict: ({ gaps, books_open: open }) => ({
    good: gaps === 0,
    text:
      (gaps === 0 ? 'no gaps' : `${plural(gaps, 'gap')}: rows of a closed month without a document`) +
      (open.length === 0 ? '' : `; books open: ${open.join(', ')}`),
  }),
  sheet: coverageSheet,
});

export const trialBalance = defineReport({
  command: 'trial-balance',
  summary: 'Show the balance of every account; exit 4 if debits and credits differ',
  title: 'Trial balance',
  ofLedger: true,
  asked: z.strictObject({
    as_of,
    detail: flag('With subaccounts', 'Divide accounts by partner, policy and bank account.').optional(),
  }),
  async read(tx, { as_of: day, detail = false }, { today }) {
    await refuseFutureDay(tx, day, today);
    return readTrialBalance(tx, { asOf: day, today, detail });
  },
  inForce: ({ as_of }) => ({ as_of }),
  lead: ({ as_of }) => onDay(as_of),
  blocks: trialBlocks,
  nothing: 'All accounts are zero.',
  verdict: ({ balanced }) => ({
    good: balanced,
    text: balanced
      ? 'debits equal credits in every currency'
      : 'debits do not equal credits: do not rely on these figures, and verify the ledger',
  }),
  day: (found) => found,
  sheet: trialBalanceSheet,
});

export const unearned = defineReport({
  command: 'unearned',
  summary: 'Show unearned sales by partner and policy; exit 4 if they do not tie to the journal',
  title: 'Unearned sales',
  ofLedger: true,
  asked: z.strictObject({ as_of }),
  async read(tx, { as_of: day }, { today }) {
    await refuseFutureDay(tx, day, today);
    return readUnearned(tx, day ?? (await readPresentDay(tx, today)));
  },
  inForce: ({ as_of }) => ({ as_of }),
  lead: ({ as_of }) => onDay(as_of),
  blocks: unearnedBlocks,
  nothing: 'No sales are unearned on this day.',
  verdict: tied,
  day: (found) => found,
  sheet: unearnedSheet,
});

export const tax = defineReport({
  command: 'tax',
  summary:
    'Show the tax of documents by country, category, rate and currency; exit 4 if it does not tie to the journal',
  title: 'Tax',
  ofLedger: true,
  asked: z.strictObject({
    month: month('Month', 'The tax of this month. Default: the current one.').optional(),
    from: date('From', 'The first day, instead of the month.').optional(),
    to: date('To', 'The last day.').optional(),
    basis: choice(
      'Basis',
      'The tax of the sales of the period (tax-point, the default), or of its documents (issued).',
      TAX_BASES,
    ).optional(),
  }),
  ofCommand: ['month'],
  async read(tx, { basis = 'tax-point', ...days }, { today }) {
    const period = periodOf(days, today);
    const argument = fieldName(days.month === undefined ? 'to' : 'month');
    await refuseFutureDay(tx, `${period.to.slice(0, 7)}-01`, today, argument);
    return readTaxReport(tx, { ...period, basis });
  },
  inForce: ({ from, to, basis }) => ({ from, to, basis }),
  lead: ({ from, to, basis }) =>
    `of ${basis === 'issued' ? 'documents issued' : 'sales'} from ${dateName(from)} to ${dateName(to)}`,
  blocks: taxBlocks,
  nothing: 'No documents in this period carry tax.',
  verdict: tied,
  day: (found) => found,
  sheet: taxSheet,
});

type Days = Readonly<{ month?: Month | undefined; from?: string | undefined; to?: string | undefined }>;

function periodOf({ month: only, from, to }: Days, today: string) {
  if (only !== undefined && (from ?? to) !== undefined) {
    throw refuseField('month', only, `cannot be given with ${fieldName('from')} or ${fieldName('to')}`);
  }
  const whole = only ?? (today.slice(0, 7) as Month);
  if (from === undefined && to === undefined) return { from: `${whole}-01`, to: lastDay(whole) };
  return { from: from ?? `${(to as string).slice(0, 7)}-01`, to: to ?? today };
}

export const bankReconciliation = defineReport({
  command: 'bank-reconciliation',
  summary: 'Reconcile each bank account with the books; exit 4 if one does not tie',
  title: 'Bank reconciliation',
  ofLedger: true,
  asked: z.strictObject({
    on: date('On', 'The day. Default: today.').optional(),
    account: text('Account', 'Only this bank account.').optional(),
  }),
  async read(tx, { on, account }, { today }) {
    await refuseFutureDay(tx, on, today, fieldName('on'));
    return readBankReconciliation(tx, { on, account, today });
  },
  inForce: ({ on }) => ({ on }),
  lead: ({ on }) => onDay(on),
  blocks: bankReconciliationBlocks,
  nothing: 'No bank account has reported.',
  verdict: (found) => ({ good: found.ties, text: summaryOf(found) }),
  sheet: bankReconciliationSheet,
});

export const closeReport = defineReport({
  command: 'close',
  summary: 'Compare a close with the month before; exit 4 if e-mails are held',
  words: { arguments: { month: '[month]' } },
  title: 'Close report',
  ofPeriod: true,
  asked: z.strictObject({ month: month('Month', 'A closed month. Default: the latest.').optional() }),
  async read(tx, { month: asked }, { scope, period }) {
    if (asked !== undefined && period !== null && !isInPeriod(period, asked)) throw refuse('access_limited', period);
    const seen = (await readClosedMonths(tx, { asOf: null })).filter((each) => isInPeriod(period, each.month));
    const only = asked ?? seen.at(-1)?.month;
    const report = only === undefined ? undefined : await readCloseReport(tx, only);
    return { report: report === undefined ? null : seenBy(report, scope, period), isWhole: scope === null };
  },
  inForce: ({ report }) => ({ month: report?.month ?? '' }),
  lead: ({ report }) => (report === null ? '' : `of ${monthName(report.month)}`),
  blocks: ({ report, isWhole }) => (report === null ? [] : closeBlocks(report, { isWhole })),
  nothing: 'No month has been closed yet.',
  verdict: ({ report }) => ({
    ...(report === null
      ? { good: null, text: 'nothing was issued' }
      : report.held.length === 0
        ? { good: true, text: 'no document is held' }
        : { good: false, text: `${plural(report.held.length, 'document is', 'documents are')} held or not sent` }),
  }),
  json: ({ report }) => report,
  sheet: ({ report }) => closeSheet(report ?? undefined),
});

/** The lines of some partners. The first of the months that a user may see is compared with none. */
function seenBy(report: CloseReport, scope: Scope, period: Period): CloseReport {
  const own = <Row extends { readonly partner_id: string }>(rows: readonly Row[]) =>
    rows.filter(({ partner_id }) => isInScope(scope, partner_id));
  const { previous, partners } = report;
  const isFirst = previous !== null && !isInPeriod(period, previous);
  const compared = isFirst
    ? partners
        .filter(({ documents }) => documents.length > 0)
        .map((row) => ({ ...row, last_month: '0', change: '0', new_policies: [], ended_policies: [] }))
    : partners;
  return {
    ...report,
    previous: isFirst ? null : previous,
    ...{ partners: own(compared), no_activity: own(report.no_activity), late: own(report.late) },
    ...{ other_currencies: own(report.other_currencies), differing_cuts: own(report.differing_cuts) },
    ...{ held: own(report.held), accepted_doubts: own(report.accepted_doubts) },
  };
}
