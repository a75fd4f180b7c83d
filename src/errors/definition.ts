/** The definition of a refusal: exit status, HTTP status and sentence. */
import type { Remedy } from '../remedy.ts';

/** Exit statuses: 0 done · 1 failed · 2 bad usage or input · 3 refused by a rule · 4 done, but needs attention. */
export const EXIT = { done: 0, failed: 1, badInput: 2, refused: 3, attention: 4 } as const;

export type ExitStatus = (typeof EXIT)[keyof typeof EXIT];

/**
 * What happened, to which item, and what to do now. The sentence states everything, or the remedies are given as data.
 */
export type Said = string | { readonly says: string; readonly remedies: readonly Remedy[] };

export const says = (sentence: string, ...remedies: readonly Remedy[]): Said => ({ says: sentence, remedies });

export interface Definition<Facts> {
  readonly exit: ExitStatus;
  /** The HTTP status of the answer. */
  readonly http: number;
  readonly sentence: (facts: Facts) => Said;
}

const HTTP_OF_EXIT: Readonly<Record<ExitStatus, number>> = { 0: 200, 1: 503, 2: 400, 3: 422, 4: 200 };

const define = <Facts>(
  exit: ExitStatus,
  sentence: (facts: Facts) => Said,
  http = HTTP_OF_EXIT[exit],
): Definition<Facts> => ({ exit, http, sentence });

export const badInput = <Facts>(sentence: (facts: Facts) => Said, http?: number) =>
  define(EXIT.badInput, sentence, http);
export const refused = <Facts>(sentence: (facts: Facts) => Said, http?: number) => define(EXIT.refused, sentence, http);
/**
 * Nothing was done, and an operator must decide. It exits with 4, so that an unattended run raises no alarm about a
 * fault.
 */
export const undecided = <Facts>(sentence: (facts: Facts) => Said) => define(EXIT.attention, sentence, 422);
export const failed = <Facts>(sentence: (facts: Facts) => Said) => define(EXIT.failed, sentence);

/** A refusal that only the HTTP API returns. */
export const defineAnswer = <Facts>(http: number, sentence: (facts: Facts) => Said): Definition<Facts> =>
  define(http === 422 || http === 409 ? EXIT.refused : http >= 500 ? EXIT.failed : EXIT.badInput, sentence, http);

export interface FieldProblem {
  readonly path: string;
  readonly reason: string;
}

/** A problem of a line of a file. `path` states the line, such as `line 3`; `code` is for programs. */
export interface LineProblem extends FieldProblem {
  readonly code: string;
  readonly line: number | null;
  /** Absent if the problem concerns the whole line. */
  readonly field?: string;
}

/** One line for each problem. `whole` is the subject of a problem without a field. */
export const bullets = (problems: readonly FieldProblem[], whole = '(whole file)') =>
  problems.map(({ path, reason }) => `  ${cut(path, LONGEST_QUOTE) || whole}: ${withShortQuotes(reason)}`).join('\n');

/** A path and a reason may quote a file. Our own sentences are shorter than the limit. */
const LONGEST_QUOTE = 200;
const LONGEST_REASON = 4000;

const withShortQuotes = (reason: string): string =>
  cut(
    reason.replaceAll(/'([^']*)'/g, (_, value: string) => `'${cut(value, LONGEST_QUOTE)}'`),
    LONGEST_REASON,
  );

const cut = (text: string, longest: number): string => (text.length > longest ? `${text.slice(0, longest)}…` : text);

/** How long a command may take to read a file; a server gets less time. */
export const COMMAND_SECONDS = 600;

/** The first three names, and how many more there are. */
export const someOf = (names: readonly string[]): string =>
  names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '');
