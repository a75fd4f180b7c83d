/** Buttons that lead to an act, for those alone who may do it. */
import type { ComponentChildren } from 'preact';
import { ACTS } from '../acts/registry.ts';
import { scopeOf, type User } from '../people/roles.ts';
import { isInScope } from '../people/scope.ts';
import { actHref } from './screens/act.tsx';

/** Whether a user has the role of an act over this partner; null: over all partners. */
export function mayDo(user: Pick<User, 'roles'>, name: string, partnerId: string | null): boolean {
  const act = ACTS.get(name);
  if (act === undefined) throw new Error(`there is no act ${name}`);
  const scope = scopeOf(user, act.role);
  return scope !== undefined && (partnerId === null ? scope === null : isInScope(scope, partnerId));
}

export const ActLink = ({
  user,
  act,
  partner,
  input = {},
  tone,
  children,
}: {
  user: Pick<User, 'roles'>;
  act: string;
  /** Whose it is; null for what is of the whole ledger. */
  partner: string | null;
  input?: Readonly<Record<string, string>>;
  tone?: 'main' | 'danger' | 'small' | undefined;
  children: ComponentChildren;
}) =>
  mayDo(user, act, partner) ? (
    <a class={tone === undefined ? 'button' : `button ${tone}`} href={actHref(act, input)}>
      {children}
    </a>
  ) : null;
