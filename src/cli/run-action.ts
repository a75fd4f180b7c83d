/** Commands that perform an action. The report is printed after the delivery notes. */
import { Action, Report } from '#actions/action';
import { previewAction, RunOptions, readInput, runAction } from '#actions/run';
import { EXIT } from '#errors/refusals';
import { setFileProgress } from '#reading/aside';
import { CommandContext, ExitStatus, withContext } from './context.ts';
import { withContents } from './fields.ts';
import { Output, outputWidth, Progress } from './output.ts';
import { inFull } from './remedies.ts';

/** The options of a command that are not input of its action. */
export type RunFlags = Readonly<{
  /** commander's form of --no-deliver. */
  deliver?: boolean | undefined;
  dryRun?: boolean | undefined;
}>;

/** Invalid input is refused before the database is opened. */
export const doing =
  <Given extends unknown[], Input>(action: Action<Input>, inputOf: (...given: Given) => NoInfer<Input> & RunFlags) =>
  (output: Output, ...given: Given): ExitStatus => {
    const { deliver, dryRun, ...rest } = inputOf(...given);
    const input = withContents(action.input, readInput(action, rest));
    return withContext((context) => runCommand({ ...context, output }, action, input, { deliver, dryRun }), {
      ...{ by: output.by, unattended: action.command?.unattended ?? false },
      ...(dryRun && { writesNothing: true }),
    });
  };

/** Returns the exit status: 4 if finance has something left to do. */
export async function runCommand<Input>(
  context: CommandContext,
  action: Action<Input>,
  input: Input,
  flags: RunFlags = {},
): Promise<number> {
  const report = await reported(context, action, input, flags);
  const text = await inFull(report);
  context.output.print(report.json, () => text);
  for (const note of report.notes ?? []) context.output.note(note);
  return report.attention ? EXIT.attention : EXIT.done;
}

/** Performs or previews an action, and returns its report. */
export async function reported<Input, Result, Followed, Json>(
  context: CommandContext,
  action: Action<Input, Result, Followed, Json>,
  input: Input,
  { deliver = true, dryRun = false }: RunFlags = {},
): Promise<Report<Json>> {
  const wide = { ...context, width: outputWidth() };
  showProgress(context.output);
  if (dryRun) {
    const { report } = await previewAction({ ...wide, forecast: true }, action, input);
    return { ...report, text: `${report.text}\n\nPreview only: nothing was written.` };
  }
  return withNotes(context.output, deliver && action.after !== undefined, (heard) =>
    runAction(wide, action, input, { deliver, ...heard }),
  );
}

/** Shows how much of a large file is read or recorded. */
function showProgress(output: Output) {
  let bar: Progress | undefined;
  let shown = '';
  let before = 0;
  setFileProgress(({ label, done, total, unit }) => {
    if (label !== shown) {
      bar?.done();
      [bar, shown, before] = [output.progress(label, total, ` ${unit}`), label, 0];
    }
    bar?.advance(done - before);
    before = done;
    if (done === total) bar?.done();
  });
}

/** Loads rendering and mail only for commands that deliver, because that takes a quarter of a second. */
export async function withNotes<Result>(
  output: Output,
  delivers: boolean,
  work: (options: Pick<RunOptions, 'reporter'>) => Promise<Result>,
) {
  if (!delivers) return work({ reporter: { onClosed: (month) => output.note(`Closed ${month}.`) } });
  const { withProgress } = await import('./deliveries.ts');
  return withProgress(output, (reporter) => work({ reporter }));
}
