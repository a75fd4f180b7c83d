/**
 * Reversals and requotes of quotes whose rows are in the archive. No call waits for the archive: such a call is recorded
 * as a late request, and `deliver` answers the requests of each partner in their order. It brings the rows of their quotes
 * back into the database, and then does what the call would have done, at the time of the call. The effect and the answer
 * are recorded in one transaction, so a request that was interrupted is answered once. Refusal: late_request_unknown.
 */
import type { FastifyInstance } from 'fastify';
import { DateTime } from 'luxon';
import { recallQuotes, requireState } from '../archive/recall.ts';
import { Claims, workOn } from '../database/claims.ts';
import type { Database } from '../database/database.ts';
import type { Transaction } from '../database/transaction.ts';
import { httpStatusOf, Refusal, refuse } from '../errors/refusals.ts';
import { failpoint } from '../failpoint.ts';
import { ExactNumber, writeExactJson } from '../json.ts';
import type { ActorContext } from '../people/audit-events.ts';
import { instant } from '../quotes/accept.ts';
import {
  answerLateRequest,
  DUE_PARTNERS,
  insertLateRequest,
  type LateRequest,
  readLateRequests,
} from '../quotes/late-requests.sql.ts';
import { QUOTE_WORKS, type QuoteWork } from './api.ts';
import { OtherResult, serve } from './call.ts';
import { readLateRequest } from './operations.ts';
import { problemOf } from './problem.ts';
import { issuerOf, type Shared } from './shared.ts';

export function addLateRequests(app: FastifyInstance, shared: Shared): void {
  for (const { operation, work } of QUOTE_WORKS) {
    serve(app, shared, operation, async (tx, call) => {
      try {
        return await work(tx, shared.settings, call);
      } catch (error) {
        if (!isArchived(error)) throw error;
        const { caller, params, body, now } = call;
        const asked = { operation: operation.id, quoteId: params.quote_id, body: JSON.stringify(body) };
        return new OtherResult(answerOf(await insertLateRequest(tx, { ...caller, ...asked, now: now.toISO() })));
      }
    });
  }
  serve(app, shared, readLateRequest, async (tx, { caller: { partnerId }, params: { request_id } }) => {
    const [found] = await readLateRequests(tx, { partnerId, requestId: Number(request_id) });
    if (found === undefined) throw refuse('late_request_unknown', { request_id });
    return answerOf(found);
  });
}

/** Refused before anything was written. */
const isArchived = (error: unknown): boolean => error instanceof Refusal && error.code === 'quote_archived';

function answerOf(request: LateRequest): object {
  const { request_id, quote_id, status, answer, answered_at } = request;
  return {
    ...{ request_id, location: `/api/v1/late-requests/${request_id}`, quote_id },
    status: status === null ? 'pending' : status < 400 ? 'done' : 'refused',
    requested_at: instant(request.requested_at),
    answered_at: answered_at === null ? null : instant(answered_at),
    // The body is JSON already.
    answer: answer === null ? null : { status, body: new ExactNumber(answer) },
  };
}

// --- Answering --------------------------------------------------------------------------------------------------------

interface LateContext extends ActorContext {
  readonly database: Database;
  /** Called if a partner's requests stay pending, for example because the store is not readable. */
  readonly onLateFailed: (error: unknown) => void;
}

/** Requests whose quotes are looked up together. */
const BATCH = 200;

/** Answers the pending requests, and with `stop` also those that come until then. */
export async function answerLateRequests(context: LateContext, stop?: AbortSignal): Promise<void> {
  const claims = await Claims.open(context.database.connection);
  const work = async (partnerId: string) => {
    try {
      await answerPartner(context, partnerId);
      return true;
    } catch (error) {
      await claims.check();
      context.onLateFailed(error);
      return false;
    }
  };
  try {
    await workOn(claims, DUE_PARTNERS, { atOnce: 1, work, stop, stays: stop !== undefined });
  } finally {
    await claims.end();
  }
}

async function answerPartner({ database, environment, settings }: LateContext, partnerId: string): Promise<void> {
  const requests = await database.reading((tx) => readLateRequests(tx, { partnerId, most: BATCH }));
  const quoteIds = requests.map(({ quote_id: id }) => id);
  const state = await recallQuotes(database, environment, { partnerId, quoteIds });
  failpoint('late_request.recalled');
  for (const request of requests) {
    const done = (tx: Transaction, status: number, answer: object) =>
      answerLateRequest(tx, request, { status, answer: writeExactJson(answer), now: environment.now().toISO() });
    try {
      await database.transaction(async (tx) => {
        await requireState(tx, state);
        const { operation, work } = QUOTE_WORKS.find((each) => each.operation.id === request.operation) as QuoteWork;
        const result = await work(tx, settings, callOf(request));
        const other = result instanceof OtherResult;
        await done(tx, other ? 202 : operation.status, (other ? result.result : result) as object);
        failpoint('late_request.answered');
      });
    } catch (error) {
      // What the server lacks for now is not an answer: the request stays pending.
      if (!(error instanceof Refusal) || httpStatusOf(error.code) >= 500 || isArchived(error)) throw error;
      const instance = `urn:late-request:${request.request_id}`;
      const problem = problemOf(error, issuerOf({ settings }), instance);
      await database.transaction((tx) => done(tx, httpStatusOf(error.code), problem));
    }
    failpoint('late_request.committed');
  }
}

function callOf({ partner_id, client_id, quote_id, body, requested_at }: LateRequest) {
  return {
    caller: { partnerId: partner_id, clientId: client_id },
    now: DateTime.fromISO(requested_at, { setZone: true }) as DateTime<true>,
    ...{ params: { quote_id }, body: JSON.parse(body), recalled: true as const },
  };
}
