import { Seer, seesAll, Tabs } from '#console/parts';
import { periodOf } from '#people/roles';

const REPORTS = [
  ['aging', 'Aging', '/console/aging'],
  ['roll-forward', 'Roll-forward', '/console/reports/roll-forward'],
  ['reserve', 'Reserve', '/console/reports/reserve'],
  ['trial-balance', 'Trial balance', '/console/reports/trial-balance'],
  ['tax', 'Tax', '/console/reports/tax'],
  ['unearned', 'Unearned', '/console/reports/unearned'],
  ['bank-reconciliation', 'Bank', '/console/reports/bank-reconciliation'],
  ['general-ledger', 'General ledger', '/console/reports/general-ledger'],
  ['coverage', 'Coverage', '/console/reports/coverage'],
  ['cash-application', 'Cash application', '/console/reports/cash-application'],
  ['close', 'Close report', '/console/reports/close'],
] as const;

const LEDGER: readonly string[] = [
  ...['trial-balance', 'tax', 'unearned', 'bank-reconciliation', 'general-ledger', 'cash-application'],
];

/** For users who may see some months only. */
const OF_PERIOD: readonly string[] = ['general-ledger', 'close'];

/** A page without `user` requires access to the whole ledger, and to all months. */
export const ReportsMenu = ({ current, user }: { current: string; user?: Seer }) => (
  <Tabs
    label="Reports"
    tabs={REPORTS.filter(
      ([id]) =>
        user === undefined ||
        ((!LEDGER.includes(id) || seesAll(user)) && (periodOf(user) === null || OF_PERIOD.includes(id))),
    ).map(([id, name, href]) => ({ name, href, current: id === current }))}
  />
);
