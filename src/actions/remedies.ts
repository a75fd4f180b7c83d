import { Remedy } from '#remedy';
import { commandText } from './command.ts';
import { ActionName, loadAction } from './registry.ts';

export const commandOf = async (remedy: Remedy): Promise<string> =>
  'command' in remedy
    ? `reckoner ${remedy.command}`
    : commandText(await loadAction(remedy.action as ActionName), remedy.input);

export const remediesJson = (remedies: readonly Remedy[]) =>
  Promise.all(
    remedies.map(async (each) => ({
      label: each.label,
      ...(each.when !== undefined && { when: each.when }),
      ...('action' in each && { action: each.action, input: each.input }),
      command: await commandOf(each),
    })),
  );
