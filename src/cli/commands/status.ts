/** `reckoner status`. */
import { EXIT } from '../../errors/refusals.ts';
import { readStatus } from '../../reports/status.ts';
import { adviceOn, describeStatus } from '../../reports/status-text.ts';
import { type CommandContext, type Definition, readingNow } from '../define.ts';
import { fitted, outputWidth } from '../output.ts';
import { inCommands } from '../remedies.ts';

export const define: Definition = (command, act) => {
  command.addHelpText('after', '\nExit status 4: something needs attention.').action(act(readingNow(status)));
};

export async function status(context: CommandContext): Promise<number> {
  const { settings, database, output } = context;
  const found = await database.reading((tx) => readStatus(tx, context));
  const advice = adviceOn(settings);
  const attention = await inCommands(found.findings);
  output.print({ ...found, attention, advice }, () =>
    fitted(describeStatus(found, { urgent: attention, advice, width: outputWidth() })),
  );
  return attention.length > 0 ? EXIT.attention : EXIT.done;
}
