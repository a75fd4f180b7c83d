/**
 * Every refusal this program can answer with: its code, the facts it names, the sentence for people, the exit
 * status (contract, Commands) and the HTTP status (contract, HTTP). A bug is an ordinary exception and never one of these.
 */
import { CLOSE } from './close.ts';
import type { Entry, ExitStatus } from './definition.ts';
import { DOCUMENTS } from './documents.ts';
import { FILES } from './files.ts';
import { HTTP } from './http.ts';
import { LEDGER } from './ledger.ts';
import { MAIL } from './mail.ts';
import { PARTNERS } from './partners.ts';
import { PAYMENTS } from './payments.ts';
import { QUOTES } from './quotes.ts';
import { SETUP } from './setup.ts';
import { SPLITS } from './splits.ts';

export { EXIT, type FieldProblem } from './definition.ts';

/** Answers of the HTTP side alone (contract, HTTP). */
const CALLS = { ...HTTP, ...QUOTES };

const CATALOGUE = {
  ...SETUP,
  ...FILES,
  ...PARTNERS,
  ...LEDGER,
  ...DOCUMENTS,
  ...CLOSE,
  ...MAIL,
  ...PAYMENTS,
  ...SPLITS,
  ...CALLS,
};

export type RefusalCode = keyof typeof CATALOGUE;
/** Codes that only the HTTP side answers with. */
export type CallRefusalCode = keyof typeof CALLS;
type FactsOf<Code extends RefusalCode> = (typeof CATALOGUE)[Code] extends Entry<infer Facts> ? Facts : never;

/** All codes, for the test that wants one reproducible case for each. */
export const REFUSAL_CODES = Object.keys(CATALOGUE) as RefusalCode[];
export const CALL_REFUSAL_CODES = Object.keys(CALLS) as CallRefusalCode[];

export const httpStatusOf = (code: RefusalCode): number => CATALOGUE[code].http;

/** An expected answer of «no», with the facts that decided it. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly exit: ExitStatus;

  constructor(code: RefusalCode, facts: Record<string, unknown>, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.facts = facts;
    this.exit = CATALOGUE[code].exit;
  }
}

/** Makes a refusal; `throw refuse('month_not_ended', {…})`. The facts are those its sentence names. */
export function refuse<Code extends RefusalCode>(code: Code, facts: FactsOf<Code>, cause?: unknown): Refusal {
  const sentence = CATALOGUE[code].sentence as (facts: FactsOf<Code>) => string;
  return new Refusal(code, facts as Record<string, unknown>, sentence(facts), cause);
}

/** What a caught value says, for a log or a reason. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
