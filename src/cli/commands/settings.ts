/** `reckoner settings`. */
import { readSettingsChanges } from '../../people/settings-changes.ts';
import { presentChanges } from '../changes.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { FORMAT, OUT, type PresentOptions } from '../present.ts';

export const define: Definition = (settings, act) => {
  settings
    .command('history')
    .description('Show which settings changed, when, and which command saw it')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(reading(settingsHistory)));
};

async function settingsHistory({ database, output }: CommandContext, options: PresentOptions): Promise<void> {
  const events = await database.reading(readSettingsChanges);
  await presentChanges(output, options, events, 'No settings are recorded yet.');
}
