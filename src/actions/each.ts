/**
 * An action on one thing as an action on several: `invoice void INV-2026-000001 INV-2026-000002`, or what is ticked in a
 * list. Each thing gets its own event. All happens in one transaction, so a kill leaves either all done or none. What is
 * refused is left out and named, unless it is the only one.
 */
import { z } from 'zod';
import { Cell, Table } from '#blocks';
import { execute, Transaction } from '#database/transaction';
import { Refusal } from '#errors/refusals';
import { sameRemedies } from '#remedy';
import { Amount, inShort, plural } from '#values';
import {
  Action,
  ActionContext,
  ActionOutcome,
  AfterContext,
  Definition,
  defineAction,
  Facts,
  FactsChange,
  InputOf,
  oneOrMore,
  Partners,
  Report,
} from './action.ts';
import { deliver, documentFacts, documentsNumbered, partnersOfDocuments, sizesOf } from './documents.ts';

type Key = string | number;

/** What an action is done to, named by its field `field`. */
type Things<Field extends string, Of extends Key> = Readonly<{
  field: Field;
  /** The singular noun, such as `document`. */
  one: string;
  /** The name of a thing in the facts of a preview. */
  nameOf(key: Of): string;
  /** The page of a thing, if it has one. */
  page?(key: Of): string;
  /** What a result shows beside each thing. */
  about?(tx: Transaction, keys: readonly Of[]): Promise<Readonly<{ headings: readonly string[]; cells: Cells }>>;
  partners(tx: Transaction, keys: readonly Of[]): Promise<Partners>;
  facts(tx: Transaction, keys: readonly Of[]): Promise<Facts>;
}>;

type Cells = ReadonlyMap<Key, readonly Cell[]>;

type Outcome<Result = unknown, Of = Key> = Readonly<{ key: Of } & ({ result: Result } | { refused: Refusal })>;
type Outcomes = readonly Outcome[];
type Done = Readonly<{ key: Key; result: unknown }>;

type ShapeOfOne<Field extends string, Of> = z.core.$ZodShape & Readonly<Record<Field, z.ZodType<Of>>>;

type Single<Of extends Key, Shape extends z.core.$ZodShape, Result, Json> = Omit<
  Definition<Shape, Result, unknown, Json>,
  'after' | 'facts' | 'begin' | 'run' | 'read' | 'requestOf' | 'withoutRole' | 'subject' | 'partners' | 'rule'
> &
  Readonly<{
    /** What is then said of several things: `2 documents are void`. */
    said: readonly [one: string, many: string];
    /** The documents that the action may have made ready to be sent. */
    sends?(input: InputOf<Shape>, result: Result): readonly string[];
    /** Sends what the action made ready, if these are not documents. */
    follow?(context: AfterContext, results: readonly Result[]): Promise<unknown>;
    /** The facts of the things, if not those of their kind. */
    facts?(tx: Transaction, keys: readonly Of[]): Promise<Facts>;
    /** The facts of what the action makes, beside those of the things. */
    made?(tx: Transaction, result: Result): Promise<Facts>;
  }>;

type OfEach<Field extends string, Of, Shape extends z.core.$ZodShape> = Omit<InputOf<Shape>, Field> &
  Readonly<Record<Field, Of | Of[]>>;

/** An action on several things, whose types are checked where it is defined. */
type Every = Readonly<{
  things: Things<string, Key>;
  single: Single<Key, z.core.$ZodShape, unknown, unknown>;
}>;
type Many = Readonly<Record<string, unknown>>;
type Ended = Readonly<{ input: Many; result: Outcomes }>;

const keysOf = ({ things: { field } }: Every, input: Many) => [...new Set([input[field]].flat() as Key[])];
const one = ({ things: { field } }: Every, input: Many, key: Key): Many => ({ ...input, [field]: key });
const done = (outcomes: Outcomes): Done[] => outcomes.flatMap((each) => ('result' in each ? [each] : []));
const refusedOf = (outcomes: Outcomes) => outcomes.flatMap((each) => ('refused' in each ? [each] : []));

/** Defines actions on things of a kind. */
export const eachOf =
  <Field extends string, Of extends Key>(things: Things<Field, Of>) =>
  <Shape extends ShapeOfOne<Field, Of>, Result, Json>(
    single: Single<Of, Shape, Result, Json>,
  ): Action<OfEach<Field, Of, Shape>, readonly Outcome<Result, Of>[], unknown, unknown> => {
    const every = { things, single } as unknown as Every;
    const { said: _said, sends: _sends, follow: _follow, made: _made, input: shape, check, ...rest } = single;
    const definition = {
      ...rest,
      input: { ...shape, [things.field]: oneOrMore(shape[things.field]) },
      check: (input: Many) => keysOf(every, input).forEach((key) => void check?.(one(every, input, key) as never)),
      subject: (input: Many) => inShort(keysOf(every, input).map(String)),
      partners: (tx: Transaction, input: Many) => things.partners(tx, keysOf(every, input) as Of[]),
      perform: (tx: Transaction, context: ActionContext, input: Many) => performEach(every, tx, context, input),
      ...following(every),
      ...comparing(every),
      report: (outcome: ActionOutcome<Many, Outcomes, unknown>, context: ActionContext, tx: Transaction) =>
        reportEach(every, outcome, context, tx),
    };
    return defineAction(definition as never) as never;
  };

/** Defines an action on documents. */
export const onEach = eachOf({
  ...{ field: 'number', one: 'document', nameOf: (number: string) => number },
  ...{ partners: partnersOfDocuments, facts: documentFacts },
  page: (number) => `/console/invoices/${encodeURIComponent(number)}`,
  async about(tx, numbers) {
    const documents = await documentsNumbered(tx, numbers);
    return {
      headings: ['~partner', '>amount due'],
      cells: new Map(
        documents.map((each) => [each.number, [each.partner_name, Amount.of(each.amount_due, each.currency)]]),
      ),
    };
  },
});

async function performEach(every: Every, tx: Transaction, context: ActionContext, input: Many): Promise<Outcomes> {
  const keys = keysOf(every, input);
  const perform = (key: Key) => every.single.perform(tx, context, one(every, input, key));
  const [only] = keys as [Key];
  if (keys.length === 1) return [{ key: only, result: await perform(only) }];
  const outcomes: Outcome[] = [];
  for (const key of keys) {
    await execute(tx, 'SAVEPOINT one');
    try {
      outcomes.push({ key, result: await perform(key) });
      await execute(tx, 'RELEASE SAVEPOINT one');
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      await execute(tx, 'ROLLBACK TO SAVEPOINT one');
      outcomes.push({ key, refused: thrown });
    }
  }
  const [first] = refusedOf(outcomes);
  if (done(outcomes).length === 0 && first !== undefined) throw first.refused;
  return outcomes;
}

/** What follows the transaction. */
function following(every: Every) {
  const { committed, sends, follow } = every.single;
  return {
    async committed(context: AfterContext, { input, result }: Ended) {
      for (const each of done(result)) {
        await committed?.(context, { input: one(every, input, each.key), result: each.result });
      }
    },
    ...(sends && {
      after: (context: AfterContext, { input, result }: Ended) =>
        deliver(
          context,
          done(result).flatMap((each) => sends(one(every, input, each.key), each.result)),
        ),
    }),
    ...(follow && {
      after: (context: AfterContext, { result: outcomes }: Ended) =>
        follow(
          context,
          done(outcomes).map(({ result }) => result),
        ),
    }),
  };
}

/** What a preview and the approval rules compare. */
function comparing(every: Every) {
  const { things, single } = every;
  const { amounts, adjusts, made } = single;
  return {
    async facts(tx: Transaction, input: Many, outcomes: Outcomes = []) {
      const facts = { ...(await (single.facts ?? things.facts)(tx, keysOf(every, input))) };
      for (const { key, result } of made === undefined ? [] : done(outcomes)) {
        for (const [thing, values] of Object.entries((await made?.(tx, result)) ?? {})) {
          facts[madeFor(thing, things.nameOf(key))] = values;
        }
      }
      return facts;
    },
    ...(amounts && {
      amounts: (seen: FactsChange, input: Many, outcomes: Outcomes) =>
        sizesOf(
          done(outcomes).flatMap(({ key, result }) =>
            amounts(own(seen, things.nameOf(key)), one(every, input, key), result),
          ),
        ),
    }),
    ...(adjusts && {
      async adjusts(tx: Transaction, seen: FactsChange, input: Many, outcomes: Outcomes) {
        const all = [];
        for (const { key, result } of done(outcomes)) {
          all.push(...(await adjusts(tx, own(seen, things.nameOf(key)), one(every, input, key), result)));
        }
        return all;
      },
    }),
  };
}

async function reportEach(
  every: Every,
  outcome: ActionOutcome<Many, Outcomes, unknown>,
  context: ActionContext,
  tx: Transaction,
): Promise<Report> {
  const { input, result: outcomes } = outcome;
  const reports = new Map<Key, Report>();
  for (const { key, result } of done(outcomes)) {
    reports.set(key, await every.single.report({ ...outcome, input: one(every, input, key), result }, context, tx));
  }
  const [only] = reports.values();
  if (outcomes.length === 1 && only !== undefined) return only;
  const about = await every.things.about?.(
    tx,
    outcomes.map(({ key }) => key),
  );
  return reportMany(every, outcomes, reports, about);
}

function reportMany(
  { things: { field, one: noun, page }, single: { title, said } }: Every,
  outcomes: Outcomes,
  reports: ReadonlyMap<Key, Report>,
  { headings, cells }: Readonly<{ headings: readonly string[]; cells: Cells }> = { headings: [], cells: new Map() },
): Report {
  const refused = refusedOf(outcomes);
  const left = refused.length === 0 ? '' : ` ${plural(refused.length, `${noun} is`, `${noun}s are`)} left out.`;
  const cell = (key: Key) => (page === undefined ? String(key) : { text: String(key), page: page(key) });
  const table = (what: string, rows: readonly (readonly [Key, string])[]): Table => ({
    headings: [noun, ...headings, `~${what}`],
    rows: rows.map(([key, text]) => [
      ...[cell(key), ...(cells.get(key) ?? headings.map(() => null)), text.replaceAll(/\s*\n\s*/g, ' ')],
    ]),
  });
  const reasons = refused.map((each) => [each.key, each.refused.message] as const);
  const results = [...reports].map(([key, { text }]) => [key, text] as const);
  const leftOut = `${plural(refused.length, noun)} left out`;
  return {
    json: outcomes.map((each) =>
      'refused' in each
        ? { [field]: each.key, refused: each.refused.code, reason: each.refused.message }
        : { [field]: each.key, result: reports.get(each.key)?.json },
    ),
    text: `${plural(reports.size, noun)} ${said[reports.size === 1 ? 0 : 1]}.${left}`,
    button: titleOfMany(title, reports.size),
    blocks: [
      ...(refused.length === 0 ? [] : [{ title: leftOut, tone: 'warn', table: table('reason', reasons) } as const]),
      { title: `Each ${noun}`, table: table('then', results) },
    ],
    remedies: sameRemedies(
      [
        ...[...reports.values()].flatMap(({ remedies = [] }) => remedies),
        ...refused.flatMap((each) => each.refused.remedies),
      ],
      field,
    ),
    attention: refused.length > 0 || [...reports.values()].some(({ attention }) => attention),
  };
}

/** `Void 2 documents`, of `Void a document`. */
const titleOfMany = (title: string, count: number) =>
  title.replace(/\b(an?|the) (document|invoice|e-mail|bank line)\b/, (_words, _article, noun: string) =>
    plural(count, noun),
  );

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
