import { execute, executing, Transaction } from '#database/transaction';
import { createEmptyDrafts } from '#documents/issue/drafts.sql';
import { Month } from '#month';

/** Drafts one invoice for each partner and currency, with a line for each policy and month. */
export async function draftMissingShares(
  tx: Transaction,
  billable: readonly { partner_id: string; currency: string; quote_id: string; amount: string }[],
) {
  await execute(tx, `DROP TABLE IF EXISTS pg_temp.missing`);
  await execute(
    tx,
    `CREATE TEMPORARY TABLE missing ON COMMIT DROP AS
     SELECT b.partner_id COLLATE "C" AS partner_id, b.currency COLLATE "C" AS currency, b.quote_id, b.amount,
            e.policy_id, e.month
     FROM json_to_recordset(:billable::json) AS b (partner_id text, currency text, quote_id text, amount numeric)
     JOIN ledger_rows e ON e.partner_id = b.partner_id COLLATE "C" AND e.kind = 'quote_accepted'
       AND own_id(e) = b.quote_id COLLATE "C"`,
    { billable },
  );
  await createEmptyDrafts(tx);
  await execute(
    tx,
    `INSERT INTO pg_temp.draft_lines
     SELECT partner_id, currency, 'connected_account', policy_id, 'quote_accepted', month, count(*), sum(amount), 0,
            sum(amount)
     FROM pg_temp.missing GROUP BY partner_id, currency, policy_id, month`,
  );
  await execute(
    tx,
    `INSERT INTO pg_temp.drafts (
       partner_id, currency, arrangement, document, enrollments, entries, spot_price, partner_cut, invoice_amount)
     SELECT partner_id, currency, 'connected_account', 'invoice', count(*), 0, sum(amount), 0, sum(amount)
     FROM pg_temp.missing GROUP BY partner_id, currency`,
  );
}

export const insertMissingShares = executing<{ month: Month }>(`
  INSERT INTO missing_shares (document_id, partner_id, month, currency, arrangement, quote_id, amount)
  SELECT d.document_id, m.partner_id, :month, m.currency, d.arrangement, m.quote_id, trim_scale(m.amount)
  FROM pg_temp.missing m JOIN pg_temp.issued_documents d USING (partner_id, currency)`);
