/** The auditor's pages, one step from each other. */
import { type Seer, seesAll } from '../action-link.tsx';
import { Tabs } from '../kit.tsx';

const PARTS = [
  ['events', 'Events', '/console/audit'],
  ['seals', 'Seals', '/console/audit/seals'],
  ['checks', 'Checks', '/console/audit/checks'],
  ['settings', 'Settings changes', '/console/audit/settings'],
  ['packs', 'Packs', '/console/audit/packs'],
] as const;

/** Every user may see events. The rest is for users of the whole ledger, as are screens that do not name a user. */
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
