/**
 * Passes each statement that a process sends to PostgreSQL to `take`, with its parameters, its connection, and the file and
 * function of the program that sends it. Loaded with `node --import`, it writes lines of JSON to the file
 * RECKONER_STATEMENTS.
 */
import { appendFileSync } from 'node:fs';
import pg from 'pg';

/** Returns a function that ends it. */
export function recordStatements(take) {
  const { query } = pg.Client.prototype;
  const { stackTraceLimit } = Error;
  const sessions = new WeakMap();
  let count = 0;
  Error.stackTraceLimit = 100;
  pg.Client.prototype.query = function recorded(given, values, ...rest) {
    // A COPY keeps its text in the query that it wraps.
    const text = typeof given === 'string' ? given : (given?.text ?? given?.cursor?.text);
    if (typeof text === 'string') {
      if (!sessions.has(this)) {
        count += 1;
        sessions.set(this, `${process.pid} ${count}`);
      }
      const own = (Array.isArray(values) ? values : given?.values) ?? [];
      const plain = own.map((value) => (value instanceof Date ? value.toISOString() : value));
      take({ session: sessions.get(this), text, values: plain, sender: sender() });
    }
    return query.call(this, given, values, ...rest);
  };
  return () => {
    pg.Client.prototype.query = query;
    Error.stackTraceLimit = stackTraceLimit;
  };
}

/** The first function of the program above those that send any statement. */
function sender() {
  const frames = [...(new Error().stack ?? '').matchAll(/at (?:async )?(?:(\S+) \()?.*?\/(src\/[\w./-]+)\.[tj]s/g)];
  const [, name, file] = frames.find(([, , path]) => !/^src\/(database|archive\/process)/.test(path)) ?? [];
  return `${file ?? 'src/database'}.ts${name ? ` ${name.replace(/^.*\./, '')}` : ''}`;
}

const file = process.env.RECKONER_STATEMENTS;
if (file) recordStatements((statement) => appendFileSync(file, `${JSON.stringify(statement)}\n`));
