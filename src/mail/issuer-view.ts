/** The issuer as the templates show it under every e-mail. */
import type { Settings } from '../config/settings.ts';
import { addressLine } from '../documents/present.ts';
import type { Installation } from '../people/audit-events.ts';
import type { EmailView } from './templates.ts';
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
