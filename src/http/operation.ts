import { z } from 'zod';
import { CallRefusalCode } from '#errors/refusals';

export type AnswerKind = z.ZodType | 'application/pdf' | 'application/xml' | 'text/csv';

export type Operation<
  Params extends z.ZodType = z.ZodType,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
  Query extends z.ZodType = z.ZodType,
> = Readonly<{
  id: string;
  methods: readonly ('GET' | 'POST')[];
  /** In the notation of OpenAPI: `/api/v1/quote/{quote_id}`. */
  path: string;
  summary: string;
  description: string;
  /** By the service's documentation, or added by Reckoner. */
  origin: 'documented' | 'own';
  action: 'reads' | 'makes' | 'accepts';
  partnerHeader: 'required' | 'checked';
  params: Params;
  body: Body;
  /**
   * This is set if the body is a text file, and is the largest size of the file in bytes. By default, the body is JSON.
   */
  file?: Readonly<{ type: 'text/csv'; bytes: number }>;
  /** Other query parameters are refused. */
  query: Query;
  status: 200 | 201;
  /** Another status, and when it is returned. Its response is the same, unless `answers` lists what it may be. */
  otherwise?: Readonly<{
    status: 200 | 202;
    description: string;
    answers?: readonly z.ZodType[];
  }>;
  answer: AnswerKind;
  example: unknown;
  refusals: readonly CallRefusalCode[];
}>;

export const none = z.strictObject({});

/** What most operations have in common: methods and status by what they do, and no parameters or body. */
const USUAL = {
  reads: { methods: ['GET'], status: 200 },
  makes: { methods: ['POST'], status: 201 },
  accepts: { methods: ['GET', 'POST'], status: 200 },
} as const satisfies Record<Operation['action'], object>;

type Usual = 'methods' | 'status' | 'origin' | 'partnerHeader' | 'params' | 'body' | 'query';

/** Describes an operation. The defaults are `USUAL`, and a call of our own with a required partner header. */
export const operation = <
  Params extends z.ZodType = typeof none,
  Body extends z.ZodType | undefined = undefined,
  Query extends z.ZodType = typeof none,
>(
  given: Omit<Operation<Params, Body, Query>, Usual> & Partial<Pick<Operation<Params, Body, Query>, Usual>>,
): Operation<Params, Body, Query> => ({
  ...USUAL[given.action],
  ...{ origin: 'own', partnerHeader: 'required' },
  ...{ params: none as unknown as Params, body: undefined as Body, query: none as unknown as Query },
  ...given,
});
