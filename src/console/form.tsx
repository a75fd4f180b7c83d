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

/** What a form sent; undefined if the body is no form. */
export function formOf(body: unknown, type: string | undefined): URLSearchParams | undefined {
  if (!/^application\/x-www-form-urlencoded\b/i.test(type ?? '')) return undefined;
  return new URLSearchParams(body instanceof Buffer ? body.toString('utf8') : '');
}

/** The fields of a form, each given once. Undefined if one is given twice. */
export const fieldsOfForm = (form: URLSearchParams | undefined): ReadonlyMap<string, string> | undefined =>
  form !== undefined && new Set(form.keys()).size === form.size ? new Map(form) : undefined;
