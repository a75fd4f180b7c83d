import { ActionLink, Seer } from '#console/parts';

export const USERS = { name: 'Users', href: '/console/settings/users' };

export const InviteUser = ({ user }: { user: Seer }) => (
  <ActionLink user={user} action="user.invite" partner={null} tone="main">
    Invite
  </ActionLink>
);
