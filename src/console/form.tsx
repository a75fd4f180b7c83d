/** Forms that change something. Each form carries the token of the user's session. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ComponentChildren } from 'preact';
import { fileText } from '#actions/fields';
import { refuse } from '#errors/refusals';
import { KnownInput } from '#remedy';

export const Form = ({
  action,
  token,
  boost = true,
  files = false,
  class: className,
  id,
  hidden = {},
  children,
}: {
  action: string;
  token: string;
  /** If false, the whole page is loaded again, for forms that change the signed-in user. */
  boost?: boolean;
  files?: boolean;
  class?: string | undefined;
  id?: string;
  /** Fields that are sent, and not shown. */
  hidden?: KnownInput;
  children: ComponentChildren;
}) => (
  <form
    method="post"
    action={action}
    id={id}
    class={className}
    enctype={files ? 'multipart/form-data' : undefined}
    hx-boost={boost ? undefined : 'false'}
  >
    <input type="hidden" name="form_token" value={token} />
    {Object.entries(hidden).flatMap(([name, value]) =>
      [value].flat().map((each) => <input type="hidden" name={name} value={each} />),
    )}
    {children}
  </form>
);

/** Returns the values that a form sent, or undefined if the body is not a form. */
export function formOf(body: unknown, type: string | undefined): URLSearchParams | undefined {
  if (!/^application\/x-www-form-urlencoded\b/i.test(type ?? '')) return undefined;
  const form = new URLSearchParams(body instanceof Buffer ? body.toString('utf8') : '');
  refuseNul([...form]);
  return form;
}

/** PostgreSQL text cannot contain NUL. */
export function refuseNul(fields: readonly (readonly [name: string, value: string])[]): void {
  const problems = fields
    .filter(([, value]) => value.includes('\0'))
    .map(([path]) => ({ path, reason: 'contains the character NUL' }));
  if (problems.length > 0) throw refuse('request_invalid', { problems });
}

/** Limits the total size of a form's files. The preview page carries the files as base64 until the user confirms. */
const LARGEST_FILES = 4 * 1024 * 1024;
export const LARGEST_UPLOAD = 6 * 1024 * 1024;

/**
 * Undefined if the body is not a form with files. A field without a file is left out. Each copy of the files is made in a
 * turn of its own, so that other requests do not wait for all of them. Refusal: body_too_large.
 */
export async function uploadOf(body: unknown, type: string | undefined): Promise<URLSearchParams | undefined> {
  if (!/^multipart\/form-data\b/i.test(type ?? '') || !(body instanceof Buffer)) return undefined;
  const form = new URLSearchParams();
  let size = 0;
  try {
    const sent = await new Response(body as Buffer<ArrayBuffer>, {
      headers: { 'content-type': type ?? '' },
    }).formData();
    for (const [name, value] of sent) {
      await nextTurn();
      if (typeof value === 'string') form.append(name, value);
      else if (value.size > 0) {
        size += value.size;
        form.append(name, fileText(nameOf(value), new Uint8Array(await value.arrayBuffer())));
      }
    }
  } catch {
    return undefined;
  }
  if (size > LARGEST_FILES) throw refuse('body_too_large', { limit: LARGEST_FILES });
  await nextTurn();
  refuseNul([...form]);
  return form;
}

const nameOf = (file: File) =>
  file.name
    .replace(/^.*[/\\]/s, '')
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .slice(-200) || 'file';

/** Returns the fields of a form, or undefined if a field occurs twice. */
export const fieldsOfForm = (form: URLSearchParams | undefined): ReadonlyMap<string, string> | undefined =>
  form !== undefined && new Set(form.keys()).size === form.size ? new Map(form) : undefined;

/** An id from a form; 0, which no id is, if the value is not a number. */
export function idSent(fields: ReadonlyMap<string, string>, name: string): number {
  const sent = fields.get(name) ?? '';
  return /^\d{1,15}$/.test(sent) ? Number(sent) : 0;
}
