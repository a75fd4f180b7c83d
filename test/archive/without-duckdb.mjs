/** Hides DuckDB from a program, as where it is not installed. */
import { register } from 'node:module';

register(
  `data:text/javascript,${encodeURIComponent(`
    export async function resolve(name, context, next) {
      if (!name.startsWith('@duckdb/')) return next(name, context);
      throw Object.assign(new Error('not installed'), { code: 'ERR_MODULE_NOT_FOUND' });
    }`)}`,
);
