/** The operations endpoints /healthz, /readyz and /metrics, and security.txt. */
import { FastifyInstance, FastifyRequest } from 'fastify';
import { addressList } from '#config/addresses';
import { Settings } from '#config/settings';
import { migrationName, missingMigrations } from '#database/migrate';
import { refuse } from '#errors/refusals';
import { readProver } from '#log/witness';
import { commit, packageVersion } from '#package';
import { Installation } from '#people/audit-events';
import { readPauses } from '#people/pauses.sql';
import { countOther } from './limits.ts';
import { readMigrationNames } from './server.sql.ts';
import { issuerOf, Shared, unknownProxies } from './shared.ts';

/** A caller that probes more often gets the previous response. */
const REMEMBERED_MS = 1000;

export function addHealth(app: FastifyInstance, shared: Shared) {
  const { database, metrics, limits } = shared;
  const fixed = { config: { bound: 'fixed' } } as const;
  app.get('/healthz', fixed, async () => ({ status: 'ok', version: packageVersion, commit }));

  // Ready: the database responds, accepts writes and has this version's migrations, and the clocks agree. A pause of
  // the ledger does not matter: reads still work, and other servers could not write either.
  const ready = remembered(REMEMBERED_MS, async () => {
    const done = await database.reading(readMigrationNames);
    const pending = missingMigrations(done).map(migrationName);
    if (pending.length > 0) throw refuse('database_not_migrated', { pending });
    await database.checkWritable();
    const [pause] = await database.reading(readPauses);
    return { status: 'ready', ...(pause !== undefined && { paused_since: pause.paused_at }) };
  });
  app.get('/readyz', fixed, ready);

  const isAllowed = metricsReaders(shared);
  const readMetrics = remembered(REMEMBERED_MS, metrics.read);
  app.get('/metrics', fixed, async (request, reply) => {
    if (!isAllowed(request)) throw refuse('address_not_allowed', { address: request.ip });
    return reply.type(metrics.contentType).send(await readMetrics());
  });

  // Gives witnesses the size and the root of the log, but never a fact.
  app.get('/log/checkpoint', { ...fixed, onRequest: countOther(limits) }, async (request, reply) => {
    const { old = '0' } = request.query as Readonly<Record<string, string>>;
    if (!/^(0|[1-9]\d{0,14})$/.test(old)) throw refuse('checkpoint_unknown', { size: 0, last: null });
    const proof = await database.reading(async (tx) => (await readProver(tx)).proofFrom(Number(old)));
    return reply.type('text/plain; charset=utf-8').send(proof);
  });

  const text = securityText(shared);
  app.get('/.well-known/security.txt', { ...fixed, onRequest: countOther(limits) }, async (request, reply) => {
    const { method, url: path } = request;
    if (text === undefined) throw refuse('route_unknown', { method, path });
    return reply.type('text/plain; charset=utf-8').send(text());
  });
}

/** Runs the work once for concurrent callers, and keeps its result or failure for some time. */
function remembered<Result>(milliseconds: number, work: () => Promise<Result>) {
  let last: Promise<Result> | undefined;
  return () => {
    if (last !== undefined) return last;
    const begun = work();
    last = begun;
    const forget = () => setTimeout(() => (last = undefined), milliseconds).unref();
    begun.then(forget, forget);
    return begun;
  };
}

/**
 * Whether a caller may read the metrics: not through a proxy that the settings do not name, whose address would stand
 * for the caller's. By default, nginx forwards without extra headers, but as HTTP/1.0.
 */
function metricsReaders({ settings }: { settings: Settings }): (request: FastifyRequest) => boolean {
  const allowed = addressList(settings.http.metrics_allow);
  const isBehindUnknownProxy = unknownProxies(settings);
  return (request) => allowed(request.ip) && !isBehindUnknownProxy(request) && request.raw.httpVersion !== '1.0';
}

/** RFC 9116; undefined if the settings name no contact. */
function securityText({ settings, environment }: Installation) {
  const contact = settings.security_contact || settings.issuer.email;
  if (contact === '') return undefined;
  const uri = /^https:/.test(contact) ? contact : `mailto:${contact}`;
  const canonical = `${issuerOf({ settings })}/.well-known/security.txt`;
  return () =>
    [`Contact: ${uri}`, `Expires: ${environment.now().plus({ days: 30 }).toUTC().startOf('day').toISO()}`]
      .concat('Preferred-Languages: en', `Canonical: ${canonical}`, '')
      .join('\n');
}
