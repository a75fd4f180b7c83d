/** The command of an act, made of its description: its fields are arguments and options, and what they say is the help. */
import type { Act } from '../acts/act.ts';
import { wordsOf } from '../acts/command.ts';
import { type Definition, NO_DELIVER } from './define.ts';
import { addFields, givenTo } from './fields.ts';
import { doing, type RunFlags } from './run-act.ts';

export const actCommand = async (loading: Promise<Act>): Promise<{ readonly define: Definition }> => {
  const act = await loading;
  return {
    define(group, run) {
      const { summary = act.title, help, deliver, dryRun, ...words } = act.command ?? {};
      const [, name] = wordsOf(act).split(' ');
      // A command of one word is its own group, and program.ts has its summary.
      const command = name === undefined ? group : group.command(name).description(summary);
      addFields(command, act.input, words);
      if (dryRun !== undefined) command.option('--dry-run', dryRun);
      if (deliver) command.option(...NO_DELIVER);
      if (help !== undefined) command.addHelpText('after', `\n${help}`);
      command.action(
        run(
          doing(act, (...given: unknown[]) => {
            const options = given.at(-1) as RunFlags;
            const flags = { deliver: options.deliver, dryRun: options.dryRun };
            return { ...givenTo(act.input, { values: given, options }, words), ...flags };
          }),
        ),
      );
    },
  };
};
