/** What an action would do: the action itself, in a transaction that is rolled back. */
import { createHash } from 'node:crypto';
import type { PreviewedChange, StoredPreview } from '../approvals/requests.sql.ts';
import { execute, type Transaction } from '../database/transaction.ts';
import { inNames } from '../field-names.ts';
import { Amount, moneyText } from '../money.ts';
import { printable } from '../text-table.ts';
import type { Action, ActionContext, ActionOutcome, Facts, FactsChange, Report } from './action.ts';
import { namesOf } from './command.ts';
import { inputInWords } from './fields.ts';

/** What an action changes, to be compared with what was confirmed or approved. */
interface Figures {
  readonly changes: readonly Change[];
  /** The amounts that thresholds apply to, one for each currency. */
  readonly amounts: readonly Amount[];
}

/** What an action would do now. The report is for people. */
export interface Consequence<Json = unknown> extends Figures {
  readonly report: Report<Json>;
}

export type Change = PreviewedChange;

/** Performs the action. The caller rolls the transaction back. */
export async function consequenceOf<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  input: Input,
): Promise<Consequence<Json>> {
  const undone: ActionContext = { ...context, undone: true };
  const { result, ...figures } = await performSeen(tx, undone, action, input);
  const tried = { input, result, delivered: false, followed: undefined, preview: true };
  return { ...figures, report: await reportOf(tx, undone, action, tried) };
}

/** The action's report, with the interface's names for its fields. */
export async function reportOf<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  done: ActionOutcome<Input, Result, Followed>,
): Promise<Report<Json>> {
  const report = await action.report(tx, context, done);
  return { ...report, text: inNames(report.text, (context.namesOf ?? namesOf)(action)) };
}

/**
 * Performs the action and returns what it changed. The state before is read from another connection once the action is
 * done: uncommitted changes are invisible there, and what changed is locked until the commit. The single transaction of
 * a preview reads it first.
 */
export async function performSeen<Input, Result>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result>,
  input: Input,
): Promise<Figures & { readonly result: Result }> {
  const factsBefore = (reader: Transaction) => action.facts(reader, input, undefined, context);
  const shown = context.undone && (await factsBefore(tx));
  const result = await action.perform(tx, context, input);
  const before = shown ?? (await context.database.reading(factsBefore));
  const seen = { before, after: await action.facts(tx, input, result, context) };
  return { result, changes: changesOf(seen), amounts: action.amounts(seen, input, result) };
}

/** The same within a transaction that continues. */
export async function consequenceAside<Input>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input>,
  input: Input,
): Promise<Consequence> {
  await execute(tx, 'SAVEPOINT aside');
  const consequence = await consequenceOf(tx, context, action, input);
  await execute(tx, 'ROLLBACK TO SAVEPOINT aside');
  await execute(tx, 'RELEASE SAVEPOINT aside');
  return consequence;
}

const amountsOf = ({ amounts }: Pick<Figures, 'amounts'>) =>
  amounts.map((each) => ({ currency: each.currency, amount: each.toString() }));

/**
 * A digest of a preview's figures: a confirmed or approved action is done only if they are the same. A report may name
 * new ids.
 */
export const digestOf = (figures: Figures): string =>
  createHash('sha256')
    .update(JSON.stringify([figures.changes, amountsOf(figures).map(Object.values)]))
    .digest('hex');

/** A preview as a request for approval stores it: the request in words, and what it would do. */
export const storedPreview = <Input>(action: Action<Input>, input: Input, consequence: Consequence): StoredPreview => ({
  title: action.title,
  changes: consequence.changes,
  amounts: amountsOf(consequence),
  text: [...inputInWords(action.input, input).map(printable), '', consequence.report.text].join('\n'),
});

const shown = (value: Amount | string | null | undefined): string | null =>
  value instanceof Amount ? moneyText(value.toString(), value.currency) : (value ?? null);

function changesOf({ before, after }: FactsChange): Change[] {
  const things = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return things.flatMap((of) =>
    fieldsIn(before, after, of)
      .map((field) => ({ of, field, before: shown(before[of]?.[field]), after: shown(after[of]?.[field]) }))
      .filter((change) => change.before !== change.after && !isNothing(before[of], after[of]?.[change.field])),
  );
}

/** Values that a new thing does not have: no amount, no hold. */
const isNothing = (before: object | undefined, after: Amount | string | null | undefined): boolean =>
  before === undefined && (after instanceof Amount ? after.isZero() : after === 'no');

const fieldsIn = (before: Facts, after: Facts, of: string): string[] => [
  ...new Set([...Object.keys(before[of] ?? {}), ...Object.keys(after[of] ?? {})]),
];
