/** The console in a browser without scripts: cookies are kept, and forms state their origin. */

import type { Environment } from '../../src/config/environment.ts';
import type { Settings } from '../../src/config/settings.ts';
import { addConsole } from '../../src/console/plugin.ts';
import type { ServerOptions } from '../../src/http/shared.ts';
import type { Limits, Role } from '../../src/people/roles.ts';
import { readActiveUser } from '../../src/people/users.sql.ts';
import { changeRoles, identify, inviteUser, linkUser } from '../../src/people/users.ts';
import { addPortal } from '../../src/portal/plugin.tsx';
import { type Served, serveWorld } from './service.ts';
import type { World } from './world.ts';

export const ADMINISTRATOR = 'ada@issuer.example';

export const addPages: NonNullable<ServerOptions['addPages']> = (app, shared) => {
  addConsole(app, shared);
  addPortal(app, shared);
};

export const serveConsole = (
  world: World,
  settings?: Partial<Settings>,
  environment: Environment = world.environment,
): Promise<Served> => serveWorld(world, { addPages, settings, environment });

/**
 * Invites a user as the administrator, or gives an existing user these roles. Returns the path of the sign-in link. The
 * first user is the administrator.
 */
export async function invite(
  world: World,
  login: string,
  {
    roles = [],
    partnerId,
    name,
    limits,
  }: { roles?: readonly Role[]; partnerId?: string; name?: string; limits?: Limits } = {},
): Promise<string> {
  const { link } = await world.database.transaction(async (tx) => {
    const actor = await identify(tx, world.actor, { login: ADMINISTRATOR, unattended: false });
    const context = { ...world, actor };
    const known = await readActiveUser(tx, login);
    if (known === undefined)
      return inviteUser(tx, context, { login, name, roles, partnerId, ...(limits && { limits }) });
    const grant = roles.map((role) => ({ role, partner_id: partnerId ?? null }));
    await changeRoles(tx, context, { login, grant, revoke: [] });
    return linkUser(tx, context, { login });
  });
  return `/console/sign-in#${link.secret}`;
}

export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The address of the redirect. */
  readonly location: string | null;
}

/** The words of a page without markup. */
export const wordsOf = ({ text }: Page): string => text.replaceAll(/<[^>]*>/g, '');

/** The error that a page shows; empty if there is none. */
export const alertOf = (page: Page): string =>
  wordsOf({ ...page, text: /<p[^>]* role="alert">(.*?)<\/p>/s.exec(page.text)?.[1] ?? '' });

type Headers_ = Readonly<Record<string, string | undefined>>;

export class Browser {
  readonly url: string;
  readonly cookies = new Map<string, string>();
  /** The token of the last page that had a form. */
  formToken = '';

  constructor(url: string) {
    this.url = url;
  }

  get(path: string, headers: Headers_ = {}): Promise<Page> {
    return this.#ask(path, { method: 'GET' }, headers);
  }

  /** Sends a form with the session's token, unless other fields or headers are given. */
  post(
    path: string,
    fields: Readonly<Record<string, string>> | readonly (readonly [string, string])[] = {},
    headers: Headers_ = {},
  ): Promise<Page> {
    const [page = '', code] = path.split('#');
    // The page of a sign-in link sends its fragment.
    const link = code === undefined ? [] : [['code', code]];
    const given = [...link, ...(Array.isArray(fields) ? fields : Object.entries(fields))];
    // What is given counts, as where a test sends another token.
    const token = given.some(([name]) => name === 'form_token') ? [] : [['form_token', this.formToken]];
    const body = new URLSearchParams([...token, ...given]).toString();
    const own = {
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-site': 'same-origin',
      origin: this.url,
    };
    return this.#ask(page, { method: 'POST', body }, { ...own, ...headers });
  }

  /** Sends a form with files, as a browser does. */
  upload(path: string, fields: Readonly<Record<string, string>>, files: Readonly<Record<string, File>>): Promise<Page> {
    const body = new FormData();
    for (const [name, value] of Object.entries({ form_token: this.formToken, ...fields, ...files })) {
      body.append(name, value);
    }
    return this.#ask(path, { method: 'POST', body }, { 'sec-fetch-site': 'same-origin', origin: this.url });
  }

  async json(path: string, value: unknown, headers: Headers_ = {}): Promise<Page> {
    const own = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin', origin: this.url };
    return this.#ask(
      path,
      { method: 'POST', body: JSON.stringify(value) },
      { ...own, 'x-form-token': this.formToken, ...headers },
    );
  }

  async #ask(path: string, init: RequestInit, given: Headers_): Promise<Page> {
    const headers: Record<string, string> = {};
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const [name, value] of Object.entries({ ...(cookie && { cookie }), ...given })) {
      if (value !== undefined) headers[name] = value;
    }
    const response = await fetch(`${this.url}${path}`, { redirect: 'manual', ...init, headers });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/Max-Age=0/.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const text = await response.text();
    this.formToken = /name="form_token" value="([^"]+)"/.exec(text)?.[1] ?? this.formToken;
    return { status: response.status, headers: response.headers, text, location: response.headers.get('location') };
  }
}

/** A browser in which the user of a link is signed in and a page is open. */
export async function signedIn(served: Served, link: string): Promise<Browser> {
  const browser = new Browser(served.url);
  const answer = await browser.post(link);
  if (answer.status !== 303) throw new Error(`not signed in: ${answer.status} ${answer.text}`);
  const page = await browser.get('/console/account');
  if (page.status !== 200) throw new Error(`no account: ${page.status} ${page.text}`);
  return browser;
}
