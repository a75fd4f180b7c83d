/**
 * The checks of `reckoner doctor`. Each reports what is wrong and what to do. None writes anything, and a failed one
 * does not stop the later ones.
 */
import { NODATA, NOTFOUND, Resolver } from 'node:dns/promises';
import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { DateTime } from 'luxon';
import nodemailer from 'nodemailer';
import { readCheckedSettings } from '#actions/rules';
import { proveColdMonths } from '#archive/archive';
import { readColdMonths } from '#archive/archive.sql';
import { faultOf, openStore } from '#archive/rows';
import { describeNotCompared } from '#audit/checks/schema';
import { Environment, readEnvironment } from '#config/environment';
import { SECTION_NAMES, Settings } from '#config/settings';
import { Database, openDatabase } from '#database/database';
import { compareSchema } from '#database/schema';
import { Transaction } from '#database/transaction';
import { installedFonts } from '#documents/printable';
import { reasonOf } from '#errors/refusals';
import { DkimRecord, dkimRecord } from '#mail/dkim';
import { serverOf } from '#mail/transport';
import { requiredNode } from '#package';
import { Installation } from '#people/audit-events';
import { changeText } from '#people/field-changes';
import { proposedByFiles, readInForce } from '#people/settings-in-force';
import { readReadiness } from '#reports/readiness';
import { readStatus } from '#reports/status';
import { plural } from '#text';
import { readServerFacts, ServerFacts } from './doctor.sql.ts';

export type Finding = Readonly<{
  check: string;
  state: 'ok' | 'warning' | 'problem';
  says: string;
  /** A DNS record to publish. */
  publish?: DkimRecord;
}>;

const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says });
const warning = (check: string, says: string): Finding => ({ check, state: 'warning', says });
const problem = (check: string, says: string): Finding => ({ check, state: 'problem', says });

const MEGABYTE = 1024 * 1024;
const LEAST_FREE_BYTES = 1024 * MEGABYTE;
/** `serve` and a worker may need this many connections at once. */
const LEAST_FREE_CONNECTIONS = 50;
const PATIENCE_MILLISECONDS = 10_000;

/** Runs all checks, in the order in which an operator would fix problems. */
export async function examine() {
  const found = [...checkNode(), ...checkTimeZones()];
  const environment = attempt('environment', found, readEnvironment);
  if (environment === undefined) return found;
  found.push(ok('environment', environment.name), ...(await checkHome(environment)));
  const settings = attempt('settings', found, () => readCheckedSettings(environment));
  const fonts = attempt('fonts', found, () => installedFonts(environment));
  if (fonts !== undefined) {
    found.push(ok('fonts', `Noto Sans, and ${plural(fonts.length, 'font')} of templates/fonts`));
  }
  found.push(...(await checkDatabase(environment, settings)), ...(await checkMail(environment)));
  if (settings === undefined) return found;
  found.push(...(await checkDkim({ environment, settings })), ...(await checkPublicUrl(environment, settings)));
  return found;
}

function attempt<Result>(check: string, found: Finding[], work: () => Result) {
  try {
    return work();
  } catch (error) {
    found.push(problem(check, reasonOf(error)));
    return undefined;
  }
}

function checkNode(): Finding[] {
  const version = process.versions.node;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = requiredNode.split('.').map(Number);
  const old = major < leastMajor || (major === leastMajor && minor < leastMinor);
  return [old ? problem('node', `${version}: install ${requiredNode} or later`) : ok('node', version)];
}

/** A Node without time zone data dates documents wrongly. */
function checkTimeZones(): Finding[] {
  const summer = DateTime.fromISO('2026-07-01T12:00:00Z', { zone: 'America/Los_Angeles' });
  return [
    summer.isValid && summer.offset === -420
      ? ok('time zones', `data of ${process.versions['tz'] ?? 'the system'}`)
      : problem('time zones', 'Node has no time zone data: install Node with full ICU'),
  ];
}

async function checkHome({ home }: Environment): Promise<Finding[]> {
  try {
    const { mode, uid } = await stat(home);
    await access(home, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail, bsize } = await statfs(home);
    const free = bavail * bsize;
    const found = [ok('home', home)];
    if ((mode & 0o077) !== 0) {
      found.push(warning('home', `other users of this machine can read ${home}: chmod 0700 ${home}`));
    }
    if (process.getuid !== undefined && uid !== process.getuid()) {
      found.push(warning('home', `${home} belongs to user ${uid}, and this is user ${process.getuid()}`));
    }
    found.push(
      free < LEAST_FREE_BYTES
        ? problem('disk', `${Math.round(free / MEGABYTE)} MB are free in ${home}: free at least 1 GB`)
        : ok('disk', `${Math.round(free / MEGABYTE)} MB free in ${home}`),
    );
    return found;
  } catch (error) {
    return [problem('home', `${home} cannot be used (${reasonOf(error)}): run 'reckoner init', or set RECKONER_HOME`)];
  }
}

async function checkDatabase(environment: Environment, stated: Settings | undefined): Promise<Finding[]> {
  // There is no installation yet, and opening the database would create the embedded server.
  if (stated === undefined && environment.databaseUrl === undefined) return [];
  let database: Database;
  try {
    database = await openDatabase(environment);
  } catch (error) {
    return [problem('database', reasonOf(error))];
  }
  try {
    const facts = await database.asOwner(readServerFacts, { readOnly: true });
    return await database.reading(async (tx) => {
      const found = facts === undefined ? [] : describeServer(facts, environment);
      found.push(...(await checkSchema(tx)), ...(await checkStores(tx, environment)));
      if (stated === undefined) return found;
      const settings = await readInForce(tx, stated);
      found.push(...checkInForce({ environment, settings }));
      const { missing } = await readReadiness(tx, { environment, settings });
      if (environment.name === 'production' && missing.length > 0) {
        found.push(problem('settings', `${plural(missing.length, 'item')} missing: see 'reckoner init --check'`));
      } else found.push(ok('settings', join(environment.home, 'settings.json')));
      const needed = (await readStatus(tx, { environment, settings })).findings.length;
      found.push(
        needed > 0
          ? warning('status', `${plural(needed, 'item')} needing attention: see 'reckoner status'`)
          : ok('status', 'nothing needs attention'),
      );
      return found;
    });
  } catch (error) {
    return [problem('database', reasonOf(error))];
  } finally {
    await database.close();
  }
}

function checkInForce(context: Installation): Finding[] {
  const { adopted = [] } = context.settings.sections ?? {};
  const others = SECTION_NAMES.filter((section) => !adopted.includes(section));
  const listed = (sections: readonly string[]) => sections.join(', ') || 'none';
  const says = `adopted: ${listed(adopted)}; as the files state them: ${listed(others)}`;
  return [
    ok('settings in force', says),
    ...proposedByFiles(context).map(({ section, changes }) =>
      warning('settings in force', `the file states another ${section}: ${changes.map(changeText).join('; ')}`),
    ),
  ];
}

/** Left behind by a failed restore or a manual change. */
async function checkSchema(tx: Transaction): Promise<Finding[]> {
  const { inspected, differences, notCompared } = await compareSchema(tx);
  const [first] = differences;
  if (first === undefined) {
    if (notCompared > 0) return [warning('schema', describeNotCompared(notCompared))];
    return [ok('schema', `${plural(inspected, 'object')} match the migrations`)];
  }
  const says = `${plural(differences.length, 'difference')} from the migrations, first ${first.object}`;
  return [problem('schema', `${says}: see 'reckoner verify'`)];
}

/** Whether the files of archived months are there, with the library that reads them. Says where they are. */
export async function checkStores(tx: Transaction, environment: Environment) {
  const cold = await readColdMonths(tx);
  if (cold.length === 0) return [];
  const stores = [...new Set(cold.map(({ store }) => store))];
  const lost: string[] = [];
  const fault = await faultOf(async () => {
    lost.push(...(await proveColdMonths(tx, environment, [])).map(({ detail }) => detail));
    for (const store of stores) await (await openStore(tx, environment, store)).isThere();
  });
  if (fault !== undefined) return [problem('archive', fault)];
  if (lost.length > 0) return [problem('archive', `${lost[0]}. Files like it: ${lost.length}. See 'reckoner verify'`)];
  return stores.map((store) => {
    const months = cold.filter((each) => each.store === store).map(({ month }) => month);
    return ok(
      'archive',
      `${plural(months.length, 'month')} (${months[0]} to ${months.at(-1)}) in the store '${store}'`,
    );
  });
}

/** Opening the database checks clocks, read-only servers, poolers, migrations and grants. */
function describeServer(facts: ServerFacts, { name, databaseUrl }: Environment): Finding[] {
  const { version, login, tls, local, most_connections: most, connections, megabytes } = facts;
  const production = name === 'production' && databaseUrl !== undefined;
  const encrypted = tls === null ? '' : `, ${tls}`;
  const found = [ok('database', `PostgreSQL ${version}${encrypted}, ${megabytes} MB, clock in sync, login ${login}`)];
  if (production && facts.superuser) {
    found.push(
      problem('database', `${login} is a superuser: anyone who runs Reckoner could change the ledger unnoticed`),
    );
  } else if (production && facts.owns) {
    found.push(warning('database', `${login} owns the tables, which only 'migrate' needs: use a runtime login`));
  }
  if (production && tls === null && !local) {
    found.push(warning('database', 'the connection is not encrypted: add ?sslmode=verify-full to DATABASE_URL'));
  }
  for (const setting of ['fsync', 'full_page_writes'] as const) {
    if (facts[setting] === 'off') {
      found.push(problem('database', `${setting} is off: a power failure can destroy the ledger. Set it to on`));
    }
  }
  if (most - connections < LEAST_FREE_CONNECTIONS) {
    const says = `${connections} of max_connections = ${most} are used. A server and a worker need up to 50: raise it`;
    found.push(warning('database', says));
  }
  return found;
}

/** Connects to the mail server with TLS and the login, but sends nothing. */
async function checkMail({ smtpUrl, name }: Environment): Promise<Finding[]> {
  if (smtpUrl === undefined) {
    const says = 'SMTP_URL is not set: e-mails stay in outbox/';
    return [name === 'production' ? problem('mail', says) : ok('mail', says)];
  }
  let host = '';
  try {
    const { connection, auth } = serverOf(smtpUrl);
    host = `${connection.host}:${connection.port ?? (connection.secure ? 465 : 587)}`;
    const timeouts = {
      connectionTimeout: PATIENCE_MILLISECONDS,
      dnsTimeout: PATIENCE_MILLISECONDS,
      greetingTimeout: PATIENCE_MILLISECONDS,
      socketTimeout: PATIENCE_MILLISECONDS,
    };
    const transport = nodemailer.createTransport({ ...connection, ...timeouts, ...(auth && { auth }) } as object);
    await transport.verify().finally(() => transport.close());
    return [ok('mail', `${host} answers${auth === undefined ? '' : ' and accepts the login'}`)];
  } catch (error) {
    return [problem('mail', host === '' ? reasonOf(error) : `${host}: ${reasonOf(error)}`)];
  }
}

type TxtResolver = Pick<Resolver, 'resolveTxt' | 'cancel'>;

/**
 * Checks the DNS record of the DKIM key. Without it, signatures are worthless, and receivers may reject the e-mails by
 * a policy (DMARC).
 */
export async function checkDkim(
  context: Readonly<{ environment: Pick<Environment, 'dkimKey'>; settings: Settings }>,
  resolver: TxtResolver = new Resolver({ timeout: PATIENCE_MILLISECONDS / 4, tries: 2 }),
  patience = PATIENCE_MILLISECONDS,
) {
  const record = dkimRecord(context);
  if (record === null) return [];
  const late = setTimeout(() => resolver.cancel(), patience);
  try {
    const texts = (await resolver.resolveTxt(record.name)).map((chunks) => chunks.join(''));
    if (texts.length === 1 && texts.some((text) => publicKeyOf(text) === publicKeyOf(record.value))) {
      return [ok('dkim', `${record.name} has the key that signs e-mails`)];
    }
    const says = texts.length > 1 ? `has ${texts.length} TXT records: only one counts` : 'has another key';
    return [{ ...problem('dkim', `${record.name} ${says}. Publish the record below`), publish: record }];
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code !== NODATA && code !== NOTFOUND) {
      const says = `the DNS lookup of ${record.name} failed (${code || reasonOf(error)})`;
      return [warning('dkim', `${says}: look at /etc/resolv.conf`)];
    }
    return [{ ...problem('dkim', `${record.name} is not in the DNS. Publish the record below`), publish: record }];
  } finally {
    clearTimeout(late);
  }
}

/** The public key of a record with tags between semicolons and white space anywhere (RFC 6376, 3.6.1). */
const publicKeyOf = (record: string) =>
  record
    .split(';')
    .map((tag) => tag.replaceAll(/\s/g, ''))
    .find((tag) => tag.startsWith('p='));

/** Checks the address from this machine only. The name may resolve differently elsewhere. */
async function checkPublicUrl({ name }: Environment, { public_url: url, http }: Settings): Promise<Finding[]> {
  if (name === 'sandbox' || url === '') return [];
  const address = `${url.replace(/\/$/, '')}/healthz`;
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(PATIENCE_MILLISECONDS), redirect: 'manual' });
    await answer.body?.cancel();
    if (!answer.ok) return [problem('public_url', `${address} answers ${answer.status}`)];
    return [
      http.trust_proxy.length === 0
        ? warning('public_url', `${address} answers, but 'http.trust_proxy' names no proxy: see docs/operations.md`)
        : ok('public_url', `${address} answers`),
    ];
  } catch (error) {
    const reason = error instanceof Error && error.cause !== undefined ? reasonOf(error.cause) : reasonOf(error);
    return [problem('public_url', `${address} does not answer (${reason}): is 'reckoner serve' up, and the proxy?`)];
  }
}
