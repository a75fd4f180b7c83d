/** Links to acts, for those alone who may do them. */
import type { ComponentChildren } from 'preact';
import { ACTS } from '../acts/loaded.ts';
import { scopeOf, type User } from '../people/roles.ts';
import { isInScope } from '../people/scope.ts';
import { actAddress, type Known } from '../remedy.ts';

export type Seer = Pick<User, 'roles'>;

/** The partners that an act touches; null for what is of the whole ledger. */
export type Whose = string | null | readonly string[];

/** Whether a user has the role of an act over all of these partners; null: over all that there are. */
export function mayDo(user: Seer, name: string, whose: Whose): boolean {
  const act = ACTS.get(name);
  if (act === undefined) throw new Error(`there is no act ${name}`);
  const scope = scopeOf(user, act.role);
  if (scope === undefined || whose === null) return scope === null;
  return [whose].flat().every((partnerId) => isInScope(scope, partnerId));
}

/** Whether a user reads what is of the whole ledger. */
export const seesAll = (user: Seer): boolean => scopeOf(user, 'viewer') === null;

export const actHref = (action: string, input: Known = {}): string => actAddress({ action, input });

interface Linked {
  readonly act: string;
  readonly partner: Whose;
  /** What is known of it. */
  readonly input?: Known;
}

export const ActLink = ({
  user,
  act,
  partner,
  input = {},
  tone,
  children,
}: Linked & {
  user: Seer;
  /** `plain`: a link in a sentence, not a button. */
  tone?: 'main' | 'danger' | 'small' | 'plain' | undefined;
  children: ComponentChildren;
}) =>
  mayDo(user, act, partner) ? (
    <a
      class={tone === 'plain' ? undefined : tone === undefined ? 'button' : `button ${tone}`}
      href={actHref(act, input)}
    >
      {children}
    </a>
  ) : null;

export interface RareAct extends Linked {
  readonly name: string;
}

/** The acts of a screen that are seldom needed, folded. */
export function MoreActs({
  user,
  acts,
  label = 'More acts',
}: {
  user: Seer;
  acts: readonly RareAct[];
  label?: string;
}) {
  const allowed = acts.filter(({ act, partner }) => mayDo(user, act, partner));
  if (allowed.length === 0) return null;
  return (
    <details class="more">
      <summary class="button">{label}</summary>
      <ul>
        {allowed.map(({ name, ...each }) => (
          <li>
            <ActLink user={user} {...each} tone="plain">
              {name}
            </ActLink>
          </li>
        ))}
      </ul>
    </details>
  );
}
