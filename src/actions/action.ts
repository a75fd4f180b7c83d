/**
 * The definition of an action, which changes the books. The command line, the console and approvals perform an action
 * with `runAction` and preview it with `previewAction` (run.ts). All callers therefore get the same refusals, previews,
 * events and texts.
 *
 * To add an action:
 * 1. Write the function that changes the books, in the folder of its noun (`documents/void.ts`). The function's first
 *    parameter is the transaction. The function refuses what is not allowed, and records the audit event.
 * 2. Define the action in a file named as its command, `actions/invoice/void.ts`:
 *
 *      export const invoiceVoid = defineAction({
 *        name: 'invoice.void',              // as its audit event; a noun and a verb
 *        title: 'Void a document',
 *        command: { arguments: { number: '<number>' } },  // command.ts; the other fields are options
 *        role: 'finance',
 *        input: { number: documentNumber(), reason: reason() },   // fields.ts: each has a label, a help, a kind
 *        subject: ({ number }) => number,
 *        partners: (tx, { number }) => partnersOfDocuments(tx, [number]),
 *        perform: (tx, context, { number, reason }) => voidDocument(tx, context, { number, reason }),
 *        facts: (tx, { number }) => documentFacts(tx, [number]),  // what a preview compares before and after
 *        amounts: ({ before }, { number }) => amountsIn(before, [number], 'amount'),
 *        after: async (context, { input }) => deliver(context, [input.number]),
 *        report: async ({ input }) => ({ json: …, text: `${input.number} is void.` }),
 *      });
 *
 * 3. Add the action to registry.ts. test/actions/registry.test.ts then reports missing parts.
 * 4. Add the action's name to cli/program.ts, which makes its command. If a command does more than the action, write the
 *    command by hand in cli/commands/, with `doing` of cli/run-action.ts.
 */
import { z } from 'zod';
import { Adjustment } from '#approvals/amounts-before';
import { Block } from '#blocks';
import { ApprovalRule } from '#config/settings';
import { todayOf } from '#config/today';
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { NameOf } from '#field-names';
import { Amount } from '#money';
import { Reporter } from '#month-end/month-end';
import { ActorContext } from '#people/audit-events';
import { Role } from '#people/roles';
import { Remedy } from '#remedy';
import { ActionCommand } from './command.ts';

export * from './fields.ts';

export type ActionContext = ActorContext &
  Readonly<{
    database: Database;
    /** The terminal's width in columns. Without a width, the report's tables are not shortened. */
    width?: number | undefined;
    /** The names of input fields in reports and refusals. The default is the names that the action's command uses. */
    namesOf?: ((action: Pick<Action, 'input' | 'command'>) => NameOf) | undefined;
    /** This is set in a preview, whose transaction is rolled back. */
    undone?: true | undefined;
    /**
     * This is set in a dry run or the console's preview, which also shows what is not possible yet, such as closing the current month.
     */
    forecast?: boolean | undefined;
  }>;

/** The context for the steps after an action's transaction, with a listener for deliveries. */
export type AfterContext = ActionContext &
  Readonly<{
    reporter: Reporter;
  }>;

/** The context of an action with several transactions. */
type RunContext = AfterContext &
  Readonly<{
    /** The database handle for all writes of the action, which checks permission before each transaction. */
    permitted: Database;
    /** Whether the action also sends e-mails, in `run` or in `after`. */
    deliver: boolean;
  }>;

/**
 * The fields that an action changes, grouped by thing: `{ 'INV-2026-000176': { status: 'open' } }`. Times and new ids
 * are left out.
 */
export type Facts = Readonly<Record<string, Readonly<Record<string, Amount | string | null>>>>;

export type FactsChange = Readonly<{
  before: Facts;
  after: Facts;
}>;

/** The result of an action, which the command prints and the console shows. */
export type Report<Json = unknown> = Readonly<{
  json: Json;
  /** Sentences. `reportOf` appends the blocks as text. */
  text: string;
  /** What the console draws beside the sentences. */
  blocks?: readonly Block[];
  /** In a preview, what the confirming button says, such as `Void INV-2026-000012`. Default: the action's title. */
  button?: string;
  /** In a preview, why the action would be refused now. */
  refusal?: Refusal | undefined;
  /** Possible next steps; `Undo` comes first. The command line prints commands, and the console shows buttons. */
  remedies?: readonly Remedy[];
  /** Further remarks, such as which e-mails were sent. */
  notes?: readonly string[];
  /** Whether finance must do something more, so that the command exits with 4. */
  attention?: boolean;
}>;

export type ActionOutcome<Input, Result, Followed> = Readonly<{
  input: Input;
  result: Result;
  /**
   * Whether the run sent the action's e-mails. If the run sent e-mails, any e-mail that is still unsent needs
   * attention.
   */
  delivered: boolean;
  /** The result of `after`. The result is undefined if e-mails were left to the job `deliver`. */
  followed: Followed | undefined;
  preview: boolean;
}>;

export type FormPart = Readonly<{
  title: string;
  fields: readonly string[];
  /** Fields that only this form requires, because the record must have them. */
  required?: readonly string[];
  /** Values that the form sends and does not show. */
  set?: Readonly<Record<string, string>>;
}>;

export type FormValues = Readonly<Record<string, string | readonly string[]>>;

/** Returns whether an action may record the result that it foresees. */
export type Agree<Result> = (foreseen: Result) => Promise<boolean>;

// These are methods and not properties, so that an action with a specific input type is assignable to Action.
type Parts<Input, Result, Followed, Json> = Readonly<{
  /** A noun and a verb, as in its audit event: `invoice.void`. */
  name: string;
  /** A heading such as `Void a document`. */
  title: string;
  /** The words of the action's command. An action without such words has a command written by hand (cli/commands/). */
  command?: ActionCommand;
  role: Role;
  /** A second role that may do it with some inputs, which `withoutRole` decides. */
  otherRole?: Role;
  /** It takes something away that people rely on, so the confirming button looks dangerous. */
  danger?: true;
  /** The console requires a recent sign-in, because the action gives access or redirects money. */
  needsProof?: true;
  /** The action whose approval rule also applies to this one. */
  ruledAs?: string;
  /**
   * Forms with some of the fields, by name; the first is the default. A form of a known thing is filled with what is in
   * force, and an empty field clears it. The fields that the address names are fixed.
   */
  forms?: Readonly<Record<string, FormPart>>;
  /** The values in force, or those that are nearly always right; undefined for a new thing. */
  filled?(tx: Transaction, context: ActionContext, given: URLSearchParams): Promise<FormValues | undefined>;
  /** Returns whether the actor needs no role, such as a user who ends their own sessions. */
  withoutRole?(tx: Transaction, context: ActionContext, input: Input): Promise<boolean>;
  /** The subject: a document's number, a payment's id or a month. */
  subject(input: Input): string;
  /** It may void documents. Its facts then have their `status`, and the rule for voiding applies to it, too. */
  voids?: true;
  /** Its own approval rule, if it depends on the input. The default is the rule of its name. */
  rule?(context: ActionContext, input: Input): ApprovalRule | undefined;
  /** The partners affected. The default is 'all', which requires a role that is not limited to partners. */
  partners?(tx: Transaction, input: Input, context: ActionContext): Promise<Partners>;
  /** Refuses contradictory fields before anything is read. */
  check?(input: Input): void;
  /**
   * Reads the files of the input (contents.ts) outside a transaction, and refuses invalid files. Users who may not do
   * the action are refused before files are read, so `partners` must not open files.
   */
  read?(context: ActionContext, input: Input): Promise<unknown>;
  /**
   * An action with `requestOf` calls `agree` with its result before it records anything. If the answer is no, the
   * action records nothing.
   */
  perform(tx: Transaction, context: ActionContext, input: Input, agree?: Agree<Result>): Promise<Result>;
  /**
   * Runs an action with several transactions, such as a close, through `context.permitted`. Previews, confirmed actions
   * and approved actions use `perform` instead.
   */
  run?(context: RunContext, input: Input): Promise<Result>;
  /** Runs before the action's transaction, in separate transactions. */
  begin?(context: ActionContext, input: Input): Promise<void>;
  /**
   * Runs right after the transaction, even if the job `deliver` sends the e-mails later. Used for failpoints and
   * payment links.
   */
  committed?(context: AfterContext, done: Readonly<{ input: Input; result: Result }>): Promise<void> | void;
  /** Sends e-mails after `committed`, unless e-mails are left to the job `deliver`. */
  after?(context: AfterContext, done: Readonly<{ input: Input; result: Result }>): Promise<Followed>;
  /**
   * The facts that a preview compares. `result` is undefined before the action. After the action, `result` names the
   * new things that the action created.
   */
  facts(tx: Transaction, input: Input, result: Result | undefined, context: ActionContext): Promise<Facts>;
  /**
   * The amounts of money that the action moves, one for each currency; by default, none. Approval rules compare these
   * amounts with thresholds.
   */
  amounts?(seen: FactsChange, input: Input, result: Result): readonly Amount[];
  /**
   * What the action takes from our share, or no longer claims, by partner: granted reversals, credit, write-offs, small
   * differences. The actions that have this function share the approval rule `adjustments`, which adds up their amounts
   * over all users. checks.sql recomputes the amounts from the facts of these actions (table `adjustments`).
   */
  adjusts?(tx: Transaction, seen: FactsChange, input: Input, result: Result): Promise<readonly Adjustment[]>;
  /**
   * Set if `perform` takes the importers' lock. The lock is then taken before amounts are compared, as in an import of
   * rows. A different order could deadlock.
   */
  locksImporters?: true;
  /**
   * For an action whose input is too large to be kept, or to be read twice. A request for approval keeps what this
   * function returns, instead of the input. The approval does not perform the action: the requester repeats it with the
   * same input.
   */
  requestOf?(input: Input, foreseen: Result): unknown;
  report(done: ActionOutcome<Input, Result, Followed>, context: ActionContext, tx: Transaction): Promise<Report<Json>>;
}>;

export type Partners = readonly string[] | 'all';

export type Action<Input = unknown, Result = unknown, Followed = unknown, Json = unknown> = Parts<
  Input,
  Result,
  Followed,
  Json
> &
  Readonly<{
    input: z.ZodObject & z.ZodType<Input>;
    partners: NonNullable<Parts<Input, Result, Followed, Json>['partners']>;
  }>;

/** zod types an input without fields as an object that cannot have any field. */
export type InputOf<Shape extends z.core.$ZodShape> = keyof Shape extends never
  ? Record<never, never>
  : z.output<z.ZodObject<Shape, z.core.$strict>>;

export const OF_PARTNER = {
  subject: ({ partnerId }: { readonly partnerId: string }) => partnerId,
  partners: async (_tx: Transaction, { partnerId }: { readonly partnerId: string }) => [partnerId],
};

/** For a form whose day `on` is nearly always today. */
export const ON_TODAY = { filled: async (_tx: Transaction, context: ActionContext) => ({ on: todayOf(context) }) };

export type Definition<Shape extends z.core.$ZodShape, Result, Followed, Json> = Parts<
  InputOf<Shape>,
  Result,
  Followed,
  Json
> &
  Readonly<{
    input: Shape;
  }>;

export function defineAction<Shape extends z.core.$ZodShape, Result, Followed, Json>(
  definition: Definition<Shape, Result, Followed, Json>,
) {
  const input = z.strictObject(definition.input);
  return { partners: async () => 'all', ...definition, input } as unknown as Action<
    InputOf<Shape>,
    Result,
    Followed,
    Json
  >;
}
