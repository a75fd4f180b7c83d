/**
 * The catalogue of refusals: expected failures with a code, typed facts, a sentence for people, an exit status and an
 * HTTP status. A bug is an ordinary exception instead.
 */

import { asOption, fieldName, inNames, NameOf } from '#field-names';
import { Remedy } from '#remedy';
import { CLOSE } from './close.ts';
import { Definition, EXIT, ExitStatus, Said } from './definition.ts';
import { DOCUMENTS } from './documents.ts';
import { FILES } from './files.ts';
import { GENERAL_LEDGER } from './general-ledger.ts';
import { HTTP } from './http.ts';
import { OPENING } from './opening.ts';
import { PARTNERS } from './partners.ts';
import { PAUSES } from './pauses.ts';
import { PAYMENTS } from './payments.ts';
import { CONSOLE, PEOPLE } from './people.ts';
import { QUOTES } from './quotes.ts';
import { ROWS } from './rows.ts';
import { SETUP } from './setup.ts';
import { SPLITS } from './splits.ts';

export { EXIT, type FieldProblem, type LineProblem } from './definition.ts';

const CALLS = { ...HTTP, ...QUOTES };

const CATALOGUE = {
  ...SETUP,
  ...ROWS,
  ...FILES,
  ...PEOPLE,
  ...PARTNERS,
  ...DOCUMENTS,
  ...CLOSE,
  ...GENERAL_LEDGER,
  ...PAUSES,
  ...PAYMENTS,
  ...OPENING,
  ...SPLITS,
  ...CALLS,
  ...CONSOLE,
};

export type RefusalCode = keyof typeof CATALOGUE;
/** Refusals of actions that are both a command and an API call. */
const BOTH = ['partner_not_connected', 'settlement_invalid', 'month_not_begun'] as const satisfies readonly (
  | keyof typeof SPLITS
  | keyof typeof CLOSE
)[];
export type CallRefusalCode = keyof typeof CALLS | (typeof BOTH)[number];
type FactsOf<Code extends RefusalCode> = (typeof CATALOGUE)[Code] extends Definition<infer Facts> ? Facts : never;

/** A test causes each of these refusals. */
const REFUSAL_CODES = Object.keys(CATALOGUE) as RefusalCode[];
export const CALL_REFUSAL_CODES = [...Object.keys(CALLS), ...BOTH] as CallRefusalCode[];
export type CommandRefusalCode = Exclude<RefusalCode, keyof typeof CALLS | ConsoleRefusalCode>;
export const COMMAND_REFUSAL_CODES = REFUSAL_CODES.filter(
  (code) => !(code in CALLS) && !(code in CONSOLE),
) as CommandRefusalCode[];
export type ConsoleRefusalCode = keyof typeof CONSOLE;
export const CONSOLE_REFUSAL_CODES = Object.keys(CONSOLE) as ConsoleRefusalCode[];

export const httpStatusOf = (code: RefusalCode) => CATALOGUE[code].http;

export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly exit: ExitStatus;

  /** Remedies that the message does not state. */
  readonly remedies: readonly Remedy[];

  /** Returns the refusal with an interface's own names for fields. */
  readonly named: (nameOf: NameOf) => Refusal;

  constructor(
    code: RefusalCode,
    facts: Record<string, unknown>,
    said: string,
    { nameOf = asOption, ...more }: Readonly<{ cause?: unknown; remedies?: readonly Remedy[]; nameOf?: NameOf }> = {},
  ) {
    super(inNames(said, nameOf), more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    const named = ([name, fact]: [string, unknown]) => [name, typeof fact === 'string' ? inNames(fact, nameOf) : fact];
    this.facts = Object.fromEntries(Object.entries(facts).map(named));
    this.remedies = more.remedies ?? [];
    this.exit = CATALOGUE[code].exit;
    this.named = (names) => new Refusal(code, facts, said, { ...more, nameOf: names });
  }
}

export const exitOf = (error: unknown) => (error instanceof Refusal ? error.exit : EXIT.failed);

/** Creates a refusal: `throw refuse('month_not_ended', { month, … })`. The code determines which facts are required. */
export function refuse<Code extends RefusalCode>(code: Code, facts: FactsOf<Code>, cause?: unknown) {
  const sentence = CATALOGUE[code].sentence as (facts: FactsOf<Code>) => Said;
  const said = sentence(facts);
  const { says, remedies } = typeof said === 'string' ? { says: said, remedies: [] } : said;
  // Remedies that a caller supplies are not facts. The HTTP API returns only the facts.
  const { remedies: _, ...others } = facts as Record<string, unknown>;
  return new Refusal(code, others, says, { cause, remedies });
}

/** Creates the refusal of an input field's value, which the reason continues: `must not be empty`. */
export const refuseField = (field: string, value: string | number, reason: string, remedies?: readonly Remedy[]) =>
  refuse('argument_invalid', {
    ...{ argument: fieldName(field), value: String(value), reason },
    ...(remedies && { remedies }),
  });

/** Returns the facts of a refusal if it has this code, and otherwise undefined. */
export const factsOf = <Code extends RefusalCode>(refusal: Refusal, code: Code) =>
  refusal.code === code ? (refusal.facts as unknown as FactsOf<Code>) : undefined;

/** The message of a caught value, for a log line or a `reason`. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
