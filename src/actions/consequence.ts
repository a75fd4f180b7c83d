/** What an action would do: the action itself, in a transaction that is undone. */
import { createHash } from 'node:crypto';
import type { PreviewedChange, StoredPreview } from '../approvals/requests.sql.ts';
import { execute, type Transaction } from '../database/transaction.ts';
import { inNames } from '../field-names.ts';
import { Amount, moneyText } from '../money.ts';
import { printable } from '../text-table.ts';
import type { Action, ActionContext, Done, Facts, Report, Seen } from './action.ts';
import { namesOf } from './command.ts';
import { inputInWords } from './fields.ts';

/** What an action changes, as it is compared: with what was confirmed, and with what was approved. */
interface Figures {
  readonly changes: readonly Change[];
  /** What thresholds are compared with; one for each currency. */
  readonly amounts: readonly Amount[];
}

/** What an action would do now. The report is for people. */
export interface Consequence<Json = unknown> extends Figures {
  readonly report: Report<Json>;
}

export type Change = PreviewedChange;

/** Does the action. The caller undoes the transaction. */
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

/** What the action says of itself, with its fields as the face of the context calls them. */
export async function reportOf<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  done: Done<Input, Result, Followed>,
): Promise<Report<Json>> {
  const report = await action.report(tx, context, done);
  return { ...report, text: inNames(report.text, (context.namesOf ?? namesOf)(action)) };
}

/**
 * Does the action, and gives what it changed. What stood before is read when it is done: others still see that, and what the action
 * has changed is locked by then, so that nobody changes it before the commit. The one transaction of a preview reads it first.
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

/** The same within a transaction that goes on. */
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

/** Stands for the figures of a preview: what is confirmed or approved is done only if they are the same. A report may name new ids. */
export const digestOf = (figures: Figures): string =>
  createHash('sha256')
    .update(JSON.stringify([figures.changes, amountsOf(figures).map(Object.values)]))
    .digest('hex');

/** A preview as a request for approval keeps it: what was asked for in words, and what it would do. */
export const storedPreview = <Input>(action: Action<Input>, input: Input, consequence: Consequence): StoredPreview => ({
  title: action.title,
  changes: consequence.changes,
  amounts: amountsOf(consequence),
  text: [...inputInWords(action.input, input).map(printable), '', consequence.report.text].join('\n'),
});

const shown = (value: Amount | string | null | undefined): string | null =>
  value instanceof Amount ? moneyText(value.toString(), value.currency) : (value ?? null);

function changesOf({ before, after }: Seen): Change[] {
  const things = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return things.flatMap((of) =>
    fieldsIn(before, after, of)
      .map((field) => ({ of, field, before: shown(before[of]?.[field]), after: shown(after[of]?.[field]) }))
      .filter((change) => change.before !== change.after && !isNothing(before[of], after[of]?.[change.field])),
  );
}

/** What a new thing does not have: no amount, no hold. */
const isNothing = (before: object | undefined, after: Amount | string | null | undefined): boolean =>
  before === undefined && (after instanceof Amount ? after.isZero() : after === 'no');

const fieldsIn = (before: Facts, after: Facts, of: string): string[] => [
  ...new Set([...Object.keys(before[of] ?? {}), ...Object.keys(after[of] ?? {})]),
];
