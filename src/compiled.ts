/** Whether the program is compiled. Node 20 cannot start threads or processes from TypeScript. */
export const COMPILED = import.meta.url.endsWith('.js');
