/** Names of input fields in sentences. The command line names a field's option, and the console names its label. */
import { capitalized, uncapitalized } from './text.ts';

/** Marks a field, or a value of the field, in a sentence: `fieldName('kind', 'duplicate')`. */
export const fieldName = (name: string, value = '') => `⟦${name} ${value}⟧`;

export type NameOf = (field: string, value: string) => string;

/** Replaces the marked fields of a sentence with an interface's names. */
export const inNames = (sentence: string, nameOf: NameOf) =>
  sentence.replaceAll(/⟦(\w+) ([^⟧]*)⟧/g, (_, name: string, value: string) => nameOf(name, value));

/** `creditNote` becomes `credit-note`. An id is named after its object: `partnerId` becomes `partner`. */
export const inKebab = (name: string) =>
  name
    .replace(/Id$/, '')
    .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replaceAll('_', '-');

/** `--as duplicate` */
export const withValue = (option: string, value: string) => (value === '' ? option : `${option} ${value}`);

export const asOption: NameOf = (name, value) => withValue(`--${inKebab(name)}`, value);

/** Words for the parts of a field's path that are not their own words. A part with its group counts before it alone. */
const WORDS: Readonly<Record<string, string>> = {
  ...{ 'address.line1': 'Address, line 1', 'address.line2': 'Address, line 2', line1: 'Line 1', line2: 'Line 2' },
  ...{ 'address.city': 'City', 'address.region': 'State or region', 'address.postal_code': 'Postal code' },
  ...{ 'address.country': 'Country', 'invoicing_contact.name': 'Contact' },
  ...{ 'invoicing_contact.email': 'E-mail of the contact', 'invoicing_contact.cc': 'Copies' },
  ...{ reminder_email: 'E-mail for reminders', statement_email: 'E-mail for statements' },
  ...{ dispute_email: 'E-mail for disputes', email: 'E-mail', payment_terms_days: 'Days to pay' },
  ...{ payment_terms_end_of_month: 'Due at the end of the month', payment_terms_day: 'Pay day' },
  ...{ feed: 'Unusual rows', e_invoice: 'E-invoice', connected_account_id: 'Connected account' },
  ...{ balance_transactions_from: 'Balance transactions', 'policy.name': 'Policy name', 'policy.kind': 'Policy kind' },
  ...{ 'policy.active': 'Policy active', 'policy.purchase_order': 'Order for this policy' },
  ...{ 'policy.price': 'Price', 'price.rate': 'Price', 'price.minimum': 'Minimum price' },
  ...{ 'policy.largest_price': 'Largest price', 'policy.partner_cut_rate': "Partner's cut" },
  ...{ 'policy.cancellation': 'Cancellation terms' },
  ...{ instructions: 'Bank details', approvals: 'Approval rules', reminders: 'Reminder days' },
  ...{ reminder_minimum: 'Smallest reminder', small_difference: 'Small differences', '*': 'any other currency' },
  ...{ accounts: 'General-ledger accounts', 'accounts.accounts': 'General-ledger account' },
  ...{ to: 'Account in the general ledger', by_partner: 'A line for each partner', names: 'Names of partners' },
  ...{ times: 'Times the largest invoice', share: 'Share of the month’s sales', always: 'For any amount' },
  ...{
    above: 'Above an amount',
    quickbooks: 'QuickBooks',
    netsuite: 'NetSuite',
    public_url: 'Public address',
    ach: 'ACH',
    dkim: 'DKIM',
    http: 'HTTP',
    bank_csv: 'Bank CSV',
    wire: 'Wire',
    bic: 'BIC',
    iban: 'IBAN',
  },
};

/** `address.line1` becomes `Address, line 1`, and `policies.parking.price.minimum` becomes `Minimum price (parking)`. */
export function fieldWords(field: string): string {
  const path = field.replaceAll(' ', '_');
  if (!/^[a-z]\w*(\.[^\s.]+)*$/.test(path)) return field;
  const [, policy, rest] = /^policies\.(.+?)\.((?:price\.)?\w+)$/.exec(path) ?? [];
  if (rest !== undefined) return `${fieldWords(rest.includes('.') ? rest : `policy.${rest}`)} (${policy})`;
  // The name of an action has a point too.
  const [, action, rule] = /^approvals\.(.+?)\.((?:above|always)\b.*)$/.exec(path) ?? [];
  const parts =
    rule === undefined ? path.split('.') : ['approvals', `${action}`.replaceAll('.', ' '), ...rule.split('.')];
  const words = wordsIn(parts).reduce((all, each) => `${all}${/^\d+$/.test(each) ? '' : ','} ${each}`);
  return capitalized(words);
}

function wordsIn([part = '', next, ...rest]: readonly string[], isFirst = true): string[] {
  const both = WORDS[`${part}.${next}`];
  const word = both ?? WORDS[part] ?? part.replaceAll('_', ' ');
  const others = both === undefined && next !== undefined ? [next, ...rest] : rest;
  const own = !isFirst && word !== part ? uncapitalized(word) : word;
  return [own, ...(others.length === 0 ? [] : wordsIn(others, false))];
}
