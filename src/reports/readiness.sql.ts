/** SQL of what production needs of partners. */
import { query, type Transaction } from '../database/transaction.ts';

export interface ActivePartner {
  readonly partner_id: string;
  readonly currency: string;
  readonly contact_email: string;
  readonly address_line1: string;
  readonly address_city: string;
  readonly address_country: string;
  readonly tax_id: string;
  readonly arrangement: string;
  readonly e_invoice: string;
  readonly policies: readonly { readonly id: string; readonly kind: string }[];
}

export const readActivePartners = (tx: Transaction): Promise<ActivePartner[]> =>
  query(
    tx,
    `SELECT p.partner_id, p.currency, p.contact_email, p.address_line1, p.address_city, p.address_country, p.tax_id,
            p.e_invoice,
            (SELECT a.arrangement FROM partner_arrangements a WHERE a.partner_id = p.partner_id
             ORDER BY a.from_month DESC LIMIT 1) AS arrangement,
            (SELECT coalesce(json_agg(json_build_object('id', o.policy_id, 'kind', o.kind) ORDER BY o.policy_id), '[]')
             FROM policies o WHERE o.partner_id = p.partner_id AND o.inactive_since IS NULL) AS policies
     FROM partners p WHERE p.inactive_since IS NULL ORDER BY p.partner_id`,
  );
