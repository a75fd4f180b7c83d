/**
 * The payment instructions in force: what documents print. They come from settings.json and are adopted by an audit
 * event (`instructions.adopt`) that contains all of them; the latest such event is in force. If `approvals` has no rule
 * for this action, deliveries adopt the file automatically before they print. If it has one, only the action does. The
 * database refuses a PDF with other instructions.
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

/** Whether only the action adopts the instructions of settings.json. */
export const needsAdoption = ({ approvals }: Pick<Settings, 'approvals'>): boolean => ADOPTION in approvals;

/** The settings with the instructions in force. The file's instructions stay in `file_instructions`. */
export async function settingsInForce(database: Database, settings: Settings): Promise<Settings> {
  if (!needsAdoption(settings)) return settings;
  const inForce = (await database.reading(readInstructionsInForce)) ?? {};
  return { ...settings, instructions: inForce, file_instructions: instructionsOfFile(settings) };
}

/** How settings.json differs from the instructions in force, in the order of the fields. */
const instructionChanges = (before: AllInstructions | undefined, after: AllInstructions): FieldChange[] =>
  changesBetween(fieldsOf(before ?? {}), fieldsOf(asJson(after)));

const asJson = (instructions: AllInstructions): AllInstructions => JSON.parse(JSON.stringify(instructions));

const isSame = (kept: AllInstructions | undefined, file: AllInstructions): boolean =>
  kept !== undefined && instructionChanges(kept, file).length === 0;

/** Puts the instructions of settings.json in force. Refusal: instructions_unchanged. */
export async function adoptInstructions(tx: Transaction, context: ActorContext): Promise<FieldChange[]> {
  const changes = await adopt(tx, context);
  if (changes === undefined) throw refuse('instructions_unchanged', {});
  return changes;
}

/** Adopts settings.json if no rule keeps it from taking effect automatically. */
export async function adoptUnlessRuled(database: Database, context: ActorContext): Promise<void> {
  const { settings } = context;
  if (needsAdoption(settings)) return;
  if (isSame(await database.reading(readInstructionsInForce), settings.instructions)) return;
  await database.transaction((tx) => adopt(tx, context));
}

/**
 * Adopts under the ledger's lock, so that no PDF is recorded at the same time. Undefined if there is nothing to change.
 */
async function adopt(
  tx: Transaction,
  { actor, environment, settings }: ActorContext,
): Promise<FieldChange[] | undefined> {
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
 * Fields of settings.json that are not in force, because a rule requires the action. Takes the result of
 * `settingsInForce`.
 */
export const instructionsToAdopt = ({ instructions, file_instructions }: Settings): FieldChange[] =>
  file_instructions === undefined ? [] : instructionChanges(instructions, file_instructions);
