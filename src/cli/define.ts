/** Shared parts of the definitions of commands. */
import type { Command } from 'commander';
import { dateArgument, reasonArgument } from './arguments.ts';
import type { ExitStatus } from './context.ts';
import type { Output } from './output.ts';

export { acting, type CommandContext, type ExitStatus, reading, readingNow } from './context.ts';

/**
 * Makes a commander action from a function. The function gets the output, the arguments and the options, and may return
 * the exit status.
 */
export type Handler = <Arguments extends unknown[]>(
  work: (output: Output, ...given: Arguments) => ExitStatus,
) => (...given: unknown[]) => Promise<void>;

/** Gives a command its arguments, options, help and action, or a group its commands. */
export type Definition = (command: Command, handle: Handler) => void;

// Options shared by several commands.
export const REASON = ['--reason <reason>', 'why; it is recorded', reasonArgument] as const;
export const ON_LATEST_DATE = [
  '--on-latest-date',
  "use the latest document's date, if a clock that ran ahead dated it",
] as const;
export const NO_DELIVER = ['--no-deliver', "leave delivery to 'reckoner deliver'"] as const;
export interface AsOfOption {
  readonly asOf?: string;
}
export const AS_OF = [
  '--as-of <YYYY-MM-DD>',
  'as of the end of this day (default: now)',
  dateArgument('--as-of'),
] as const;

export interface DeliverOption {
  /** commander's form of --no-deliver. */
  readonly deliver: boolean;
}
