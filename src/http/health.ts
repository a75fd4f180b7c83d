/** Endpoints for operations: /healthz, /readyz and /metrics. */
import type { FastifyInstance } from 'fastify';
import { MIGRATION_NAMES } from '../database/migrate.ts';
import { refuse } from '../errors/refusals.ts';
import { readPauses } from '../people/pauses.ts';
import { readMigrationNames } from './queries.ts';
import { addressList, type Shared } from './shared.ts';

export function addHealth(app: FastifyInstance, { database, settings, metrics }: Shared): void {
  app.get('/healthz', async () => ({ status: 'ok' }));

  // Ready: the database answers, has the migrations of this version and takes writes, and the clocks agree. Also while the
  // ledger is paused: what reads is answered as always, and to send what records elsewhere would help nobody.
  app.get('/readyz', async () => {
    const done = await database.reading(readMigrationNames);
    const pending = MIGRATION_NAMES.filter((name) => !done.includes(name));
    if (pending.length > 0) throw refuse('database_not_migrated', { pending });
    await database.checkWritable();
    const [pause] = await database.reading(readPauses);
    return { status: 'ready', ...(pause !== undefined && { paused_since: pause.paused_at }) };
  });

  const allowed = addressList(settings.http.metrics_allow);
  app.get('/metrics', async (request, reply) => {
    // Behind an untrusted proxy, request.ip is the proxy's address.
    const forwarded = request.headers['x-forwarded-for'] ?? request.headers.forwarded;
    const unknown = forwarded !== undefined && settings.http.trust_proxy.length === 0;
    if (unknown || !allowed(request.ip)) throw refuse('address_not_allowed', { address: request.ip });
    return reply.type(metrics.contentType).send(await metrics.read());
  });
}
