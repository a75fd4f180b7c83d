/** What an auditor looks at, each one step from the others. */
import { type Seer, seesAll } from '../action-link.tsx';
import { Tabs } from '../kit.tsx';

const PARTS = [
  ['events', 'Events', '/console/audit'],
  ['seals', 'Seals', '/console/audit/seals'],
  ['checks', 'Checks', '/console/audit/checks'],
  ['settings', 'Settings changes', '/console/audit/settings'],
  ['packs', 'Packs', '/console/audit/packs'],
] as const;

/** Events are for every reader; the rest is of the whole ledger, as are the screens that name no reader. */
export const AuditMenu = ({ current, user }: { current: (typeof PARTS)[number][0]; user?: Seer }) => (
  <Tabs
    label="Audit"
    tabs={PARTS.filter(([id]) => id === 'events' || user === undefined || seesAll(user)).map(([id, name, href]) => ({
      name,
      href,
      current: id === current,
    }))}
  />
);
