/** What the file of a command needs: its definition, options, output and exit status. */
export * from '#errors/refusals';
export * from './arguments.ts';
export * from './context.ts';
export * from './define.ts';
export * from './output.ts';
export * from './present.ts';
