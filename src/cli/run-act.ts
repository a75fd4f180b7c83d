/** Commands that do an act: options become its input, and its report is printed, after the notes on what was delivered. */
import type { Act } from '../acts/act.ts';
import { previewAct, type RunOptions, readInput, runAct } from '../acts/run.ts';
import { EXIT } from '../errors/refusals.ts';
import { type CommandContext, type Done, withContext } from './context.ts';
import type { Output } from './output.ts';

/** The options of a command that are no part of its act's input. */
export interface RunFlags {
  /** commander's form of --no-deliver. */
  readonly deliver?: boolean;
  readonly dryRun?: boolean;
}

/** The action of a command that does an act. What cannot be read is refused before the database is opened. */
export const doing =
  <Given extends unknown[], Input>(act: Act<Input>, inputOf: (...given: Given) => NoInfer<Input> & RunFlags) =>
  (output: Output, ...given: Given): Done => {
    const { deliver, dryRun, ...rest } = inputOf(...given);
    const input = readInput(act, rest);
    return withContext((context) => runCommand({ ...context, output }, act, input, { deliver, dryRun }), {
      by: output.by,
      ...(dryRun && { dryRun }),
    });
  };

/** Gives the exit status: 4 where something is left for finance to do. */
export async function runCommand<Input>(
  context: CommandContext,
  act: Act<Input>,
  input: Input,
  { deliver = true, dryRun = false }: { [Flag in keyof RunFlags]: RunFlags[Flag] | undefined } = {},
): Promise<number> {
  const report = dryRun
    ? (await previewAct(context, act, input)).report
    : await withNotes(context, deliver && act.after !== undefined, (heard) =>
        runAct(context, act, input, { deliver, ...heard }),
      );
  context.output.print(report.json, () => report.text);
  return report.attention ? EXIT.attention : EXIT.done;
}

/** Rendering and mail take a quarter of a second to load: only for what delivers. */
async function withNotes<Result>(
  { output }: CommandContext,
  delivers: boolean,
  work: (options: Pick<RunOptions, 'reporter'>) => Promise<Result>,
): Promise<Result> {
  if (!delivers) return work({});
  const { withProgress } = await import('./deliveries.ts');
  return withProgress(output, (reporter) => work({ reporter }));
}
