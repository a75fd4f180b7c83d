/** `reckoner payment import`. */
import { FORMATS, paymentImport } from '../../../acts/payment/import.ts';
import { choiceArgument } from '../../arguments.ts';
import type { Definition } from '../../define.ts';
import { readInput } from '../../input.ts';
import { doing } from '../../run-act.ts';

const HELP = `
A file that was already imported changes nothing, and a line that another file
brought is not recorded again. Certain matches are applied; others become
suggestions, which 'reckoner payment apply ID --invoice NUMBER' accepts. Exit
status 4: a line needs manual review, or a statement does not continue what is
known of its account.`;

interface ImportOptions {
  readonly format?: (typeof FORMATS)[number];
  readonly map?: string;
  readonly dryRun?: boolean;
}

export const define: Definition = (payment, act) => {
  payment
    .command('import <file>')
    .description("Import a bank file, all of it or nothing, and match its lines; '-' is stdin")
    .option('--format <format>', `${FORMATS.join(', ')} (default: detected)`, choiceArgument('--format', FORMATS))
    .option('--map <name>', 'for CSV: a column map of the settings ("bank_csv")')
    .option('--dry-run', 'check and match everything, record nothing')
    .addHelpText('after', HELP)
    .action(
      act(
        doing(paymentImport, (name: string, options: ImportOptions) => ({
          ...{ file: { name, bytes: readInput(name) }, ...options },
        })),
      ),
    );
};
