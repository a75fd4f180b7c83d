/** Whom an e-mail to a partner goes to. Pure. */
import type { PartnerView } from './partners.sql.ts';

type Contact = PartnerView['invoicing_contact'];

/** The address for a purpose alone, or the invoicing contact with its copies. */
export const contactFor = (partner: PartnerView, purpose: 'reminder' | 'statement'): Contact => {
  const email = partner[`${purpose}_email`];
  return email === '' ? partner.invoicing_contact : { name: '', email, cc: [] };
};
