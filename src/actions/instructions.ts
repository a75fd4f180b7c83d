import { readInstructionsInForce } from '../documents/instructions.sql.ts';
import { adoptInstructions } from '../documents/instructions.ts';
import { changeCells, fieldsOf } from '../people/field-changes.ts';
import { table } from '../text-table.ts';
import { defineAction, type Facts } from './action.ts';

export const instructionsAdopt = defineAction({
  name: 'instructions.adopt',
  title: 'Put the bank details of settings.json in force',
  command: {
    dryRun: 'show them next to those in force; write nothing',
    help: `Needed only if settings.json (approvals) has a rule for instructions.adopt:
documents then print the bank details adopted last, even if settings.json has
changed since. Without such a rule, documents print the bank
details of settings.json.`,
  },
  role: 'administrator',
  needsProof: true,
  input: {},
  subject: () => 'settings.json',
  partners: async () => 'all',
  perform: (tx, context) => adoptInstructions(tx, context),
  async facts(tx): Promise<Facts> {
    const fields = fieldsOf((await readInstructionsInForce(tx)) ?? {});
    return { 'bank details': Object.fromEntries([...fields].map(([field, value]) => [field, String(value)])) };
  },
  amounts: () => [],
  report: async ({ result: changes, preview }, { width }) => ({
    json: { changes },
    text:
      `${preview ? 'Documents would print' : 'Documents print from now on'} the bank details of settings.json:\n\n` +
      table(['field', 'in force until now', 'settings.json'], changes.map(changeCells), width),
  }),
});
