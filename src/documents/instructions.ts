/**
 * The payment instructions in force: what documents print. They are those of settings.json, taken over by an audit event
 * (`instructions.adopt`) that has all of them; the latest is in force. Without a rule for it in `approvals`, deliveries take
 * the file over by themselves before they print; with one, only the action does. The database refuses a PDF with others.
 */
import type { Settings } from '../config/settings.ts';
import type { Database } from '../database/database.ts';
import { lockLedgerWhole } from '../database/ledger-lock.ts';
import { query, type Transaction } from '../database/transaction.ts';
import { refuse } from '../errors/refusals.ts';
import { type ActorContext, recordEvent } from '../people/audit-events.ts';
import { changesBetween, type FieldChange, fieldsOf } from '../people/field-changes.ts';

export const ADOPTION = 'instructions.adopt';

type AllInstructions = Settings['instructions'];

/** Those in force, by currency; undefined before the first are adopted. */
export async function readInstructionsInForce(tx: Transaction): Promise<AllInstructions | undefined> {
  const [found] = await query<{ instructions: AllInstructions }>(tx, `SELECT instructions FROM instructions_in_force`);
  return found?.instructions;
}

/** Those of settings.json, whatever is in force. */
export const instructionsOfFile = (settings: Settings): AllInstructions =>
  settings.file_instructions ?? settings.instructions;

/** Whether only the action takes over what settings.json says. */
export const needsAdoption = ({ approvals }: Pick<Settings, 'approvals'>): boolean => ADOPTION in approvals;

/** The settings with the instructions in force. Those of the file stay in `file_instructions`. */
export async function settingsInForce(database: Database, settings: Settings): Promise<Settings> {
  if (!needsAdoption(settings)) return settings;
  const inForce = (await database.reading(readInstructionsInForce)) ?? {};
  return { ...settings, instructions: inForce, file_instructions: instructionsOfFile(settings) };
}

/** How settings.json differs from what is in force, in the order of the fields. */
export const instructionChanges = (before: AllInstructions | undefined, after: AllInstructions): FieldChange[] =>
  changesBetween(fieldsOf(before ?? {}), fieldsOf(asJson(after)));

const asJson = (instructions: AllInstructions): AllInstructions => JSON.parse(JSON.stringify(instructions));

const isSame = (kept: AllInstructions | undefined, file: AllInstructions): boolean =>
  kept !== undefined && instructionChanges(kept, file).length === 0;

/** Puts what settings.json says in force. Refusal: instructions_unchanged. */
export async function adoptInstructions(tx: Transaction, context: ActorContext): Promise<FieldChange[]> {
  const changes = await adopt(tx, context);
  if (changes === undefined) throw refuse('instructions_unchanged', {});
  return changes;
}

/** Takes over settings.json where no rule keeps it from taking effect by itself. */
export async function adoptUnlessRuled(database: Database, context: ActorContext): Promise<void> {
  const { settings } = context;
  if (needsAdoption(settings)) return;
  if (isSame(await database.reading(readInstructionsInForce), settings.instructions)) return;
  await database.transaction((tx) => adopt(tx, context));
}

/** Under the ledger's lock, so that no PDF is being recorded meanwhile. Undefined where there is nothing to change. */
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

/** Fields of settings.json that are not in force, because a rule asks for the action. Of settings by `settingsInForce`. */
export const instructionsToAdopt = ({ instructions, file_instructions }: Settings): FieldChange[] =>
  file_instructions === undefined ? [] : instructionChanges(instructions, file_instructions);
