/**
 * An action on one thing as an action on several: `invoice void INV-2026-000001 INV-2026-000002`, or what is ticked in a
 * list. Each thing gets its own event. All happens in one transaction, so a kill leaves either all done or none. What is
 * refused is left out and named, unless it is the only one.
 */
import type { z } from 'zod';
import { execute, type Transaction } from '../database/transaction.ts';
import { Refusal } from '../errors/refusals.ts';
import { type Remedy, sameRemedies } from '../remedy.ts';
import { inShort, plural } from '../values.ts';
import {
  type Action,
  type ActionContext,
  type ActionOutcome,
  type AfterContext,
  type Definition,
  defineAction,
  type Facts,
  type FactsChange,
  type InputOf,
  oneOrMore,
  type Partners,
  type Report,
} from './action.ts';
import type { Block } from './blocks.ts';
import { deliver, documentFacts, partnersOfDocuments, sizesOf } from './documents.ts';

/** What an action is done to, named by its field `field`. */
type Things<Field extends string, Key> = Readonly<{
  field: Field;
  /** The singular noun, such as `document`. */
  one: string;
  /** The name of a thing in the facts of a preview. */
  nameOf(key: Key): string;
  /** The page of a thing, if it has one. */
  page?(key: Key): string;
  partners(tx: Transaction, keys: readonly Key[]): Promise<Partners>;
  facts(tx: Transaction, keys: readonly Key[]): Promise<Facts>;
}>;

type Outcome<Key, Result> = Readonly<{ key: Key } & ({ result: Result } | { refused: Refusal })>;
type Done<Key, Result> = Readonly<{ key: Key; result: Result }>;

type ShapeOfOne<Field extends string, Key> = z.core.$ZodShape & Readonly<Record<Field, z.ZodType<Key>>>;

type Single<Key, Shape extends z.core.$ZodShape, Result, Json> = Omit<
  Definition<Shape, Result, unknown, Json>,
  'after' | 'facts' | 'begin' | 'run' | 'read' | 'requestOf' | 'withoutRole' | 'subject' | 'partners' | 'rule'
> &
  Readonly<{
    /** The documents that the action may have made ready to be sent. */
    sends?: (input: InputOf<Shape>, result: Result) => readonly string[];
    /** Sends what the action made ready, if these are not documents. */
    follow?: (context: AfterContext, results: readonly Result[]) => Promise<unknown>;
    /** The facts of the things, if not those of their kind. */
    facts?: (tx: Transaction, keys: readonly Key[]) => Promise<Facts>;
    /** The facts of what the action makes, beside those of the things. */
    made?: (tx: Transaction, result: Result) => Promise<Facts>;
  }>;

type OfEach<Field extends string, Key, Shape extends z.core.$ZodShape> = Omit<InputOf<Shape>, Field> &
  Readonly<Record<Field, Key | Key[]>>;

/** Defines actions on things of a kind. */
export const eachOf =
  <Field extends string, Key extends string | number>(things: Things<Field, Key>) =>
  <Shape extends ShapeOfOne<Field, Key>, Result, Json>(
    single: Single<Key, Shape, Result, Json>,
  ): Action<OfEach<Field, Key, Shape>, readonly Outcome<Key, Result>[], unknown, unknown> => {
    type One = InputOf<Shape>;
    type Many = OfEach<Field, Key, Shape>;
    type Outcomes = readonly Outcome<Key, Result>[];
    const { field, one: noun, nameOf, page } = things;
    const { input: shape, sends, follow, made, facts: factsOf, check, committed, amounts, adjusts, ...rest } = single;
    const keysOf = (input: Many) => [...new Set([input[field] as Key | Key[]].flat() as Key[])];
    const one = (input: Many, key: Key) => ({ ...input, [field]: key }) as unknown as One;
    const done = (outcomes: Outcomes) => outcomes.flatMap((each) => ('result' in each ? [each] : []));

    async function tryOne(tx: Transaction, context: ActionContext, input: Many, key: Key) {
      await execute(tx, 'SAVEPOINT one');
      try {
        const result = await single.perform(tx, context, one(input, key));
        await execute(tx, 'RELEASE SAVEPOINT one');
        return { key, result };
      } catch (thrown) {
        if (!(thrown instanceof Refusal)) throw thrown;
        await execute(tx, 'ROLLBACK TO SAVEPOINT one');
        return { key, refused: thrown };
      }
    }

    async function reportMany(outcomes: Outcomes, reportOne: (each: Done<Key, Result>) => Promise<Report<Json>>) {
      const reports = new Map<Key, Report<Json>>();
      for (const each of done(outcomes)) reports.set(each.key, await reportOne(each));
      const refused = outcomes.flatMap((each) => ('refused' in each ? [each] : []));
      const cell = (key: Key) => (page === undefined ? String(key) : { text: String(key), page: page(key) });
      const block = (title: string, what: string, rows: readonly (readonly [Key, string])[]): Block => ({
        title,
        table: { headings: [noun, `~${what}`], rows: rows.map(([key, text]) => [cell(key), inOneLine(text)]) },
      });
      return {
        json: outcomes.map((each) =>
          'refused' in each
            ? { [field]: each.key, refused: each.refused.code, reason: each.refused.message }
            : { [field]: each.key, result: reports.get(each.key)?.json },
        ),
        text: `${plural(reports.size, noun)} done${refused.length === 0 ? '' : `, ${refused.length} left out`}.`,
        blocks: [
          ...(refused.length === 0
            ? []
            : [
                {
                  ...block(
                    `${plural(refused.length, noun)} left out`,
                    'reason',
                    refused.map((each) => [each.key, each.refused.message]),
                  ),
                  tone: 'warn' as const,
                },
              ]),
          block(
            'Done',
            'result',
            [...reports].map(([key, { text }]) => [key, text]),
          ),
        ],
        remedies: remediesOf([
          ...[...reports.values()].flatMap(({ remedies = [] }) => remedies),
          ...refused.flatMap((each) => each.refused.remedies),
        ]),
        attention: refused.length > 0 || [...reports.values()].some(({ attention }) => attention),
      };
    }

    const remediesOf = (remedies: readonly Remedy[]) => sameRemedies(remedies, field);

    const definition = {
      ...rest,
      input: { ...shape, [field]: oneOrMore(shape[field]) },
      ...(check && { check: (input: Many) => keysOf(input).forEach((key) => void check(one(input, key))) }),
      subject: (input: Many) => inShort(keysOf(input).map(String)),
      partners: (tx: Transaction, input: Many) => things.partners(tx, keysOf(input)),
      async perform(tx: Transaction, context: ActionContext, input: Many): Promise<Outcomes> {
        const keys = keysOf(input);
        const [only] = keys as [Key];
        if (keys.length === 1) return [{ key: only, result: await single.perform(tx, context, one(input, only)) }];
        const outcomes: Outcome<Key, Result>[] = [];
        for (const key of keys) outcomes.push(await tryOne(tx, context, input, key));
        const [first] = outcomes;
        if (done(outcomes).length === 0 && first !== undefined && 'refused' in first) throw first.refused;
        return outcomes;
      },
      async committed(context: AfterContext, { input, result }: { input: Many; result: Outcomes }) {
        for (const each of done(result)) {
          await committed?.(context, { input: one(input, each.key), result: each.result });
        }
      },
      ...(sends && {
        after: (context: AfterContext, { input, result }: { input: Many; result: Outcomes }) =>
          deliver(
            context,
            done(result).flatMap((each) => sends(one(input, each.key), each.result)),
          ),
      }),
      ...(follow && {
        after: (context: AfterContext, { result: outcomes }: { result: Outcomes }) =>
          follow(
            context,
            done(outcomes).map(({ result }) => result),
          ),
      }),
      async facts(tx: Transaction, input: Many, outcomes: Outcomes = []) {
        const facts = { ...(await (factsOf ?? things.facts)(tx, keysOf(input))) };
        for (const { key, result } of made === undefined ? [] : done(outcomes)) {
          const made_ = await made?.(tx, result);
          for (const [thing, values] of Object.entries(made_ ?? {})) facts[madeFor(thing, nameOf(key))] = values;
        }
        return facts;
      },
      ...(amounts && {
        amounts: (seen: FactsChange, input: Many, outcomes: Outcomes) =>
          sizesOf(
            done(outcomes).flatMap((each) => amounts(own(seen, nameOf(each.key)), one(input, each.key), each.result)),
          ),
      }),
      ...(adjusts && {
        async adjusts(tx: Transaction, seen: FactsChange, input: Many, outcomes: Outcomes) {
          const all = [];
          for (const { key, result } of done(outcomes)) {
            all.push(...(await adjusts(tx, own(seen, nameOf(key)), one(input, key), result)));
          }
          return all;
        },
      }),
      report(outcome: ActionOutcome<Many, Outcomes, unknown>, context: ActionContext, tx: Transaction) {
        const { input, result: outcomes } = outcome;
        const reportOne = (each: Done<Key, Result>) =>
          single.report({ ...outcome, input: one(input, each.key), result: each.result }, context, tx);
        const [only] = done(outcomes);
        return outcomes.length === 1 && only !== undefined ? reportOne(only) : reportMany(outcomes, reportOne);
      },
    };
    return defineAction(definition as never) as unknown as Action<Many, Outcomes, unknown, unknown>;
  };

/** Defines an action on documents. */
export const onEach = eachOf({
  ...{ field: 'number', one: 'document', nameOf: (number: string) => number },
  ...{ partners: partnersOfDocuments, facts: documentFacts },
  page: (number) => `/console/invoices/${encodeURIComponent(number)}`,
});

/** What is made for one of several documents is named `the credit note on INV-…`. */
const madeFor = (thing: string, name: string) => `${thing} on ${name}`;

/** The facts of one thing, with the names that its action gave them. */
function own({ before, after }: FactsChange, name: string): FactsChange {
  const of = (facts: Facts): Facts =>
    Object.fromEntries(
      Object.entries(facts).flatMap(([thing, values]) => {
        if (thing === name) return [[thing, values]];
        return thing.endsWith(` on ${name}`) ? [[thing.slice(0, -` on ${name}`.length), values]] : [];
      }),
    );
  return { before: of(before), after: of(after) };
}

const inOneLine = (text: string) => text.replaceAll(/\s*\n\s*/g, ' ');
