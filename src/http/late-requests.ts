/**
 * Late requests: calls that change a quote whose rows are in the archive. No call waits for the archive. `deliver`
 * answers each partner's requests in order: it brings the rows of their quotes back, and does what the call would have
 * done, at the time of the call. The effect and the answer are one transaction.
 */
import { FastifyInstance } from 'fastify';
import { DateTime } from 'luxon';
import { recallQuotes } from '#archive/rows';
import { Claims, workOn } from '#database/claims';
import { Database } from '#database/database';
import { Transaction } from '#database/transaction';
import { httpStatusOf, Refusal, refuse } from '#errors/refusals';
import { failpoint } from '#failpoint';
import { ExactNumber, writeExactJson } from '#json';
import { ActorContext } from '#people/audit-events';
import { instant } from '#quotes/accept';
import * as requests from '#quotes/late-requests.sql';
import { QUOTE_WORKS, QuoteWork } from './api.ts';
import { OtherResult, serve } from './call.ts';
import { readLateRequest } from './operations.ts';
import { problemOf } from './problem.ts';
import { issuerOf, Shared } from './shared.ts';

export function addLateRequests(app: FastifyInstance, shared: Shared) {
  for (const { operation, work } of QUOTE_WORKS) {
    serve(app, shared, operation, async (tx, call) => {
      try {
        return await work(tx, shared.settings, call);
      } catch (error) {
        if (!isArchived(error)) throw error;
        const { caller, params, body, now } = call;
        const asked = { operation: operation.id, quoteId: params.quote_id, body: JSON.stringify(body) };
        const made = await requests.insertLateRequest(tx, { ...caller, ...asked, now: now.toISO() });
        return new OtherResult(answerOf(made[0] as requests.LateRequest));
      }
    });
  }
  serve(app, shared, readLateRequest, async (tx, { caller: { partnerId }, params: { request_id: requestId } }) => {
    const [found] = await requests.readLateRequests(tx, { partnerId, requestId, most: 1 });
    if (found === undefined) throw refuse('late_request_unknown', { request_id: requestId });
    return answerOf(found);
  });
}

/** Refused before anything was written. */
const isArchived = (error: unknown) => error instanceof Refusal && error.code === 'quote_archived';

function answerOf({ request_id, quote_id, status, answer, requested_at, answered_at }: requests.LateRequest) {
  return {
    ...{ request_id, location: `/api/v1/late-requests/${request_id}`, quote_id },
    status: status === null ? 'pending' : status < 400 ? 'done' : 'refused',
    requested_at: instant(requested_at),
    answered_at: answered_at && instant(answered_at),
    // The body is JSON already.
    answer: answer && { status, body: new ExactNumber(answer) },
  };
}

type LateContext = ActorContext &
  Readonly<{
    database: Database;
    /** Called if requests stay pending, for example because the store is not readable. */
    onLateFailed: (error: unknown) => void;
  }>;

/** Requests whose quotes are looked up together. */
const BATCH = 200;

/** Answers the pending requests, and with `stop` also those that come until then. */
export async function answerLateRequests(context: LateContext, stop?: AbortSignal) {
  const { database, environment, onLateFailed } = context;
  const claims = await Claims.open(database.connection);
  const work = async (partnerId: string) => {
    try {
      const pending = await database.reading((tx) =>
        requests.readLateRequests(tx, { partnerId, requestId: null, most: BATCH }),
      );
      const quoteIds = pending.map(({ quote_id: id }) => id);
      await recallQuotes(database, environment, partnerId, quoteIds);
      failpoint('late_request.recalled');
      for (const request of pending) await answer(context, request);
      return true;
    } catch (error) {
      await claims.check();
      onLateFailed(error);
      return false;
    }
  };
  try {
    await workOn(claims, requests.DUE_PARTNERS, { atOnce: 1, work, stop, stays: stop !== undefined });
  } finally {
    await claims.end();
  }
}

async function answer({ database, environment, settings }: LateContext, request: requests.LateRequest) {
  const { request_id: requestId, partner_id: partnerId, client_id: clientId, quote_id } = request;
  const done = (tx: Transaction, status: number, result: unknown) =>
    requests.answerLateRequest(tx, {
      ...{ requestId, status, answer: writeExactJson(result), now: environment.now().toISO() },
    });
  const call = {
    caller: { partnerId, clientId },
    now: DateTime.fromISO(request.requested_at) as DateTime<true>,
    ...{ params: { quote_id }, body: JSON.parse(request.body), recalled: true as const },
  };
  try {
    await database.transaction(async (tx) => {
      const { operation, work } = QUOTE_WORKS.find((each) => each.operation.id === request.operation) as QuoteWork;
      const result = await work(tx, settings, call);
      await (result instanceof OtherResult ? done(tx, 202, result.result) : done(tx, operation.status, result));
      failpoint('late_request.answered');
    });
  } catch (error) {
    // What the server lacks for now is not an answer: the request stays pending.
    if (!(error instanceof Refusal) || httpStatusOf(error.code) >= 500 || isArchived(error)) throw error;
    const problem = problemOf(error, issuerOf({ settings }), `urn:late-request:${requestId}`);
    await database.transaction((tx) => done(tx, problem.status, problem));
  }
  failpoint('late_request.committed');
}
