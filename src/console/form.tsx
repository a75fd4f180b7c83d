/** Forms that change something. Each carries the token of the user's session. */
import type { ComponentChildren } from 'preact';
import { fileText } from '../actions/fields.ts';
import { refuse } from '../errors/refusals.ts';

export const Form = ({
  action,
  token,
  boost = true,
  files = false,
  class: className,
  children,
}: {
  action: string;
  token: string;
  /** False: the whole page is loaded again, for forms that change the signed-in user. */
  boost?: boolean;
  /** True: it may send files. */
  files?: boolean;
  class?: string | undefined;
  children: ComponentChildren;
}) => (
  <form
    method="post"
    action={action}
    class={className}
    enctype={files ? 'multipart/form-data' : undefined}
    hx-boost={boost ? undefined : 'false'}
  >
    <input type="hidden" name="form_token" value={token} />
    {children}
  </form>
);

/** The values that a form sent; undefined if the body is not a form. */
export function formOf(body: unknown, type: string | undefined): URLSearchParams | undefined {
  if (!/^application\/x-www-form-urlencoded\b/i.test(type ?? '')) return undefined;
  const form = new URLSearchParams(body instanceof Buffer ? body.toString('utf8') : '');
  refuseNul([...form]);
  return form;
}

/** Refuses the NUL character, which PostgreSQL text cannot contain. */
export function refuseNul(fields: readonly (readonly [name: string, value: string])[]): void {
  const problems = fields
    .filter(([, value]) => value.includes('\0'))
    .map(([path]) => ({ path, reason: 'contains a character that is not text' }));
  if (problems.length > 0) throw refuse('request_invalid', { problems });
}

/**
 * The total size of a form's files. The preview page carries them to the confirmation as base64, so nothing is stored
 * in between.
 */
const LARGEST_FILES = 4 * 1024 * 1024;
/** The largest body of such a form. */
export const LARGEST_UPLOAD = 6 * 1024 * 1024;

/**
 * The values that a form with files sent, each file as one value; a field without a file is left out. Undefined if the
 * body is not such a form. Refusal: body_too_large.
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
  refuseNul([...form]);
  return form;
}

/** The file name without folders and unprintable characters. */
const nameOf = (file: File): string =>
  file.name
    .replace(/^.*[/\\]/s, '')
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
    .slice(-200) || 'file';

/** The fields of a form, each given once. Undefined if one is given twice. */
export const fieldsOfForm = (form: URLSearchParams | undefined): ReadonlyMap<string, string> | undefined =>
  form !== undefined && new Set(form.keys()).size === form.size ? new Map(form) : undefined;

/** The id of a thing, as a form sends it; 0, which no thing has, if it is not a number. */
export function idSent(fields: ReadonlyMap<string, string>, name: string): number {
  const sent = fields.get(name) ?? '';
  return /^\d{1,15}$/.test(sent) ? Number(sent) : 0;
}
