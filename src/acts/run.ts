/** Doing an act, and showing what it would do. Refusals: argument_invalid, and those of the act. */
import { fieldProblems } from '../config/validation.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { type Refusal, refuse } from '../errors/refusals.ts';
import { Amount } from '../money.ts';
import type { Reporter } from '../month-end/month-end.ts';
import type { Act, ActContext, Facts, Report, Seen } from './act.ts';
import { admit, permit } from './permit.ts';

export interface RunOptions {
  /** False leaves e-mails to `reckoner deliver`. */
  readonly deliver?: boolean;
  /** Hears of deliveries as they go. */
  readonly reporter?: Reporter;
}

/** Does an act in its transaction, then what follows it outside, and reports it. */
export async function runAct<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
  { deliver = true, reporter = {} }: RunOptions = {},
): Promise<Report<Json>> {
  const input = readInput(act, given);
  const heard = { ...context, reporter };
  const permitted = permitting(context, act, input);
  const result = act.run
    ? await act.run({ ...heard, permitted, deliver }, input)
    : await permitted.transaction((tx) => act.perform(tx, context, input));
  await act.committed?.(context, { input, result });
  const followed = deliver ? await act.after?.(heard, { input, result }) : undefined;
  const done = { input, result, delivered: deliver, followed, preview: false };
  return context.database.reading((tx) => act.report(tx, context, done));
}

/** What an act would do now. Approvals compare the changes and the amounts; the report is for people. */
export interface Consequence<Json = unknown> {
  readonly report: Report<Json>;
  readonly changes: readonly Change[];
  /** What thresholds are compared with; one for each currency. */
  readonly amounts: readonly Amount[];
}

/** One field of one thing, before and after; null where there is none. */
export interface Change {
  readonly of: string;
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Does an act in a transaction that is undone. Refuses as the act does. */
export function previewAct<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
): Promise<Consequence<Json>> {
  const input = readInput(act, given);
  return context.database.preview(async (tx) => {
    await admit(tx, context, act, input);
    return consequenceOf(tx, context, act, input);
  });
}

/** The same within a transaction that the caller undoes, as by a savepoint. */
export async function consequenceOf<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  input: Input,
): Promise<Consequence<Json>> {
  const before = await act.facts(tx, input, undefined, context);
  const result = await act.perform(tx, context, input);
  const after = await act.facts(tx, input, result, context);
  const tried = { input, result, delivered: false, followed: undefined, preview: true };
  const report = await act.report(tx, context, tried);
  const seen = { before, after };
  return { report, changes: changesOf(seen), amounts: act.amounts(seen, input, result) };
}

/** The input as the act takes it. Refuses what cannot be read by the name of its option. */
export function readInput<Input>(act: Act<Input>, given: unknown): Input {
  const read = act.input.safeParse(given);
  if (read.success) {
    act.check?.(read.data);
    return read.data;
  }
  const [{ path, reason } = { path: '', reason: '' }] = fieldProblems(read.error);
  const value = (given as Record<string, unknown> | null)?.[path];
  throw refuse('argument_invalid', {
    argument: optionOf(path),
    value: value === undefined ? '' : String(value),
    reason,
  });
}

/** `--received-on` of `receivedOn`. */
const optionOf = (field: string): string => `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** The database of an act: each of its transactions asks first whether it may. */
function permitting<Input>(context: ActContext, act: Act<Input>, input: Input): Database {
  const { database } = context;
  return {
    ...database,
    async transaction(work) {
      const done = await database.transaction(async (tx) => {
        const refusal = await permit(tx, context, act, input);
        return refusal === undefined ? { result: await work(tx) } : { refusal };
      });
      if ('refusal' in done) throw done.refusal satisfies Refusal;
      return done.result;
    },
  };
}

const shown = (value: Amount | string | null | undefined): string | null =>
  value instanceof Amount ? value.forPeople() : (value ?? null);

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
