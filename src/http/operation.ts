/** An operation of the API: the schemas that check its requests and describe its responses. */
import { z } from 'zod';
import type { CallRefusalCode } from '../errors/refusals.ts';

/** What an operation returns: JSON by a schema, or a file. */
export type AnswerKind = z.ZodType | 'application/pdf' | 'application/xml' | 'text/csv';

export interface Operation<
  Params extends z.ZodType = z.ZodType,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
  Query extends z.ZodType = z.ZodType,
> {
  readonly id: string;
  readonly methods: readonly ('GET' | 'POST')[];
  /** As OpenAPI writes it: `/api/v1/quote/{quote_id}`. */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  /** `documented` by the service's documentation, or this system's `own`. */
  readonly origin: 'documented' | 'own';
  readonly action: 'reads' | 'makes' | 'accepts';
  readonly partnerHeader: 'required' | 'checked';
  readonly params: Params;
  readonly body: Body;
  /** The body is a text file with at most this many bytes. Default: JSON. */
  readonly file?: { readonly type: 'text/csv'; readonly bytes: number };
  /** The query parameters; others are refused. */
  readonly query: Query;
  readonly status: 200 | 201;
  /** When an earlier result is returned, if that has its own status. */
  readonly again?: string;
  readonly answer: AnswerKind;
  readonly example: unknown;
  readonly refusals: readonly CallRefusalCode[];
}

export const none = z.strictObject({});

export const operation = <
  Params extends z.ZodType,
  Body extends z.ZodType | undefined,
  Query extends z.ZodType = typeof none,
>(
  given: Omit<Operation<Params, Body, Query>, 'query'> & { readonly query?: Query },
): Operation<Params, Body, Query> => ({ ...given, query: given.query ?? (none as unknown as Query) });
