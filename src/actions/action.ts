/**
 * An action: something that a person does to the books, described once for every caller. The command line, the console and
 * approvals all perform it with `runAction` and preview it with `previewAction` (run.ts), so refusals, previews, events and
 * texts are the same for every caller.
 *
 * To add an action:
 * 1. Write the function that does it beside the noun that it changes (`documents/void.ts`). It takes the transaction first,
 *    refuses what is not allowed, and records its audit event.
 * 2. Describe the action in a file of this folder named as its command, `actions/invoice/void.ts`:
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
 *        report: async (tx, context, { input }) => ({ json: …, text: `${input.number} is void.` }),
 *      });
 *
 * 3. Name it in registry.ts. test/actions/registry.test.ts then reports what is missing.
 * 4. Name its command in cli/program.ts: `actionCommand(loadAction('invoice.void'))`. A command that does more than the action
 *    is written by hand in cli/commands/, with `doing` of cli/run-action.ts.
 */
import { z } from 'zod';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import type { NameOf } from '../field-names.ts';
import type { Amount } from '../money.ts';
import type { Reporter } from '../month-end/month-end.ts';
import type { ActorContext } from '../people/audit-events.ts';
import type { Role } from '../people/roles.ts';
import type { Remedy } from '../remedy.ts';
import type { ActionCommand } from './command.ts';

/** Who acts, where, and on which database. */
export interface ActionContext extends ActorContext {
  readonly database: Database;
  /** The width in columns of the terminal that shows the report. Without it, tables are not shortened. */
  readonly width?: number | undefined;
  /** The names for fields in the report or refusal. Default: those of the action's command. */
  readonly namesOf?: ((action: Pick<Action, 'input' | 'command'>) => NameOf) | undefined;
  /** A preview: the transaction is undone. */
  readonly undone?: true | undefined;
  /** A dry run of a command, which also shows what is not possible yet, such as closing a running month. */
  readonly forecast?: boolean | undefined;
}

/** The context of what follows an action, with a listener for deliveries as they happen. */
export interface AfterContext extends ActionContext {
  readonly reporter: Reporter;
}

/** For an action of several transactions. */
interface RunContext extends AfterContext {
  /** The database handle that checks permission before each transaction; all writes of the action go through it. */
  readonly permitted: Database;
  /** Whether to do what follows as well, in the action's own run or in `after`. */
  readonly deliver: boolean;
}

/**
 * What an action changes, by thing and field: `{ 'INV-2026-000176': { status: 'open' } }`. Times and new ids are left
 * out.
 */
export type Facts = Readonly<Record<string, Readonly<Record<string, Amount | string | null>>>>;

export interface FactsChange {
  readonly before: Facts;
  readonly after: Facts;
}

/** What was done. The command prints it, and the console shows its text. */
export interface Report<Json = unknown> {
  readonly json: Json;
  readonly text: string;
  /** Possible next steps: the command line prints commands, the console buttons. */
  readonly remedies?: readonly Remedy[];
  /** Additional remarks, such as what was sent. */
  readonly notes?: readonly string[];
  /** Finance has something left to do: the command exits 4. */
  readonly attention?: boolean;
}

/** An action that was done, or tried in a preview. */
export interface ActionOutcome<Input, Result, Followed> {
  readonly input: Input;
  readonly result: Result;
  /** Whether what follows was done too. If so, anything unsent needs attention. */
  readonly delivered: boolean;
  /** The result of `after`; undefined unless delivered. */
  readonly followed: Followed | undefined;
  readonly preview: boolean;
}

// Methods, not properties, so an action with a specific input type is assignable to Action.
interface Parts<Input, Result, Followed, Json> {
  /** Noun and verb, as its audit event: `invoice.void`. */
  readonly name: string;
  /** In words, as a heading: `Void a document`. */
  readonly title: string;
  /** How its command is typed; if absent, the command is written by hand (cli/commands/). */
  readonly command?: ActionCommand;
  /** The role that may do it. */
  readonly role: Role;
  /** Whether this actor needs no role for it, such as a user ending their own sessions. */
  withoutRole?(tx: Transaction, context: ActionContext, input: Input): Promise<boolean>;
  /** What it acts on: a document's number, a payment's id, a month. */
  subject(input: Input): string;
  /** The partners that it affects. 'all': only for a role that is not limited to partners. */
  partners(tx: Transaction, input: Input, context: ActionContext): Promise<Partners>;
  /** Refuses contradictory fields, before anything is read. */
  check?(input: Input): void;
  /**
   * Reads the files of the input (contents.ts) and refuses what is wrong with them. Users who may not run the action
   * are refused first, so `partners` opens no file. No transaction is open at that time.
   */
  read?(context: ActionContext, input: Input): Promise<unknown>;
  /** Performs it. Refuses what is not allowed. */
  perform(tx: Transaction, context: ActionContext, input: Input): Promise<Result>;
  /**
   * For an action of several transactions, such as a close: runs them all through `context.permitted`. If absent, or if
   * the action was confirmed or approved, `perform` runs in one transaction. A preview always uses `perform`.
   */
  run?(context: RunContext, input: Input): Promise<Result>;
  /** What happens before the transaction, in separate transactions. */
  begin?(context: ActionContext, input: Input): Promise<void>;
  /** What happens right after the transaction: failpoint, payment link. Also when delivery is left to others. */
  committed?(context: AfterContext, done: { readonly input: Input; readonly result: Result }): Promise<void> | void;
  /** What follows then, unless delivery is left to others: e-mails. */
  after?(context: AfterContext, done: { readonly input: Input; readonly result: Result }): Promise<Followed>;
  /**
   * What a preview compares. `result` is undefined before the action; afterwards it names the things that the action
   * made.
   */
  facts(tx: Transaction, input: Input, result: Result | undefined, context: ActionContext): Promise<Facts>;
  /** The money that it moves, for the thresholds of approvals: one amount for each currency. */
  amounts(seen: FactsChange, input: Input, result: Result): readonly Amount[];
  report(tx: Transaction, context: ActionContext, done: ActionOutcome<Input, Result, Followed>): Promise<Report<Json>>;
}

export type Partners = readonly string[] | 'all';

export interface Action<Input = unknown, Result = unknown, Followed = unknown, Json = unknown>
  extends Parts<Input, Result, Followed, Json> {
  readonly input: z.ZodObject & z.ZodType<Input>;
}

/** zod reads an input without fields as one that may have no field at all. */
type InputOf<Shape extends z.core.$ZodShape> = keyof Shape extends never
  ? Record<never, never>
  : z.output<z.ZodObject<Shape, z.core.$strict>>;

interface Definition<Shape extends z.core.$ZodShape, Result, Followed, Json>
  extends Parts<InputOf<Shape>, Result, Followed, Json> {
  readonly input: Shape;
}

export function defineAction<Shape extends z.core.$ZodShape, Result, Followed, Json>(
  definition: Definition<Shape, Result, Followed, Json>,
): Action<InputOf<Shape>, Result, Followed, Json> {
  const input = z.strictObject(definition.input);
  return { ...definition, input } as unknown as Action<InputOf<Shape>, Result, Followed, Json>;
}
