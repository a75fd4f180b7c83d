/** The fields of every template, and of those of e-mails to partners. */
import { Settings } from '#config/settings';
import { Transaction } from '#database/transaction';
import { localeOf } from '#documents/locale';
import { addressLine } from '#documents/present';
import { readPartners } from '#partners/partners.sql';
import { Installation } from '#people/audit-events';
import { EmailView } from './templates.ts';
import { oneLine } from './text.ts';

export const issuerView = (
  issuer: Pick<Settings['issuer'], 'legal_name' | 'address' | 'email' | 'phone' | 'tax_id'>,
): EmailView['issuer'] => ({
  name: oneLine(issuer.legal_name),
  address: addressLine(issuer.address, oneLine),
  email: oneLine(issuer.email),
  phone: oneLine(issuer.phone),
  taxId: oneLine(issuer.tax_id),
});

/** The fields of every template. */
export const letterView = ({ environment, settings }: Installation) => ({
  sandbox: environment.name === 'sandbox',
  issuer: issuerView(settings.issuer),
});

/**
 * To whom an e-mail to a partner goes, with the fields of its template; or why it is held. A purpose may have an address
 * of its own, which then gets the e-mail alone.
 */
export async function partnerLetter(
  tx: Transaction,
  context: Installation,
  partnerId: string,
  purpose?: 'reminder' | 'statement',
) {
  const [partner] = await readPartners(tx, partnerId);
  if (partner === undefined) throw new Error(`no partner ${partnerId} to write to`);
  const own = purpose === undefined ? '' : partner[`${purpose}_email`];
  const { name, email: address, cc } = own === '' ? partner.invoicing_contact : { name: '', email: own, cc: [] };
  if (address === '') return { held: `partner ${partnerId} has no invoicing contact's e-mail address` };
  return {
    ...{ to: { name, address }, cc, locale: localeOf(partner.address.country) },
    view: {
      ...letterView(context),
      ...{ contactName: oneLine(name), partner: { name: oneLine(partner.name) } },
      // The closing requires these fields. Templates of e-mails with documents use the same closing.
      ...{ rowsOmitted: false, paymentLink: '' },
    },
  };
}
