/** Findings for documents on hold, void documents without a replacement, and disputed invoices. */
import { query } from '#database/transaction';
import { isPaid, readOpenDisputes } from '#documents/disputes.sql';
import { Finding, ReadFindings, toDo } from './finding.ts';

export type FoundDocument = Readonly<{
  number: string;
  partner_id: string;
  partner_name: string;
  currency: string;
  amount: string;
}>;

/** Returns what every finding about a document says of it. */
export const about = ({ number, partner_id, partner_name, currency, amount }: FoundDocument) => ({
  title: number,
  partners: [{ id: partner_id, name: partner_name }],
  money: { amount, currency },
});

export const readHolds: ReadFindings = async (tx, { scope, limit }) => {
  const holds = await query<FoundDocument & { since: string; reason: string; by_close: boolean }>(
    tx,
    `SELECT d.number, d.partner_id, d.partner_name, d.currency, b.balance::text AS amount, h.held_at::date AS since,
            h.reason, e.details->>'by' IS NOT DISTINCT FROM 'close' AS by_close
     FROM current_holds h JOIN documents d USING (document_id) JOIN document_balances b USING (document_id)
     JOIN audit_events e USING (event_id)
     -- A document that was settled meanwhile needs no release. A statement is due nothing from the beginning.
     WHERE (b.status = 'open' OR (b.status = 'paid' AND b.amount_due = 0))
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY h.held_at, d.document_id LIMIT :limit`,
    { scope, limit },
  );
  return holds.map(({ since, reason, by_close, ...document }): Finding => {
    const { number } = document;
    return {
      ...about(document),
      ...{ item: `hold:${number}`, kind: 'holds', state: 'on hold', tone: 'warn', since, reason },
      // Only holds placed by the close are urgent. Finance placed the other holds itself.
      urgent: by_close ? `${number} was held by the close as unusual: ${reason}. Check it.` : null,
      remedies: [toDo('Release it', 'invoice.release', { number })],
    };
  });
};

export const readUnreplaced: ReadFindings = async (tx, { scope, limit }) => {
  const voids = await query<FoundDocument & { month: string; since: string; reason: string }>(
    tx,
    `SELECT d.number, d.partner_id, d.partner_name, d.currency, b.amount_due::text AS amount, d.month,
            v.recorded_at::date AS since, v.reason
     FROM voids v JOIN documents d USING (document_id) JOIN document_balances b USING (document_id)
     WHERE d.purpose = 'month' AND NOT EXISTS (SELECT FROM documents later WHERE later.replaces = v.document_id)
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
     ORDER BY d.series, d.sequence LIMIT :limit`,
    { scope, limit },
  );
  return voids.map(({ month, since, reason, ...document }): Finding => {
    const { number } = document;
    const all = toDo(`Issue all of ${month}`, 'invoice.rerun', { month });
    return {
      ...about(document),
      ...{ item: `gap:${number}`, kind: 'documents', state: 'void, not replaced', tone: 'warn', since, reason },
      urgent: `${number} of ${month} is void without a replacement, so its rows are unbilled.`,
      remedies: [
        toDo('Issue a replacement', 'invoice.rerun', { number }),
        ...(voids.some((each) => each.month === month && each.number !== number) ? [all] : []),
      ],
    };
  });
};

export const readDisputes: ReadFindings = async (tx, { scope, today }) => {
  const open = await readOpenDisputes(tx, { scope });
  return open.map((dispute): Finding => {
    const { number, disputed_on: since, promised_on: promised, owner } = dispute;
    const paid = isPaid(dispute);
    const isLate = promised !== null && promised < today;
    const by = owner === '' ? '' : ` (owner ${owner})`;
    return {
      ...about(dispute),
      ...{ item: `dispute:${number}`, kind: 'disputes', since },
      ...{ state: paid ? 'paid, still in dispute' : 'dispute', tone: paid ? 'good' : 'warn' },
      reason: [dispute.reason, promised === null ? '' : `answer promised for ${promised}`, owner]
        .filter((each) => each !== '')
        .join(' · '),
      urgent: paid
        ? `${number} is paid and still in dispute.`
        : isLate
          ? `The answer to the dispute of ${number} was promised for ${promised}${by}.`
          : null,
      remedies: [toDo('Close the dispute', 'dispute.close', { number })],
    };
  });
};
