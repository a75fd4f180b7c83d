/** What an auditor looks at, each one step from the others. */
import { Tabs } from '../kit.tsx';

const PARTS = [
  ['events', 'Events', '/console/audit'],
  ['seals', 'Seals', '/console/audit/seals'],
  ['checks', 'Checks', '/console/audit/checks'],
  ['settings', 'Settings changes', '/console/audit/settings'],
  ['packs', 'Packs', '/console/audit/packs'],
] as const;

export const AuditMenu = ({ current }: { current: (typeof PARTS)[number][0] }) => (
  <Tabs label="Audit" tabs={PARTS.map(([id, name, href]) => ({ name, href, current: id === current }))} />
);
