/**
 * An action on one document as an action on several: `invoice void INV-2026-000001 INV-2026-000002`, or what is ticked in
 * a list. Each document gets its own event. All happens in one transaction, so a kill leaves either all done or none.
 * What is refused is left out and named, unless it is the only one.
 */
import type { z } from 'zod';
import { execute, type Transaction } from '../database/transaction.ts';
import { Refusal } from '../errors/refusals.ts';
import { plural } from '../values.ts';
import {
  type Action,
  type ActionContext,
  type ActionOutcome,
  type AfterContext,
  type Definition,
  defineAction,
  documentNumbers,
  type Facts,
  type FactsChange,
  type InputOf,
  type Report,
} from './action.ts';
import type { Block } from './blocks.ts';
import { deliver, documentFacts, partnersOfDocuments, sizesOf } from './documents.ts';

/** The outcome for one document: what the action returned, or why it was refused. */
type Outcome<Result> = Readonly<{ number: string } & ({ result: Result } | { refused: Refusal })>;

type ShapeOfOne = z.core.$ZodShape & Readonly<{ number: z.ZodType<string> }>;

type Single<Shape extends ShapeOfOne, Result, Json> = Omit<
  Definition<Shape, Result, unknown, Json>,
  'after' | 'facts' | 'begin' | 'run' | 'read' | 'requestOf' | 'withoutRole' | 'subject' | 'partners' | 'rule'
> &
  Readonly<{
    /** The documents that the action may have made ready to be sent. */
    sends?: (input: InputOf<Shape>, result: Result) => readonly string[];
    /** The facts of what the action makes, beside those of the documents. */
    made?: (tx: Transaction, result: Result) => Promise<Facts>;
  }>;

type OfEach<Shape extends ShapeOfOne> = Omit<InputOf<Shape>, 'number'> & Readonly<{ number: string | string[] }>;

const numbersOf = ({ number }: Readonly<{ number: string | string[] }>) => [...new Set([number].flat())];

export function onEach<Shape extends ShapeOfOne, Result, Json>(
  single: Single<Shape, Result, Json>,
): Action<OfEach<Shape>, readonly Outcome<Result>[], unknown, unknown> {
  type One = InputOf<Shape>;
  type Many = OfEach<Shape>;
  const { input: shape, sends, made, check, committed, amounts, adjusts, ...rest } = single;
  const one = (input: Many, number: string) => ({ ...input, number }) as unknown as One;
  const done = (outcomes: readonly Outcome<Result>[]) => outcomes.flatMap((each) => ('result' in each ? [each] : []));

  async function tryOne(
    tx: Transaction,
    context: ActionContext,
    input: Many,
    number: string,
  ): Promise<Outcome<Result>> {
    await execute(tx, 'SAVEPOINT one');
    try {
      const result = await single.perform(tx, context, one(input, number));
      await execute(tx, 'RELEASE SAVEPOINT one');
      return { number, result };
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      await execute(tx, 'ROLLBACK TO SAVEPOINT one');
      return { number, refused: thrown };
    }
  }

  async function reportMany(
    outcomes: readonly Outcome<Result>[],
    reportOne: (each: Outcome<Result> & { readonly result: Result }) => Promise<Report<Json>>,
  ): Promise<Report> {
    const reports = new Map<string, Report<Json>>();
    for (const each of done(outcomes)) reports.set(each.number, await reportOne(each));
    const refused = outcomes.flatMap((each) => ('refused' in each ? [each] : []));
    return {
      json: outcomes.map((each) =>
        'refused' in each
          ? { number: each.number, refused: each.refused.code, reason: each.refused.message }
          : { number: each.number, result: reports.get(each.number)?.json },
      ),
      text: `${plural(reports.size, 'document')} done${refused.length === 0 ? '' : `, ${refused.length} left out`}.`,
      blocks: [
        ...(refused.length === 0 ? [] : [leftOut(refused)]),
        {
          title: 'Done',
          table: {
            headings: ['document', '~result'],
            rows: [...reports].map(([number, { text }]) => [{ text: number, page: pageOf(number) }, inOneLine(text)]),
          },
        },
      ],
      remedies: refused.flatMap((each) => each.refused.remedies),
      attention: refused.length > 0 || [...reports.values()].some(({ attention }) => attention),
    };
  }

  const definition = {
    ...rest,
    input: { ...shape, number: documentNumbers() },
    ...(check && { check: (input: Many) => numbersOf(input).forEach((number) => void check(one(input, number))) }),
    subject: (input: Many) => numbersOf(input).join(' '),
    partners: (tx: Transaction, input: Many) => partnersOfDocuments(tx, numbersOf(input)),
    async perform(tx: Transaction, context: ActionContext, input: Many): Promise<readonly Outcome<Result>[]> {
      const numbers = numbersOf(input);
      const [only = ''] = numbers;
      if (numbers.length === 1) return [{ number: only, result: await single.perform(tx, context, one(input, only)) }];
      const outcomes: Outcome<Result>[] = [];
      for (const number of numbers) outcomes.push(await tryOne(tx, context, input, number));
      const [first] = outcomes;
      if (done(outcomes).length === 0 && first !== undefined && 'refused' in first) throw first.refused;
      return outcomes;
    },
    async committed(context: AfterContext, { input, result }: { input: Many; result: readonly Outcome<Result>[] }) {
      for (const each of done(result)) {
        await committed?.(context, { input: one(input, each.number), result: each.result });
      }
    },
    ...(sends && {
      after: (context: AfterContext, { input, result }: { input: Many; result: readonly Outcome<Result>[] }) =>
        deliver(
          context,
          done(result).flatMap((each) => sends(one(input, each.number), each.result)),
        ),
    }),
    async facts(tx: Transaction, input: Many, outcomes: readonly Outcome<Result>[] = []) {
      const facts = { ...(await documentFacts(tx, numbersOf(input))) };
      for (const { number, result } of made === undefined ? [] : done(outcomes)) {
        const things = await made?.(tx, result);
        for (const [thing, values] of Object.entries(things ?? {})) facts[thingOf(thing, number)] = values;
      }
      return facts;
    },
    ...(amounts && {
      amounts: (seen: FactsChange, input: Many, outcomes: readonly Outcome<Result>[]) =>
        sizesOf(
          done(outcomes).flatMap((each) => amounts(own(seen, each.number), one(input, each.number), each.result)),
        ),
    }),
    ...(adjusts && {
      async adjusts(tx: Transaction, seen: FactsChange, input: Many, outcomes: readonly Outcome<Result>[]) {
        const all = [];
        for (const { number, result } of done(outcomes)) {
          all.push(...(await adjusts(tx, own(seen, number), one(input, number), result)));
        }
        return all;
      },
    }),
    report(outcome: ActionOutcome<Many, readonly Outcome<Result>[], unknown>, context: ActionContext, tx: Transaction) {
      const { input, result: outcomes } = outcome;
      const reportOne = (each: Outcome<Result> & { readonly result: Result }) =>
        single.report({ ...outcome, input: one(input, each.number), result: each.result }, context, tx);
      const [only] = done(outcomes);
      return outcomes.length === 1 && only !== undefined ? reportOne(only) : reportMany(outcomes, reportOne);
    },
  };
  return defineAction(definition as never) as unknown as Action<Many, readonly Outcome<Result>[], unknown, unknown>;
}

/** What is made for one of several documents is named `the credit note on INV-…`. */
const thingOf = (thing: string, number: string) => `${thing} on ${number}`;

/** The facts of one document, with the names that its action gave them. */
function own({ before, after }: FactsChange, number: string): FactsChange {
  const of = (facts: Facts): Facts =>
    Object.fromEntries(
      Object.entries(facts).flatMap(([thing, values]) => {
        if (thing === number) return [[thing, values]];
        return thing.endsWith(` on ${number}`) ? [[thing.slice(0, -` on ${number}`.length), values]] : [];
      }),
    );
  return { before: of(before), after: of(after) };
}

const pageOf = (number: string) => `/console/invoices/${encodeURIComponent(number)}`;
const inOneLine = (text: string) => text.replaceAll(/\s*\n\s*/g, ' ');

const leftOut = (refused: readonly Readonly<{ number: string; refused: Refusal }>[]): Block => ({
  title: `${plural(refused.length, 'document')} left out`,
  tone: 'warn',
  table: {
    headings: ['document', '~reason'],
    rows: refused.map(({ number, refused: { message } }) => [{ text: number, page: pageOf(number) }, message]),
  },
});
