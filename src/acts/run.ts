/** Doing an act, and showing what it would do. Refusals: argument_invalid, and those of the act. */
import { fieldProblems } from '../config/validation.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { type Refusal, refuse } from '../errors/refusals.ts';
import type { Reporter } from '../month-end/month-end.ts';
import type { Act, ActContext, Report } from './act.ts';
import { type Consequence, consequenceOf, digestOf, performWithConsequence } from './consequence.ts';
import { type Approval, admit, permit } from './permit.ts';

export interface RunOptions {
  /** False leaves e-mails to `reckoner deliver`. */
  readonly deliver?: boolean;
  /** Hears of deliveries as they go. */
  readonly reporter?: Reporter;
  /** A second person approves: the act is that of whoever asked for it. */
  readonly approval?: Approval | undefined;
  /** The digest of the preview that was confirmed: the act is done only if it does the same. Throws OutdatedPreview. */
  readonly shown?: string | undefined;
  /** Takes what follows, to do it after the report: for callers who cannot wait for e-mails. */
  readonly later?: (follow: () => Promise<unknown>) => void;
}

/** The act would do something else than its preview showed. Nothing was done. */
export class OutdatedPreview extends Error {}

/** Does an act in its transaction, then what follows it outside, and reports it. */
export async function runAct<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
  { deliver: follows = true, reporter = {}, approval, shown, later }: RunOptions = {},
): Promise<Report<Json>> {
  const input = readInput(act, given);
  const heard = { ...context, reporter };
  const deliver = follows && later === undefined;
  const permitted = permitting(context, act, input, approval);
  const result = act.run
    ? await act.run({ ...heard, permitted, deliver }, input)
    : await permitted.transaction((tx) => performAsShown(tx, context, act, input, shown));
  await act.committed?.(context, { input, result });
  if (follows) later?.(async () => act.after?.(heard, { input, result }));
  const followed = deliver ? await act.after?.(heard, { input, result }) : undefined;
  const done = { input, result, delivered: deliver, followed, preview: false };
  return context.database.reading((tx) => act.report(tx, context, done));
}

/** Compared after it was done: what others changed until then is part of it. */
async function performAsShown<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  input: Input,
  shown: string | undefined,
): Promise<Result> {
  if (shown === undefined) return act.perform(tx, context, input);
  const { consequence, result } = await performWithConsequence(tx, context, act, input);
  if (digestOf(consequence) !== shown) throw new OutdatedPreview();
  return result;
}

/** Does an act in a transaction that is undone. Refuses as the act does. `isAsked`: a request for approval has its input. */
export function previewAct<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
  { isAsked = false }: { isAsked?: boolean } = {},
): Promise<Consequence<Json>> {
  const input = readInput(act, given);
  return context.database.preview(async (tx) => {
    await admit(tx, context, act, input, { isAsked });
    return consequenceOf(tx, context, act, input);
  });
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
export const optionOf = (field: string): string =>
  `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** The database of an act: each of its transactions asks first whether it may. An approval is recorded in the first. */
export function permitting<Input>(context: ActContext, act: Act<Input>, input: Input, approval?: Approval): Database {
  const { database } = context;
  let isRecorded = false;
  return {
    ...database,
    async transaction(work) {
      const done = await database.transaction(async (tx) => {
        const refusal = await permit(tx, context, act, input, approval && { ...approval, isRecorded });
        return refusal === undefined ? { result: await work(tx) } : { refusal };
      });
      if ('refusal' in done) throw done.refusal satisfies Refusal;
      isRecorded = true;
      return done.result;
    },
  };
}
