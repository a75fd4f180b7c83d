/** What production still lacks: by setting, by partner and by currency. */
import { instructionsFor, missingSettings, type Settings } from '../config.ts';
import { query, type Transaction } from '../database/transaction.ts';

export interface Gap {
  readonly scope: 'settings' | 'currency' | 'partner';
  /** The setting's path, the currency or the partner. */
  readonly id: string;
  readonly lacks: string;
}

export async function readGaps(tx: Transaction, settings: Settings): Promise<Gap[]> {
  const partners = await query<{
    partner_id: string;
    currency: string;
    contact_email: string;
    address_line1: string;
    address_city: string;
    address_country: string;
    policies: number;
  }>(
    tx,
    `SELECT p.partner_id, p.currency, p.contact_email, p.address_line1, p.address_city, p.address_country,
            (SELECT count(*) FROM policies o WHERE o.partner_id = p.partner_id AND o.inactive_since IS NULL) AS policies
     FROM partners p WHERE p.inactive_since IS NULL ORDER BY p.partner_id`,
  );
  const currencies = [...new Set(partners.map((partner) => partner.currency))].sort();
  return [
    ...missingSettings(settings).map(({ path, lacks }): Gap => ({ scope: 'settings', id: path, lacks })),
    ...(['finance_email', 'auditor_email', 'operations_email'] as const)
      .filter((field) => settings[field] === '')
      .map((field): Gap => ({ scope: 'settings', id: field, lacks: 'an address' })),
    ...currencies.flatMap((currency): Gap[] => {
      const instructions = instructionsFor(settings, currency);
      if (instructions === undefined) return [{ scope: 'currency', id: currency, lacks: 'payment instructions' }];
      if (instructions.wire === undefined) return [{ scope: 'currency', id: currency, lacks: 'wire instructions' }];
      if (currency === 'USD' && instructions.ach === undefined) {
        return [{ scope: 'currency', id: currency, lacks: 'ACH instructions' }];
      }
      return [];
    }),
    ...partners.flatMap((partner) =>
      [
        partner.contact_email === '' ? 'invoicing_contact.email' : undefined,
        partner.address_line1 === '' ? 'address.line1' : undefined,
        partner.address_city === '' ? 'address.city' : undefined,
        partner.address_country === '' ? 'address.country' : undefined,
        partner.policies === 0 ? 'an active policy' : undefined,
      ]
        .filter((lacks) => lacks !== undefined)
        .map((lacks): Gap => ({ scope: 'partner', id: partner.partner_id, lacks })),
    ),
  ];
}
