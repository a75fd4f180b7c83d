/**
 * Session cookies, the origin of the console, and checks that a form was sent from it. Refusals: console_insecure,
 * form_refused.
 */
import { isIP } from 'node:net';
import { FastifyReply, FastifyRequest } from 'fastify';
import { isThisMachine } from '#config/environment';
import { refuse } from '#errors/refusals';
import { Service } from '#http/service';
import { issuerOf } from '#http/shared';
import { isFormToken } from '#people/secrets';

export type Place = Readonly<{
  origin: string;
  /** False only for a sandbox on the browser's own machine. */
  secure: boolean;
}>;

/** Over plain http, the Host header must name the browser's own machine. */
export function placeOf(service: Pick<Service, 'settings' | 'environment'>, { headers }: FastifyRequest): Place {
  const { origin, protocol } = new URL(issuerOf(service));
  if (protocol === 'https:') return { origin, secure: true };
  const host = headers.host ?? '';
  const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : '';
  if (service.environment.name === 'sandbox' && isThisMachine(name)) return { origin: `http://${host}`, secure: false };
  throw refuse('console_insecure', { host: name === '' ? 'this address' : name });
}

/** A passkey belongs to a host name, not to an IP address. */
export const isNamed = ({ origin }: Place): boolean => isIP(new URL(origin).hostname.replace(/^\[|\]$/g, '')) === 0;

type CookieName = 'reckoner' | 'reckoner-sign-in' | 'reckoner-partner';

/** The prefix `__Host-` keeps other hosts from setting the cookie. Browsers accept the prefix only over https. */
const nameOf = (name: CookieName, { secure }: Place) => (secure ? `__Host-${name}` : name);

export function readCookie(request: FastifyRequest, place: Place, name: CookieName): string | undefined {
  const found = cookiesOf(request, nameOf(name, place));
  // Two cookies with the same name mean that another host set one of them.
  return found.length === 1 ? found[0] : undefined;
}

function cookiesOf({ headers }: FastifyRequest, name: string) {
  return (headers.cookie ?? '').split(';').flatMap((each) => {
    const at = each.indexOf('=');
    return each.slice(0, at).trim() === name ? [each.slice(at + 1).trim()] : [];
  });
}

/** Sets a cookie until the browser is closed. Null removes it. */
export function setCookie(reply: FastifyReply, place: Place, name: CookieName, value: string | null): void {
  const parts = [`${nameOf(name, place)}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  if (place.secure) parts.push('Secure');
  if (value === null) parts.push('Max-Age=0');
  const before = reply.getHeader('Set-Cookie');
  reply.removeHeader('Set-Cookie');
  reply.header('Set-Cookie', [...[before ?? []].flat(), parts.join('; ')].map(String));
}

/** Ends a session in the browser. Cookies stay: the directive would also clear those of other hosts of the domain. */
export function endCookie(reply: FastifyReply, place: Place, name: CookieName): void {
  setCookie(reply, place, name, null);
  reply.header('Clear-Site-Data', '"cache", "storage"');
}

/** Without a chosen theme, the console follows the operating system's setting. */
export const THEMES = ['light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
const THEME_COOKIE = 'reckoner-theme';
const YEAR = 365 * 24 * 60 * 60;

export function themeOf(request: FastifyRequest): Theme | null {
  const [theme] = cookiesOf(request, THEME_COOKIE);
  return THEMES.find((each) => each === theme) ?? null;
}

/** Stores the theme in the browser, because a user may want different themes on a laptop and a projector. */
export const setTheme = (reply: FastifyReply, place: Place, theme: Theme | null): void =>
  setChoice(reply, place, THEME_COOKIE, theme);

const KEYS_COOKIE = 'reckoner-keys';

/** Speech input and tremor can trigger single-key shortcuts by accident (WCAG 2.1.4). */
export const hasKeys = (request: FastifyRequest): boolean => !cookiesOf(request, KEYS_COOKIE).includes('off');

export const setKeys = (reply: FastifyReply, place: Place, on: boolean): void =>
  setChoice(reply, place, KEYS_COOKIE, on ? null : 'off');

/** Outlasts the session. Null removes it. */
function setChoice(reply: FastifyReply, { secure }: Place, name: string, value: string | null) {
  const life = `Max-Age=${value === null ? 0 : YEAR}`;
  const parts = [`${name}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax', life];
  reply.header('Set-Cookie', [...parts, ...(secure ? ['Secure'] : [])].join('; '));
}

/** Refuses requests from other sites. Every current browser sends a request's origin. */
export function refuseOtherOrigin({ headers }: FastifyRequest, { origin }: Place): void {
  const site = headers['sec-fetch-site'];
  const from = headers.origin;
  if (site === undefined && from === undefined) throw refuse('form_refused', { reason: 'does not state its origin' });
  if (site !== undefined && site !== 'same-origin') throw refuse('form_refused', { reason: 'comes from another site' });
  if (from !== undefined && from !== origin) throw refuse('form_refused', { reason: 'comes from another address' });
}

export function refuseForeignForm(secret: string, token: unknown): void {
  if (!isFormToken(secret, token)) throw refuse('form_refused', { reason: 'was not made for this session' });
}

export const HOME = '/console';

/** The page to open after signing in, which must be one of the console. */
export const pageToGoTo = (given: unknown): string =>
  typeof given === 'string' && /^\/console\/(?!sign-in|sign-out)[\w\-./?=&%~:+,@*]*$/.test(given) ? given : HOME;
