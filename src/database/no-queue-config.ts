/**
 * Keeps the queue (graphile-worker) from looking for a configuration file of its own: it would run code that it finds in
 * the current directory, and fail for a user without a home. Import this before the queue.
 */
import { createRequire } from 'node:module';

const load = createRequire(createRequire(import.meta.url).resolve('graphile-worker'));
const searcher = load.resolve('cosmiconfig');

load.cache[searcher] = Object.assign(Object.create(null), {
  ...{ id: searcher, filename: searcher, loaded: true, children: [], paths: [] },
  exports: { cosmiconfigSync: () => ({ search: () => null }) },
});
