/** `reckoner processor import`. */
import { checkImport, processorImport } from '../../../acts/processor/import.ts';
import type { Definition } from '../../define.ts';
import { readInput } from '../../input.ts';
import { doing } from '../../run-act.ts';

export const define: Definition = (processor, act) => {
  processor
    .command('import <file>')
    .description("Import a partner's settlement file, or balance transactions as NDJSON; '-' is stdin")
    .option('--partner <id>', "this partner's settlement file (quote_id, transfer, payment, amount)")
    .option('--account <id>', 'balance transactions of this account, with the source expanded')
    .action(act(doing(processorImport, inputOf)));
};

/** Whoever gave the wrong options is told before the file is read: stdin may never end. */
function inputOf(name: string, { partner: partnerId, account }: { partner?: string; account?: string }) {
  checkImport({ partnerId, account });
  return { file: { name, bytes: readInput(name) }, partnerId, account };
}
