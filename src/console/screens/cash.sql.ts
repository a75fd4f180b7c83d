import { query, querying, Transaction } from '#database/transaction';
import { OpenItems } from '#payments/open-items';
import { readPayers } from '#payments/open-items.sql';
import { readPayerAccounts } from '#payments/payer-accounts';
import { isInScope, Scope } from '#people/scope';

export type LikelyPayer = Readonly<{
  partner_id: string;
  name: string;
}>;

/** The known partners, those that match the payer's account or name, and all for whom these pay. */
export async function readLikelyPayers(
  tx: Transaction,
  {
    known,
    payer,
    scope,
  }: {
    known: readonly (string | null)[];
    payer: Readonly<{ name: string | null; account: string | null }>;
    scope: Scope;
  },
): Promise<LikelyPayer[]> {
  const payers = await readPayers(tx);
  const named = payer.name === null ? [] : new OpenItems([], payers, new Map(), {}).partnersNamedIn(payer.name);
  const accounts = payer.account === null ? [] : await readPayerAccounts(tx, [payer.account]);
  const byAccount = accounts.flatMap(({ partners }) => partners);
  const likely = new Set([...known, ...byAccount, ...named].filter((each) => each !== null));
  for (const each of likely) {
    for (const { partner_id, parent } of payers) if (parent === each) likely.add(partner_id);
  }
  return [...likely].flatMap((id) => payers.find((each) => each.partner_id === id && isInScope(scope, id)) ?? []);
}

export type CashItem = Readonly<{
  number: string;
  document: 'invoice' | 'credit_note';
  partner_id: string;
  partner_name: string;
  issued_on: string;
  due_on: string | null;
  balance: string;
  currency: string;
}>;

export const ITEMS_SHOWN = 100;

/** The selected items first, then by due date. A search with `q` covers all partners. */
export const readOpenItems = (
  tx: Transaction,
  {
    currency,
    partners,
    q,
    chosen,
    scope,
  }: {
    currency: string;
    partners: readonly string[];
    q: string | undefined;
    chosen: readonly string[];
    scope: Scope;
  },
): Promise<CashItem[]> =>
  query(
    tx,
    `SELECT d.number, d.document, d.partner_id, d.partner_name, d.issued_on, d.due_on, b.balance::text, d.currency
     FROM documents d JOIN document_balances b USING (document_id)
     WHERE d.document_id = ANY (ARRAY(SELECT document_id FROM open_documents)) AND d.currency = :currency
       AND (:scope::text[] IS NULL OR d.partner_id = ANY (:scope::text[]))
       AND CASE WHEN d.number = ANY (:chosen::text[]) THEN true
                WHEN :q::text IS NULL THEN d.partner_id = ANY (:partners::text[])
                ELSE strpos(lower(concat_ws(E'\\n', d.number, d.partner_id, d.partner_name)), lower(:q)) > 0 END
     ORDER BY d.number <> ALL (:chosen::text[]), d.document DESC, d.due_on, d.document_id LIMIT :limit`,
    { currency, partners, q: q ?? null, chosen, scope, limit: ITEMS_SHOWN },
  );

export type Report = Readonly<{
  source: string;
  reference: string;
  recorded_at: string;
  text: string | null;
  fields: readonly Readonly<{ field: string; text: string }>[];
}>;

export const readReports = querying<Report, { id: number }>(`
  SELECT s.source, personal(s.reference) AS reference, s.recorded_at,
         nullif(personal(l.text), '') AS text, coalesce(personal_json(l."references"), '[]') AS fields
  FROM payment_sources s LEFT JOIN bank_lines l USING (bank_line_id)
  WHERE s.payment_id = :id ORDER BY s.recorded_at, s.identity`);
