/** Settings and partner fields for e-invoices (EN 16931): formats, electronic addresses, and reasons for no tax. */
import { z } from 'zod';
import { addressProblem } from './identifiers.ts';
import { line } from './validation.ts';

/** Factur-X (ZUGFeRD) is embedded in the PDF. UBL is Peppol BIS Billing 3. */
export const E_INVOICE_FORMATS = ['facturx', 'ubl', 'xrechnung'] as const;
export type EInvoiceFormat = (typeof E_INVOICE_FORMATS)[number];

/** EAS (schemes of electronic addresses), as in version 1.3.16 of the EN 16931 rules. */
const ADDRESS_SCHEMES: ReadonlySet<string> = new Set(
  `0002 0007 0009 0037 0060 0088 0096 0097 0106 0130 0135 0142 0147 0151 0154 0158 0170 0177 0183 0184 0188 0190 0191
   0192 0193 0194 0195 0196 0198 0199 0200 0201 0202 0203 0204 0205 0208 0209 0210 0211 0212 0213 0215 0216 0217 0218
   0219 0220 0221 0225 0230 0235 0240 0242 0244 0245 0246 0248 9910 9913 9914 9915 9918 9919 9920 9922 9923 9924 9925
   9926 9927 9928 9929 9930 9931 9932 9933 9934 9935 9936 9937 9938 9939 9940 9941 9942 9943 9944 9945 9946 9947 9948
   9949 9950 9951 9952 9953 9957 9959 AN AQ AS AU EM`.split(/\s+/),
);

/** ISO 3166 country codes, as in version 1.3.16 of the EN 16931 rules. */
export const COUNTRIES: ReadonlySet<string> = new Set(
  `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ
   CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO
   FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE
   JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO
   MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW
   PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM
   TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`.split(/\s+/),
);

/** VATEX (reasons why no tax is charged), as in version 1.3.16 of the EN 16931 rules, without the prefix `VATEX-`. */
const REASON_CODES: ReadonlySet<string> = new Set(
  `EU-79-C EU-132 EU-132-1A EU-132-1B EU-132-1C EU-132-1D EU-132-1E EU-132-1F EU-132-1G EU-132-1H EU-132-1I
   EU-132-1J EU-132-1K EU-132-1L EU-132-1M EU-132-1N EU-132-1O EU-132-1P EU-132-1Q EU-135-1 EU-143 EU-143-1A
   EU-143-1B EU-143-1C EU-143-1D EU-143-1E EU-143-1F EU-143-1FA EU-143-1G EU-143-1H EU-143-1I EU-143-1J EU-143-1K
   EU-143-1L EU-144 EU-146-1E EU-159 EU-309 EU-148 EU-148-A EU-148-B EU-148-C EU-148-D EU-148-E EU-148-F EU-148-G
   EU-151 EU-151-1A EU-151-1AA EU-151-1B EU-151-1C EU-151-1D EU-151-1E EU-G EU-O EU-IC EU-AE EU-D EU-F EU-I EU-J
   FR-FRANCHISE FR-CNWVAT EU-153 FR-CGI261-1 FR-CGI261-2 FR-CGI261-3 FR-CGI261-4 FR-CGI261-5 FR-CGI261-7 FR-
   CGI261-8 FR-CGI261A FR-CGI261B FR-CGI261C-1 FR-CGI261C-2 FR-CGI261C-3 FR-CGI261D-1 FR-CGI261D-1BIS FR-CGI261D-2
   FR-CGI261D-3 FR-CGI261D-4 FR-CGI261E-1 FR-CGI261E-2 FR-CGI277A FR-CGI275 FR-298SEXDECIESA FR-CGI295 FR-AE`.split(
    /\s+/,
  ),
);

/**
 * Of each code that belongs to only one category (Peppol P0104 to P0111), without G and K, which Reckoner does not use.
 */
const CATEGORY_OF_CODE: Readonly<Record<string, string>> = {
  'VATEX-EU-AE': 'AE',
  'VATEX-EU-D': 'E',
  'VATEX-EU-F': 'E',
  'VATEX-EU-G': 'G',
  'VATEX-EU-I': 'E',
  'VATEX-EU-IC': 'K',
  'VATEX-EU-J': 'E',
  'VATEX-EU-O': 'O',
};

/** Why a VATEX code cannot be the reason for a category (`E`, `AE`, `O`); undefined if it can. */
export function reasonCodeProblem(code: string, category: string) {
  if (!REASON_CODES.has(code.replace(/^VATEX-/, ''))) return 'must be a VATEX code such as VATEX-EU-AE';
  const own = CATEGORY_OF_CODE[code] ?? category;
  return own === category ? undefined : `belongs to the category ${own}, not to ${category}`;
}

export const electronicAddress = line(130).superRefine((text, context) => {
  const [, scheme = '', id = ''] = /^([^:]*):(\S+)$/.exec(text) ?? [];
  const isKnown = ADDRESS_SCHEMES.has(scheme) && id !== '';
  const message = isKnown
    ? addressProblem(scheme, id)
    : 'must be a scheme of the EAS code list, a colon and the address, such as 0208:0843766574';
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

/** XRechnung and Factur-X accept these schemes. */
export const isRefusedByPeppol = (address: string) => /^(AN|AQ|AS|AU|EM):/.test(address);

const registrationId = line(100).refine((text) => {
  const [, register] = /^(?:(\d{4}):)?[^:\s][^:]*$/.exec(text) ?? ['', 'none'];
  return register === undefined || isRegister(register);
}, "must be the seller's id in a register, alone or after the register's ISO 6523 code, such as 0002:732829320");

/** ISO 6523 codes, as in version 1.3.16 of the EN 16931 rules. */
const isRegister = (code: string) =>
  /^\d{4}$/.test(code) && code >= '0002' && code <= '0248' && !['0092', '0103', '0181', '0182'].includes(code);

/** An EN 16931 category, and a reason that is printed as written. */
const noTaxSchema = z
  .strictObject({
    category: z.enum(['Z', 'E', 'AE', 'O']),
    reason: line(200).default(''),
    reason_code: line(60).default(''),
  })
  .superRefine(({ category, reason, reason_code: code }, context) => {
    const given = reason !== '' || code !== '';
    const message = category === 'Z' ? 'is not allowed with category Z' : `is needed with category ${category}`;
    const problem = code === '' || category === 'Z' ? undefined : reasonCodeProblem(code, category);
    if (problem !== undefined) context.addIssue({ code: 'custom', path: ['reason_code'], message: problem });
    if (given === (category === 'Z')) context.addIssue({ code: 'custom', path: ['reason'], message });
  });
export type NoTax = z.output<typeof noTaxSchema>;

/** The seller's data that only e-invoices state. */
export const eInvoiceSellerSchema = z.strictObject({
  /** A person or department (BT-41). */
  contact_name: line().default(''),
  electronic_address: z.union([z.literal(''), electronicAddress]).default(''),
  registration_id: z.union([z.literal(''), registrationId]).default(''),
  no_tax: noTaxSchema.nullable().default(null),
});
