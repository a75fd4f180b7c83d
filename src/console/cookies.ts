/**
 * The browser's side of a session: its cookies, where it may be served, and whether a changing request came from our
 * own form. Refusals: console_insecure, form_refused.
 */
import { isIP } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isThisMachine } from '../config/environment.ts';
import { refuse } from '../errors/refusals.ts';
import type { Service } from '../http/service.ts';
import { issuerOf } from '../http/shared.ts';
import { isFormToken } from '../people/secrets.ts';

/** Where the browser sees the console. */
export interface Place {
  readonly origin: string;
  /** Plain http is only for a sandbox on the browser's own machine. */
  readonly secure: boolean;
}

/** The place of a request. Plain http requires a Host header that names the browser's own machine. */
export function placeOf(service: Pick<Service, 'settings' | 'environment'>, { headers }: FastifyRequest): Place {
  const { origin, protocol } = new URL(issuerOf(service));
  if (protocol === 'https:') return { origin, secure: true };
  const host = headers.host ?? '';
  const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : '';
  if (service.environment.name === 'sandbox' && isThisMachine(name)) return { origin: `http://${host}`, secure: false };
  throw refuse('console_insecure', { host: name === '' ? 'this address' : name });
}

/** Whether the place has a host name. Passkeys belong to names, not IP addresses. */
export const isNamed = ({ origin }: Place): boolean => isIP(new URL(origin).hostname.replace(/^\[|\]$/g, '')) === 0;

type CookieName = 'reckoner' | 'reckoner-sign-in' | 'reckoner-partner';

/** Browsers accept a `__Host-` cookie only over https, for one host and all its paths: no other host can set it. */
const nameOf = (name: CookieName, { secure }: Place): string => (secure ? `__Host-${name}` : name);

export function readCookie(request: FastifyRequest, place: Place, name: CookieName): string | undefined {
  const found = cookiesOf(request, nameOf(name, place));
  // If two have the same name, someone else set one of them.
  return found.length === 1 ? found[0] : undefined;
}

function cookiesOf({ headers }: FastifyRequest, name: string): string[] {
  return (headers.cookie ?? '').split(';').flatMap((each) => {
    const at = each.indexOf('=');
    return each.slice(0, at).trim() === name ? [each.slice(at + 1).trim()] : [];
  });
}

/** Sets a cookie that lasts until the browser is closed, or removes it. */
export function setCookie(reply: FastifyReply, place: Place, name: CookieName, value: string | null): void {
  const parts = [`${nameOf(name, place)}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax'];
  if (place.secure) parts.push('Secure');
  if (value === null) parts.push('Max-Age=0');
  const before = reply.getHeader('Set-Cookie');
  reply.removeHeader('Set-Cookie');
  reply.header('Set-Cookie', [...[before ?? []].flat(), parts.join('; ')].map(String));
}

/** If none is chosen, the console follows the user's system. */
export const THEMES = ['light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];
const THEME_COOKIE = 'reckoner-theme';
const YEAR = 365 * 24 * 60 * 60;

/** The theme that the user chose. */
export function themeOf(request: FastifyRequest): Theme | null {
  const [theme] = cookiesOf(request, THEME_COOKIE);
  return THEMES.find((each) => each === theme) ?? null;
}

/** Stored for this browser, not for the user: a laptop may be dark and a projector light. */
export const setTheme = (reply: FastifyReply, place: Place, theme: Theme | null): void =>
  setChoice(reply, place, THEME_COOKIE, theme);

const KEYS_COOKIE = 'reckoner-keys';

/**
 * Whether single-key shortcuts are on in this browser: speech input and tremor trigger them by accident (WCAG 2.1.4).
 */
export const hasKeys = (request: FastifyRequest): boolean => !cookiesOf(request, KEYS_COOKIE).includes('off');

export const setKeys = (reply: FastifyReply, place: Place, on: boolean): void =>
  setChoice(reply, place, KEYS_COOKIE, on ? null : 'off');

/** Stores or clears a browser's preference. It outlasts the session. */
function setChoice(reply: FastifyReply, { secure }: Place, name: string, value: string | null): void {
  const life = `Max-Age=${value === null ? 0 : YEAR}`;
  const parts = [`${name}=${value ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Lax', life];
  reply.header('Set-Cookie', [...parts, ...(secure ? ['Secure'] : [])].join('; '));
}

/** Refuses requests from another site. Every current browser states the origin of a request. */
export function refuseOtherOrigin({ headers }: FastifyRequest, { origin }: Place): void {
  const site = headers['sec-fetch-site'];
  const from = headers.origin;
  if (site === undefined && from === undefined)
    throw refuse('form_refused', { reason: 'does not say where it comes from' });
  if (site !== undefined && site !== 'same-origin') throw refuse('form_refused', { reason: 'comes from another site' });
  if (from !== undefined && from !== origin) throw refuse('form_refused', { reason: 'comes from another address' });
}

/** Refuses a form without the token of its session. */
export function refuseForeignForm(secret: string, token: unknown): void {
  if (!isFormToken(secret, token)) throw refuse('form_refused', { reason: 'was not made for this session' });
}

/** The URL to go to after signing in: only a page of the console. */
export const pageToGoTo = (given: unknown): string =>
  typeof given === 'string' && /^\/console\/(?!sign-in|sign-out)[\w\-./?=&%~:+,@]*$/.test(given) ? given : '/console';
