/**
 * The plan of a quote in the ledger: the processor requests that the partner must make for the quote and for each
 * requote.
 */
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { Amount } from '#money';
import { PlanOptions, planSplit, Routing, SplitImpossible, SplitPlan } from '#processors/processors';
import { AcceptanceAnswer as Acceptance } from '#quotes/accept';
import { AcceptedRow, readAcceptances, readConnectedAcceptances } from './accepted.sql.ts';

export type QuotePlan = Routing &
  Readonly<{
    quote_id: string;
    partner_id: string;
    enrollment_id: string | null;
    currency: string;
    /** The plan for the quote, and then the plans for its requotes, in the order of acceptance. */
    plans: readonly PlannedAcceptance[];
  }>;

type PlanProblem = Readonly<{
  code: SplitImpossible['code'];
  reason: string;
}>;

/**
 * If the processor refuses the amount, the plan has no requests and a `problem`. The plans of other acceptances are not
 * affected.
 */
export type PlannedAcceptance = SplitPlan &
  Readonly<{
    problem: PlanProblem | null;
  }>;

/** The problems that an acceptance itself has. Different input would not help. */
const OF_THE_AMOUNT: ReadonlySet<SplitImpossible['code']> = new Set([
  'amount_too_small',
  'amount_inexpressible',
  'currency_unknown',
  'currency_not_held',
]);

export type QuotePlanRequest = PlanOptions &
  Readonly<{
    quoteId: string;
    /** The partner is required only if several partners have a quote with that id. */
    partnerId?: string | undefined;
  }>;

/**
 * Plans those acceptances of a quote that belong to a connected account. Acceptances before the connected account were
 * invoiced. The platform's own fee is charged with the quote, but not with its requotes.
 */
export async function planQuote(tx: Transaction, request: QuotePlanRequest): Promise<QuotePlan> {
  const { quoteId, partnerId, platform_fee, ...options } = request;
  const found = await readAcceptances(tx, { quoteId, partnerId });
  const partners = [...new Set(found.map((row) => row.partner_id))];
  if (partners.length > 1) throw refuse('split_partner_needed', { quote_id: quoteId, partners });
  const rows = found.filter((row) => row.arrangement === 'connected_account');
  const [first] = rows;
  if (first === undefined) {
    const [other] = found;
    throw other === undefined
      ? refuse('split_quote_unknown', { quote_id: quoteId, partner_id: partnerId ?? null })
      : refuse('split_not_connected', { quote_id: quoteId, partner_id: other.partner_id, month: other.month });
  }
  return {
    quote_id: quoteId,
    partner_id: first.partner_id,
    enrollment_id: first.enrollment_id,
    currency: first.currency,
    ...routingOf(first),
    plans: rows.map((row) =>
      planRow(row, row.requote_id === null && platform_fee !== undefined ? { ...options, platform_fee } : options),
    ),
  };
}

type AcceptancePlan = Routing &
  Readonly<{
    /** The share in major units. */
    share: string;
    /** The requests are null if `problem` is set. */
    requests: SplitPlan['requests'] | null;
    problem: PlanProblem | null;
  }>;

/** `routed` is the row of the acceptance. Undefined if the acceptance is not under a connected account. */
export type RoutedAcceptance = Readonly<{
  accepted: Acceptance;
  routed: AcceptedRow | undefined;
}>;

/**
 * Reads the rows of all acceptances under a connected account in one query. The results are in the order of `accepted`.
 */
export async function readRouted(
  accepted: readonly Acceptance[],
  reading: <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>,
): Promise<RoutedAcceptance[]> {
  const rows = await reading((tx) => readConnectedAcceptances(tx, accepted));
  return accepted.map((each, index) => ({ accepted: each, routed: rows.get(index) }));
}

/** Plans a new acceptance. An acceptance that cannot be split is valid too, and its plan has a `problem`. */
export function planAcceptance(row: AcceptedRow, options: PlanOptions): AcceptancePlan {
  const { requests, error } = planned(row, options);
  return { ...routingOf(row), share: shareOf(row), requests, problem: problemOf(error) };
}

function planRow(row: AcceptedRow, options: PlanOptions): PlannedAcceptance {
  const { requests, error } = planned(row, options);
  const { quote_id, requote_id, currency } = row;
  if (error !== undefined && !OF_THE_AMOUNT.has(error.code)) {
    throw refuse('split_impossible', { quote_id, requote_id, because: error.code, reason: error.message }, error);
  }
  const { split } = routingOf(row);
  return {
    ...{ quote_id, requote_id, split, currency, share: shareOf(row), requests: requests ?? [] },
    problem: problemOf(error),
  };
}

function planned(row: AcceptedRow, options: PlanOptions) {
  try {
    return { requests: planSplit(acceptedOf(row), routingOf(row), options).requests, error: undefined };
  } catch (error) {
    if (!(error instanceof SplitImpossible)) throw error;
    return { requests: null, error };
  }
}

const shareOf = ({ invoice_amount, currency }: AcceptedRow) => Amount.of(invoice_amount, currency).toString();

const problemOf = (error: SplitImpossible | undefined) =>
  error === undefined ? null : { code: error.code, reason: error.message };

function acceptedOf(row: AcceptedRow) {
  const text = (amount: string) => Amount.of(amount, row.currency).toString();
  return {
    quote_id: row.quote_id,
    requote_id: row.requote_id ?? undefined,
    enrollment_id: row.enrollment_id,
    accepted_at: new Date(row.accepted_at).toISOString(),
    currency: row.currency,
    spotPrice: text(row.spot_price),
    partnerCut: text(row.partner_cut),
    invoiceAmount: text(row.invoice_amount),
  };
}

/** A row has all three fields or none, by a constraint. */
function routingOf({ split, merchant_of_record, connected_account_id, settlement_currencies }: AcceptedRow) {
  if (split === null || merchant_of_record === null || connected_account_id === null) {
    throw new Error('a row of a connected account has no account');
  }
  return { split, merchant_of_record, connected_account_id, settlement_currencies };
}
