/** Lists the missing data that a profile of EN 16931 requires, each with its field and its term (BT, BG). */
import { COUNTRIES, EInvoiceFormat, isRefusedByPeppol } from '#config/e-invoice';
import { VatCategory } from '#config/tax';
import { minorDigits } from '#money';
import { Buyer, isGerman, Parties, Seller, vatIdOf } from './model.ts';

export type Lack = Readonly<{
  term: string;
  file: 'settings.json' | 'partners.json';
  field: string;
}>;

type Demand = Readonly<{
  format: EInvoiceFormat;
  parties: Parties;
  currency: string;
  /** None if the reason for charging no tax is missing. */
  categories: readonly VatCategory[];
  /** Whether the document names an account to pay into, or nothing is due. */
  hasAccount: boolean;
}>;

export const FORMAT_NAMES: Readonly<Record<EInvoiceFormat, string>> = {
  facturx: 'Factur-X',
  ubl: 'Peppol BIS',
  xrechnung: 'XRechnung',
};

export function lackingOf(demand: Demand): Lack[] {
  const { parties, format, currency, categories } = demand;
  return [
    ...sellerLacks(parties, format, categories),
    ...buyerLacks(parties, format, categories),
    ...(format === 'ubl' ? peppolLacks(parties, currency) : []),
    ...(demand.hasAccount ? [] : [lack('settings.json', `instructions.${currency}.wire`, 'BG-17')]),
    ...((minorDigits(currency) ?? 0) > 2
      ? [lack('partners.json', `e_invoice none: ${TWO_DECIMALS}`, CURRENCY_TERM)]
      : []),
  ];
}

/** The term of EN 16931 for the currency of a document. */
export const CURRENCY_TERM = 'BT-5';
const TWO_DECIMALS = 'EN 16931 has two decimals, and its currency has more';

const lack = (file: Lack['file'], field: string, term: string) => ({ file, field, term });

function missing<P>(
  file: Lack['file'],
  party: P,
  demanded: readonly (readonly [keyof P, field: string, term: string])[],
) {
  return demanded.filter(([key]) => party[key] === '').map(([, field, term]) => lack(file, field, term));
}

const unknownCountry = (file: Lack['file'], country: string, field: string, term: string) =>
  country === '' || COUNTRIES.has(country) ? [] : [lack(file, `${field} that ISO 3166 has`, term)];

function sellerLacks(parties: Parties, format: EInvoiceFormat, categories: readonly VatCategory[]) {
  const { seller } = parties;
  const own = 'settings.json' as const;
  const german = isGerman(format, parties);
  const vatId = categories.includes('O') ? '' : vatIdOf(seller.tax_id);
  const lacks = missing<Seller>(own, seller, [
    ['name', 'issuer.legal_name', 'BT-27'],
    ['country', 'issuer.address.country', 'BT-40'],
    ...(format === 'facturx'
      ? []
      : ([['electronic_address', 'issuer.e_invoice.electronic_address', 'BT-34']] as const)),
    ...(german
      ? ([
          ['city', 'issuer.address.city', 'BT-37'],
          ['postal_code', 'issuer.address.postal_code', 'BT-38'],
          ['contact_name', 'issuer.e_invoice.contact_name', 'BT-41'],
          ['phone', 'issuer.phone', 'BT-42'],
          ['email', 'issuer.email', 'BT-43'],
        ] as const)
      : []),
  ]);
  lacks.push(...unknownCountry(own, seller.country, 'issuer.address.country', 'BT-40'));
  // BR-DE-27.
  if (german && seller.phone !== '' && !/\d.*\d.*\d/.test(seller.phone)) {
    lacks.push(lack(own, 'issuer.phone with three digits', 'BT-42'));
  }
  if (categories.length === 0) lacks.push(lack(own, 'issuer.e_invoice.no_tax', 'BT-151'));
  // BR-S-02, BR-Z-02, BR-E-02, BR-AE-02.
  if (seller.tax_id === '' && categories.some((each) => each !== 'O')) lacks.push(lack(own, 'issuer.tax_id', 'BT-31'));
  // BR-CO-26.
  else if (vatId === '' && seller.registration_id === '')
    lacks.push(lack(own, 'issuer.e_invoice.registration_id', 'BT-30'));
  return lacks;
}

function buyerLacks(parties: Parties, format: EInvoiceFormat, categories: readonly VatCategory[]) {
  const { buyer } = parties;
  const theirs = 'partners.json' as const;
  const german = isGerman(format, parties);
  const lacks = missing<Buyer>(theirs, buyer, [
    ['name', 'name', 'BT-44'],
    ['country', 'address.country', 'BT-55'],
    ...(format === 'facturx' ? [] : ([['electronic_address', 'electronic_address', 'BT-49']] as const)),
    ...(german
      ? ([
          ['city', 'address.city', 'BT-52'],
          ['postal_code', 'address.postal_code', 'BT-53'],
          ['buyer_reference', 'buyer_reference', 'BT-10'],
        ] as const)
      : []),
  ]);
  lacks.push(...unknownCountry(theirs, buyer.country, 'address.country', 'BT-55'));
  // Peppol R003.
  if (format === 'ubl' && !german && buyer.buyer_reference === '' && buyer.purchase_order === '') {
    lacks.push(lack(theirs, 'buyer_reference or purchase_order', 'BT-10'));
  }
  // BR-AE-02.
  if (categories.includes('AE') && vatIdOf(buyer.tax_id) === '') lacks.push(lack(theirs, 'tax_id', 'BT-48'));
  return lacks;
}

/** The data that Peppol does not accept, so that another format or scheme is needed. */
function peppolLacks({ seller, buyer }: Parties, currency: string) {
  const another = 'of another scheme (Peppol does not accept AN, AQ, AS, AU and EM: PEPPOL-EN16931-CL008)';
  const other = (why: string) => lack('partners.json', `e_invoice other than ubl: ${why}`, 'BT-40');
  const ofSeller = lack('settings.json', `issuer.e_invoice.electronic_address ${another}`, 'BT-34');
  return [
    ...(isRefusedByPeppol(seller.electronic_address) ? [ofSeller] : []),
    ...(isRefusedByPeppol(buyer.electronic_address)
      ? [lack('partners.json', `electronic_address ${another}`, 'BT-49')]
      : []),
    ...(seller.country === 'GR'
      ? [other('for a Greek seller, Peppol requires data that only myDATA gives (GR-R)')]
      : []),
    ...(seller.country === 'DK' && buyer.country === 'DK' && currency !== 'EUR'
      ? [other('within Denmark, Peppol does not accept a plain credit transfer (DK-R-005)')]
      : []),
  ];
}

/** `buyer_reference (BT-10) and address.city (BT-52) in partners.json; issuer.phone (BT-42) in settings.json`. */
export function lackingText(lacks: readonly Lack[]) {
  const files = [...new Set(lacks.map(({ file }) => file))].sort();
  return files
    .map((file) => {
      const fields = lacks.filter((each) => each.file === file).map(({ field, term }) => `${field} (${term})`);
      return `${fields.join(', ')} in ${file}`;
    })
    .join('; ');
}
