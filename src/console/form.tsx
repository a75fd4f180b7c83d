/** Forms that change something: each carries the token of the reader's session. */
import type { ComponentChildren } from 'preact';

export const Form = ({
  action,
  token,
  boost = true,
  class: className,
  children,
}: {
  action: string;
  token: string;
  /** False: a navigation of its own, for what changes who reads. */
  boost?: boolean;
  class?: string | undefined;
  children: ComponentChildren;
}) => (
  <form method="post" action={action} class={className} hx-boost={boost ? undefined : 'false'}>
    <input type="hidden" name="form_token" value={token} />
    {children}
  </form>
);

/** The fields of a form, each given once. Undefined if one is given twice or the body is no form. */
export function fieldsOfForm(body: unknown, type: string | undefined): ReadonlyMap<string, string> | undefined {
  if (!/^application\/x-www-form-urlencoded\b/i.test(type ?? '')) return undefined;
  const form = new URLSearchParams(body instanceof Buffer ? body.toString('utf8') : '');
  return new Set(form.keys()).size === form.size ? new Map(form) : undefined;
}
