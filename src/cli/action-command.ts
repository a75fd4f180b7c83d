/** Builds the command of an action: its fields become arguments and options, and their texts the help. */
import { wordsOf } from '#actions/command';
import { ActionName, loadAction } from '#actions/registry';
import { Definition, NO_DELIVER } from './define.ts';
import { addFields, givenTo } from './fields.ts';
import { doing, RunFlags } from './run-action.ts';

export const actionCommand = async (called: ActionName): Promise<{ readonly define: Definition }> => {
  const action = await loadAction(called);
  return {
    define(group, run) {
      const { summary = action.title, help, deliver, dryRun, ...words } = action.command ?? {};
      const [, name] = wordsOf(action).split(' ');
      // A one-word command is its own group, whose summary is in program.ts.
      const command = name === undefined ? group : group.command(name).description(summary);
      addFields(command, action.input, words);
      if (dryRun !== undefined) command.option('--dry-run', dryRun);
      if (deliver) command.option(...NO_DELIVER);
      if (help !== undefined) command.addHelpText('after', `\n${help}`);
      command.action(
        run(
          doing(action, (...given: unknown[]) => {
            const options = given.at(-1) as RunFlags;
            const flags = { deliver: options.deliver, dryRun: options.dryRun };
            return { ...givenTo(action.input, { values: given, options }, words), ...flags };
          }),
        ),
      );
    },
  };
};
