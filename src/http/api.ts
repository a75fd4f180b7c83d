import { FastifyInstance } from 'fastify';
import { DateTime } from 'luxon';
import { z } from 'zod';
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { documentJson } from '#documents/document';
import { readDocuments, readEInvoice, readPdf } from '#documents/documents.sql';
import { refuse } from '#errors/refusals';
import { ExactNumber, writeExactJson } from '#json';
import { OUTSIDE_TERMS } from '#ledger/cancellation';
import { isRequest } from '#ledger/held';
import { reasonToHold } from '#ledger/import';
import { Amount } from '#money';
import { Month } from '#month';
import { EventFilter, EventType, PartnerEvent, readPartnerEvents } from '#partner-events/event';
import { readLastPosition } from '#partner-events/events.sql';
import { REQUEST_PATIENCE_MILLISECONDS } from '#partner-events/publish';
import { termsFrom } from '#partners/cancellation';
import { cutRateOn } from '#partners/cut-rate';
import { readPartners } from '#partners/partners.sql';
import { readInForce } from '#people/settings-in-force';
import {
  AcceptanceAnswer,
  AcceptanceRequest,
  accept,
  acceptedQuote,
  hasExpired,
  incrementsOf,
  instant,
  isStale,
} from '#quotes/accept';
import { makeQuote, makeRequote, orderOf, PartnerCall, quoteOf, requoteOf } from '#quotes/quote';
import { Caller, QuoteState, RequoteState } from '#quotes/quotes.sql';
import { AnsweredReversal, previewReversal, reverseQuote } from '#quotes/reverse';
import { planAcceptance, RoutedAcceptance, readRouted } from '#splits/accepted';
import { answerOnce, CallOf, Content, OtherResult, pageOf, route, serve } from './call.ts';
import * as documents from './document-operations.ts';
import { listEvents } from './event-operations.ts';
import { Operation } from './operation.ts';
import * as operations from './operations.ts';
import { Shared } from './shared.ts';

export function addApi(app: FastifyInstance, shared: Shared) {
  addQuotes(app, shared);
  addReads(app, shared);
  addEvents(app, shared);
}

function addQuotes(app: FastifyInstance, shared: Shared) {
  const { quotes: rules } = shared.settings;
  serve(app, shared, operations.createQuote, async (tx, { body, ...asked }) => {
    const quote = await makeQuote(
      tx,
      { policyId: body.policy_id, insuredAmount: body.insured_amount, order: orderOf(body) },
      { ...asked, rules },
    );
    return quoteAnswer(await quoteOf(tx, quote.quote_id, asked), asked.now);
  });
  serve(app, shared, operations.readQuote, async (tx, { params, ...asked }) =>
    quoteAnswer(await quoteOf(tx, params.quote_id, asked), asked.now),
  );
  serveAcceptances(app, shared, operations.acceptQuote, ({ params, caller, now }) => {
    return { kind: 'quote', id: params.quote_id, caller, now };
  });
  serve(app, shared, operations.readRequote, async (tx, { params, ...asked }) => {
    const { requote, quote } = await requoteOf(tx, params.requote_id, asked);
    return requoteAnswer(requote, quote, asked.now);
  });
  serveAcceptances(app, shared, operations.acceptRequote, ({ params, caller, now }) => {
    return { kind: 'requote', id: params.requote_id, caller, now };
  });
  serve(app, shared, operations.previewReversal, async (tx, { params, query, ...asked }) => {
    const { requote_id: requoteId, spotPrice, partnerCut, invoiceAmount } = query;
    const amounts = amountsOf({ spotPrice, partnerCut, invoiceAmount });
    const wanted = { quoteId: params.quote_id, requoteId, amounts };
    const foreseen = await previewReversal(tx, wanted, {
      ...asked,
      ceilings: (await readInForce(tx, shared.settings)).reversals,
    });
    const { left, ground, outside, terms } = foreseen;
    const { currency, enrollment_id } = left;
    return {
      ...{ quote_id: params.quote_id, requote_id: requoteId ?? null, enrollment_id, currency },
      ...prices(foreseen.amounts, currency),
      ...{ outcome: ground === null ? 'requested' : 'recorded', allowed_by: ground },
      ...{ reason: outside === null ? null : OUTSIDE_TERMS[outside], terms, left: prices(pricesOf(left), currency) },
    };
  });
}

/** The work of a call that changes an accepted quote. The result is a JSON response, or an OtherResult. */
export interface QuoteWork<Body = unknown> {
  readonly operation: Operation<z.ZodType<{ quote_id: string }>, z.ZodType>;
  work(
    tx: Transaction,
    settings: Settings,
    call: PartnerCall & Readonly<{ params: { readonly quote_id: string }; body: Body }>,
  ): Promise<unknown>;
}

const requote: QuoteWork<z.output<typeof operations.createRequote.body>> = {
  operation: operations.createRequote,
  async work(tx, { quotes: rules }, { params, body, ...asked }) {
    const wanted = { quoteId: params.quote_id, insuredAmount: body.insured_amount, order: orderOf(body) };
    const made = await makeRequote(tx, wanted, { ...asked, rules });
    const found = await requoteOf(tx, made.requote_id, asked);
    return requoteAnswer(found.requote, found.quote, asked.now);
  },
};

const reversal: QuoteWork<z.output<typeof operations.reverseQuote.body>> = {
  operation: operations.reverseQuote,
  async work(tx, settings, { params, body, ...asked }) {
    const { reversal_id: reversalId, requote_id: requoteId, spotPrice, partnerCut, invoiceAmount } = body;
    const amounts = amountsOf({ spotPrice, partnerCut, invoiceAmount });
    const wanted = { quoteId: params.quote_id, reversalId, requoteId, amounts, order: orderOf(body) };
    const { reversals: ceilings } = await readInForce(tx, settings);
    const answered = await reverseQuote(tx, wanted, { ...asked, ceilings });
    return answered.ground === null ? new OtherResult(reversalAnswer(answered)) : reversalAnswer(answered);
  },
};

/** The calls that become late requests if the rows of their quote are in the archive (late-requests.ts). */
export const QUOTE_WORKS: readonly QuoteWork[] = [requote, reversal];

function addReads(app: FastifyInstance, shared: Shared) {
  serve(app, shared, operations.listPolicies, async (tx, { caller, query, now }) => {
    const [partner] = await readPartners(tx, caller.partnerId);
    const { cursor: after } = query;
    const all = partner?.policies ?? [];
    if (after !== undefined) refuseUnknownCursor(all.some(({ policy_id: id }) => id === after));
    const policies = all.filter(({ policy_id: id }) => after === undefined || id > after);
    const today = now.setZone(partner?.time_zone).toFormat('yyyy-MM-dd');
    return pageOf(shared, operations.listPolicies, {
      query,
      items: policies.map(
        ({ policy_id, name, kind, active, partner_cut_rate, price, largest_price, cancellation }) => ({
          ...{ policy_id, name, kind, active, currency: partner?.currency, price, largest_price },
          partner_cut_rate: cutRateOn(partner_cut_rate, today),
          cancellation: termsFrom(cancellation, today),
        }),
      ),
      cursorOf: ({ policy_id: id }) => id,
    });
  });
  serve(app, shared, documents.listInvoices, async (tx, { caller, query }) => {
    const { cursor: after, limit, month, status, document } = query;
    const { partnerId } = caller;
    if (after !== undefined) refuseUnknownCursor((await readDocuments(tx, { partnerId, number: after })).length > 0);
    const months = month === undefined ? undefined : [month as Month];
    const found = await readDocuments(tx, {
      ...{ partnerId, months, status, document, after },
      // The additional item shows whether there is another page.
      limit: limit + 1,
    });
    return pageOf(shared, documents.listInvoices, {
      query,
      items: found.map(documentJson),
      cursorOf: ({ number }) => number,
    });
  });
  serve(app, shared, documents.readInvoice, async (tx, { caller, params }) =>
    documentJson(await documentOf(tx, caller, params.number)),
  );
  serve(app, shared, documents.readInvoicePdf, async (tx, { caller, params }) => {
    const { document_id: id, number } = await documentOf(tx, caller, params.number);
    const pdf = await readPdf(tx, id);
    if (pdf === undefined) throw refuse('pdf_not_ready', { number, retry_after: PDF_SECONDS });
    return new Content(pdf, file(`${number}.pdf`, 'application/pdf'));
  });
  serve(app, shared, documents.readEInvoice, async (tx, { caller, params }) => {
    const { document_id: id, number } = await documentOf(tx, caller, params.number);
    const xml = await readEInvoice(tx, id);
    if (xml === undefined) throw refuse('e_invoice_unknown', { number });
    return new Content(xml, file(`${number}.xml`, 'application/xml'));
  });
  serve(app, shared, documents.readInvoiceRows, async (tx, { caller, params }) => {
    const { document_id: id, number } = await documentOf(tx, caller, params.number);
    return new Content(shared.rowStreams.open(id, 'partner'), file(`${number}-rows.csv`, 'text/csv; charset=utf-8'));
  });
}

function addEvents(app: FastifyInstance, shared: Shared) {
  const publish = () => shared.events.publish(REQUEST_PATIENCE_MILLISECONDS);
  const read = async (tx: Transaction, { caller, query }: CallOf<z.ZodType, undefined, typeof listEvents.query>) => {
    const { cursor: after = 0, limit, type } = query;
    const { partnerId } = caller;
    if (after > 0 && after > (await readLastPosition(tx, { partnerId }))) {
      const reason = 'is after your last event: it is not a position of this environment';
      throw refuse('request_invalid', { problems: [{ path: 'cursor', reason }] });
    }
    const filter = { partnerId, after, type: type as EventType | undefined, limit: limit + 1 };
    return pageOf(shared, listEvents, {
      query,
      items: await readInSlices(tx, filter),
      cursorOf: ({ position }) => position,
    });
  };
  serve(app, shared, listEvents, read, publish);
}

/** Reading this many takes 8 ms. Between slices, the server handles other callers. */
const EVENTS_OF_SLICE = 100;

/** In one database snapshot, so that the slices form one page. */
async function readInSlices(tx: Transaction, { limit, ...filter }: EventFilter) {
  const events: PartnerEvent[] = [];
  for (let after = filter.after; events.length < limit; after = (events.at(-1) as PartnerEvent).position) {
    const wanted = Math.min(EVENTS_OF_SLICE, limit - events.length);
    const slice = await readPartnerEvents(tx, { ...filter, after, limit: wanted });
    events.push(...slice);
    if (slice.length < wanted) break;
  }
  return events;
}

/** When a client may retry while a PDF does not exist yet. */
const PDF_SECONDS = 60;

/** Refuses another partner's document as unknown. */
async function documentOf(tx: Transaction, { partnerId }: Caller, number: string) {
  const [document] = await readDocuments(tx, { partnerId, number });
  if (document === undefined) throw refuse('invoice_unknown', { number });
  return document;
}

function refuseUnknownCursor(known: boolean) {
  if (known) return;
  const reason = 'is not an item of this list: use the Link header of a page';
  throw refuse('request_invalid', { problems: [{ path: 'cursor', reason }] });
}

const file = (name: string, type: string) => ({
  'Content-Type': type,
  'Content-Disposition': `attachment; filename="${name}"`,
});

// --- Answers ---

const exact = (text: string, currency: string) => new ExactNumber(Amount.of(text, currency).toString());

type Sums = Pick<AcceptanceAnswer, 'spotPrice' | 'partnerCut' | 'invoiceAmount'>;

const prices = ({ spotPrice, partnerCut, invoiceAmount }: Sums, currency: string) => ({
  spotPrice: exact(spotPrice, currency),
  partnerCut: exact(partnerCut, currency),
  invoiceAmount: exact(invoiceAmount, currency),
});

const increments = ({ spotPrice, partnerCut, invoiceAmount }: Sums, currency: string) => ({
  incrementalSpotPrice: exact(spotPrice, currency),
  incrementalPartnerCut: exact(partnerCut, currency),
  incrementalInvoiceAmount: exact(invoiceAmount, currency),
});

const pricesOf = ({
  spot_price,
  partner_cut,
  invoice_amount,
}: Pick<QuoteState, 'spot_price' | 'partner_cut' | 'invoice_amount'>) => ({
  ...{ spotPrice: spot_price, partnerCut: partner_cut, invoiceAmount: invoice_amount },
});

function quoteAnswer(quote: QuoteState, now: DateTime) {
  const { quote_id, policy_id, currency } = quote;
  const accepted = acceptedQuote(quote);
  const open = accepted !== undefined ? 'accepted' : hasExpired(quote.expires_at, now) ? 'expired' : 'open';
  return {
    ...{ quote_id, policy_id, currency, insured_amount: exact(quote.insured_amount, currency) },
    ...prices(pricesOf(quote), currency),
    ...orderOf(quote),
    quoted_at: instant(quote.quoted_at),
    expires_at: quote.expires_at && instant(quote.expires_at),
    status: quote.reversed ? 'reversed' : open,
    enrollment_id: accepted?.enrollmentId ?? null,
    accepted_at: accepted?.acceptedAt ?? null,
  };
}

function requoteAnswer(requote: RequoteState, quote: QuoteState, now: DateTime) {
  const { currency, quoteId, requoteId, ...sums } = incrementsOf(requote);
  const stale = quote.reversed || isStale(requote, quote);
  const open = stale ? 'stale' : hasExpired(requote.expires_at, now) ? 'expired' : 'open';
  return {
    ...{ requote_id: requoteId, quote_id: quoteId, currency, insured_amount: exact(requote.insured_amount, currency) },
    ...increments(sums, currency),
    ...orderOf(requote),
    requoted_at: instant(requote.requoted_at),
    expires_at: requote.expires_at && instant(requote.expires_at),
    status: requote.accepted_at === null ? open : 'accepted',
    enrollment_id: requote.enrollment_id,
    accepted_at: requote.accepted_at && instant(requote.accepted_at),
  };
}

/** Given together or not at all. */
function amountsOf({ spotPrice, partnerCut, invoiceAmount }: { readonly [Name in keyof Sums]: string | undefined }) {
  return spotPrice === undefined || partnerCut === undefined || invoiceAmount === undefined
    ? undefined
    : { spotPrice, partnerCut, invoiceAmount };
}

function reversalAnswer({ row, ground, request }: AnsweredReversal) {
  const { currency, reversal_id, quote_id, requote_id, enrollment_id } = row;
  const isRejected = ground === null && request?.decision === 'discarded';
  const reason = request === undefined || ground !== null ? null : reasonToHold(request.sign, request.repeats);
  return {
    ...{ reversal_id, quote_id, requote_id, enrollment_id, currency, accepted_at: instant(row.accepted_at) },
    ...prices(pricesOf(row), currency),
    ...orderOf(row),
    status: ground !== null ? 'recorded' : isRejected ? 'rejected' : 'requested',
    ...{ request_id: request?.held_row_id ?? null, allowed_by: ground },
    // Why a sale is discarded with its reversals is internal.
    reason: isRejected && isRequest(request) ? request.decision_reason : reason,
  };
}

/** The payment values of service.md 2.2, or 2.3 for a requote. A connected account also gets its split plan. */
function acceptanceAnswer({ accepted, routed }: RoutedAcceptance, query: operations.SplitQuery) {
  // What the partner must request from its processor (service.md 7).
  const plan = routed && planAcceptance(routed, query);
  const { quoteId, requoteId, enrollmentId, currency, acceptedAt } = accepted;
  const facts = { quote_id: quoteId, enrollment_id: enrollmentId, currency, accepted_at: acceptedAt };
  const split = plan && { split: { ...plan, share: exact(plan.share, currency) } };
  return requoteId === null
    ? { ...facts, ...prices(accepted, currency), ...split }
    : { requote_id: requoteId, ...facts, ...increments(accepted, currency), ...split };
}

/**
 * Serves acceptances in batches of calls that arrive at the same time. A call with an idempotency key runs alone,
 * because its key and response are stored in the same transaction.
 */
function serveAcceptances<Params extends z.ZodType>(
  app: FastifyInstance,
  shared: Shared,
  operation: Operation<Params, undefined, typeof operations.splitQuery>,
  wantedBy: (call: CallOf<Params, undefined, typeof operations.splitQuery>) => AcceptanceRequest,
) {
  const { metrics, acceptances } = shared;
  route(app, shared, operation, async (call, key) => {
    const wanted = wantedBy(call);
    const answerWith = (found: RoutedAcceptance) => ({
      status: operation.status,
      text: writeExactJson(acceptanceAnswer(found, call.query)),
    });
    const alone = async (tx: Transaction) => {
      const [found] = await readRouted([await accept(tx, wanted)], (work) => work(tx));
      return answerWith(found as RoutedAcceptance);
    };
    const answer =
      key === undefined
        ? answerWith(await acceptances.accept(wanted))
        : await answerOnce(shared, operation, { ...call, key }, alone);
    metrics.acceptances.inc({ kind: wanted.kind });
    return answer;
  });
}
