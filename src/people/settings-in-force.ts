/**
 * The settings in force. A section is in force as adopted last with the action `settings.adopt`, and the file on the
 * server only proposes another one. A section that was never adopted is in force as the file states it; but if adopting
 * bank details needs approval, none are in force before. Refusals: settings_unchanged, and those of reading accounts.json.
 */
import { existsSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { accountsFile, readAccounts } from '#config/accounts';
import { SECTION_NAMES, Section, Settings, sectionSchema } from '#config/settings';
import { Database } from '#database/database';
import { lockLedgerWhole } from '#database/ledger-lock';
import { Transaction } from '#database/transaction';
import { Refusal, refuse } from '#errors/refusals';
import { ActorContext, Installation, recordEvent } from './audit-events.ts';
import { changesBetween, FieldChange, fieldsOf, Value } from './field-changes.ts';
import { ADOPTION, readRecorded } from './settings-changes.ts';
import { readAdopted } from './settings-in-force.sql.ts';

/** The rule for adopting a section: its own, or that for all sections. */
export const adoptionRule = ({ approvals }: Pick<Settings, 'approvals'>, section: Section) =>
  approvals[`${ADOPTION}.${section}`] ?? approvals[ADOPTION];

export const settingsInForce = (database: Database, settings: Settings): Promise<Settings> =>
  database.reading((tx) => readInForce(tx, settings));

/** Puts what was adopted in place of what the files state. */
export async function readInForce(tx: Transaction, settings: Settings): Promise<Settings> {
  const adopted = await readAdopted(tx, {});
  const values = adopted.map(({ section, value }) => [section, sectionSchema(section).parse(value)] as const);
  const names = adopted.map(({ section }) => section);
  const found: Settings = { ...settings, ...Object.fromEntries(values) };
  const isWaiting = !names.includes('instructions') && adoptionRule(found, 'instructions') !== undefined;
  const replaced = Object.fromEntries(adopted.map(({ section, file }) => [section, file]));
  const sections = { file: {}, ...settings.sections, adopted: names, replaced };
  return { ...found, ...(isWaiting && { instructions: {} }), sections };
}

/** What the file on the server states. Undefined if it leaves the section out. */
export const statedByFile = ({ settings, environment }: Installation, section: Section) =>
  section !== 'accounts'
    ? settings.sections?.file[section]
    : existsSync(accountsFile(environment))
      ? readAccounts(environment)
      : undefined;

/** Takes the result of `readInForce`. Undefined for a section that nothing states. */
export const valueInForce = (context: Installation, section: Section) =>
  context.settings[section] ?? (section === 'accounts' ? statedByFile(context, section) : undefined);

export type Differences = Readonly<{ section: Section; changes: readonly FieldChange[] }>;

/** Whether the file still states what it stated when another value was adopted, so that it proposes nothing. */
export function isFileOlder(context: Installation, section: Section) {
  const replaced = context.settings.sections?.replaced?.[section] ?? undefined;
  try {
    return replaced !== undefined && isDeepStrictEqual(asJson(statedByFile(context, section)), replaced);
  } catch (error) {
    // A file that cannot be used states something else.
    if (error instanceof Refusal) return false;
    throw error;
  }
}

/** Where the files differ from what is in force. Takes the result of `readInForce`. */
export function proposedByFiles(context: Installation): Differences[] {
  const { settings } = context;
  const isProposal = (section: Section) =>
    settings.sections?.adopted.includes(section) ||
    (section === 'instructions' && adoptionRule(settings, section) !== undefined);
  return SECTION_NAMES.filter(isProposal).flatMap((section) => {
    const changes = changesOfFile(context, section);
    return changes.length === 0 ? [] : [{ section, changes }];
  });
}

function changesOfFile(context: Installation, section: Section): FieldChange[] {
  try {
    const stated = statedByFile(context, section);
    return stated === undefined || isFileOlder(context, section)
      ? []
      : sectionChanges(section, context.settings[section], stated);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return [{ field: section, old: null, new: 'a file that cannot be used' }];
  }
}

/** The fields of a section for people: the entries of a list are numbered from 1. */
export const sectionFields = (section: Section, value: unknown): Map<string, Value> =>
  fieldsOf({ [section]: numbered(asJson(value)) });

export const sectionChanges = (section: Section, before: unknown, after: unknown): FieldChange[] =>
  changesBetween(sectionFields(section, before), sectionFields(section, after));

function numbered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value) && value.every((each) => typeof each !== 'object')) return value.join(', ');
  const entries = Array.isArray(value) ? value.map((each, at) => [at + 1, each]) : Object.entries(value);
  return Object.fromEntries(entries.map(([name, each]) => [name, numbered(each)]));
}

const asJson = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/**
 * Puts a section in force, under the ledger's lock, so that no PDF is recorded and no month is closed at the same time.
 * The event lists its changes as `settings.change` does, because both are the history of the settings in force.
 */
export async function adoptSection(
  tx: Transaction,
  context: ActorContext,
  { section, value }: Readonly<{ section: Section; value: unknown }>,
): Promise<FieldChange[]> {
  const { actor, environment } = context;
  await lockLedgerWhole(tx);
  const settings = await readInForce(tx, context.settings);
  const recorded = [...(await readRecorded(tx))].filter(([field]) => `${field}.`.startsWith(`${section}.`));
  const changes = changesBetween(new Map(recorded), fieldsOf({ [section]: asJson(value) }));
  if (changes.length === 0 && settings.sections?.adopted.includes(section))
    throw refuse('settings_unchanged', { section });
  const file = asJson(statedByFile(context, section));
  const isSame = file === undefined || isDeepStrictEqual(file, asJson(value));
  await recordEvent(tx, actor, {
    ...{ action: ADOPTION, subject: section, now: environment.now().toISO() },
    details: { value, changes, ...(isSame ? {} : { file }) },
  });
  return sectionChanges(section, valueInForce({ ...context, settings }, section), value);
}

/** Adopts the first bank details, because a PDF prints only those that were adopted. */
export async function adoptFirstInstructions(database: Database, context: ActorContext) {
  const { instructions, approvals, sections } = context.settings;
  if (sections?.adopted.includes('instructions') || adoptionRule({ approvals }, 'instructions') !== undefined) return;
  await database.transaction(async (tx) => {
    await lockLedgerWhole(tx);
    const { adopted = [] } = (await readInForce(tx, context.settings)).sections ?? {};
    if (!adopted.includes('instructions'))
      await adoptSection(tx, context, { section: 'instructions', value: instructions });
  });
}
