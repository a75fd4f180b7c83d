/** Who sells: partners, the arrangements under which they sell, and the policies they sell. */
import type { Knex } from 'knex';

const IDENTIFIER = `'^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$'`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    CREATE TABLE partners (
      partner_id text COLLATE "C" PRIMARY KEY CONSTRAINT partner_id_form CHECK (partner_id ~ ${IDENTIFIER}),
      name text NOT NULL CONSTRAINT partner_has_name CHECK (name <> ''),
      address_line1 text NOT NULL,
      address_line2 text NOT NULL,
      address_city text NOT NULL,
      address_region text NOT NULL,
      address_postal_code text NOT NULL,
      address_country text NOT NULL,
      contact_name text NOT NULL,
      contact_email text NOT NULL,
      contact_cc text[] NOT NULL,
      currency text NOT NULL CONSTRAINT partner_currency_form CHECK (currency ~ '^[A-Z]{3}$'),
      time_zone text NOT NULL,
      -- NULL: the issuer's terms at the time of issue.
      payment_terms_days integer CONSTRAINT partner_terms_range CHECK (payment_terms_days BETWEEN 0 AND 365),
      tax_id text NOT NULL,
      purchase_order text NOT NULL,
      legal_note text NOT NULL,
      -- NULL: active. Quotes accepted from this instant on are refused.
      inactive_since timestamptz,
      imported_at timestamptz NOT NULL
    )`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE', 'partners')`);

  // The arrangement from a month on: that of the latest month not after a row's own month applies to the row.
  await knex.raw(`
    CREATE TABLE partner_arrangements (
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      from_month billing_month NOT NULL,
      arrangement text NOT NULL CONSTRAINT arrangement_known CHECK (arrangement IN ('invoicing', 'connected_account')),
      connected_account_id text,
      merchant_of_record text CONSTRAINT merchant_known CHECK (merchant_of_record IN ('platform', 'third_party')),
      split text CONSTRAINT split_known CHECK (split IN ('real_time', 'sequential')),
      PRIMARY KEY (partner_id, from_month),
      CONSTRAINT connected_account_complete CHECK (
        (arrangement = 'connected_account') = (connected_account_id IS NOT NULL)
        AND (arrangement = 'connected_account') = (merchant_of_record IS NOT NULL)
        AND (arrangement = 'connected_account') = (split IS NOT NULL)),
      -- service.md 7.3.1
      CONSTRAINT real_time_needs_platform_merchant CHECK (NOT (split = 'real_time' AND merchant_of_record = 'third_party'))
    )`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE', 'partner_arrangements')`);

  await knex.raw(`
    CREATE TABLE policies (
      partner_id text COLLATE "C" NOT NULL REFERENCES partners,
      policy_id text COLLATE "C" NOT NULL CONSTRAINT policy_id_form CHECK (policy_id ~ ${IDENTIFIER}),
      name text NOT NULL CONSTRAINT policy_has_name CHECK (name <> ''),
      kind text NOT NULL CONSTRAINT policy_kind_known CHECK (kind IN ('insurance', 'non_insurance')),
      partner_cut_rate numeric NOT NULL CONSTRAINT partner_cut_rate_range CHECK (partner_cut_rate BETWEEN 0 AND 1),
      price_rate numeric CONSTRAINT price_rate_range CHECK (price_rate >= 0),
      price_minimum numeric CONSTRAINT price_minimum_range CHECK (price_minimum >= 0),
      inactive_since timestamptz,
      PRIMARY KEY (partner_id, policy_id),
      CONSTRAINT price_complete CHECK ((price_rate IS NULL) = (price_minimum IS NULL))
    )`);
  await knex.raw(`CALL grant_to_app('SELECT, INSERT, UPDATE', 'policies')`);
}
