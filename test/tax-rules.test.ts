/** Rules of tax in the settings: which one applies, what is refused, and the tax of credit notes. */
import { expect, test } from 'vitest';
import { addressProblem, taxIdProblem, taxNumberProblem } from '../src/config/identifiers.ts';
import { type Sale, taxRuleFor, taxSchema, whyNoTaxRule } from '../src/config/tax.ts';
import { shareCredit } from '../src/documents/document-tax.ts';
import { Amount } from '../src/money.ts';

const problems = (tax: object): string[] =>
  (taxSchema.safeParse({ from: '2026-07', ...tax }).error?.issues ?? []).map(
    ({ path, message }) => `${path.join('.')} ${message}`,
  );
const ruled = (rules: readonly object[], sale: Partial<Sale> = {}): string | undefined =>
  taxRuleFor(taxSchema.parse({ from: '2026-07', rules }), {
    ...{ partner: 'p-1', policy: 'parking', kind: 'non_insurance', country: 'DE', date: '2026-07-31' },
    ...sale,
  })?.rate;
const standard = (rate: string, more: object = {}) => ({ category: 'standard', rate, ...more });

test('the most specific rule applies: partner before policy, policy before kind, kind before country', () => {
  const rules = [
    ...[standard('1'), standard('2', { country: 'DE' }), standard('3', { kind: 'non_insurance' })],
    ...[standard('4', { policy: 'parking' }), standard('5', { partner: 'p-1' })],
  ];
  for (const [count, rate] of ['1', '2', '3', '4', '5'].entries()) {
    expect(ruled(rules.slice(0, count + 1))).toBe(rate);
    expect(ruled(rules.slice(0, count + 1).reverse())).toBe(rate);
  }
  expect(
    ruled([
      standard('6', { policy: 'parking', kind: 'non_insurance', country: 'DE' }),
      standard('5', { partner: 'p-1' }),
    ]),
  ).toBe('5');
  expect(ruled([standard('2', { country: 'FR' })])).toBeUndefined();
});

test('a rule applies from its first day to its last', () => {
  const rules = [standard('16', { until: '2026-12-31' }), standard('19', { from: '2027-01-01' })];
  expect(ruled(rules, { date: '2026-12-31' })).toBe('16');
  expect(ruled(rules, { date: '2027-01-01' })).toBe('19');
  expect(ruled([standard('16', { from: '2026-08-01' })])).toBeUndefined();
});

test('two rules for the same sales on the same day are refused when the settings are read', () => {
  const same = [
    standard('16', { country: 'DE', until: '2026-12-31' }),
    standard('19', { country: 'DE', from: '2026-12-01' }),
  ];
  expect(problems({ rules: same })).toEqual([
    'rules.1 applies to the same sales on the same days as rules.0: limit their dates, or leave one out',
  ]);
  expect(problems({ rules: [same[0], { ...same[1], from: '2027-01-01' }] })).toEqual([]);
  expect(problems({ rules: [same[0], { ...same[1], country: 'FR' }] })).toEqual([]);
});

test('a rule that begins or ends within a month is refused, because a month has one tax point', () => {
  expect(problems({ rules: [standard('16', { from: '2026-08-15' })] })).toEqual([
    'rules.0.from must be the first day of a month',
  ]);
  expect(problems({ rules: [standard('16', { until: '2026-08-30' })] })).toEqual([
    'rules.0.until must be the last day of a month',
  ]);
  expect(problems({ rules: [standard('16', { from: '2028-02-01', until: '2028-02-29' })] })).toEqual([]);
});

test('insurance is charged the standard tax only by a rule that names insurance', () => {
  const insured = { kind: 'insurance', policy: 'cover' };
  const exempt = { kind: 'insurance', category: 'exempt', reason: 'Insurance' };
  for (const rule of [standard('19'), standard('19', { policy: 'cover' }), standard('19', { partner: 'p-1' })]) {
    expect([ruled([rule]), ruled([rule], insured)]).toEqual(['policy' in rule ? undefined : '19', undefined]);
  }
  expect(ruled([standard('19'), exempt], insured)).toBe('0');
  expect(ruled([standard('18', { kind: 'insurance' })], insured)).toBe('18');
  const { rules } = taxSchema.parse({ from: '2026-07', rules: [standard('19')] });
  const sale = { partner: 'p-1', country: 'DE', date: '2026-07-31', ...insured };
  expect(whyNoTaxRule({ rules }, sale)).toBe('rule 1 charges tax, and does not name "kind": "insurance"');
});

test('what a category cannot be is refused with its place', () => {
  const reason = 'Exempt';
  expect(problems({ rules: [standard('0')] })).toEqual(['rules.0.rate of the category standard must be above zero']);
  expect(problems({ rules: [{ category: 'zero', rate: '1' }] })).toEqual([
    'rules.0.rate of the category zero must be 0',
  ]);
  expect(problems({ rules: [{ category: 'exempt' }] })).toEqual([
    'rules.0.reason is required for the category exempt: the document prints it',
  ]);
  expect(problems({ rules: [standard('19', { reason })] })).toEqual([
    'rules.0.reason does not belong to the category standard',
  ]);
  expect(problems({ rules: [{ category: 'exempt', reason, reduced: true }] })).toEqual([
    'rules.0.reduced belongs to the category standard only',
  ]);
  expect(problems({ rules: [standard('19', { from: '2026-08-01', until: '2026-07-31' })] })).toEqual([
    'rules.0.until is before from',
  ]);
  expect(problems({ rules: [] })).toEqual(['rules must name a rule']);
  for (const rate of ['100.5', '19 %', '1e1', '-1', '19.00001', '07', '07.5', '007'])
    expect([rate, problems({ rules: [standard(rate)] }).length]).toEqual([rate, 1]);
  expect(problems({ rules: [{ category: 'reverse_charge', reason_code: 'AE' }] })[0]).toContain('VATEX-EU-AE');
});

test('a registration number is checked where its form is known', () => {
  expect(taxNumberProblem('T7000012050002', 'JP')).toBeUndefined();
  expect(taxNumberProblem('T7000012050003', 'JP')).toBe('has a wrong check digit');
  expect(taxNumberProblem('7000012050002', 'JP')).toContain('T and 13 digits');
  expect(taxNumberProblem('DE123456788', 'DE')).toBeUndefined();
  expect(taxNumberProblem('FR 40 303265045', 'FR')).toBeUndefined();
  expect(taxNumberProblem('EL094259216', 'GR')).toBeUndefined();
  for (const number of ['BE1001686633', 'BE1000003682', 'BE0843766574', 'BE843766574', 'BE 0843.766.574'])
    expect([number, taxNumberProblem(number, 'BE')]).toEqual([number, undefined]);
  expect(addressProblem('0208', '1001686633')).toBeUndefined();
  expect(taxNumberProblem('BE1001686634', 'BE')).toBe('has a wrong check digit');
  expect(taxNumberProblem('DE12345678', 'DE')).toBe('does not have the format of a VAT number of DE');
  expect(taxNumberProblem('DE123456789', 'DE')).toBe('has a wrong check digit');
  expect(taxNumberProblem('FR40303265046', 'FR')).toBe('has a wrong check digit');
  expect(taxNumberProblem('anything', 'US')).toBeUndefined();
  expect(problems({ countries: { JP: { registration: 'T1' } }, rules: [standard('10')] })[0]).toMatch(
    /^countries\.JP\.registration must be T/,
  );
});

test('the tax id of a partner is checked if it begins as the VAT numbers of its country do', () => {
  expect(taxIdProblem('NL12345', 'NL')).toBe('does not have the format of a VAT number of NL');
  expect(taxIdProblem('NL123456789B01', 'NL')).toBe('has a wrong check digit');
  expect(taxIdProblem('NL 0044.95.445 B01', 'NL')).toBeUndefined();
  expect(taxIdProblem('EL094259216', 'GR')).toBeUndefined();
  expect(taxIdProblem('12/345/67890', 'DE')).toBeUndefined();
  expect(taxIdProblem('04-1234567', 'US')).toBeUndefined();
});

test.each([
  ['0088', '4012345000009', '4012345000008', /GLN/],
  ['0208', '0843766574', '0843766575', /wrong check digit/],
  ['0106', '52507270', '5250727', /8 digits/],
  ['0190', '00000001003214345000', '123', /20 digits/],
  ['9944', 'NL004495445B01', 'NL123456789B01', /wrong check digit/],
  ['9944', 'NL004495445B01', '004495445B01', /format of a VAT number of NL/],
  ['9930', 'DE123456788', 'DE123456789', /wrong check digit/],
  ['0192', '923609016', '923609017', /wrong check digit/],
  ['0184', 'DK13585628', 'DK13585629', /wrong check digit/],
  ['0007', '5561888404', '5561888405', /wrong check digit/],
  ['0211', 'IT00743110157', 'IT00743110158', /wrong check digit/],
])('the scheme %s has %s, and not %s', (scheme, right, wrong, reason) => {
  expect(addressProblem(scheme, right)).toBeUndefined();
  expect(addressProblem(scheme, wrong)).toMatch(reason);
});

test('an identifier of a scheme whose form is unknown is taken', () => {
  expect(addressProblem('0204', '04011000-12345-34')).toBeUndefined();
});

test('tax is rounded half away from zero, also below it and without decimals', () => {
  const tax = (amount: string, currency: string, rate: string) =>
    Amount.of(amount, currency).atPercent(rate).toString();
  expect([tax('0.50', 'EUR', '19'), tax('-0.50', 'EUR', '19'), tax('1005', 'JPY', '10')]).toEqual([
    '0.10',
    '-0.10',
    '101',
  ]);
});

test('however a credit is divided, its shares add up, and all credits have the tax of the whole', () => {
  const totals = [
    { position: 1, rate: '19', taxable: '70.01' },
    { position: 2, rate: '7', taxable: '-20.00' },
    { position: 3, rate: '0', taxable: '49.99' },
  ];
  const credited = new Map(totals.map(({ position }) => [position, { taxable: '0.00', tax: '0.00' }]));
  for (const text of ['0.01', '33.33', '16.66', '49.99', '0.01']) {
    const amount = Amount.of(text, 'EUR');
    const before = [...credited].map(([position, sums]) => ({ position, ...sums }));
    const shares = shareCredit(amount, totals, before);
    expect(shares.reduce((sum, { taxable }) => sum.plus(taxable), Amount.zero('EUR')).toString()).toBe(text);
    for (const { position, taxable, tax } of shares) {
      const sums = credited.get(position) ?? { taxable: '0', tax: '0' };
      credited.set(position, {
        taxable: Amount.of(sums.taxable, 'EUR').plus(taxable).toString(),
        tax: Amount.of(sums.tax, 'EUR').plus(tax).toString(),
      });
    }
  }
  expect([...credited.values()]).toEqual([
    { taxable: '70.01', tax: '13.30' },
    { taxable: '-20.00', tax: '-1.40' },
    { taxable: '49.99', tax: '0.00' },
  ]);
});

test('where nothing is left of an invoice, a credit has no shares', () => {
  const totals = [
    { position: 1, rate: '19', taxable: '100.00' },
    { position: 2, rate: '16', taxable: '-100.00' },
  ];
  const amount = Amount.of('10', 'EUR');
  expect(shareCredit(amount, totals, [])).toEqual([]);
  const credited = [{ position: 1, taxable: '100.00', tax: '19.00' }];
  expect(shareCredit(amount, totals.slice(0, 1), credited)).toEqual([]);
});
