/**
 * The link that signs finance in to the demo's console. The link works only once, and only within a day. A new link
 * replaces the previous link.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADMINISTRATOR, FINANCE } from './people.ts';

/** The default port of `npm run serve:demo`. */
export const PORT = '8080';

export const addressAt = (port: string) => `http://127.0.0.1:${port}`;

/** Puts the address of the running server into links, discovery and the API description. */
export const setAddress = (home: string, address: string) => changeSettings(home, { public_url: address });

export function changeSettings(home: string, changed: Readonly<Record<string, unknown>>) {
  const file = join(home, 'settings.json');
  const settings = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  writeFileSync(file, `${JSON.stringify({ ...settings, ...changed }, null, 2)}\n`);
}

const fileOf = (home: string) => join(home, 'console-link.json');
/** This time is shorter than the day for which the link is valid. */
const KEPT_MS = 23 * 60 * 60 * 1000;

type Reckoner = (args: readonly string[]) => string;

/** Creates a link for the next start of the server, which prints the same link. */
export function makeLink(home: string, reckoner: Reckoner) {
  setAddress(home, addressAt(PORT));
  const url = linkFinance(reckoner);
  writeFileSync(fileOf(home), `${JSON.stringify({ url, made_at: Date.now() })}\n`, { mode: 0o600 });
  return url;
}

/**
 * At the first start of the server, returns the link that was created for this start. At later starts, returns a new
 * link.
 */
export function takeLink(home: string, port: string, reckoner: Reckoner) {
  const file = fileOf(home);
  if (existsSync(file)) {
    const { url, made_at } = JSON.parse(readFileSync(file, 'utf8')) as { url: string; made_at: number };
    rmSync(file);
    if (port === PORT && Date.now() - made_at < KEPT_MS) return url;
  }
  return linkFinance(reckoner);
}

function linkFinance(reckoner: Reckoner) {
  const { url } = JSON.parse(reckoner(['--by', ADMINISTRATOR, '--json', 'user', 'link', FINANCE, '--no-mail'])) as {
    url: string;
  };
  // Passkeys belong to host names, not addresses.
  return url.replace('127.0.0.1', 'localhost');
}
