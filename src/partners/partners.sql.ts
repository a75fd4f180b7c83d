import { isDeepStrictEqual } from 'node:util';
import { Settings } from '#config/settings';
import {
  columnsOf,
  execute,
  executing,
  query,
  querying,
  queryingOne,
  queryOne,
  Transaction,
} from '#database/transaction';
import { Month } from '#month';
import { FieldChange } from '#people/field-changes';
import { Scope } from '#people/scope';
import { CancellationTerms, mergedTerms } from './cancellation.ts';
import { PartnerRecord, PolicyRecord } from './file.ts';

export type Arrangement = Readonly<{
  partner_id: string;
  from_month: Month;
  arrangement: 'invoicing' | 'connected_account';
  connected_account_id: string | null;
  merchant_of_record: 'platform' | 'third_party' | null;
  split: 'real_time' | 'sequential' | null;
  settlement_currencies: readonly string[] | null;
  connected_account_type: 'standard' | 'express' | 'custom' | null;
  connected_account_state: 'invited' | 'onboarding' | 'active' | 'restricted' | 'disconnected' | null;
  /** The source of the balance transactions; null is treated as `processor`. */
  balance_transactions_from: 'processor' | 'settlement_file' | null;
}>;

/** The month from which a partner's first arrangement applies. */
export const ALWAYS = '0001-01' as Month;

const ADDRESS = 'address_line1, address_line2, address_city, address_region, address_postal_code, address_country';
const PLAIN = `reminder_email, statement_email, dispute_email, currency, time_zone, payment_terms_days,
  payment_terms_end_of_month, payment_terms_day, tax_id, purchase_order, legal_note, parent, account_statement,
  e_invoice, buyer_reference, electronic_address, feed`;

/** The columns that the arrangement of a month determines. */
export const OF_ARRANGEMENT = [
  'arrangement',
  'connected_account_id',
  'merchant_of_record',
  'split',
  'settlement_currencies',
  'connected_account_type',
  'connected_account_state',
  'balance_transactions_from',
] as const;

/**
 * SQL that inserts rows, and updates those that differ. A row that stays inactive keeps the time of the first import that
 * made it inactive.
 */
const upsert = (table: string, key: string, columns: string, rows: string) => `
  INSERT INTO ${table} AS stored (${key}, ${columns}, inactive_since)
  SELECT ${columnsOf('f', `${key}, ${columns}, inactive_since`)} FROM ${rows} AS f
  ON CONFLICT (${key}) DO UPDATE SET (${columns}, inactive_since) = (
    ${columnsOf('excluded', columns)},
    CASE WHEN excluded.inactive_since IS NOT NULL
         THEN coalesce(stored.inactive_since, excluded.inactive_since) END)
  WHERE (${columnsOf('stored', columns)}, stored.inactive_since IS NULL)
    IS DISTINCT FROM (${columnsOf('excluded', columns)}, excluded.inactive_since IS NULL)`;

const UPSERT_PARTNERS = upsert(
  'partners',
  'partner_id',
  `name, ${ADDRESS}, contact_name, contact_email, contact_cc, ${PLAIN}`,
  'json_populate_recordset(NULL::partners, :partners::json)',
);

/** Inserts and updates partners. Returns the changed partners, and whether each is new. */
export function upsertPartners(
  tx: Transaction,
  partners: readonly PartnerRecord[],
  now: string,
): Promise<{ partner_id: string; created: boolean }[]> {
  const rows = partners.map(({ address, invoicing_contact: { name, email, cc }, active, ...partner }) => ({
    ...partner,
    ...Object.fromEntries(Object.entries(address).map(([field, value]) => [`address_${field}`, value])),
    ...{ contact_name: name, contact_email: email, contact_cc: cc, inactive_since: active ? null : now },
  }));
  return query(tx, `${UPSERT_PARTNERS} RETURNING partner_id, (xmax = 0) AS created`, { partners: rows });
}

export const readParents = querying<{ partner_id: string; parent: string | null }>(
  `SELECT partner_id, parent FROM partners`,
);

/**
 * Inserts and updates policies. Keeps policies that the file omits. If a file's first rate has a day, days before it
 * keep the rates that they had. Returns the partners whose policies changed.
 */
export async function upsertPolicies(tx: Transaction, partners: readonly PartnerRecord[], now: string) {
  const policies = partners.flatMap(({ partner_id, policies: own }) =>
    own.map(({ active, price, ...policy }) => ({
      ...{ ...policy, ...cutRates(policy.partner_cut_rate), partner_id, inactive_since: active ? null : now },
      ...{ price_rate: price?.rate, price_minimum: price?.minimum },
    })),
  );
  const changed = await query<{ partner_id: string }>(tx, UPSERT_POLICIES, { policies });
  return [...new Set(changed.map((row) => row.partner_id))];
}

const OF_POLICY = 'name, kind, price_rate, price_minimum, largest_price, purchase_order';
const UPSERT_POLICIES = `${upsert(
  'policies',
  'partner_id, policy_id',
  `${OF_POLICY}, partner_cut_rate, dated_cut_rates`,
  `(SELECT ${columnsOf('f', `partner_id, policy_id, ${OF_POLICY}, inactive_since`)},
           coalesce(f.partner_cut_rate, p.partner_cut_rate, (f.dated_cut_rates->0->>'rate')::numeric)
             AS partner_cut_rate,
           CASE WHEN f.partner_cut_rate IS NULL THEN (
             SELECT coalesce(jsonb_agg(r.each ORDER BY r.nth), '[]') FROM (
               SELECT each, nth FROM jsonb_array_elements(p.dated_cut_rates) WITH ORDINALITY AS e (each, nth)
               WHERE each->>'from' < f.dated_cut_rates->0->>'from') AS r) ELSE '[]' END || f.dated_cut_rates
             AS dated_cut_rates
    FROM json_populate_recordset(NULL::policies, :policies::json) AS f
    LEFT JOIN policies p USING (partner_id, policy_id))`,
)} RETURNING partner_id`;

/** The policies whose cancellation terms differ from the stored ones, with all of their terms. */
export function changedTerms(before: readonly PartnerView[], partners: readonly PartnerRecord[]): PolicyTerms[] {
  const stored = new Map(
    before.flatMap(({ partner_id, policies }) =>
      policies.map(({ policy_id, cancellation }) => [`${partner_id} ${policy_id}`, cancellation]),
    ),
  );
  return partners.flatMap(({ partner_id, policies }) =>
    policies.flatMap(({ policy_id, cancellation }) => {
      const old = stored.get(`${partner_id} ${policy_id}`) ?? null;
      const terms = mergedTerms(old, cancellation);
      if (isDeepStrictEqual(terms, old ?? [])) return [];
      // Terms that end are a fact, too.
      return [{ partner_id, policy_id, terms: terms.length === 0 ? [NO_TERMS] : terms }];
    }),
  );
}
type PolicyTerms = Readonly<{
  partner_id: string;
  policy_id: string;
  terms: readonly CancellationTerms[];
}>;
const NO_TERMS = { from: null, window_days: null, after_window: null, cut: null, before_cover_only: null };

export async function recordTerms(
  tx: Transaction,
  changed: readonly PolicyTerms[],
  { now, eventId }: { now: string; eventId: number },
) {
  const rows = changed.flatMap(({ terms, ...policy }) => terms.map((each) => ({ ...policy, ...each })));
  await execute(
    tx,
    `INSERT INTO cancellation_terms (
       partner_id, policy_id, from_day, window_days, after_window, cut, before_cover_only, recorded_at, event_id)
     SELECT partner_id, policy_id, "from", window_days, after_window, cut, before_cover_only, :now::timestamptz,
            :eventId::bigint
     FROM json_to_recordset(:rows::json) AS t (
       partner_id text, policy_id text, "from" date, window_days integer, after_window text, cut text,
       before_cover_only boolean)`,
    { rows, now, eventId },
  );
}

/** The rate without a day, null if there is none, and the rates with days. */
function cutRates(rates: PolicyRecord['partner_cut_rate']) {
  if (typeof rates === 'string') return { partner_cut_rate: rates, dated_cut_rates: [] };
  const undated = rates[0]?.from === undefined ? rates[0]?.rate : undefined;
  return { partner_cut_rate: undated ?? null, dated_cut_rates: undated === undefined ? rates : rates.slice(1) };
}

export const latestArrangements = querying<Arrangement, { ids: readonly string[] }>(`
  SELECT DISTINCT ON (partner_id) *
  FROM partner_arrangements
  WHERE partner_id = ANY (:ids::text[])
  ORDER BY partner_id, from_month DESC`);

export const readArrangements = (tx: Transaction, partnerId: string | null = null): Promise<Arrangement[]> =>
  query(
    tx,
    `SELECT * FROM partner_arrangements WHERE :partnerId::text IS NULL OR partner_id = :partnerId
     ORDER BY partner_id, from_month`,
    { partnerId },
  );

/**
 * The inactive partners and policies, each with the instant of its inactivation. `field` is `inactive_since` or
 * `policies.ID.inactive_since`.
 */
export const readInactive = querying<Readonly<{ partner_id: string; field: string; since: string }>>(`
  SELECT partner_id, field, to_char(inactive_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS since
  FROM (
    SELECT partner_id, 'inactive_since' AS field, inactive_since FROM partners
    UNION ALL
    SELECT partner_id, format('policies.%s.inactive_since', policy_id), inactive_since FROM policies) AS sellers
  WHERE inactive_since IS NOT NULL ORDER BY partner_id, field`);

export const latestMonthsWithRows = querying<{ partner_id: string; month: Month }, { ids: readonly string[] }>(`
  SELECT partner_id, max(month) AS month FROM partner_months WHERE partner_id = ANY (:ids::text[])
  GROUP BY partner_id`);

export type AccountUse = Readonly<{
  partner_id: string;
  month: Month | null;
  has_balance_transactions: boolean;
}>;

export const readUseOfAccounts = querying<AccountUse, { arrangements: readonly Arrangement[] }>(`
  SELECT a.partner_id,
         (SELECT max(e.month) FROM ledger_rows e
          WHERE e.partner_id = a.partner_id AND e.arrangement = 'connected_account'
            AND e.month >= a.from_month COLLATE "C") AS month,
         EXISTS (SELECT FROM account_sources s WHERE s.account = a.connected_account_id) AS has_balance_transactions
  FROM json_populate_recordset(NULL::partner_arrangements, :arrangements::json) AS a`);

/** The source of the balance transactions of these accounts, for each month that has any. */
export const readAccountSources = querying<
  { account: string; month: Month; source: string },
  { accounts: readonly string[] }
>(`
  SELECT account, month, source FROM account_sources
  WHERE account = ANY (:accounts::text[]) ORDER BY account, month`);

export const recordArrangements = executing<{ arrangements: readonly Arrangement[] }>(`
  INSERT INTO partner_arrangements
  SELECT * FROM json_populate_recordset(NULL::partner_arrangements, :arrangements::json)
  ON CONFLICT (partner_id, from_month) DO UPDATE
  SET (${OF_ARRANGEMENT.join(', ')}) = (${columnsOf('excluded', OF_ARRANGEMENT.join(', '))})`);

/** The partners in the shape of partners.json, by id. The default is all partners. */
export function readPartners(tx: Transaction, ids?: string | readonly string[]): Promise<PartnerView[]> {
  return query(
    tx,
    `SELECT p.partner_id, p.name,
            json_build_object('line1', p.address_line1, 'line2', p.address_line2, 'city', p.address_city,
              'region', p.address_region, 'postal_code', p.address_postal_code,
              'country', p.address_country) AS address,
            json_build_object('name', p.contact_name, 'email', p.contact_email,
                              'cc', p.contact_cc) AS invoicing_contact,
            ${columnsOf('p', PLAIN)}, p.inactive_since IS NULL AS active,
            nullif(a.from_month, '0001-01') AS arrangement_from,
            ${columnsOf('a', OF_ARRANGEMENT.join(', '))},
            coalesce((
              SELECT json_agg(json_build_object('policy_id', o.policy_id, 'name', o.name, 'kind', o.kind,
                       'active', o.inactive_since IS NULL, 'partner_cut_rate',
                       CASE WHEN o.dated_cut_rates = '[]' THEN to_jsonb(o.partner_cut_rate::text)
                       ELSE jsonb_build_object('rate', o.partner_cut_rate::text) || o.dated_cut_rates END,
                       'price', CASE WHEN o.price_rate IS NOT NULL THEN
                         json_build_object('rate', o.price_rate::text, 'minimum', o.price_minimum::text) END,
                       'purchase_order', o.purchase_order, 'largest_price', o.largest_price::text,
                       'cancellation', (
                         SELECT json_agg(json_build_object(
                                  'from', c.from_day, 'window_days', c.window_days, 'after_window', c.after_window,
                                  'cut', c.cut, 'before_cover_only', c.before_cover_only)
                                ORDER BY c.from_day NULLS FIRST)
                                FILTER (WHERE num_nonnulls(c.from_day, c.window_days) > 0)
                         FROM present_cancellation_terms c
                         WHERE c.partner_id = o.partner_id AND c.policy_id = o.policy_id))
                     ORDER BY o.policy_id)
              FROM policies o WHERE o.partner_id = p.partner_id), '[]') AS policies
     FROM partners p
     CROSS JOIN LATERAL (
       SELECT * FROM partner_arrangements a WHERE a.partner_id = p.partner_id ORDER BY a.from_month DESC LIMIT 1) AS a
     WHERE :ids::text[] IS NULL OR p.partner_id = ANY (:ids::text[])
     ORDER BY p.partner_id`,
    { ids: ids === undefined ? null : [ids].flat() },
  );
}

export type PartnerView = Omit<PartnerRecord, 'policies' | 'payment_terms_days'> & {
  payment_terms_days: number | null;
  policies: (Omit<PolicyRecord, 'price'> & { price: PolicyRecord['price'] | null })[];
};

export async function readPartnerNames(
  tx: Transaction,
  ids: readonly string[] | null = null,
  limit: number | null = null,
) {
  const rows = await query<{ partner_id: string; name: string }>(
    tx,
    `SELECT partner_id, name FROM partners WHERE :ids::text[] IS NULL OR partner_id = ANY (:ids::text[])
     ORDER BY lower(name), partner_id LIMIT :limit`,
    { ids, limit },
  );
  return new Map(rows.map(({ partner_id, name }) => [partner_id, name]));
}

/** The partners with one of these ids or names; upper and lower case are the same. */
export const readNamesakes = querying<
  { asked: string; partner_id: string },
  { names: readonly string[]; scope: Scope }
>(`
  SELECT n.asked, p.partner_id
  FROM unnest(:names::text[]) AS n (asked)
  JOIN partners p ON p.partner_id = n.asked COLLATE "C" OR lower(p.name) = lower(trim(n.asked))
  WHERE :scope::text[] IS NULL OR p.partner_id = ANY (:scope::text[])
  ORDER BY n.asked, p.partner_id`);

/** The partners that a partner pays for: its children, their children, and so on. */
export const readPaidFor = (
  tx: Transaction,
  partnerId: string,
): Promise<Pick<PartnerRecord, 'partner_id' | 'name'>[]> =>
  query(
    tx,
    `SELECT partner_id, name FROM partner_payers JOIN partners USING (partner_id)
     WHERE payer_id = :partnerId ORDER BY partner_id COLLATE "C"`,
    { partnerId },
  );

export const readPartnerEvents = querying<
  { partner_id: string; occurred_at: string; changes: readonly FieldChange[] | null },
  { actions: readonly string[] }
>(`
  SELECT subject AS partner_id, personal_json(details->'changes') AS changes,
         to_char(occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS occurred_at
  FROM audit_events WHERE action = ANY (:actions::text[]) ORDER BY event_id`);

type WeAre = Settings['we_are'];

export const readRecordedWeAre = queryingOne<{ recorded: WeAre | null; free: boolean }>(
  `SELECT (SELECT we_are FROM presentation) AS recorded, has_no_rows() AS free`,
);

export const upsertWeAre = executing<{ asked: WeAre }>(
  `INSERT INTO presentation (we_are) VALUES (:asked) ON CONFLICT (only_one) DO UPDATE SET we_are = excluded.we_are`,
);

export type Asked = Pick<Settings, 'we_are'>;

/** The recorded role, if it differs from the settings; null if both agree, or if the role may still change. */
export async function recordedOtherwise(tx: Transaction, { we_are: asked }: Asked): Promise<WeAre | null> {
  const { recorded } = await queryOne<{ recorded: WeAre | null }>(
    tx,
    `SELECT (SELECT we_are FROM presentation WHERE we_are <> :asked AND NOT has_no_rows()) AS recorded`,
    { asked },
  );
  return recorded;
}

export type ActivePartner = Readonly<{
  partner_id: string;
  currency: string;
  contact_email: string;
  address_line1: string;
  address_city: string;
  address_country: string;
  tax_id: string;
  arrangement: string;
  e_invoice: string;
  policies: readonly Readonly<{ id: string; kind: string }>[];
}>;

export const readActivePartners = querying<ActivePartner>(`
  SELECT p.partner_id, p.currency, p.contact_email, p.address_line1, p.address_city, p.address_country, p.tax_id,
         p.e_invoice,
         (SELECT a.arrangement FROM partner_arrangements a WHERE a.partner_id = p.partner_id
          ORDER BY a.from_month DESC LIMIT 1) AS arrangement,
         (SELECT coalesce(json_agg(json_build_object('id', o.policy_id, 'kind', o.kind) ORDER BY o.policy_id), '[]')
          FROM policies o WHERE o.partner_id = p.partner_id AND o.inactive_since IS NULL) AS policies
  FROM partners p WHERE p.inactive_since IS NULL ORDER BY p.partner_id`);
