/** Reads and checks the environment variables. Refusal: environment_invalid. */
import { KeyObject } from 'node:crypto';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { DateTime } from 'luxon';
import { refuse } from '#errors/refusals';
import { LOG_LEVELS } from '#log';
import { readDkimKey } from './dkim-key.ts';
import { LogKey, readLogKey } from './log-key.ts';
import { withSecretFiles } from './secret-files.ts';

export type EnvironmentName = 'sandbox' | 'production';

/** The environment variables. Secrets come only from here, and are never written to a file, the database or a log. */
export type Environment = Readonly<{
  name: EnvironmentName;
  /** RECKONER_HOME as an absolute path. */
  home: string;
  /** DATABASE_URL; undefined means the embedded server in the home. */
  databaseUrl: string | undefined;
  /** DATABASE_URL_READ: a streaming replica for commands that only read. */
  databaseReadUrl?: string | undefined;
  /** CITUS_URL: the coordinator of the cluster of cold stores. */
  citusUrl?: string | undefined;
  /** SMTP_URL; undefined means the folder outbox in the home. */
  smtpUrl: string | undefined;
  /** STRIPE_SECRET_KEY: a test key in sandbox, a live key in production. */
  stripeKey: string | undefined;
  /** STRIPE_SECRET_KEY_<account>: the key for reading each connected account. */
  connectedKeys: ReadonlyMap<string, string>;
  /** STRIPE_API_BASE: the address of a simulated Stripe, in sandbox only. */
  stripeBase: string | undefined;
  /** WEBHOOK_SIGNING_KEY, from which the secrets of partners' webhooks are derived. */
  webhookKey?: string | undefined;
  /** WEBHOOK_SIGNING_KEY_BEFORE: still signs for partners whose secret is not rotated yet. */
  webhookKeyBefore?: string | undefined;
  /** DKIM_PRIVATE_KEY or DKIM_PRIVATE_KEY_FILE; undefined means that e-mails are not signed. */
  dkimKey?: KeyObject | undefined;
  /** LOG_SIGNING_KEY or LOG_SIGNING_KEY_FILE, which signs checkpoints. */
  logKey?: LogKey | undefined;
  /** LOG_SIGNING_KEY_BEFORE or LOG_SIGNING_KEY_BEFORE_FILE, which signs the new key once. */
  logKeyBefore?: LogKey | undefined;
  /** RECKONER_LOG_HOST, the host in the name of a new log. */
  logHost?: string | undefined;
  /** BACKUP_RECIPIENT: the age public keys that backups are encrypted to. */
  backupRecipients?: readonly string[];
  /** DRILL_DATABASE_URL: an empty database in which drills restore backups. */
  drillUrl?: string | undefined;
  /**
   * By account: STRIPE_WEBHOOK_SECRET under '', and STRIPE_WEBHOOK_SECRET_<account>. During a rotation, two secrets
   * separated by a comma.
   */
  stripeWebhookSecrets: ReadonlyMap<string, readonly string[]>;
  /** RECKONER_USER: the user who runs commands, unless `--by` is given. */
  user?: string | undefined;
  /** OIDC_CLIENT_SECRET: the console's secret at its identity provider. */
  oidcSecret?: string | undefined;
  /** In sandbox, RECKONER_NOW can set a fixed time. */
  now: () => DateTime<true>;
  /** If RECKONER_NOW is set: an artificial clock is not compared with others. */
  clockIsSet?: boolean;
}>;

const STRIPE_KEY = 'STRIPE_SECRET_KEY';
export const WEBHOOK_SIGNING_KEY = 'WEBHOOK_SIGNING_KEY';
export const accountKeyVariable = (account: string) => `STRIPE_SECRET_KEY_${account}`;

const RECKONER_NOW = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)$/;

export function readEnvironment(given: NodeJS.ProcessEnv = process.env): Environment {
  const variables = withSecretFiles(given);
  const name = variables['RECKONER_ENVIRONMENT'] || 'sandbox';
  if (name !== 'sandbox' && name !== 'production') {
    throw invalid('RECKONER_ENVIRONMENT', `is '${name}' but must be sandbox or production`);
  }
  const level = variables['LOG_LEVEL'];
  if (level && !(LOG_LEVELS as readonly string[]).includes(level)) {
    throw invalid('LOG_LEVEL', `is '${level}' but must be one of ${LOG_LEVELS.join(', ')}`);
  }
  return {
    name,
    home: resolve(variables['RECKONER_HOME'] || 'reckoner'),
    databaseUrl: databaseUrl(name, variables, 'DATABASE_URL'),
    databaseReadUrl: databaseUrl(name, variables, 'DATABASE_URL_READ'),
    citusUrl: databaseUrl(name, variables, 'CITUS_URL'),
    smtpUrl: url(variables, 'SMTP_URL', ['smtp:', 'smtps:']),
    stripeKey: stripeKey(name, STRIPE_KEY, variables[STRIPE_KEY]),
    connectedKeys: connectedKeys(name, variables),
    stripeBase: stripeBase(name, variables),
    webhookKey: longSecret(variables, WEBHOOK_SIGNING_KEY),
    webhookKeyBefore: longSecret(variables, `${WEBHOOK_SIGNING_KEY}_BEFORE`),
    logKey: readLogKey(variables, 'LOG_SIGNING_KEY'),
    logKeyBefore: readLogKey(variables, 'LOG_SIGNING_KEY_BEFORE'),
    logHost: logHost(variables['RECKONER_LOG_HOST']),
    dkimKey: readDkimKey(variables),
    backupRecipients: (variables['BACKUP_RECIPIENT'] ?? '').split(/[\s,]+/).filter((each) => each !== ''),
    drillUrl: databaseUrl(name, variables, 'DRILL_DATABASE_URL'),
    stripeWebhookSecrets: webhookSecrets(variables),
    user: variables['RECKONER_USER'] || undefined,
    oidcSecret: variables['OIDC_CLIENT_SECRET'] || undefined,
    now: clock(name, variables['RECKONER_NOW']),
    clockIsSet: Boolean(variables['RECKONER_NOW']),
  };
}

const invalid = (variable: string, reason: string) => refuse('environment_invalid', { variable, reason });

export const LOG_HOST_FORM = 'must be the name of a host in lower case, such as billing.example.com';

export const isLogHost = (given: string) => /^[a-z0-9]([a-z0-9.-]{0,100}[a-z0-9])?$/.test(given);

function logHost(given: string | undefined) {
  if (!given) return undefined;
  if (isLogHost(given)) return given;
  throw invalid('RECKONER_LOG_HOST', LOG_HOST_FORM);
}

function url(variables: NodeJS.ProcessEnv, variable: string, protocols: readonly string[]) {
  const value = variables[variable];
  if (!value) return undefined;
  // The value may contain a password, so no message contains it.
  const protocol = URL.canParse(value) ? new URL(value).protocol : /^[a-z]+:(?=\/\/)/.exec(value)?.[0];
  if (protocol !== undefined && protocols.includes(protocol)) return value;
  throw invalid(variable, `must be a URL that begins with ${protocols.map((each) => `${each}//`).join(' or ')}`);
}

/** In production, another machine requires TLS unless the URL sets `sslmode` or `ssl`. */
function databaseUrl(environment: EnvironmentName, variables: NodeJS.ProcessEnv, variable: string) {
  const value = url(variables, variable, ['postgres:', 'postgresql:']);
  if (value !== undefined && /^[a-z]+:\/\/(?:[^/?#]*@)?[^/?#@]*,/.test(value)) {
    throw invalid(variable, 'names several hosts: give the single name or address that follows the primary');
  }
  if (value === undefined || environment === 'sandbox') return value;
  // PostgreSQL accepts postgres://user@/name, which is not a valid URL.
  const written = value.replace(/^([^/?#]*\/\/[^/?#]*@)(?=\/)/, '$1localhost');
  if (!URL.canParse(written)) throw invalid(variable, 'cannot be read as a URL');
  const { hostname, searchParams } = new URL(written);
  const host = searchParams.get('host') ?? decodeURIComponent(hostname);
  if (host === '' || host.startsWith('/') || isThisMachine(host)) return value;
  if (searchParams.has('sslmode') || searchParams.has('ssl')) return value;
  throw invalid(
    variable,
    `does not say how the connection to ${host} is protected: add ?sslmode=verify-full, or ?sslmode=disable on a ` +
      'private network',
  );
}

/** True if a host name always means this machine. */
export const isThisMachine = (host: string) => {
  const plain = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return plain === 'localhost' || plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
};

/** Refuses test keys in production and live keys in a sandbox. */
function stripeKey(environment: EnvironmentName, variable: string, key: string | undefined) {
  if (!key) return undefined;
  const mode = /^[sr]k_(test|live)_\w+$/.exec(key)?.[1];
  const wanted = environment === 'production' ? 'live' : 'test';
  if (mode === wanted) return key;
  const reason =
    mode === undefined
      ? `must be a secret or restricted key of Stripe, such as sk_${wanted}_…`
      : `is a ${mode} key, and this is ${environment}: it needs a ${wanted} key (sk_${wanted}_… or rk_${wanted}_…)`;
  throw invalid(variable, reason);
}

/** The keys by account: STRIPE_SECRET_KEY_acct_1 is the key of the account acct_1. */
function connectedKeys(environment: EnvironmentName, variables: NodeJS.ProcessEnv): ReadonlyMap<string, string> {
  const prefix = accountKeyVariable('');
  return new Map(
    Object.entries(variables).flatMap(([variable, value]): [string, string][] => {
      const key = variable.startsWith(prefix) ? stripeKey(environment, variable, value) : undefined;
      return key === undefined ? [] : [[variable.slice(prefix.length), key]];
    }),
  );
}

/** The webhook secrets by account. Two accounts cannot have the same secret. */
function webhookSecrets(variables: NodeJS.ProcessEnv): ReadonlyMap<string, readonly string[]> {
  const secrets = new Map<string, readonly string[]>();
  const owners = new Map<string, string>();
  for (const [variable, value] of Object.entries(variables)) {
    const account = /^STRIPE_WEBHOOK_SECRET(?:_(.+))?$/.exec(variable);
    const given = (value ?? '').split(',').flatMap((each) => each.trim() || []);
    if (account === null || given.length === 0) continue;
    for (const secret of given) {
      const owner = owners.get(secret) ?? variable;
      if (owner !== variable) {
        throw invalid(variable, `has the secret of ${owner}: each account's endpoint has its own secret`);
      }
      owners.set(secret, variable);
    }
    secrets.set(account[1] ?? '', given);
  }
  return secrets;
}

function stripeBase(environment: EnvironmentName, variables: NodeJS.ProcessEnv) {
  const base = url(variables, 'STRIPE_API_BASE', ['http:', 'https:']);
  if (base !== undefined && environment === 'production') {
    throw invalid(
      'STRIPE_API_BASE',
      'replaces the processor with a stand-in, which is allowed in sandbox only; this is production',
    );
  }
  return base;
}

/** HMAC-SHA256 accepts any length, but a short key can be guessed from one signed URL or event. */
const SHORTEST_SECRET = 32;

function longSecret(variables: NodeJS.ProcessEnv, variable: string) {
  const secret = variables[variable];
  if (!secret || secret.length >= SHORTEST_SECRET) return secret || undefined;
  throw invalid(variable, `must have at least ${SHORTEST_SECRET} characters ('openssl rand -hex 32')`);
}

function clock(environment: EnvironmentName, text: string | undefined) {
  if (!text) return () => DateTime.utc();
  if (environment === 'production') {
    throw invalid('RECKONER_NOW', 'sets the clock, which is allowed in sandbox only; this is production');
  }
  const instant = RECKONER_NOW.test(text) ? DateTime.fromISO(text, { zone: 'utc' }) : undefined;
  if (!instant?.isValid) {
    throw invalid('RECKONER_NOW', `is '${text}' but must be a time such as 2026-11-01T06:00:00Z`);
  }
  return () => instant;
}
