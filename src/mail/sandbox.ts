/** Allows sandbox mail only to `sandbox_recipients`. Nothing else guards it. */

import { refuse, refuseField } from '#errors/refusals';
import { Installation } from '#people/audit-events';
import { isOneAddress } from './message.ts';

/** The reason why an e-mail may not go to these addresses; undefined if the addresses are allowed. */
export function whyRefusedInSandbox({ environment, settings }: Installation, addresses: readonly string[]) {
  if (environment.name !== 'sandbox') return undefined;
  const outside = addresses.filter((address) => !sandboxAllows(address, settings.sandbox_recipients));
  if (outside.length === 0) return undefined;
  return `sandbox mail goes only to sandbox_recipients, and ${outside.join(', ')} is not among them`;
}

/**
 * Refuses an address that a user named unless it is a single one and allowed. Refusals: argument_invalid,
 * recipient_refused.
 */
export function refuseRecipient(context: Installation, to: string) {
  if (!isOneAddress(to)) {
    throw refuseField('to', to, 'is not a single e-mail address');
  }
  if (whyRefusedInSandbox(context, [to]) !== undefined) throw refuse('recipient_refused', { address: to });
}

/**
 * Whether sandbox mail may go to an address. An entry that begins with a dot is a domain and everything below it:
 * `.mail.test` allows ap@mail.test and ap@in.mail.test, but never ap@othermail.test. One with a name before its @ is
 * one address, any other is one domain. Case does not matter.
 */
export function sandboxAllows(address: string, patterns: readonly string[]) {
  if (!isOneAddress(address)) return false;
  const wanted = address.toLowerCase();
  const domain = wanted.slice(wanted.lastIndexOf('@') + 1);
  return patterns.some((entry) => {
    const pattern = entry.trim().toLowerCase();
    // They name no domain, so they must not match any address.
    if (pattern.startsWith('.')) return pattern.length > 1 && `.${domain}`.endsWith(pattern);
    if (pattern.startsWith('@')) return domain === pattern.slice(1);
    return pattern === (pattern.includes('@') ? wanted : domain);
  });
}
