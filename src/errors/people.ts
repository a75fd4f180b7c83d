/** Refusals about users, their roles, and signing in to the console. */
import { minuteOf } from '../text.ts';
import { badInput, defineAnswer, refused } from './definition.ts';

const LIST = "'reckoner user list' shows all users.";

export const PEOPLE = {
  user_unknown: badInput<{ login: string | null; acting: boolean }>((f) => {
    if (!f.acting) return `No such user: ${f.login}. ${LIST}`;
    const who = f.login === null ? 'It is not known who runs this command' : `${f.login} is not an active user`;
    return `${who}. Give --by EMAIL, or set RECKONER_USER, to the e-mail address of an active user. ${LIST}`;
  }, 404),
  user_ended: refused<{ login: string; ended_at: string }>(
    (f) =>
      `${f.login} was deactivated ${minuteOf(f.ended_at)}. 'reckoner user invite ${f.login} --role ROLE' makes a new user.`,
  ),
  user_exists: refused<{ login: string }>(
    (f) =>
      `${f.login} is a user already. 'reckoner user role ${f.login} --grant ROLE' gives another role, and ` +
      `'reckoner user link ${f.login}' makes a new link to sign in with.`,
  ),
  role_needed: refused<{ login: string; role: string; some_partners?: boolean; all_partners?: boolean }>(
    // Whether something of another partner exists is not told.
    (f) =>
      f.some_partners
        ? `${f.login} has the role ${f.role} for some partners only. This concerns others, or does not exist.`
        : `${f.login} does not have the role ${f.role}${f.all_partners ? ' for all partners' : ''}. An administrator can grant it.`,
    403,
  ),
  role_unchanged: refused<{ login: string; role: string; partner_id: string | null }>(
    (f) =>
      `${f.login} was not given the role ${f.role}${f.partner_id === null ? '' : ` for partner ${f.partner_id}`} by an ` +
      `administrator, so it cannot be revoked. 'reckoner user show ${f.login}' shows all roles.`,
  ),
  last_administrator: refused<{ login: string }>(
    (f) =>
      `${f.login} is the last administrator: nobody could invite users any more. Make another user an administrator first ` +
      "('reckoner user role EMAIL --grant administrator').",
  ),
  work_item_unknown: badInput<{ item: string }>(
    (f) => `${f.item} is not in the work queue, or not any more. 'reckoner work list' shows what is.`,
    404,
  ),
  work_assignee_unfit: refused<{ login: string; is_person: boolean; item: string }>((f) =>
    f.is_person
      ? `${f.login} may not see ${f.item}. Assign it to a user with a role for its partner, or for all partners.`
      : `${f.login} is a program. Assign ${f.item} to a person.`,
  ),
  work_assigned_already: refused<{ item: string; login: string | null }>((f) =>
    f.login === null ? `${f.item} is assigned to nobody.` : `${f.item} is assigned to ${f.login} already.`,
  ),
  approval_needed: refused<{
    request_id: number;
    title: string;
    subject: string;
    approvers: string[];
    expires_at: string;
    is_new: boolean;
    /** Amounts that are above the rule's; none where it applies whatever the amount. */
    above: readonly { currency: string; amount: string; before: string; above: string }[];
  }>((f) => {
    const who =
      f.approvers.length > 0
        ? `${f.approvers.join(', ')} may approve it until ${minuteOf(f.expires_at)}: ` +
          `'reckoner approval approve ${f.request_id}'.`
        : 'Nobody may approve it yet, and whoever asks cannot. Invite a second person with ' +
          "'reckoner user invite EMAIL --role approver', who then runs " +
          `'reckoner approval approve ${f.request_id}'.`;
    const asked = f.is_new ? 'was made' : 'is waiting';
    const why = f.above.map(({ currency, amount, before, above }) =>
      /[1-9]/.test(before)
        ? ` ${amount} ${currency}, after ${before} ${currency} in the last 30 days, is above ${above} ${currency}.`
        : ` ${amount} ${currency} is above ${above} ${currency}.`,
    );
    return `Nothing was changed: '${f.title}' (${f.subject}) needs approval.${why.join('')} Request ${f.request_id} ${asked}. ${who}`;
  }),
  approval_rejected: refused<{ request_id: number; decided_by: string; reason: string }>(
    (f) =>
      `Nothing was changed: ${f.decided_by} rejected request ${f.request_id} for the same (${f.reason}). A program does not ask ` +
      'again until it would do something else; a user can.',
    409,
  ),
  approval_unknown: badInput<{ request_id: number }>(
    (f) => `No such request for approval: ${f.request_id}. 'reckoner approval list' shows them.`,
    404,
  ),
  approval_decided: refused<{ request_id: number; decision: string; decided_by: string; decided_at: string }>(
    (f) => `Request ${f.request_id} was ${f.decision} by ${f.decided_by} ${minuteOf(f.decided_at)}.`,
    409,
  ),
  approval_expired: refused<{ request_id: number; expires_at: string }>(
    (f) =>
      `Request ${f.request_id} expired ${minuteOf(f.expires_at)}. Whoever asked can do the same act again, which makes a new one.`,
  ),
  approval_own: refused<{ request_id: number; login: string; is_alone: boolean }>(
    (f) =>
      `${f.login} made request ${f.request_id}: ` +
      (f.is_alone
        ? `nobody else can approve it now. ${f.login} can do the same act again, which needs no approval. `
        : 'another user decides. ') +
      `'reckoner approval withdraw ${f.request_id}' takes it back.`,
    403,
  ),
  approval_of_another: refused<{ request_id: number; requester: string }>(
    (f) => `Only ${f.requester} can withdraw request ${f.request_id}. An approver can reject it.`,
    403,
  ),
  approval_outdated: refused<{ request_id: number; shown: string; now: string }>(
    (f) =>
      `What request ${f.request_id} would do has changed since it was made, so it was not done. ` +
      `It was: ${f.shown}. It is now: ${f.now}. Whoever asked can do the act again, which makes a new request.`,
    409,
  ),
} as const;

const AGAIN = "Ask an administrator for a new link ('reckoner user link EMAIL').";

/** What only the console answers with. */
export const CONSOLE = {
  sign_in_link_invalid: defineAnswer<Record<string, never>>(
    403,
    () => `This sign-in link was used, has expired or was replaced by a newer one. ${AGAIN}`,
  ),
  sign_in_refused: defineAnswer<{ reason: string }>(403, (f) => `You were not signed in: ${f.reason}.`),
  passkey_refused: defineAnswer<{ reason: string }>(403, (f) => `The passkey was not accepted: ${f.reason}.`),
  session_missing: defineAnswer<Record<string, never>>(
    401,
    () => 'Your session has ended. Nothing was changed. Sign in and try again.',
  ),
  form_refused: defineAnswer<{ reason: string }>(
    403,
    (f) => `Nothing was changed: the request ${f.reason}. Open the page again and send the form from there.`,
  ),
  console_insecure: defineAnswer<{ host: string }>(
    403,
    (f) =>
      `The console is not served to ${f.host} without encryption. Set public_url to its https address; ` +
      'a sandbox is also served at http://localhost.',
  ),
  page_unknown: defineAnswer<{ path: string }>(
    404,
    () => 'There is no such page. It may have moved, or it is not yours.',
  ),
} as const;
