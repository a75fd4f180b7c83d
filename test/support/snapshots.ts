/** Contents of documents for tests: a usual invoice, in which a test can change anything. */
import type { AchInstructions, Instructions, WireInstructions } from '../../src/config/instructions.ts';
import type { Address } from '../../src/config/validation.ts';
import type { DocumentSnapshot, RowKind, SnapshotLine } from '../../src/documents/snapshot.ts';
import { Amount, minorDigits } from '../../src/money.ts';
import type { Month } from '../../src/month.ts';

const address = (fields: Partial<Address>): Address => ({
  line1: '',
  line2: '',
  city: '',
  region: '',
  postal_code: '',
  country: '',
  ...fields,
});

export const issuerAddress = address({
  line1: '48 Commercial Wharf, Floor 3',
  city: 'Boston',
  region: 'MA',
  postal_code: '02110',
  country: 'US',
});

const bankAddress = address({
  line1: '1 Federal Street',
  city: 'Boston',
  region: 'MA',
  postal_code: '02110',
  country: 'US',
});

export const ach: AchInstructions = {
  account_holder: 'Fairweather Protection, Inc.',
  account_holder_address: issuerAddress,
  bank_name: 'First Harbor National Bank',
  bank_address: bankAddress,
  routing_number: '011000015',
  account_number: '4400123456789',
  account_type: 'checking',
};

export const wire: WireInstructions = {
  account_holder: 'Fairweather Protection, Inc.',
  account_holder_address: issuerAddress,
  bank_name: 'First Harbor National Bank',
  bank_address: bankAddress,
  routing_number: '011000028',
  account_number: '4400123456789',
  bic: 'FHNBUS33',
};

/** Instructions for a wire from abroad, with every possible field. */
export const internationalWire: WireInstructions = {
  account_holder: 'Fairweather Protection, Inc.',
  account_holder_address: issuerAddress,
  bank_name: 'Hanseatische Handelsbank AG',
  bank_address: address({ line1: 'Neuer Wall 10', city: 'Hamburg', postal_code: '20354', country: 'DE' }),
  iban: 'DE89370400440532013000',
  bic: 'COBADEFFXXX',
  intermediary: {
    bank_name: 'Correspondent Bank of New York',
    bank_address: address({
      line1: '225 Liberty Street',
      city: 'New York',
      region: 'NY',
      postal_code: '10281',
      country: 'US',
    }),
    bic: 'IRVTUS3NXXX',
  },
};

export const instructions: Instructions = { ach, wire };

/** A line whose share and price add up; `invoiceAmount` is the rest. */
export function line(
  policy: string,
  kind: RowKind,
  count: number,
  spotPrice: string,
  partnerCut: string,
  { month = '2026-10', currency = 'USD' } = {},
): SnapshotLine {
  const price = Amount.of(spotPrice, currency);
  const cut = Amount.of(partnerCut, currency);
  return {
    policy_id: policy.toLowerCase().replace(/[^a-z0-9]+/g, '-') || 'policy',
    policy_name: policy,
    kind,
    month: month as Month,
    count,
    spotPrice: price.toString(),
    partnerCut: cut.toString(),
    invoiceAmount: price.minus(cut).toString(),
  };
}

export const usualLines: readonly SnapshotLine[] = [
  line('Ticket Protection', 'quote_accepted', 412, '18540.00', '5562.00'),
  line('Ticket Protection', 'requote_accepted', 23, '310.50', '93.15'),
  line('Ticket Protection', 'reversal', 9, '-405.00', '-121.50'),
  line('Travel Delay Cover', 'quote_accepted', 1180, '9440.00', '2360.00'),
  line('Travel Delay Cover', 'reversal', 14, '-112.00', '-28.00'),
];

export const lateLines: readonly SnapshotLine[] = [
  line('Ticket Protection', 'quote_accepted', 4, '180.00', '54.00', { month: '2026-08' }),
  line('Ticket Protection', 'reversal', 2, '-90.00', '-27.00', { month: '2026-08' }),
];

type Totals = 'enrollments' | 'spotPrice' | 'partnerCut' | 'invoiceAmount' | 'amount_due';

function totalsOf(
  lines: readonly SnapshotLine[],
  currency: string,
  creditApplied: string,
): Pick<DocumentSnapshot, Totals> {
  const sum = (name: 'spotPrice' | 'partnerCut' | 'invoiceAmount') =>
    lines.reduce((total, each) => total.plus(Amount.of(each[name], currency)), Amount.zero(currency));
  return {
    enrollments: lines.filter((each) => each.kind === 'quote_accepted').reduce((total, each) => total + each.count, 0),
    spotPrice: sum('spotPrice').toString(),
    partnerCut: sum('partnerCut').toString(),
    invoiceAmount: sum('invoiceAmount').toString(),
    amount_due: sum('invoiceAmount').minus(Amount.of(creditApplied, currency)).toString(),
  };
}

/** A usual invoice with these differences. Totals follow from its lines unless they are given too. */
export function snapshot(overrides: Partial<DocumentSnapshot> = {}): DocumentSnapshot {
  const lines = overrides.lines ?? usualLines;
  const currency = overrides.currency ?? 'USD';
  const zero = Amount.zero(currency).toString();
  const totals = totalsOf(lines, currency, overrides.credit_applied ?? zero);
  return {
    document: 'invoice',
    purpose: 'month',
    number: 'INV-2026-000042',
    month: '2026-10' as Month,
    currency,
    issued_on: '2026-11-01',
    due_on: '2026-12-01',
    terms_days: 30,
    sandbox: false,
    issuer: {
      legal_name: 'Fairweather Protection, Inc.',
      address: issuerAddress,
      email: 'billing@fairweather.example',
      phone: '+1 617 555 0142',
      tax_id: '04-1234567',
      logo: null,
    },
    partner: {
      partner_id: 'p-harbour-lights',
      name: 'Harbour Lights Ticketing',
      contact_name: 'Accounts Payable',
      address: address({
        line1: '200 Queens Quay West',
        line2: 'Suite 410',
        city: 'Toronto',
        region: 'ON',
        postal_code: 'M5J 2Y9',
        country: 'CA',
      }),
      tax_id: '',
      purchase_order: '',
      legal_note: '',
    },
    lines,
    ...totals,
    credit_applied: zero,
    replaces: null,
    credits: null,
    reason: null,
    checkpoint: null,
    payment_link: 'https://billing.fairweather.example/pay/Zk3vQ9mXb27LrTn0cYw5HdPe8sUaJf41',
    instructions,
    instructions_changed: false,
    ...overrides,
  };
}

/** For documents with nothing to pay: no date, no terms, no instructions. */
const nothingToPay = {
  due_on: null,
  terms_days: null,
  payment_link: null,
  instructions: null,
} as const;

export function creditNote(overrides: Partial<DocumentSnapshot> = {}): DocumentSnapshot {
  return snapshot({
    document: 'credit_note',
    number: 'CN-2026-000003',
    lines: [
      line('Ticket Protection', 'quote_accepted', 3, '-135.00', '-40.50'),
      line('Ticket Protection', 'reversal', 21, '945.00', '283.50'),
    ],
    ...nothingToPay,
    ...overrides,
  });
}

export function statement(overrides: Partial<DocumentSnapshot> = {}): DocumentSnapshot {
  return snapshot({ document: 'statement', number: 'ST-2026-000007', ...nothingToPay, ...overrides });
}

/** A credit note against an invoice, with a reason and without ledger rows. */
export function adjustment(overrides: Partial<DocumentSnapshot> = {}): DocumentSnapshot {
  return snapshot({
    document: 'credit_note',
    purpose: 'adjustment',
    number: 'CN-2026-000004',
    lines: [],
    spotPrice: '0.00',
    partnerCut: '0.00',
    invoiceAmount: '1250.00',
    amount_due: '1250.00',
    credits: 'INV-2026-000042',
    lowered: { by: '1250.00', left: '18657.85' },
    reason: 'Enrollments of the cancelled harbour festival, as agreed on 12 November',
    ...nothingToPay,
    ...overrides,
  });
}

/** An invoice of a month that came to zero. */
export function zeroInvoice(overrides: Partial<DocumentSnapshot> = {}): DocumentSnapshot {
  return snapshot({
    lines: [
      line('Ticket Protection', 'quote_accepted', 2, '90.00', '27.00'),
      line('Ticket Protection', 'reversal', 2, '-90.00', '-27.00'),
    ],
    payment_link: null,
    instructions: null,
    ...overrides,
  });
}

/** The largest amount that a currency's rows may add up to in these tests, with the currency's own digits. */
export function hugeAmount(currency: string): string {
  const digits = minorDigits(currency) ?? 0;
  return digits === 0 ? '8109278618661' : `8109278618661.${'6275'.slice(0, digits)}`;
}
