import { SEE, toDo, toRun } from '#remedy';
import { minuteOf, plural } from '#text';
import { answer, badInput, refused, says } from './definition.ts';

const decide = (label: string, id: number) => toRun(label, `approval approve ${id}`, `/console/approvals/${id}`);

/** Compared with their limits in full. */
const LIMITS_TOLD = 3;

export const PEOPLE = {
  user_unknown: badInput<{ login: string | null; acting: boolean }>((f) => {
    if (!f.acting) return says(`No such user: ${f.login}.`, SEE.users);
    const who = f.login === null ? 'This command needs to know who runs it' : `${f.login} is not an active user`;
    return says(`${who}. Set --by or RECKONER_USER to the e-mail address of an active user.`, SEE.users);
  }, 404),
  user_ended: refused<{ login: string; ended_at: string }>((f) =>
    says(
      `${f.login} was deactivated on ${minuteOf(f.ended_at)}.`,
      toDo('Invite the person as a new user', 'user.invite', { login: f.login }),
    ),
  ),
  user_active: refused('{login} is an active user, whose name and address are needed.', ({ login }) =>
    toDo('Deactivate the user first', 'user.deactivate', { login }),
  ),
  nothing_to_erase: refused('The ledger has no personal data of this person that could be erased.'),
  user_exists: refused(
    '{login} is already a user.',
    ({ login }) => toDo('Change the roles', 'user.role', { login }),
    ({ login }) => toDo('Make a new sign-in link', 'user.link', { login }),
  ),
  role_needed: refused<{ login: string; role: string; some_partners?: boolean; all_partners?: boolean }>(
    // The sentence must not reveal whether another partner's item exists.
    (f) =>
      f.some_partners
        ? `${f.login} has the role ${f.role} for some partners only. What you asked for belongs to another partner, or does not exist.`
        : `${f.login} does not have the role ${f.role}${f.all_partners ? ' for all partners' : ''}. An administrator can grant it.`,
    403,
  ),
  access_ended: refused<{ login: string; until: string }>(
    (f) => `The access of ${f.login} ended on ${f.until}. An administrator can extend it.`,
    403,
  ),
  limits_of_viewers_only: refused(
    '{login} has the role {role}. Only the access of a viewer can be limited to months or end by itself.',
    ({ login, role }) => toDo('Revoke the role', 'user.role', { login, revoke: [role] }),
  ),
  role_unchanged: refused<{ login: string; role: string; partner_id: string | null }>((f) =>
    says(
      `No administrator gave ${f.login} the role ${f.role}${f.partner_id === null ? '' : ` for partner ${f.partner_id}`}, ` +
        'so this role cannot be revoked.',
      { ...SEE.users, label: 'See all roles', command: `user show ${f.login}` },
    ),
  ),
  last_administrator: refused(
    '{login} is the last administrator: no one else could invite users.',
    toDo('Make another user an administrator first', 'user.role', { grant: ['administrator'] }),
  ),
  work_item_unknown: answer(404, '{item} is not in the work queue now.', SEE.work),
  work_assignee_unfit: refused<{ login: string; is_person: boolean; item: string }>((f) =>
    f.is_person
      ? `${f.login} may not see ${f.item}. Assign it to a user with a role for its partner, or for all partners.`
      : `${f.login} is a program. Assign ${f.item} to a person.`,
  ),
  work_assigned_already: refused<{ item: string; login: string | null }>((f) =>
    f.login === null ? `${f.item} is not assigned.` : `${f.item} is already assigned to ${f.login}.`,
  ),
  approval_needed: refused<{
    request_id: number;
    title: string;
    subject: string;
    approvers: string[];
    expires_at: string;
    is_new: boolean;
    /** Empty if the rule applies to any amount. With a partner, the sum of what the action adjusts for it. */
    above: readonly { partner?: string; currency: string; amount: string; before: string; above: string }[];
    /** Whether the action must be repeated after the approval. */
    repeats: boolean;
  }>((f) => {
    const isApprovable = f.approvers.length > 0;
    const who = isApprovable
      ? `${f.approvers.join(', ')} may approve it until ${minuteOf(f.expires_at)}.`
      : 'No one can approve it yet: requesters cannot approve their own requests.';
    const asked = f.is_new ? 'was made' : 'is waiting';
    const why = f.above.slice(0, LIMITS_TOLD).map(({ partner, currency, amount, before, above }) => {
      const moved = `${amount} ${currency}${partner === undefined ? '' : ` of adjustments for ${partner}`}`;
      return /[1-9]/.test(before)
        ? ` With ${before} ${currency} of the last 30 days, ${moved} comes to more than the limit of ${above} ${currency}.`
        : ` ${moved} is above the limit of ${above} ${currency}.`;
    });
    const more = f.above.length - why.length;
    if (more > 0) why.push(` ${plural(more, 'more amount is', 'more amounts are')} above the limit.`);
    const then = f.repeats ? ' Once it is approved, repeat it with the same files.' : '';
    return says(
      `Nothing was changed: '${f.title}' (${f.subject}) needs approval.${why.join('')} Request ${f.request_id} ${asked}. ${who}${then}`,
      ...(isApprovable ? [] : [toDo('Invite a second person', 'user.invite', { roles: ['approver'] })]),
      decide(isApprovable ? 'Approve it' : 'Have that person approve it', f.request_id),
    );
  }),
  approval_rejected: answer(409, [
    'Nothing was changed: {decided_by} rejected request {request_id} for the same action ({reason}). A ',
    'program may not request the action again until its effect would differ; a user may request it at any time.',
  ]),
  approval_unknown: answer(404, 'No such request for approval: {request_id}.', SEE.approvals),
  approval_decided: refused<{ request_id: number; decision: string; decided_by: string; decided_at: string }>(
    (f) => `Request ${f.request_id} was ${f.decision} by ${f.decided_by} on ${minuteOf(f.decided_at)}.`,
    409,
  ),
  approval_expired: refused<{ request_id: number; expires_at: string }>(
    (f) =>
      `Request ${f.request_id} expired on ${minuteOf(f.expires_at)}. The requester can repeat the action to open a ` +
      'new request.',
  ),
  approval_own: refused<{ request_id: number; login: string; is_alone: boolean }>(
    (f) =>
      says(
        `${f.login} made request ${f.request_id}, and ` +
          (f.is_alone
            ? `no one else can approve it now. ${f.login} can repeat the action, which then needs no approval.`
            : 'another user must decide it.'),
        toRun('Withdraw it', `approval withdraw ${f.request_id}`, `/console/approvals/${f.request_id}`),
      ),
    403,
  ),
  approval_of_another: refused<{ request_id: number; requester: string }>(
    (f) => `Only ${f.requester} can withdraw request ${f.request_id}. An approver can reject it.`,
    403,
  ),
  approval_outdated: answer(409, [
    'The effect of request {request_id} has changed since it was made, so it was not carried out. ',
    'It was: {shown}. It is now: {now}. The requester can repeat the action to open a new request.',
  ]),
} as const;

export const CONSOLE = {
  sign_in_link_invalid: answer(
    403,
    'This sign-in link was used, has expired or was replaced by a newer one. Ask an administrator for a new link.',
  ),
  sign_in_refused: answer(403, 'You were not signed in: {reason}.'),
  passkey_refused: answer(403, 'The passkey was not accepted: {reason}.'),
  /** `to` is the form to return to, with its fields. */
  session_missing: answer<{ to?: string }>(
    401,
    () => 'Your session has ended. Nothing was changed. Sign in and try again.',
  ),
  proof_needed: answer<{ to: string }>(
    403,
    () => 'Nothing was changed: this needs a sign-in of the last five minutes. Sign in again.',
  ),
  access_limited: answer<{ from: string; to: string }>(
    403,
    ({ from, to }) =>
      `You may see ${from === to ? from : `${from} to ${to}`} only. What you asked for belongs to another month, or cannot ` +
      'be limited to months. An administrator can change the months.',
  ),
  form_refused: answer(
    403,
    'Nothing was changed: the request {reason}. Open the page again and send the form from there.',
  ),
  console_insecure: answer(403, [
    "The console is not served to {host} without encryption. Set public_url to the console's https address; ",
    'a sandbox is also served at http://localhost.',
  ]),
  page_unknown: answer<{ path: string }>(
    404,
    () => 'Page not found. The page may have moved, or you may not have access to it.',
  ),
} as const;
