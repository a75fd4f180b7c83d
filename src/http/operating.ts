/** What operations asks: does it live, can it work, how is it doing. */
import type { FastifyInstance } from 'fastify';
import { MIGRATION_NAMES } from '../database/migrate.ts';
import { queryOne } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { addressList, type Shared } from './server.ts';

export function addOperations(app: FastifyInstance, { database, settings, metrics }: Shared): void {
  app.get('/healthz', async () => ({ status: 'ok' }));

  /** Ready: the database answers, and its schema is the one that this program knows. */
  app.get('/readyz', async () => {
    const { done } = await database.reading((tx) =>
      queryOne<{ done: string[] }>(tx, `SELECT array_agg(name ORDER BY id) AS done FROM migrations`),
    );
    const pending = MIGRATION_NAMES.filter((name) => !done.includes(name));
    if (pending.length > 0) throw refuse('database_not_migrated', { pending });
    return { status: 'ready' };
  });

  const allowed = addressList(settings.http.metrics_allow);
  app.get('/metrics', async (request, reply) => {
    // Came through a proxy that we were not told to trust: the address is the proxy's and says nothing.
    const forwarded = request.headers['x-forwarded-for'] ?? request.headers.forwarded;
    const unknown = forwarded !== undefined && settings.http.trust_proxy.length === 0;
    if (unknown || !allowed(request.ip)) throw refuse('address_not_allowed', { address: request.ip });
    return reply.type(metrics.contentType).send(await metrics.read());
  });
}
