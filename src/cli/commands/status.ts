/** `reckoner status`. */
import { EXIT } from '../../errors/refusals.ts';
import { readStatus } from '../../reports/status.ts';
import { describeStatus } from '../../reports/status-text.ts';
import { withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import type { Output } from '../output.ts';

export const define: Definition = (command, act) => {
  command.addHelpText('after', '\nExit status 4: something needs attention.').action(act(status));
};

export async function status(output: Output): Promise<number> {
  return withContext(async ({ environment, database }) => {
    const found = await database.reading((tx) => readStatus(tx, environment.now()));
    output.print(found, () => describeStatus(found));
    return found.attention.length > 0 ? EXIT.attention : EXIT.done;
  });
}
