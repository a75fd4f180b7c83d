/** The versions of a document's payment link. */
import { query, type Transaction } from '../../src/database/transaction.ts';
import type { ClosingReason } from '../../src/delivery/links/links.sql.ts';
import { Amount } from '../../src/money.ts';

interface LinkVersion {
  readonly version: number;
  readonly provider: string;
  readonly amount: string;
  readonly currency: string;
  readonly intended_at: string;
  readonly provider_id: string | null;
  readonly url: string | null;
  readonly created_at: string | null;
  readonly closed: ClosingReason | null;
  readonly detail: string | null;
  readonly closed_at: string | null;
}

export async function readLinkVersions(tx: Transaction, documentId: number): Promise<LinkVersion[]> {
  const versions = await query<LinkVersion>(
    tx,
    `SELECT i.version, i.provider, i.amount, i.currency, i.intended_at, o.provider_id, o.url, o.created_at,
            c.why AS closed, c.detail, c.closed_at
     FROM payment_link_intents i
     LEFT JOIN payment_link_objects o ON o.document_id = i.document_id AND o.version = i.version
     LEFT JOIN payment_link_closings c ON c.document_id = i.document_id AND c.version = i.version
     WHERE i.document_id = :documentId ORDER BY i.version`,
    { documentId },
  );
  return versions.map((each) => ({ ...each, amount: Amount.of(each.amount, each.currency).toString() }));
}
