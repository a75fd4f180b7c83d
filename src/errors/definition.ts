import { fieldWords } from '#field-names';
import { Remedy } from '#remedy';

/** Exit statuses: 0 done · 1 failed · 2 bad usage or input · 3 refused by a rule · 4 done, but needs attention. */
export const EXIT = { done: 0, failed: 1, badInput: 2, refused: 3, attention: 4 } as const;

export type ExitStatus = (typeof EXIT)[keyof typeof EXIT];

/** What happened, to which item, and what to do now, in the sentence or as data. */
export type Said = string | Readonly<{ says: string; remedies: readonly Remedy[] }>;

export const says = (sentence: string, ...remedies: readonly Remedy[]): Said => ({ says: sentence, remedies });

export type Definition<Facts> = Readonly<{
  exit: ExitStatus;
  http: number;
  sentence: (facts: Facts) => Said;
}>;

/** A sentence that names its facts, such as `No such quote: {quote_id}.` A long one is a list of its parts. */
type Sentence = string | readonly string[];
type FactNames<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | FactNames<Rest> : never;
type FactsIn<Given extends Sentence, Value = string | number> = Readonly<
  Record<FactNames<Given extends readonly string[] ? Given[number] : Given>, Value>
>;
/** Remedies, also of the facts that the sentence names. */
type Remedies<Given extends Sentence> = readonly (Remedy | ((facts: FactsIn<Given, string>) => Remedy))[];

interface Define {
  <const Given extends Sentence>(sentence: Given, ...remedies: Remedies<Given>): Definition<FactsIn<Given>>;
  <Facts>(sentence: (facts: Facts) => Said, http?: number): Definition<Facts>;
}

const HTTP_OF_EXIT: Readonly<Record<ExitStatus, number>> = { 0: 200, 1: 503, 2: 400, 3: 422, 4: 200 };

const define = (exit: ExitStatus, usual = HTTP_OF_EXIT[exit]) =>
  ((given: Sentence | ((facts: unknown) => Said), ...more: readonly unknown[]) =>
    typeof given === 'function'
      ? { exit, http: more[0] ?? usual, sentence: given }
      : {
          ...{ exit, http: usual },
          sentence: (facts: object) => {
            const texts = Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, String(value)]));
            return says(
              [given]
                .flat()
                .join('')
                .replaceAll(/\{(\w+)\}/g, (_, name: string) => texts[name] ?? ''),
              ...(more as Remedies<''>).map((each) => (typeof each === 'function' ? each(texts) : each)),
            );
          },
        }) as Define;

export const badInput = define(EXIT.badInput);
export const refused = define(EXIT.refused);
/** Needs an operator's decision. With exit status 4, an unattended run does not report a fault. */
export const undecided = define(EXIT.attention, 422);
export const failed = define(EXIT.failed);

interface DefineAnswer {
  <const Given extends Sentence>(
    http: number,
    sentence: Given,
    ...remedies: Remedies<Given>
  ): Definition<FactsIn<Given>>;
  <Facts>(http: number, sentence: (facts: Facts) => Said): Definition<Facts>;
}
export const answer = ((http: number, ...given: Parameters<Define>) =>
  define(
    http === 422 || http === 409 ? EXIT.refused : http >= 500 ? EXIT.failed : EXIT.badInput,
    http,
  )(...given)) as DefineAnswer;

export interface FieldProblem {
  readonly path: string;
  readonly reason: string;
}

/** A problem in a line of a file. `path` is for people, such as `line 3`; `code` is for programs. */
export interface LineProblem extends FieldProblem {
  readonly code: string;
  readonly line: number | null;
  /** Absent if the problem concerns the whole line. */
  readonly field?: string;
}

/** A problem of a section of the settings for people. A form of a section counts its entries from 1. */
export const inFieldWords = ({ path, reason }: FieldProblem): FieldProblem => ({
  path: fieldWords(path.replaceAll(/\b(accounts|rules)\.(\d+)/g, (_, list, at) => `${list}.${Number(at) + 1}`)),
  reason,
});

/** Lists the problems, one on each line. `whole` names the subject of problems without a field. */
export const bullets = (problems: readonly FieldProblem[], whole = '(whole file)') =>
  problems.map(({ path, reason }) => `  ${cut(path, LONGEST_QUOTE) || whole}: ${withShortQuotes(reason)}`).join('\n');

/** A path or reason may quote a file. Other sentences are shorter. */
const LONGEST_QUOTE = 200;
const LONGEST_REASON = 4000;

const withShortQuotes = (reason: string) =>
  cut(
    reason.replaceAll(/'([^']*)'/g, (_, value: string) => `'${cut(value, LONGEST_QUOTE)}'`),
    LONGEST_REASON,
  );

const cut = (text: string, longest: number) => (text.length > longest ? `${text.slice(0, longest)}…` : text);

/** The time that a command has to read a file. A server has less. */
export const COMMAND_SECONDS = 600;

/** The first three, and the number of the others. */
export const someOf = (names: readonly string[]) =>
  names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
