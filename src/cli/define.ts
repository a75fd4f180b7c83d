import { Command } from 'commander';
import { dateArgument, reasonArgument } from './arguments.ts';
import { ExitStatus } from './context.ts';
import { Output } from './output.ts';

export { acting, type CommandContext, type ExitStatus, reading, readingNow } from './context.ts';

/**
 * A commander action from a function of the output, the arguments and the options, which may return the exit status.
 */
export type Handler = <Arguments extends unknown[]>(
  work: (output: Output, ...given: Arguments) => ExitStatus,
) => (...given: unknown[]) => Promise<void>;

/** Adds arguments, options, help and an action to a command, or commands to a group. */
export type Definition = (command: Command, handle: Handler) => void;

export const REASON = ['--reason <reason>', 'the reason; it is recorded', reasonArgument] as const;
export const ON_LATEST_DATE = [
  '--on-latest-date',
  'use the date of the latest document, if that date is after today because a clock was wrong',
] as const;
export const NO_DELIVER = ['--no-deliver', "leave delivery to 'reckoner deliver'"] as const;
export type AsOfOption = Readonly<{
  asOf?: string;
}>;
export const AS_OF = [
  '--as-of <YYYY-MM-DD>',
  'as of the end of this day (default: now)',
  dateArgument('--as-of'),
] as const;

export type DeliverOption = Readonly<{
  /** The form in which commander passes --no-deliver. */
  deliver: boolean;
}>;
