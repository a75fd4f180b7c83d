import { ActionLink, Seer, Tabs } from '#console/parts';

export const USERS = { name: 'Users', href: '/console/settings/users' };

const PARTS = [
  ['settings', 'Settings', '/console/settings'],
  ['users', USERS.name, USERS.href],
  ['clients', 'API clients', '/console/settings/clients'],
] as const;

export const SettingsMenu = ({ current }: { current: (typeof PARTS)[number][0] }) => (
  <Tabs label="Settings" tabs={PARTS.map(([id, name, href]) => ({ name, href, current: id === current }))} />
);

export const InviteUser = ({ user }: { user: Seer }) => (
  <ActionLink user={user} action="user.invite" partner={null} tone="main">
    Invite
  </ActionLink>
);
