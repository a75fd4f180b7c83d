import { Seer, seesAll, Tabs } from '#console/parts';
import { periodOf } from '#people/roles';

const PARTS = [
  ['events', 'Events', '/console/audit'],
  ['checkpoints', 'Checkpoints', '/console/audit/checkpoints'],
  ['checks', 'Checks', '/console/audit/checks'],
  ['settings', 'Settings changes', '/console/audit/settings'],
  ['access', 'Access', '/console/audit/access'],
  ['packs', 'Packs', '/console/audit/packs'],
] as const;

/**
 * Users limited to some partners may open only `events`, users limited to some months also `packs`. A page without
 * `user` requires access to the whole ledger, and to all months.
 */
export const AuditMenu = ({ current, user }: { current: (typeof PARTS)[number][0]; user?: Seer }) => (
  <Tabs
    label="Audit"
    tabs={PARTS.filter(
      ([id]) => id === 'events' || user === undefined || (seesAll(user) && (id === 'packs' || periodOf(user) === null)),
    ).map(([id, name, href]) => ({ name, href, current: id === current }))}
  />
);
