/**
 * Whether this is the compiled program. It matters because Node 20 can start neither threads nor processes from
 * TypeScript.
 */
export const COMPILED = import.meta.url.endsWith('.js');
