/**
 * Reads secrets from files. For each secret variable `X`, `X_FILE` can name a file with the value. Refusal:
 * environment_invalid.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { reasonOf, refuse } from '#errors/refusals';

const SECRETS: ReadonlySet<string> = new Set([
  'CITUS_URL',
  'DATABASE_URL',
  'DATABASE_URL_READ',
  'DRILL_DATABASE_URL',
  'SMTP_URL',
  'STRIPE_SECRET_KEY',
  'STRIPE_WEBHOOK_SECRET',
  'WEBHOOK_SIGNING_KEY',
  'WEBHOOK_SIGNING_KEY_BEFORE',
  'OIDC_CLIENT_SECRET',
]);
/** Each of these prefixes is followed by the name of a connected account. */
const SECRETS_OF_ACCOUNTS = ['STRIPE_SECRET_KEY_', 'STRIPE_WEBHOOK_SECRET_'];

const isSecret = (variable: string) =>
  SECRETS.has(variable) || SECRETS_OF_ACCOUNTS.some((prefix) => variable.startsWith(prefix) && variable !== prefix);

/** The variables. For each `X_FILE` of a secret, `X` has the content of the file. */
export function withSecretFiles(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const result = { ...variables };
  for (const [name, file] of Object.entries(variables)) {
    const variable = name.replace(/_FILE$/, '');
    if (variable === name || !isSecret(variable)) continue;
    delete result[name];
    if (!file) continue;
    if (variables[variable]) throw invalid(variable, `and ${name} are both set: keep one of them`);
    const value = readSecretFile(name, file).trim();
    if (value === '') throw invalid(name, `names ${resolve(file)}, which is empty`);
    if (/[\r\n\0]/.test(value)) throw invalid(name, `names ${resolve(file)}, which has more than one line`);
    result[variable] = value;
  }
  return result;
}

/** A PEM key has about 120 bytes, a certificate chain a few thousand. */
const LONGEST = 16_384;

/** Reads a file. Refuses one that every user of the machine can read or change. */
export function readSecretFile(variable: string, path: string) {
  const file = resolve(path);
  let opened: number | undefined;
  try {
    opened = openSync(file, 'r');
    const { mode, size } = fstatSync(opened);
    const wrong = ((mode & 0o170000) !== 0o100000 && 'is not a file') || (size > LONGEST && 'is too long for a key');
    if (wrong) throw invalid(variable, `names ${file}, which ${wrong}`);
    if (process.platform !== 'win32' && (mode & 0o007) !== 0) {
      throw invalid(
        variable,
        `names ${file}, which every user of this machine can read or change: run 'chmod 600 ${file}'`,
      );
    }
    return readFileSync(opened, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw invalid(variable, `names ${file}, which cannot be read: ${reasonOf(error)}`);
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}

const invalid = (variable: string, reason: string) => refuse('environment_invalid', { variable, reason });
