/**
 * Actions on users (people/users.ts). A sign-in link is shown once, to the person who did or approved the action.
 * Previews, requests, events and logs never contain the link.
 */

import { publicAddress } from '#config/settings';
import { todayOf } from '#config/today';
import { emailAddress } from '#config/validation';
import { Transaction } from '#database/transaction';
import { Refusal, refuse, refuseField } from '#errors/refusals';
import { fieldName } from '#field-names';
import { mailSignInLink, SentLink } from '#mail/sign-in-link';
import { Month } from '#month';
import { partnerExists } from '#partners/clients.sql';
import { accessInWords, Limits, limitsInWords, PresentRole, ROLES, Role, rolesInWords, User } from '#people/roles';
import {
  changeRoles,
  deactivateUser,
  InvitedUser,
  inviteUser,
  isShellWithoutAdministrator,
  linkUser,
  signOutUser,
} from '#people/users';
import { loginOf, readActiveUser, readUsers } from '#people/users.sql';
import { minuteOf, plural } from '#text';
import { printable } from '#text-table';
import {
  ActionContext,
  ActionOutcome,
  AfterContext,
  choice,
  date,
  defineAction,
  Facts,
  flag,
  line,
  month,
  partner,
  Report,
  reason,
  several,
  text,
} from './action.ts';

const LOGIN = () => text('E-mail address', 'The e-mail address that the user signs in with.');
const someRoles = (label: string, help: string) => several(choice(label, help, ROLES)).optional();
const PARTNER = () => partner('The roles are for this partner only. Default: all partners.').optional();
const NO_MAIL = () => flag('Do not e-mail the link', 'Only show the link here.').optional();

/** What limits a viewer. */
const LIMITS = () => ({
  from: month('From month', 'A viewer sees only the months of the books from this one. Default: all.').optional(),
  to: month('To month', 'The last month that the viewer sees.').optional(),
  until: date('Until', 'The last day of the access of a viewer. Default: it does not end.').optional(),
});
type LimitsGiven = Readonly<{ from?: Month | undefined; to?: Month | undefined; until?: string | undefined }>;

const HELP = `Roles: viewer reads (auditors); finance works; approver approves requests by
others; administrator manages users and settings. Every role can read.
With --partner a role is limited to one partner. With --from and --to, a viewer
sees only these months; --until is the last day of the access.
Once there is a user, commands that change data require --by EMAIL or
RECKONER_USER.`;

/** The parts of an action on the user `login`. */
const OF_USER = {
  role: 'administrator',
  subject: ({ login }: { login: string }) => loginOf(login),
  withoutRole: isShellWithoutAdministrator,
} as const;

export const userInvite = defineAction({
  name: 'user.invite',
  title: 'Invite a user',
  command: {
    summary: 'Create a user and a one-time sign-in link',
    arguments: { login: '<email>' },
    options: { roles: '--role <role>' },
    help: HELP,
  },
  ...OF_USER,
  needsProof: true,
  input: {
    login: LOGIN(),
    name: line('Name', "The user's name. Default: the e-mail address.").optional(),
    roles: someRoles('Roles', 'Default: viewer. The first user is an administrator.'),
    partnerId: PARTNER(),
    ...LIMITS(),
    noMail: NO_MAIL(),
  },
  check({ login, roles, partnerId, ...limits }) {
    checkNotNarrowed(roles, partnerId);
    checkMonths(limits);
    if (!emailAddress.safeParse(login).success) throw refuseField('login', login, 'is not a single e-mail address');
  },
  async perform(tx, context, { login, name, roles = [], partnerId, ...asked }) {
    await checkPartner(tx, partnerId);
    const limits = limitsGiven(context, asked);
    const none = { from: null, to: null, until: null };
    return inviteUser(tx, context, {
      ...{ login, name, roles, partnerId },
      limits: Object.keys(limits).length === 0 ? null : { ...none, ...limits },
    });
  },
  async facts(tx, { login }) {
    const user = await readActiveUser(tx, login);
    return user === undefined ? {} : { [user.login]: { name: user.name, ...accessFacts(user) } };
  },
  after: mailLink,
  report: async (done, context) =>
    linkReport(context, done, `${done.result.user.login} is a user now: ${accessInWords(done.result.user)}.`),
});

export const userLink = defineAction({
  name: 'user.link',
  title: 'Make a new sign-in link',
  command: { summary: 'Create a new one-time sign-in link; earlier ones expire', arguments: { login: '<email>' } },
  ...OF_USER,
  needsProof: true,
  input: { login: LOGIN(), noMail: NO_MAIL() },
  perform: (tx, context, { login }) => linkUser(tx, context, { login }),
  async facts(tx, { login }, made) {
    const user = await readActiveUser(tx, login);
    return user === undefined ? {} : { [user.login]: { 'sign-in link': made === undefined ? null : 'a new one' } };
  },
  after: mailLink,
  report: async (done, context) =>
    linkReport(context, done, `${done.result.user.login} gets a new link, and earlier ones expire.`),
});

/** E-mails the link at once, unless the input says not to. The acting user sees the link in any case. */
async function mailLink(
  context: AfterContext,
  { input, result }: Readonly<{ input: { readonly noMail?: boolean | undefined }; result: InvitedUser }>,
): Promise<SentLink | undefined> {
  if (input.noMail) return undefined;
  const { user, link } = result;
  const to = { name: user.name === user.login ? '' : user.name, address: user.login };
  try {
    return await mailSignInLink(context, { to, url: urlOf(context, result), expires_at: link.expires_at });
  } catch (error) {
    // The template of the e-mail is invalid, but the link exists and is shown.
    if (error instanceof Refusal) return { outcome: 'refused', reply: error.message };
    throw error;
  }
}

const urlOf = ({ settings }: Pick<ActionContext, 'settings'>, { link }: InvitedUser) =>
  `${publicAddress(settings)}/console/sign-in#${link.secret}`;

function linkReport(
  context: ActionContext,
  {
    input,
    result,
    followed: mailed,
    preview,
  }: ActionOutcome<{ noMail?: boolean | undefined }, InvitedUser, SentLink | undefined>,
  done: string,
): Report {
  const { user, link } = result;
  const { login, name, roles } = user;
  const json = { login, name, roles, url: null as string | null, expires_at: null as string | null };
  if (preview) {
    const sent = input.noMail ? 'is shown once' : `is shown once, and e-mailed to ${login}`;
    return { json, text: `${done}\nThe sign-in link ${sent}.` };
  }
  const url = urlOf(context, result);
  return {
    json: { ...json, url, expires_at: link.expires_at, ...(mailed && { mailed }) },
    text: [
      ...[done, `The link works once, until ${minuteOf(link.expires_at)}:`, `  ${url}`],
      ...(mailed === undefined ? [] : [describeMailed(mailed, login)]),
    ].join('\n'),
  };
}

const describeMailed = ({ outcome, reply }: SentLink, login: string) =>
  outcome === 'sent'
    ? `E-mailed to ${login}.`
    : `Not e-mailed: ${printable(reply)}. Give the link to ${login} in a safe way.`;

export const userRole = defineAction({
  name: 'user.role',
  title: 'Change the roles of a user',
  command: {
    summary: 'Grant and revoke roles; the user is signed out',
    arguments: { login: '<email>' },
    options: { grant: '--grant <role>', revoke: '--revoke <role>' },
    help: HELP,
  },
  ...OF_USER,
  needsProof: true,
  input: {
    login: LOGIN(),
    grant: someRoles('Grant', 'Roles to grant.'),
    revoke: someRoles('Revoke', 'Roles to revoke.'),
    partnerId: PARTNER(),
    ...LIMITS(),
    endLimits: flag('End the limits', 'The user sees all months again, and the access does not end.').optional(),
  },
  check({ grant = [], revoke = [], partnerId, endLimits, ...limits }) {
    checkNotNarrowed(grant, partnerId);
    checkMonths(limits);
    if (grant.length + revoke.length === 0 && !endLimits && !limits.from && !limits.until)
      throw refuseField('grant', '', `names no role, and neither does ${fieldName('revoke')}`);
    if (endLimits && (limits.from || limits.until)) throw refuseField('endLimits', '', 'cannot be given with limits');
  },
  async perform(tx, context, { login, grant = [], revoke = [], partnerId, endLimits, ...asked }) {
    await checkPartner(tx, partnerId);
    const of = (named: readonly Role[]): PresentRole[] =>
      [...new Set(named)].map((role) => ({ role, partner_id: partnerId ?? null }));
    const limits = endLimits ? null : limitsGiven(context, asked);
    return changeRoles(tx, context, { login, grant: of(grant), revoke: of(revoke), limits });
  },
  async facts(tx, { login }) {
    const user = await readActiveUser(tx, login);
    return user === undefined ? {} : { [user.login]: accessFacts(user) };
  },
  report: async ({ result: user }) => ({
    json: user,
    text: `${user.login} now has: ${accessInWords(user) || 'no role'}. The user is signed out.`,
  }),
});

const accessFacts = ({ roles, limits }: User): Facts[string] => ({
  roles: rolesInWords(roles) || 'no role',
  limits: limitsInWords(limits) || null,
});

function checkMonths({ from, to }: LimitsGiven) {
  if ((from === undefined) !== (to === undefined))
    throw refuseField(from ? 'to' : 'from', '', `is missing, and ${fieldName(from ? 'from' : 'to')} needs it`);
  if (from !== undefined && to !== undefined && to < from) throw refuseField('to', to, `is before ${from}`);
}

function limitsGiven(context: ActionContext, { from, to, until }: LimitsGiven): Partial<Limits> {
  if (until !== undefined && until < todayOf(context)) throw refuseField('until', until, 'has passed');
  return { ...(from && to && { from, to }), ...(until && { until }) };
}

/**
 * Refuses an administrator who is limited to one partner, because administrators manage all users. The database refuses
 * this too.
 */
function checkNotNarrowed(roles: readonly Role[] = [], partnerId: string | undefined) {
  if (partnerId === undefined || !roles.includes('administrator')) return;
  const reason = 'cannot limit the role administrator, which is for all partners';
  throw refuseField('partnerId', partnerId, reason);
}

async function checkPartner(tx: Transaction, partnerId: string | undefined) {
  if (partnerId !== undefined && !(await partnerExists(tx, { partnerId })))
    throw refuse('partner_unknown', { partner_id: partnerId });
}

export const userDeactivate = defineAction({
  name: 'user.deactivate',
  danger: true,
  title: 'Deactivate a user permanently',
  command: {
    summary: 'Deactivate a user permanently: no roles, no sessions, no sign-in',
    arguments: { login: '<email>' },
  },
  ...OF_USER,
  input: { login: LOGIN(), reason: reason().optional() },
  perform: (tx, context, { login, reason: why }) => deactivateUser(tx, context, { login, reason: why ?? null }),
  async facts(tx, { login }, ended): Promise<Facts> {
    if (ended !== undefined) return { [ended.login]: { status: 'deactivated', roles: null } };
    const user = await readActiveUser(tx, login);
    return user === undefined ? {} : { [user.login]: { status: 'active', roles: rolesInWords(user.roles) || null } };
  },
  report: async ({ result: user }) => ({
    json: user,
    text: `${user.login} has been deactivated: no roles, no sessions and no sign-in.`,
  }),
});

export const userSignOut = defineAction({
  name: 'user.sign_out',
  title: 'End all sessions of a user',
  command: { summary: 'End all sessions of a user, and passkeys if wanted', arguments: { login: '<email>' } },
  ...OF_USER,
  input: {
    login: LOGIN(),
    passkeys: flag('End passkeys too', 'Otherwise the passkeys of the user still sign in.').optional(),
  },
  withoutRole: async (tx, context, { login }) =>
    context.actor.user?.login === loginOf(login) || isShellWithoutAdministrator(tx, context),
  perform: signOutUser,
  async facts(tx, { login }, _ended, { environment }): Promise<Facts> {
    const [user] = await readUsers(tx, { login: loginOf(login), now: environment.now().toISO() });
    if (user === undefined) return {};
    const { sessions, passkeys } = user;
    return {
      [user.login]: { 'signed in': sessions > 0 ? 'yes' : null, passkeys: passkeys > 0 ? `${passkeys}` : null },
    };
  },
  report: async ({ input: { login }, result: ended }) => ({
    json: { login, ...ended },
    text: [
      `${plural(ended.sessions, 'session')} of ${login} ended.`,
      ...(ended.passkeys_ended > 0 ? [`${plural(ended.passkeys_ended, 'passkey')} ended.`] : []),
      `Passkeys that still sign in: ${ended.passkeys_left}.`,
    ].join('\n'),
  }),
});
