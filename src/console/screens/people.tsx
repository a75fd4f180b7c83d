/** Who may act: users with their roles and when they were seen last, and the API clients of partners. No secret is read. */
import type { Environment } from '../../config/environment.ts';
import type { Transaction } from '../../database/transaction.ts';
import { readClients } from '../../partners/client-queries.ts';
import { rolesInWords } from '../../people/roles.ts';
import { type ListedUser, readUsers } from '../../people/user-queries.ts';
import { plural } from '../../text.ts';
import { ActLink, MoreActs, type RareAct, type Seer } from '../act-link.tsx';
import { addressOf, Card, Chip, type Column, DataTable, None, Tabs } from '../kit.tsx';
import type { Screen } from '../page.tsx';

export const USERS = { name: 'Users', href: '/console/settings/users' };

const PARTS = [
  ['settings', 'Settings', '/console/settings'],
  ['users', USERS.name, USERS.href],
  ['clients', 'API clients', '/console/settings/clients'],
] as const;

export const SettingsMenu = ({ current }: { current: (typeof PARTS)[number][0] }) => (
  <Tabs label="Settings" tabs={PARTS.map(([id, name, href]) => ({ name, href, current: id === current }))} />
);

const SETTINGS = { place: 'settings', title: 'Settings' } as const;

interface Seen {
  readonly environment: Pick<Environment, 'now'>;
}

// --- Users --------------------------------------------------------------------------------------------------------------

export const readPeople = (tx: Transaction, { environment }: Seen): Promise<readonly ListedUser[]> =>
  readUsers(tx, { now: environment.now().toISO() });

const day = (at: string | null) => (at === null ? <None /> : <span class="soft day">{at.slice(0, 10)}</span>);

const userColumns = (user: Seer): readonly Column<ListedUser>[] => [
  {
    heading: 'User',
    cell: ({ login, name }) => (
      <>
        <a class="row" href={addressOf('/console/audit', { by: login })}>
          {name}
        </a>
        {name !== login && <span class="count"> {login}</span>}
      </>
    ),
  },
  {
    heading: 'Roles',
    cell: ({ roles, kind, ended_at }) =>
      ended_at !== null ? <Chip>deactivated</Chip> : kind === 'program' ? 'program' : rolesInWords(roles) || <None />,
  },
  { heading: 'Since', cell: ({ recorded_at }) => day(recorded_at) },
  { heading: 'Last seen', cell: ({ last_seen_at }) => day(last_seen_at) },
  {
    heading: 'Signed in',
    cell: ({ sessions }) => (sessions > 0 ? <Chip tone="good">{plural(sessions, 'session')}</Chip> : <None />),
  },
  { heading: 'Passkeys', number: true, cell: ({ passkeys }) => (passkeys > 0 ? passkeys : <None />) },
  {
    heading: 'History',
    cell: ({ login }) => <a href={addressOf('/console/audit', { subject: login })}>Changes</a>,
  },
  { heading: '', cell: (each) => <MoreActs user={user} acts={actsOn(each)} label="Manage" /> },
];

/** A user who has ended has none, and the jobs go on. */
const actsOn = ({ login, kind, ended_at, sessions }: ListedUser): RareAct[] =>
  ended_at !== null || kind === 'program'
    ? []
    : [
        { name: 'Change roles', act: 'user.role', partner: null, input: { login } },
        { name: 'New sign-in link', act: 'user.link', partner: null, input: { login } },
        ...(sessions > 0 ? [{ name: 'End all sessions', act: 'user.sign_out', partner: null, input: { login } }] : []),
        { name: 'Deactivate', act: 'user.deactivate', partner: null, input: { login } },
      ];

export function peopleScreen(users: readonly ListedUser[], { user }: { user: Seer }): Screen {
  const active = users.filter(({ ended_at, kind }) => ended_at === null && kind === 'person').length;
  return {
    ...SETTINGS,
    lead: `${plural(active, 'active user')}`,
    acts: (
      <ActLink user={user} act="user.invite" partner={null} tone="main">
        Invite
      </ActLink>
    ),
    content: (
      <>
        <SettingsMenu current="users" />
        <Card title={plural(users.length, 'user')} note="a name leads to what its user did" flush>
          <DataTable
            columns={userColumns(user)}
            rows={users}
            nothing="Nobody yet: reckoner user invite makes the first."
            caption="Users"
          />
        </Card>
      </>
    ),
  };
}

// --- API clients --------------------------------------------------------------------------------------------------------

/** Without its secrets, and without their hashes. */
export interface ListedClient {
  readonly client_id: string;
  readonly partner_id: string;
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
  readonly secrets: number;
}

export async function readAllClients(tx: Transaction, { environment }: Seen): Promise<readonly ListedClient[]> {
  const clients = await readClients(tx, { now: environment.now().toISO() });
  return clients.map(({ client_id, partner_id, created_at, revoked_at, last_used_at, live_secrets }) => ({
    ...{ client_id, partner_id, created_at, revoked_at, last_used_at },
    secrets: live_secrets.length,
  }));
}

const clientColumns = (user: Seer): readonly Column<ListedClient>[] => [
  {
    heading: 'Client',
    cell: ({ client_id }) => (
      <a class="row" href={addressOf('/console/audit', { subject: client_id })}>
        <code class="hash">{client_id}</code>
      </a>
    ),
  },
  {
    heading: 'Partner',
    cell: ({ partner_id }) => <a href={`/console/partners/${encodeURIComponent(partner_id)}/terms`}>{partner_id}</a>,
  },
  { heading: 'Since', cell: ({ created_at }) => day(created_at) },
  {
    heading: 'Last used',
    cell: ({ last_used_at }) => (last_used_at === null ? <span class="soft">never</span> : day(last_used_at)),
  },
  {
    heading: 'Secrets',
    cell: ({ revoked_at, secrets }) =>
      revoked_at === null ? (
        <Chip tone={secrets > 0 ? 'good' : 'warn'}>{`${secrets} valid`}</Chip>
      ) : (
        <Chip>{`revoked ${revoked_at.slice(0, 10)}`}</Chip>
      ),
  },
  {
    heading: '',
    cell: ({ client_id, partner_id, revoked_at }) =>
      revoked_at === null && (
        <ActLink user={user} act="client.revoke" partner={partner_id} input={{ clientId: client_id }} tone="small">
          Revoke
        </ActLink>
      ),
  },
];

export function clientsScreen(clients: readonly ListedClient[], { user }: { user: Seer }): Screen {
  return {
    ...SETTINGS,
    lead: 'API clients of all partners',
    content: (
      <>
        <SettingsMenu current="clients" />
        <Card title={plural(clients.length, 'API client')} note="last use to five minutes" flush>
          <DataTable
            columns={clientColumns(user)}
            rows={clients}
            nothing="No partner has one. Its terms have the act that makes one."
            caption="API clients"
          />
        </Card>
      </>
    ),
  };
}
