import { ComponentChildren } from 'preact';
import { ACTIONS } from '#actions/loaded';
import { scopeOf, scopeOfEither, User } from '#people/roles';
import { isInScope } from '#people/scope';
import { actionAddress, KnownInput } from '#remedy';

export type Seer = Pick<User, 'roles' | 'limits'>;

/** The partners that an action affects. Null means the whole ledger. */
export type AffectedPartners = string | null | readonly string[];

/** Whether a user's role covers an action for all these partners. */
export function mayDo(user: Seer, name: string, whose: AffectedPartners): boolean {
  const action = ACTIONS.get(name);
  if (action === undefined) throw new Error(`there is no action ${name}`);
  const scope = scopeOfEither(user, action.role, action.otherRole);
  if (scope === undefined || whose === null) return scope === null;
  return [whose].flat().every((partnerId) => isInScope(scope, partnerId));
}

export const seesAll = (user: Seer): boolean => scopeOf(user, 'viewer') === null;

export const actionHref = (action: string, input: KnownInput = {}): string => actionAddress({ action, input });

type ActionLinkProps = Readonly<{
  action: string;
  partner: AffectedPartners;
  /** Values that the action's form is filled with. */
  input?: KnownInput;
}>;

type Tone = 'main' | 'small' | 'plain';

/** A dangerous action looks so. */
const classOf = (action: string, tone: Tone | undefined) =>
  [tone !== 'plain' && 'button', tone !== 'plain' && tone, ACTIONS.get(action)?.danger && 'danger']
    .filter(Boolean)
    .join(' ') || undefined;

export const ActionLink = ({
  user,
  action,
  partner,
  input = {},
  tone,
  children,
}: ActionLinkProps & {
  user: Seer;
  /** `plain` draws a link in a sentence instead of a button. */
  tone?: Tone | undefined;
  children: ComponentChildren;
}) =>
  mayDo(user, action, partner) ? (
    <a class={classOf(action, tone)} href={actionHref(action, input)}>
      {children}
    </a>
  ) : null;

export type RareAction = ActionLinkProps &
  Readonly<{
    name: string;
  }>;

export function MoreActions({
  user,
  actions,
  label = 'More actions',
}: {
  user: Seer;
  actions: readonly RareAction[];
  label?: string;
}) {
  const allowed = actions.filter(({ action, partner }) => mayDo(user, action, partner));
  if (allowed.length === 0) return null;
  return (
    <details class="more">
      <summary class="button">{label}</summary>
      <ul>
        {allowed.map(({ name, ...each }) => (
          <li>
            <ActionLink user={user} {...each} tone="plain">
              {name}
            </ActionLink>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Of actions in the order of their use, these are buttons. The others are under "More actions". */
const MOST_BUTTONS = 4;

/** The actions that a user may do. `main` marks the first as what its reader most probably came for. */
export function Actions({ user, actions, main }: { user: Seer; actions: readonly RareAction[]; main: boolean }) {
  const allowed = actions.filter(({ action, partner }) => mayDo(user, action, partner));
  const buttons = allowed.length > MOST_BUTTONS + 1 ? MOST_BUTTONS : allowed.length;
  return (
    <>
      {allowed.slice(0, buttons).map(({ name, ...each }, at) => (
        <ActionLink user={user} {...each} tone={main && at === 0 ? 'main' : undefined}>
          {name}
        </ActionLink>
      ))}
      <MoreActions user={user} actions={allowed.slice(buttons)} />
    </>
  );
}
