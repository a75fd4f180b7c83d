/**
 * The settings that `init` writes. In sandbox, they are complete and visibly fictitious, so that a month can be closed
 * at once. In production, what only the issuer knows is empty.
 */
import { EnvironmentName } from './environment.ts';
import { SettingsFile } from './settings.ts';

const EMPTY = { line1: '', line2: '', city: '', region: '', postal_code: '', country: '' };

const EXAMPLE_BANK = {
  bank_name: 'Example Bank (fictitious)',
  bank_address: {
    ...EMPTY,
    line1: '100 Imaginary Plaza',
    city: 'Springfield',
    region: 'IL',
    postal_code: '62701',
    country: 'US',
  },
};
const EXAMPLE_HOLDER = {
  account_holder: 'Sandbox Protection Services, Inc.',
  account_holder_address: {
    ...EMPTY,
    line1: '1 Example Street',
    line2: 'Suite 200',
    city: 'New York',
    region: 'NY',
    postal_code: '10001',
    country: 'US',
  },
};

const SANDBOX: SettingsFile = {
  issuer: {
    legal_name: EXAMPLE_HOLDER.account_holder,
    address: EXAMPLE_HOLDER.account_holder_address,
    email: 'billing@protection.example',
    // 555-0100 to 555-0199 are reserved for fiction.
    phone: '+1 212 555 0142',
    tax_id: '00-0000000',
    logo: '',
  },
  time_zone: 'America/New_York',
  payment_terms_days: 30,
  public_url: 'http://127.0.0.1:8080',
  mail_from: 'billing@protection.example',
  reply_to: 'finance@protection.example',
  finance_email: 'finance@protection.example',
  auditor_email: 'auditor@protection.example',
  operations_email: 'operations@protection.example',
  sandbox_recipients: ['.example', '.test'],
  instructions: {
    USD: {
      ach: {
        ...EXAMPLE_HOLDER,
        ...EXAMPLE_BANK,
        routing_number: '123456780',
        account_number: '000123456789',
        account_type: 'checking',
      },
      wire: {
        ...EXAMPLE_HOLDER,
        ...EXAMPLE_BANK,
        routing_number: '100000007',
        account_number: '000123456789',
        bic: 'EXMPUS33XXX',
      },
    },
    '*': {
      wire: {
        ...EXAMPLE_HOLDER,
        bank_name: 'Example International Bank (fictitious)',
        bank_address: { ...EMPTY, line1: '1 Nowhere Lane', city: 'London', postal_code: 'EC1A 1AA', country: 'GB' },
        iban: 'GB82WEST12345698765432',
        bic: 'WESTGB2LXXX',
        intermediary: { bank_name: 'Example Correspondent Bank (fictitious)', bic: 'EXMPUS33XXX' },
      },
    },
  },
  payment_link: { provider: 'page' },
  partner_id_header: 'X-Service-Partner-Id',
};

const PRODUCTION: SettingsFile = {
  ...SANDBOX,
  issuer: { legal_name: '', address: EMPTY, email: '', phone: '', tax_id: '', logo: '' },
  public_url: '',
  mail_from: '',
  reply_to: '',
  finance_email: '',
  auditor_email: '',
  operations_email: '',
  instructions: { USD: { ach: {}, wire: {} }, '*': { wire: {} } },
  // By these, one administrator could create or remove the second person.
  approvals: { 'user.invite': {}, 'user.link': {}, 'user.role': {}, 'user.deactivate': {} },
};

export const firstSettings = (environment: EnvironmentName): SettingsFile =>
  environment === 'sandbox' ? SANDBOX : PRODUCTION;
