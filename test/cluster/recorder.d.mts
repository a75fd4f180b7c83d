import type { Statement } from './planned.ts';
/** Returns a function that ends it. */
export function recordStatements(take: (statement: Statement) => void): () => void;
