/** Computes an action's effect by performing it in a transaction that is rolled back. */
import { createHash } from 'node:crypto';
import { Adjustment } from '#approvals/amounts-before';
import { PreviewedChange, StoredPreview } from '#approvals/requests.sql';
import { blocksText } from '#blocks';
import { execute, Transaction } from '#database/transaction';
import { inNames } from '#field-names';
import { printable } from '#text-table';
import { Amount, moneyText, plural } from '#values';
import { Action, ActionContext, ActionOutcome, Agree, Facts, FactsChange, inputInWords, Report } from './action.ts';
import { namesOf } from './command.ts';

/** The figures of a preview, which are compared with those of the confirmed or approved action. */
type Figures = Readonly<{
  changes: readonly Change[];
  /** One amount for each currency, for the thresholds of approval rules. */
  amounts: readonly Amount[];
  /** One amount above zero for each partner and currency, for the rule for adjustments. */
  adjustments: readonly Adjustment[];
}>;

/** The effect that an action would have now, with a report for people. */
export type Consequence<Json = unknown> = Figures &
  Readonly<{
    report: FullReport<Json>;
  }>;

export type Change = PreviewedChange;

/** Performs the action and returns its effect. The caller must roll back. */
export async function consequenceOf<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  input: Input,
): Promise<Consequence<Json>> {
  const undone: ActionContext = { ...context, undone: true };
  const { result, ...figures } = await performSeen(tx, undone, action, input);
  return { ...figures, report: await reportOf(tx, undone, action, tried(input, result)) };
}

/** Returns the effect of an action that foresees its result and has recorded nothing yet. */
export async function consequenceForeseen<Input, Result>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result>,
  input: Input,
  result: Result,
): Promise<Consequence> {
  const undone: ActionContext = { ...context, undone: true };
  const before = await action.facts(tx, input, undefined, undone);
  const figures = await figuresOf(tx, undone, action, input, { before, result });
  return { ...figures, report: await reportOf(tx, undone, action, tried(input, result)) };
}

const tried = <Input, Result>(input: Input, result: Result) => ({
  ...{ input, result, delivered: false, followed: undefined, preview: true },
});

/** Returns the action's report, with the interface's own names for fields. */
export async function reportOf<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  done: ActionOutcome<Input, Result, Followed>,
): Promise<FullReport<Json>> {
  const report = await action.report(done, context, tx);
  const { text, blocks = [], refusal } = report;
  const nameOf = (context.namesOf ?? namesOf)(action);
  const named = (words: string) => inNames(words, nameOf);
  const full = blocks.length === 0 ? text : `${text}\n\n${blocksText(blocks, context.width)}`;
  return { ...report, refusal: refusal?.named(nameOf), sentences: named(text), text: named(full) };
}

/** A report whose text contains its blocks. */
export type FullReport<Json = unknown> = Report<Json> & { readonly sentences: string };

/**
 * Performs the action and returns its changes. A preview reads the state before the action first, in the same
 * transaction. Outside a preview, the state before the action is read after the action, on another connection, which
 * does not see uncommitted changes. Changed rows are locked until the commit, so the state read there is current.
 */
export async function performSeen<Input, Result>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result>,
  input: Input,
  agree?: Agree<Result>,
): Promise<Figures & { readonly result: Result }> {
  const factsBefore = (reader: Transaction) => action.facts(reader, input, undefined, context);
  const shown = context.undone && (await factsBefore(tx));
  const result = await action.perform(tx, context, input, agree);
  // The owner's connection is never held by a transaction that waits. If transactions that wait for this one hold all
  // other connections, this one still ends.
  const before = shown ?? (await context.database.asOwner(factsBefore, { readOnly: true }));
  return { result, ...(await figuresOf(tx, context, action, input, { before, result })) };
}

async function figuresOf<Input, Result>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result>,
  input: Input,
  { before, result }: Readonly<{ before: Facts; result: Result }>,
): Promise<Figures> {
  const seen = { before, after: await action.facts(tx, input, result, context) };
  return {
    changes: changesOf(seen),
    amounts: action.amounts?.(seen, input, result) ?? [],
    adjustments: summed((await action.adjusts?.(tx, seen, input, result)) ?? []),
  };
}

function summed(adjustments: readonly Adjustment[]) {
  const sums = new Map<string, Adjustment>();
  for (const { partner, amount } of adjustments) {
    const name = `${partner} ${amount.currency}`;
    sums.set(name, { partner, amount: sums.get(name)?.amount.plus(amount) ?? amount });
  }
  return [...sums.keys()]
    .sort()
    .map((name) => sums.get(name) as Adjustment)
    .filter(({ amount }) => amount.isPositive());
}

/** Computes the effect and rolls back to a savepoint, so that the caller's transaction can continue. */
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

const amountsOf = (amounts: readonly Amount[]) =>
  amounts.map((each) => ({ currency: each.currency, amount: each.toString() }));

/**
 * Returns a digest of a preview's figures. A confirmed or approved action is done only if the digest is the same. The
 * digest does not cover the report, because a report may name new ids.
 */
export const digestOf = ({ changes, amounts, adjustments }: Figures) =>
  createHash('sha256')
    .update(
      JSON.stringify([
        changes,
        amountsOf(amounts).map(Object.values),
        ...(adjustments.length === 0 ? [] : [adjustments.map(({ partner, amount }) => [partner, amount.forPeople()])]),
      ]),
    )
    .digest('hex');

const ADJUSTMENTS_SHOWN = 20;

/** Returns the preview that a request for approval stores: the input in words, and the action's effect. */
export const storedPreview = <Input>(action: Action<Input>, input: Input, consequence: Consequence): StoredPreview => {
  const { changes, amounts, adjustments, report } = consequence;
  const adjusted = adjustments
    .slice(0, ADJUSTMENTS_SHOWN)
    .map(({ partner, amount }) => `Adjusted for ${partner}: ${amount.forPeople()}`);
  const more = adjustments.length - adjusted.length;
  return {
    ...{ title: action.title, changes, amounts: amountsOf(amounts.filter((each) => !each.isZero())) },
    text: [
      ...inputInWords(action.input, input).map(printable),
      ...adjusted,
      ...(more > 0 ? [`and for ${plural(more, 'more partner')}`] : []),
      ...(action.requestOf ? ['After the approval, the requester repeats this with the same files.'] : []),
      '',
      report.text,
    ].join('\n'),
    ...(action.requestOf && { repeats: true }),
  };
};

const shown = (value: Amount | string | null | undefined) =>
  value instanceof Amount ? moneyText(value.toString(), value.currency) : (value ?? null);

function changesOf({ before, after }: FactsChange): Change[] {
  const things = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return things.flatMap((of) =>
    fieldsIn(before, after, of)
      .map((field) => ({ of, field, before: shown(before[of]?.[field]), after: shown(after[of]?.[field]) }))
      .filter((change) => change.before !== change.after && !isNothing(before[of], after[of]?.[change.field])),
  );
}

/** Returns whether a field of a new thing has its default value, such as no amount or no hold. */
const isNothing = (before: object | undefined, after: Amount | string | null | undefined) =>
  before === undefined && (after instanceof Amount ? after.isZero() : after === 'no');

const fieldsIn = (before: Facts, after: Facts, of: string) => [
  ...new Set([...Object.keys(before[of] ?? {}), ...Object.keys(after[of] ?? {})]),
];
