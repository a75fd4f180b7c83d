/** `reckoner status`. */
import { EXIT } from '../../errors/refusals.ts';
import { adviceOn } from '../../reports/attention.ts';
import { readStatus } from '../../reports/status.ts';
import { describeStatus } from '../../reports/status-text.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';

export const define: Definition = (command, act) => {
  command.addHelpText('after', '\nExit status 4: something needs attention.').action(act(acting(status)));
};

export async function status({ environment, settings, database, output }: CommandContext): Promise<number> {
  const found = await database.reading((tx) => readStatus(tx, environment.now(), settings));
  const advice = adviceOn(settings);
  output.print({ ...found, advice }, () => describeStatus(found, advice));
  return found.attention.length > 0 ? EXIT.attention : EXIT.done;
}
