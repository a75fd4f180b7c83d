import { outdated, Permission } from '#approvals/ask';
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { NameOf } from '#field-names';
import { ForeseenEmails } from '#month-end/foresee-emails';
import { Reporter } from '#month-end/month-end';
import { scopeOf } from '#people/roles';
import { Action, ActionContext, Agree, fieldsOf, readFields } from './action.ts';
import { namesOf } from './command.ts';
import { Consequence, consequenceOf, digestOf, FullReport, performSeen, reportOf } from './consequence.ts';
import { withPartnerIds } from './partner-names.ts';
import { Agreement, admit, approversNeeded, OutdatedPreview, permit, permitForeseen } from './permit.ts';

export { OutdatedPreview };

/** If the action's effect differs from the agreed effect, the run throws OutdatedPreview. */
export type RunOptions = Agreement &
  Readonly<{
    /** If false, e-mails are left to `reckoner deliver`. */
    deliver?: boolean;
    reporter?: Reporter;
    /**
     * Receives the function that sends e-mails, and calls this function after the report. This option is for callers that
     * cannot wait for e-mails.
     */
    later?: (follow: () => Promise<unknown>) => void;
  }>;

/** Performs an action in its transaction, sends e-mails after the transaction, and reports both. */
export async function runAction<Input, Result, Followed, Json>(
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  given: Input,
  options: RunOptions = {},
): Promise<FullReport<Json>> {
  return naming(context, action, () => runNamed(context, action, given, options));
}

/** In a refusal, names each field by the name that the action's command or the context's interface uses. */
async function naming<Given>(context: ActionContext, action: Naming, work: () => Promise<Given>) {
  try {
    return await work();
  } catch (error) {
    throw named(error, (context.namesOf ?? namesOf)(action));
  }
}
type Naming = Pick<Action, 'input' | 'command'>;
const named = (error: unknown, nameOf: NameOf) => (error instanceof Refusal ? error.named(nameOf) : error);

async function runNamed<Input, Result, Followed, Json>(
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  given: Input,
  { deliver: follows = true, reporter = {}, approval, shown, later }: RunOptions,
) {
  const input = await readNamed(context, action, given);
  await readFiles(context, action, input, { isAsked: approval !== undefined });
  if (action.begin !== undefined) {
    await context.database.reading((tx) => admit(tx, context, action, input, { isAsked: approval !== undefined }));
    await action.begin(context, input);
  }
  const heard = { ...context, reporter };
  const deliver = follows && later === undefined;
  const isAgreed = approval !== undefined || shown !== undefined;
  const result =
    action.run && !isAgreed
      ? await action.run({ ...heard, deliver, permitted: permitting(context, action, input) }, input)
      : await performPermitted(context, action, input, { approval, shown });
  await action.committed?.(heard, { input, result });
  if (follows) later?.(async () => action.after?.(heard, { input, result }));
  const followed = deliver ? await action.after?.(heard, { input, result }) : undefined;
  const done = { input, result, delivered: deliver, followed, preview: false };
  return context.database.reading((tx) => reportOf(tx, context, action, done));
}

/** The most attempts to perform an action whose effect keeps changing through concurrent actions. */
const ATTEMPTS = 5;

/**
 * Performs an action in one transaction. If concurrent changes alter the effect of an action that was neither confirmed
 * nor approved, the action is retried.
 */
async function performPermitted<Input, Result, Followed, Json>(
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  input: Input,
  agreed: Agreement,
) {
  const isAgreed = agreed.approval !== undefined || agreed.shown !== undefined;
  for (let attempt = 1; ; attempt += 1) {
    let permission: Permission = {};
    const database = permitting(context, action, input, agreed, (given) => {
      permission = given;
    });
    let asked = undefined as Refusal | undefined;
    try {
      const result = await database.transaction((tx) => {
        const agree = async (foreseen: Result) => {
          const answer = await permitForeseen(tx, context, action, input, foreseen);
          asked = answer instanceof Refusal ? answer : undefined;
          return asked === undefined;
        };
        return performAsAgreed(tx, context, action, input, { ...agreed, permission, agree });
      });
      // The request for approval is committed by now.
      if (asked !== undefined) throw asked;
      return result;
    } catch (error) {
      if (isAgreed || attempt === ATTEMPTS || !(error instanceof OutdatedPreview)) throw error;
    }
  }
}

/** Performs the action, and throws before the commit if its changes differ from the agreed changes. */
async function performAsAgreed<Input, Result, Followed, Json>(
  tx: Transaction,
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  input: Input,
  { approval, shown, permission, agree }: Agreement & Readonly<{ permission: Permission; agree: Agree<Result> }>,
) {
  const agreed = [shown, permission.digest].filter((each) => each !== undefined);
  if (agreed.length === 0) return action.perform(tx, context, input, agree);
  const { result, ...figures } = await performSeen(tx, context, action, input, agree);
  const digest = digestOf(figures);
  if (agreed.every((each) => each === digest)) return result;
  if (approval === undefined) throw new OutdatedPreview();
  throw outdated(approval.requestId, permission.changes ?? [], figures.changes);
}

/** What an action would do now, whom it would write to, and who would have to approve it. */
export type Preview<Json = unknown> = Consequence<Json> &
  Readonly<{
    emails: readonly ForeseenEmails[];
    /** The logins of those who could approve it, if it needs approval. */
    approvers: readonly string[];
  }>;

/**
 * Performs an action in a transaction that is rolled back. Refuses what the action refuses. `isAsked` means that the
 * input comes from a request for approval.
 */
export async function previewAction<Input, Result, Followed, Json>(
  context: ActionContext,
  action: Action<Input, Result, Followed, Json>,
  given: Input,
  { isAsked = false }: { isAsked?: boolean } = {},
): Promise<Preview<Json>> {
  return naming(context, action, async () => {
    const input = await readNamed(context, action, given);
    await readFiles(context, action, input, { isAsked });
    const { whileForeseeingEmails } = await import('#month-end/foresee-emails');
    return context.database.preview(async (tx) => {
      await admit(tx, context, action, input, { isAsked });
      const { result: consequence, emails } = await whileForeseeingEmails(tx, context, () =>
        consequenceOf(tx, context, action, input),
      );
      return { ...consequence, emails, approvers: await approversNeeded(tx, context, action, input, consequence) };
    });
  });
}

/** Reads the files of an input. Users who may not do the action are refused before any file is read. */
async function readFiles<Input>(
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  asked: { readonly isAsked: boolean },
) {
  if (action.read === undefined) return;
  await context.database.reading((tx) => admit(tx, context, action, input, asked));
  await action.read(context, input);
}

/** Parses an input. Refusals: argument_invalid, and those of the action's check. */
export function readInput<Input>(action: Action<Input>, given: unknown): Input {
  try {
    const input = readFields(action.input, given);
    action.check?.(input);
    return input;
  } catch (error) {
    throw named(error, namesOf(action));
  }
}

/** Parses an input, in which partners may be named by name among those that the user may act on. */
export const readNamed = <Input>(context: ActionContext, action: Action<Input>, given: unknown): Promise<Input> =>
  naming(context, action, async () => {
    const input = readInput(action, given);
    if (!fieldsOf(action.input).some(({ kind }) => kind === 'partner')) return input;
    const { user } = context.actor;
    const scope = user === undefined ? null : scopeOf(user, action.role);
    return context.database.reading((tx) => withPartnerIds(tx, action.input, input, scope === undefined ? [] : scope));
  });

/**
 * Returns a database handle that checks permission in each of the action's transactions. The first of these
 * transactions records an approval.
 */
export function permitting<Input>(
  context: ActionContext,
  action: Action<Input>,
  input: Input,
  agreed: Agreement = {},
  onPermitted: (permission: Permission) => void = () => {},
): Database {
  const { database } = context;
  let earlier: Permission | undefined;
  return {
    ...database,
    async transaction(work) {
      const done = await database.transaction(async (tx) => {
        const permission = await permit(tx, context, action, input, { ...agreed, earlier });
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
