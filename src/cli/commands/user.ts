import { CommandContext, Definition, reading } from '#cli/define';
import { tableOf } from '#cli/list-command';
import { sessions } from '#lists/sessions';
import { userJson } from '#lists/users';
import { accessInWords } from '#people/roles';
import { liveAt } from '#people/sessions';
import { readSessions } from '#people/sign-in.sql';
import { userNamed } from '#people/users';
import { ListedUser, readUsers } from '#people/users.sql';
import { minuteOf } from '#text';

export const define: Definition = (user, action) => {
  user
    .command('show <email>')
    .description('Show a user with roles and sessions')
    .action(action(reading(show)));
};

async function show(context: CommandContext, login: string) {
  const { database, output } = context;
  const at = liveAt(context);
  const { user, live } = await database.reading(async (tx) => {
    const all = await readUsers(tx, { login: login.toLowerCase(), now: at.now });
    const found = all.at(0) ?? (await userNamed(tx, context, login));
    return { user: found as ListedUser, live: await readSessions(tx, { ...at, login }) };
  });
  output.print({ ...userJson(user), live_sessions: live }, () =>
    [
      `${user.login} (${user.name})`,
      user.ended_at === null ? `Roles: ${accessInWords(user) || 'none'}` : `Deactivated ${minuteOf(user.ended_at)}`,
      `Passkeys: ${user.passkeys}`,
      live.length === 0 ? 'Not signed in.' : tableOf(sessions, live, at.now.slice(0, 10)),
    ].join('\n'),
  );
}
