/** Whether this is the compiled program: Node 20 can start neither a thread nor a process from TypeScript. */
export const COMPILED = import.meta.url.endsWith('.js');
