/**
 * A partner's events in the form that the partner reads, from a list or by webhook. An event is composed from its row
 * or fact, so its content never changes.
 */
import { hash } from 'node:crypto';
import { Transaction } from '#database/transaction';
import { refuse } from '#errors/refusals';
import { ExactNumber } from '#json';
import { Amount } from '#money';
import { instant } from '#quotes/accept';
import { FactRow, LedgerEventRow, PageRow, readEventFacts, readEventPage, readEventRows } from './events.sql.ts';

export const EVENT_TYPES = [
  'quote.accepted',
  'requote.accepted',
  'reversal.recorded',
  'reversal.rejected',
  'invoice.issued',
  'credit_note.issued',
  'statement.issued',
  'document.sent',
  'document.voided',
  'payment.applied',
  'payment.unapplied',
  'credit.applied',
  'credit.unapplied',
  'credit.refunded',
  'credit.refund_returned',
  'dispute.opened',
  'dispute.closed',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export type PartnerEvent = Readonly<{
  /** The event's id, which is the same every time the event is read or sent. */
  event_id: string;
  position: number;
  type: EventType;
  recorded_at: string;
  data: object;
}>;

export type EventFilter = Readonly<{
  partnerId: string;
  after: number;
  type?: EventType | undefined;
  limit: number;
}>;

/** The events of a page, up to the first whose row is in an archive. Refusal: events_archived, if that is the first. */
export async function readPartnerEvents(tx: Transaction, filter: EventFilter): Promise<PartnerEvent[]> {
  const page = await readEventPage(tx, { ...filter, type: filter.type ?? null });
  const entries = page.filter(({ entry_id: id }) => id !== null);
  const facts = page.flatMap(({ log_no: id }) => (id === null ? [] : [id]));
  const rowsById = new Map<number, LedgerEventRow>();
  const factsById = new Map<number, FactRow>();
  if (entries.length > 0) {
    const ids = entries.map(({ entry_id: id }) => id as number);
    const months = entries.map(({ posted_month: month }) => month as string);
    for (const row of await readEventRows(tx, { partnerId: filter.partnerId, months, ids })) {
      rowsById.set(row.entry_id, row);
    }
  }
  const isAway = ({ entry_id: id }: PageRow) => id !== null && !rowsById.has(id);
  const first = page.findIndex(isAway);
  if (first === 0) {
    const next = page.findIndex((each) => !isAway(each));
    throw refuse('events_archived', { after: (page.at(next < 0 ? -1 : next - 1) as PageRow).position });
  }
  if (facts.length > 0) for (const fact of await readEventFacts(tx, { ids: facts })) factsById.set(fact.log_no, fact);
  const there = first < 0 ? page : page.slice(0, first);
  return there.map((each) => eventOf(filter.partnerId, each, rowsById, factsById));
}

function eventOf(
  partnerId: string,
  { installation_id, position, type, entry_id, log_no }: PageRow,
  rows: ReadonlyMap<number, LedgerEventRow>,
  facts: ReadonlyMap<number, FactRow>,
) {
  const row = entry_id === null ? undefined : rows.get(entry_id);
  const fact = log_no === null ? undefined : facts.get(log_no);
  const found = row ?? fact;
  if (found === undefined) throw new Error(`event ${position} of ${partnerId} has no row or fact`);
  return {
    event_id: eventId(installation_id, partnerId, position),
    position,
    type: type as EventType,
    recorded_at: instant(found.recorded_at),
    data: row === undefined ? factData(fact as FactRow) : rowData(row),
  };
}

/** An id that is unique across installations and partners. It reveals neither the installation nor the partner. */
const eventId = (installationId: string, partnerId: string, position: number) =>
  `evt_${hash('sha256', `${installationId} ${partnerId} ${position}`).slice(0, 32)}`;

/** The data of a ledger row's event. Amounts have the format of the API's answers to acceptances and reversals. */
function rowData(row: LedgerEventRow) {
  const exact = (text: string) => new ExactNumber(Amount.of(text, row.currency).toString());
  const [spotPrice, partnerCut, invoiceAmount] = [
    exact(row.spot_price),
    exact(row.partner_cut),
    exact(row.invoice_amount),
  ];
  const { quote_id, requote_id, reversal_id, policy_id, enrollment_id, currency, month, posted_month } = row;
  const { order_reference, cover_from, cover_to } = row;
  const about = {
    ...{ quote_id, policy_id, enrollment_id, currency, accepted_at: instant(row.accepted_at), month, posted_month },
    ...{ order_reference, cover_from, cover_to },
  };
  if (reversal_id !== null) {
    return { reversal_id, requote_id, ...about, spotPrice, partnerCut, invoiceAmount, allowed_by: row.ground };
  }
  if (requote_id === null) return { ...about, spotPrice, partnerCut, invoiceAmount };
  return {
    ...{ requote_id, ...about },
    ...{
      incrementalSpotPrice: spotPrice,
      incrementalPartnerCut: partnerCut,
      incrementalInvoiceAmount: invoiceAmount,
    },
  };
}

const AMOUNTS: ReadonlySet<string> = new Set([
  'amount',
  'spotPrice',
  'partnerCut',
  'invoiceAmount',
  'credit_applied',
  'amount_due',
]);

/** The data of a fact's event. As in documents, amounts are texts with exactly the currency's digits. */
function factData({ data }: FactRow) {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      name,
      AMOUNTS.has(name) ? Amount.of(String(value), String(data['currency'])).toString() : value,
    ]),
  );
}
