/** `reckoner instructions`. */
import { instructionsAdopt } from '../../acts/instructions.ts';
import type { Definition } from '../define.ts';
import { doing, type RunFlags } from '../run-act.ts';

const HELP = `
Only with a rule for instructions.adopt in settings.json (approvals) is this
needed: documents then print the bank details that were adopted last, whatever
settings.json says meanwhile. Without one they print those of settings.json.`;

export const define: Definition = (instructions, act) => {
  instructions
    .command('adopt')
    .description('Put the bank details of settings.json in force')
    .option('--dry-run', 'show them beside those in force, and write nothing')
    .addHelpText('after', HELP)
    .action(act(doing(instructionsAdopt, (options: RunFlags) => options)));
};
