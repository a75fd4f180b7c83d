/** The reports that any day or month has, each one step from the others. */
import { Tabs } from '../kit.tsx';

const REPORTS = [
  ['aging', 'Aging', '/console/aging'],
  ['trial-balance', 'Trial balance', '/console/reports/trial-balance'],
  ['coverage', 'Coverage', '/console/reports/coverage'],
  ['close', 'Close report', '/console/reports/close'],
] as const;

export const ReportsMenu = ({ current }: { current: (typeof REPORTS)[number][0] }) => (
  <Tabs label="Reports" tabs={REPORTS.map(([id, name, href]) => ({ name, href, current: id === current }))} />
);
