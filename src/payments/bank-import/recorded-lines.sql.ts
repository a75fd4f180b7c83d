import { querying } from '#database/transaction';
import { ReferenceField } from '#payments/bank/statement';

/** The accounts of all recorded statements. */
export const readAccounts = querying<{ account: string }>(`SELECT DISTINCT account FROM bank_statements`);

/** Those of the accounts that have a statement in another format. */
export const readAccountsInOtherFormats = querying<
  { account: string },
  { accounts: readonly string[]; format: string }
>(`
  SELECT DISTINCT s.account FROM bank_statements s JOIN bank_files f USING (bank_file_id)
  WHERE s.account = ANY (:accounts::text[]) AND f.format <> :format`);

export type RecordedLine = Readonly<{
  account: string;
  identity: string;
  currency: string;
  direction: 'credit' | 'debit';
  amount: string;
  booked_on: string;
  bank_reference: string | null;
  references: readonly Partial<ReferenceField>[];
  text: string;
  payer_name: string | null;
  payer_account: string | null;
  payment_id: number | null;
}>;

/** The lines of these accounts and days that a file in another format has. */
export const readRecordedLines = querying<
  RecordedLine,
  { accounts: readonly string[]; days: readonly string[]; format: string }
>(`
  SELECT l.account, l.identity, l.currency, l.direction, round(l.amount, minor_digits(l.currency))::text AS amount,
         l.bank_booked_on AS booked_on, l.bank_reference, personal_json(l."references") AS "references",
         personal(l.text) AS text, personal(l.payer_name) AS payer_name, personal(l.payer_account) AS payer_account,
         o.payment_id
  FROM bank_lines l LEFT JOIN bank_line_outcomes o USING (bank_line_id)
  WHERE l.account = ANY (:accounts::text[]) AND l.bank_booked_on = ANY (:days::date[])
    AND EXISTS (
      SELECT FROM bank_statement_lines x JOIN bank_statements s USING (bank_statement_id)
      JOIN bank_files f USING (bank_file_id)
      WHERE x.bank_line_id = l.bank_line_id AND f.format <> :format)
  ORDER BY l.bank_line_id`);

/** The closing balances that files in other formats state. A statement without a date ends on the day of its last line. */
export const readClosings = querying<
  { account: string; currency: string; closed_on: string; closing: string },
  { accounts: readonly string[]; format: string }
>(`
  SELECT DISTINCT s.account, s.currency, coalesce(s.closed_on, (
           SELECT max(l.bank_booked_on) FROM bank_statement_lines x JOIN bank_lines l USING (bank_line_id)
           WHERE x.bank_statement_id = s.bank_statement_id)) AS closed_on,
         round(s.closing, minor_digits(s.currency))::text AS closing
  FROM bank_statements s JOIN bank_files f USING (bank_file_id)
  WHERE s.account = ANY (:accounts::text[]) AND f.format <> :format AND s.closing IS NOT NULL`);
