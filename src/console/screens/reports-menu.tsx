/** The reports that any day or month has, each one step from the others. */
import { type Seer, seesAll } from '../act-link.tsx';
import { Tabs } from '../kit.tsx';

const REPORTS = [
  ['aging', 'Aging', '/console/aging'],
  ['trial-balance', 'Trial balance', '/console/reports/trial-balance'],
  ['coverage', 'Coverage', '/console/reports/coverage'],
  ['close', 'Close report', '/console/reports/close'],
] as const;

/** The trial balance is of the whole ledger, as are the screens that name no reader. */
export const ReportsMenu = ({ current, user }: { current: (typeof REPORTS)[number][0]; user?: Seer }) => (
  <Tabs
    label="Reports"
    tabs={REPORTS.filter(([id]) => id !== 'trial-balance' || user === undefined || seesAll(user)).map(
      ([id, name, href]) => ({ name, href, current: id === current }),
    )}
  />
);
