/**
 * Prepares the URL that pg connects with. The URL gets the password from the password file (PGPASSFILE, ~/.pgpass), and
 * sslmode verify-full if the given URL demands TLS.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** pg treats each of these modes as verify-full, and prints a ten-line warning. */
const AS_VERIFY_FULL = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/;

/** Returns unchanged a URL that pg can read but `URL` cannot (postgres://user@/name). */
export function connectionUrl(given: string, variables: NodeJS.ProcessEnv = process.env) {
  const text = given.replace(AS_VERIFY_FULL, '$1verify-full');
  if (!URL.canParse(text)) return text;
  const url = new URL(text);
  if (url.password !== '' || url.searchParams.has('password') || variables['PGPASSWORD']) return text;
  const asked = url.searchParams.get('host') ?? decodeURIComponent(url.hostname);
  const password = passwordOf(readPasswordFile(variables), [
    asked === '' || asked.startsWith('/') ? 'localhost' : asked,
    url.port || '5432',
    decodeURIComponent(url.pathname.slice(1)),
    decodeURIComponent(url.username),
  ]);
  if (password === undefined) return text;
  url.password = encodeURIComponent(password);
  return url.href;
}

/**
 * Reads the password file. The result is empty if the file is missing, or if other users of this machine may read the
 * file. PostgreSQL's own programs also ignore a file that others may read.
 */
function readPasswordFile(variables: NodeJS.ProcessEnv) {
  const home = variables['HOME'];
  const file = variables['PGPASSFILE'] || (home && join(home, '.pgpass'));
  if (!file) return '';
  try {
    const { mode } = statSync(file);
    return (mode & 0o077) === 0 ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  }
}

/**
 * Returns the password of the first matching line `host:port:database:user:password`. `*` matches everything, and `\`
 * escapes a literal `:` or `\`.
 */
function passwordOf(content: string, wanted: readonly string[]) {
  for (const line of content.split(/\r?\n/)) {
    if (line.startsWith('#')) continue;
    // The password is the rest of the line, as in libpq, so a `:` in the password may be escaped or not.
    const [, ...fields] =
      /^((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):((?:\\.|[^:\\])*):(.+)$/.exec(line) ?? [];
    const password = fields[4];
    const fits = wanted.every((value, at) => fields[at] === '*' || unescaped(fields[at]) === value);
    if (fits && password !== undefined) return unescaped(password);
  }
  return undefined;
}

const unescaped = (field: string | undefined) => field?.replace(/\\(.)/g, '$1');
