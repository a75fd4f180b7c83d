/** `reckoner user list|show|sessions`: who may sign in to the console and act by commands, with which roles. */
import { rolesInWords } from '../../people/roles.ts';
import { liveAt, readSessions } from '../../people/sessions.ts';
import { type ListedUser, readUsers } from '../../people/user-queries.ts';
import { userNamed } from '../../people/users.ts';
import type { Sheet } from '../../sheet.ts';
import { minuteOf } from '../../text.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (user, act) => {
  user
    .command('list')
    .description('List users with their roles')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(list)));
  user
    .command('show <email>')
    .description('Show a user, its roles and sessions')
    .action(act(reading(show)));
  user
    .command('sessions [email]')
    .description('List who is signed in, from where and until when')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(sessions)));
};

const listed = ({ user_id, kind, login, name, roles: all, recorded_at, ended_at, ...rest }: ListedUser) => ({
  ...{ user_id, kind, login, name, roles: all, created_at: recorded_at, deactivated_at: ended_at, ...rest },
});

async function list({ database, environment, output }: CommandContext, options: PresentOptions): Promise<void> {
  const users = await database.reading((tx) => readUsers(tx, { now: environment.now().toISO() }));
  await present(
    output,
    options,
    users.map(listed),
    () => userSheet(users),
    () =>
      users.length === 0
        ? "There are no users. 'reckoner user invite EMAIL' makes the first one, an administrator."
        : table(
            ['~user', '~name', '~roles', 'last seen (UTC)'],
            users.map((each) => [
              each.login,
              each.name === each.login ? '' : each.name,
              each.ended_at === null ? rolesInWords(each.roles) : `deactivated ${each.ended_at.slice(0, 10)}`,
              each.last_seen_at?.slice(0, 16).replace('T', ' ') ?? '',
            ]),
          ),
  );
}

const userSheet = (users: readonly ListedUser[]): Sheet => ({
  name: 'Users',
  columns: {
    ...({ login: 'text', name: 'text', kind: 'text', roles: 'text', created_at: 'text' } as const),
    ...({ deactivated_at: 'text', last_seen_at: 'text', sessions: 'count', passkeys: 'count' } as const),
  },
  rows: users.map((each) => ({ ...listed(each), roles: rolesInWords(each.roles) })),
});

async function show(context: CommandContext, login: string): Promise<void> {
  const { database, output } = context;
  const at = liveAt(context);
  const { user, live } = await database.reading(async (tx) => {
    const all = await readUsers(tx, { login: login.toLowerCase(), now: at.now });
    const found = all.at(0) ?? (await userNamed(tx, context, login));
    return { user: found as ListedUser, live: await readSessions(tx, { ...at, login }) };
  });
  output.print({ ...listed(user), live_sessions: live }, () =>
    [
      `${user.login} (${user.name})`,
      user.ended_at === null
        ? `Roles: ${rolesInWords(user.roles) || 'none'}`
        : `Deactivated ${minuteOf(user.ended_at)}`,
      `Passkeys: ${user.passkeys}`,
      live.length === 0 ? 'Not signed in.' : sessionTable(live),
    ].join('\n'),
  );
}

type Live = Awaited<ReturnType<typeof readSessions>>;

const sessionTable = (live: Live): string =>
  table(
    ['~user', 'by', '~network', 'since (UTC)', 'last seen', 'ends'],
    live.map((each) => [
      ...[each.login, each.method, each.network],
      each.created_at.slice(0, 16).replace('T', ' '),
      ...[each.last_seen_at.slice(11, 16), each.ends_at.slice(11, 16)],
    ]),
  );

async function sessions(context: CommandContext, login: string | undefined, options: PresentOptions): Promise<void> {
  const { database, output } = context;
  const live = await database.reading(async (tx) => {
    if (login !== undefined) await userNamed(tx, context, login);
    return readSessions(tx, { ...liveAt(context), login: login ?? null });
  });
  const sheet = (): Sheet => ({
    name: 'Sessions',
    columns: {
      ...({ login: 'text', method: 'text', network: 'text', browser: 'text' } as const),
      ...({ created_at: 'text', last_seen_at: 'text', ends_at: 'text' } as const),
    },
    rows: live,
  });
  await present(output, options, live, sheet, () => (live.length === 0 ? 'Nobody is signed in.' : sessionTable(live)));
}
