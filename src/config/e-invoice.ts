/** What settings and partners say for e-invoices (EN 16931): the formats, electronic addresses, and why there is no tax. */
import { z } from 'zod';
import { line } from './validation.ts';

/** Factur-X (ZUGFeRD) inside the PDF, UBL as Peppol BIS Billing 3, UBL as XRechnung. */
export const E_INVOICE_FORMATS = ['facturx', 'ubl', 'xrechnung'] as const;
export type EInvoiceFormat = (typeof E_INVOICE_FORMATS)[number];

/** Schemes of electronic addresses: the EAS code list of the European Commission, as the rules 1.3.16 have it. */
export const ADDRESS_SCHEMES: ReadonlySet<string> = new Set(
  `0002 0007 0009 0037 0060 0088 0096 0097 0106 0130 0135 0142 0147 0151 0154 0158 0170 0177 0183 0184 0188 0190 0191
   0192 0193 0194 0195 0196 0198 0199 0200 0201 0202 0203 0204 0205 0208 0209 0210 0211 0212 0213 0215 0216 0217 0218
   0219 0220 0221 0225 0230 0235 0240 0242 0244 0245 0246 0248 9910 9913 9914 9915 9918 9919 9920 9922 9923 9924 9925
   9926 9927 9928 9929 9930 9931 9932 9933 9934 9935 9936 9937 9938 9939 9940 9941 9942 9943 9944 9945 9946 9947 9948
   9949 9950 9951 9952 9953 9957 9959 AN AQ AS AU EM`.split(/\s+/),
);

/** `0208:0843766574`: the scheme, a colon and the address. */
export const electronicAddress = line(130).refine((text) => {
  const [, scheme = '', id = ''] = /^([^:]*):(\S+)$/.exec(text) ?? [];
  return ADDRESS_SCHEMES.has(scheme) && id !== '';
}, 'must be a scheme of the EAS code list, a colon and the address, such as 0208:0843766574 or EM:ap@partner.example');

/** `0002:732829320`, or an id alone: a register's code of ISO 6523, a colon and the id there. */
export const registrationId = line(100).regex(
  /^(\d{4}:)?[^:\s][^:]*$/,
  "must be the seller's id in a register, such as 0002:732829320",
);

const REASON_CODE = /^VATEX-[A-Z0-9]+(-[A-Z0-9]+)*$/;

/** Why documents charge no tax: a category of EN 16931 with its reason. Finance's word, printed as it is. */
const noTaxSchema = z
  .strictObject({
    category: z.enum(['Z', 'E', 'AE', 'O']),
    reason: line(200).default(''),
    reason_code: z
      .union([z.literal(''), z.string().regex(REASON_CODE, 'must be a code of the VATEX list such as VATEX-EU-AE')])
      .default(''),
  })
  .superRefine(({ category, reason, reason_code: code }, context) => {
    const given = reason !== '' || code !== '';
    const message = category === 'Z' ? 'has no place with category Z' : `is needed with category ${category}`;
    if (given === (category === 'Z')) context.addIssue({ code: 'custom', path: ['reason'], message });
  });
export type NoTax = z.output<typeof noTaxSchema>;

/** What e-invoices say of the seller besides what documents print. */
export const eInvoiceSellerSchema = z.strictObject({
  /** A person or department (BT-41). */
  contact_name: line().default(''),
  electronic_address: z.union([z.literal(''), electronicAddress]).default(''),
  registration_id: z.union([z.literal(''), registrationId]).default(''),
  no_tax: noTaxSchema.nullable().default(null),
});
export type EInvoiceSeller = z.output<typeof eInvoiceSellerSchema>;
