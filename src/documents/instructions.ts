/**
 * The payment instructions in force, which documents print. Those in settings.json take effect when an audit event
 * (`instructions.adopt`) adopts them; the latest such event is in force. Without a rule for this action in `approvals`,
 * deliveries adopt the file before they print. With a rule, only the action does. The database refuses a PDF with other
 * instructions.
 */
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { lockLedgerWhole } from '../database/ledger-lock.ts';
import type { Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { changesBetween, type FieldChange, fieldsOf } from '../people/field-changes.ts';
import { type AllInstructions, readInstructionsInForce } from './instructions.sql.ts';

const ADOPTION = 'instructions.adopt';

/** The instructions in settings.json, whether or not they are in force. */
export const instructionsOfFile = (settings: Settings): AllInstructions =>
  settings.file_instructions ?? settings.instructions;

export const needsAdoption = ({ approvals }: Pick<Settings, 'approvals'>): boolean => ADOPTION in approvals;

/** The settings with the instructions in force. The file's instructions stay in `file_instructions`. */
export async function settingsInForce(database: Database, settings: Settings): Promise<Settings> {
  if (!needsAdoption(settings)) return settings;
  const inForce = (await database.reading(readInstructionsInForce)) ?? {};
  return { ...settings, instructions: inForce, file_instructions: instructionsOfFile(settings) };
}

/** The differences between settings.json and the instructions in force, in the order of the fields. */
const instructionChanges = (before: AllInstructions | undefined, after: AllInstructions) =>
  changesBetween(fieldsOf(before ?? {}), fieldsOf(asJson(after)));

const asJson = (instructions: AllInstructions) => JSON.parse(JSON.stringify(instructions));

const isSame = (kept: AllInstructions | undefined, file: AllInstructions) =>
  kept !== undefined && instructionChanges(kept, file).length === 0;

/** Makes the instructions of settings.json the instructions in force. Refusal: instructions_unchanged. */
export async function adoptInstructions(tx: Transaction, context: ActorContext): Promise<FieldChange[]> {
  const changes = await adopt(tx, context);
  if (changes === undefined) throw refuse('instructions_unchanged', {});
  return changes;
}

/** Adopts the instructions of settings.json, unless a rule requires the action. */
export async function adoptUnlessRuled(database: Database, context: ActorContext): Promise<void> {
  const { settings } = context;
  if (needsAdoption(settings)) return;
  if (isSame(await database.reading(readInstructionsInForce), settings.instructions)) return;
  await database.transaction((tx) => adopt(tx, context));
}

/**
 * Adopts under the ledger's lock, so that no PDF is recorded at the same time. Returns undefined if nothing changes.
 */
async function adopt(tx: Transaction, { actor, environment, settings }: ActorContext) {
  await lockLedgerWhole(tx);
  const before = await readInstructionsInForce(tx);
  const file = instructionsOfFile(settings);
  if (isSame(before, file)) return undefined;
  const changes = instructionChanges(before, file);
  const details = { instructions: asJson(file), changes };
  await recordEvent(tx, actor, {
    ...{ action: ADOPTION, subject: 'settings.json', details },
    now: environment.now().toISO(),
  });
  return changes;
}

/**
 * The fields of settings.json that are not in force yet, because a rule requires the action. Takes the result of
 * `settingsInForce`.
 */
export const instructionsToAdopt = ({ instructions, file_instructions }: Settings): FieldChange[] =>
  file_instructions === undefined ? [] : instructionChanges(instructions, file_instructions);
