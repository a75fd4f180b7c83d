import { type Seer, seesAll, Tabs } from '../parts.ts';

const REPORTS = [
  ['aging', 'Aging', '/console/aging'],
  ['trial-balance', 'Trial balance', '/console/reports/trial-balance'],
  ['bank-reconciliation', 'Bank', '/console/reports/bank-reconciliation'],
  ['general-ledger', 'General ledger', '/console/reports/general-ledger'],
  ['coverage', 'Coverage', '/console/reports/coverage'],
  ['cash-application', 'Cash application', '/console/reports/cash-application'],
  ['close', 'Close report', '/console/reports/close'],
] as const;

const LEDGER: readonly string[] = ['trial-balance', 'bank-reconciliation', 'general-ledger', 'cash-application'];

/** A page without `user` requires access to the whole ledger. */
export const ReportsMenu = ({ current, user }: { current: (typeof REPORTS)[number][0]; user?: Seer }) => (
  <Tabs
    label="Reports"
    tabs={REPORTS.filter(([id]) => !LEDGER.includes(id) || user === undefined || seesAll(user)).map(
      ([id, name, href]) => ({ name, href, current: id === current }),
    )}
  />
);
