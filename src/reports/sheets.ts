/** The reports as spreadsheets, for the files of commands and the console's downloads. */
import { Month } from '#month';
import { columnsOf, Sheet } from '#sheet';
import { ReconciliationException } from '#splits/reconcile-month';
import { AccountStatement, CurrencyAccount } from './account-statement.ts';
import { CloseReport } from './close.ts';
import { whyChanged } from './close-text.ts';
import { TrialBalance } from './trial-balance.ts';

export const trialBalanceSheet = ({ accounts }: TrialBalance): Sheet => ({
  name: 'Trial balance',
  columns: columnsOf('account currency debit:amount credit:amount'),
  rows: accounts.map((row) => ({ ...row })),
});

export const closeSheet = (report: Pick<CloseReport, 'partners'> | undefined): Sheet => ({
  name: 'Close',
  columns: columnsOf('partner_id name currency documents invoice_amount:amount last_month:amount change:amount why'),
  rows: (report?.partners ?? []).map((row) => ({ ...row, documents: row.documents.join(' '), why: whyChanged(row) })),
});

export const statementSheet = (statement: AccountStatement): Sheet => ({
  name: 'Account statement',
  columns: columnsOf(
    'currency partner_id date:date dated_on:date fact document reference amount:amount balance:amount kind',
  ),
  rows: statement.accounts.flatMap(statementRows(statement)),
});

const statementRows =
  ({ from, as_of }: AccountStatement) =>
  (account: CurrencyAccount) => [
    { currency: account.currency, date: from, fact: 'opening', balance: account.opening },
    ...account.lines.map((line) => ({ currency: account.currency, ...line })),
    { currency: account.currency, date: as_of, fact: 'closing', balance: account.closing },
  ];

export const reconciliationSheet = (month: Month, exceptions: readonly ReconciliationException[]): Sheet => ({
  name: 'Reconciliation',
  columns: {
    ...columnsOf('month status partner_id account quote_id balance_transactions currency expected:amount'),
    ...columnsOf('routed:amount open:amount age_days:count'),
  },
  rows: exceptions.map((each) => ({ ...each, month, balance_transactions: each.balance_transactions.join(' ') })),
});
