/** Doing an act, and showing what it would do. Refusals: argument_invalid, and those of the act. */
import { outdated, type Permission } from '../approvals/ask.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { Refusal } from '../errors/refusals.ts';
import type { NameOf } from '../field-names.ts';
import type { Reporter } from '../month-end/month-end.ts';
import type { Act, ActContext, Report } from './act.ts';
import { namesOf } from './command.ts';
import { type Consequence, consequenceOf, digestOf, performSeen, reportOf } from './consequence.ts';
import { readFields } from './fields.ts';
import { type Agreed, admit, OutdatedPreview, permit } from './permit.ts';

export { OutdatedPreview };

/** The act is done only if it does what was agreed. Throws OutdatedPreview. */
export interface RunOptions extends Agreed {
  /** False leaves e-mails to `reckoner deliver`. */
  readonly deliver?: boolean;
  /** Hears of deliveries as they go. */
  readonly reporter?: Reporter;
  /** Takes what follows, to do it after the report: for callers who cannot wait for e-mails. */
  readonly later?: (follow: () => Promise<unknown>) => void;
}

/** Does an act in its transaction, then what follows it outside, and reports it. */
export async function runAct<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
  options: RunOptions = {},
): Promise<Report<Json>> {
  return naming(context, act, () => runNamed(context, act, given, options));
}

/** Says the fields in a refusal as the act's command does, or the face of the context. */
async function naming<Given>(context: ActContext, act: Naming, work: () => Promise<Given>): Promise<Given> {
  try {
    return await work();
  } catch (error) {
    throw named(error, (context.namesOf ?? namesOf)(act));
  }
}
type Naming = Pick<Act, 'input' | 'command'>;
const named = (error: unknown, nameOf: NameOf): unknown => (error instanceof Refusal ? error.named(nameOf) : error);

async function runNamed<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
  { deliver: follows = true, reporter = {}, approval, shown, later }: RunOptions,
): Promise<Report<Json>> {
  const input = readInput(act, given);
  await readFiles(context, act, input, { isAsked: approval !== undefined });
  await act.begin?.(context, input);
  const heard = { ...context, reporter };
  const deliver = follows && later === undefined;
  const isAgreed = approval !== undefined || shown !== undefined;
  const result =
    act.run && !isAgreed
      ? await act.run({ ...heard, deliver, permitted: permitting(context, act, input) }, input)
      : await performPermitted(context, act, input, { approval, shown });
  await act.committed?.(heard, { input, result });
  if (follows) later?.(async () => act.after?.(heard, { input, result }));
  const followed = deliver ? await act.after?.(heard, { input, result }) : undefined;
  const done = { input, result, delivered: deliver, followed, preview: false };
  return context.database.reading((tx) => reportOf(tx, context, act, done));
}

/** How often an act is begun again because others changed what it does while it was compared. */
const ATTEMPTS = 5;

/** Does an act in one transaction. Where nobody confirmed or approved it, what others changed meanwhile is compared anew. */
async function performPermitted<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  input: Input,
  agreed: Agreed,
): Promise<Result> {
  const isAgreed = agreed.approval !== undefined || agreed.shown !== undefined;
  for (let attempt = 1; ; attempt += 1) {
    let permission: Permission = {};
    const database = permitting(context, act, input, agreed, (given) => {
      permission = given;
    });
    try {
      return await database.transaction((tx) => performAsAgreed(tx, context, act, input, { ...agreed, permission }));
    } catch (error) {
      if (isAgreed || attempt === ATTEMPTS || !(error instanceof OutdatedPreview)) throw error;
    }
  }
}

/** Does the act, and compares what it changed with what was agreed on. Throws before the commit where they differ. */
async function performAsAgreed<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  input: Input,
  { approval, shown, permission }: Agreed & { readonly permission: Permission },
): Promise<Result> {
  const agreed = [shown, permission.digest].filter((each) => each !== undefined);
  if (agreed.length === 0) return act.perform(tx, context, input);
  const { result, ...figures } = await performSeen(tx, context, act, input);
  const digest = digestOf(figures);
  if (agreed.every((each) => each === digest)) return result;
  if (approval === undefined) throw new OutdatedPreview();
  throw outdated(approval.requestId, permission.changes ?? [], figures.changes);
}

/** Does an act in a transaction that is undone. Refuses as the act does. `isAsked`: a request for approval has its input. */
export async function previewAct<Input, Result, Followed, Json>(
  context: ActContext,
  act: Act<Input, Result, Followed, Json>,
  given: Input,
  { isAsked = false }: { isAsked?: boolean } = {},
): Promise<Consequence<Json>> {
  return naming(context, act, async () => {
    const input = readInput(act, given);
    await readFiles(context, act, input, { isAsked });
    return context.database.preview(async (tx) => {
      await admit(tx, context, act, input, { isAsked });
      return consequenceOf(tx, context, act, input);
    });
  });
}

/** Reads the files of an input, for a user who may do the act: other users are refused after one query. */
async function readFiles<Input>(
  context: ActContext,
  act: Act<Input>,
  input: Input,
  asked: { readonly isAsked: boolean },
): Promise<void> {
  if (act.read === undefined) return;
  await context.database.reading((tx) => admit(tx, context, act, input, asked));
  await act.read(context, input);
}

/** The input as the act takes it. Refusals: argument_invalid, and those of the act's check. */
export function readInput<Input>(act: Act<Input>, given: unknown): Input {
  try {
    const input = readFields(act.input, given);
    act.check?.(input);
    return input;
  } catch (error) {
    throw named(error, namesOf(act));
  }
}

/** The database of an act: each of its transactions asks first whether it may. An approval is recorded in the first. */
export function permitting<Input>(
  context: ActContext,
  act: Act<Input>,
  input: Input,
  agreed: Agreed = {},
  onPermitted: (permission: Permission) => void = () => {},
): Database {
  const { database } = context;
  let earlier: Permission | undefined;
  return {
    ...database,
    async transaction(work) {
      const done = await database.transaction(async (tx) => {
        const permission = await permit(tx, context, act, input, { ...agreed, earlier });
        if (permission instanceof Refusal) return { permission };
        onPermitted(permission);
        return { permission, result: await work(tx) };
      });
      if (done.permission instanceof Refusal) throw done.permission;
      earlier ??= done.permission;
      return done.result as Awaited<ReturnType<typeof work>>;
    },
  };
}
