/** Rows of the ledger in groups, by all that documents, journals and the receipts of events tell apart. */

export const GROUP_KEYS =
  'posted_month, partner_id, currency, arrangement, policy_id, kind, month, time_zone, event_id';

export const GROUP_AMOUNTS = ['spot_price', 'partner_cut', 'invoice_amount'] as const;
export const GROUP_TIMES = ['first_at', 'last_at', 'first_recorded', 'last_recorded'] as const;

/** The columns of a group, as PostgreSQL and DuckDB compute them. */
export const GROUPED = `${GROUP_KEYS}, count(*) AS entries,
  ${GROUP_AMOUNTS.map((name) => `sum(${name}) AS ${name}`).join(', ')},
  min(accepted_at) AS first_at, max(accepted_at) AS last_at, min(recorded_at) AS first_recorded,
  max(recorded_at) AS last_recorded, min(entry_id) AS first_no, max(entry_id) AS last_no, min(quote_id) AS quote_id`;

export const GROUP_COLUMNS: readonly string[] = [
  ...GROUP_KEYS.split(', '),
  ...['entries', ...GROUP_AMOUNTS, ...GROUP_TIMES, 'first_no', 'last_no', 'quote_id'],
];

/** The columns of `archived_groups`: groups, each with the number of rows that are not well-formed. */
export const groupsOf = (rows: string) =>
  `SELECT ${GROUPED},
     count(*) FILTER (WHERE (spot_price = partner_cut + invoice_amount
       AND greatest(min_scale(spot_price), min_scale(partner_cut), min_scale(invoice_amount)) <= minor_digits(currency)
       AND CASE kind WHEN 'reversal' THEN greatest(spot_price, partner_cut, invoice_amount) <= 0
                     ELSE least(spot_price, partner_cut, invoice_amount) >= 0 END) IS NOT TRUE) AS unbalanced,
     count(*) FILTER (WHERE CASE kind
       WHEN 'quote_accepted' THEN requote_id IS NULL AND reversal_id IS NULL
       WHEN 'requote_accepted' THEN requote_id IS NOT NULL AND reversal_id IS NULL
       WHEN 'reversal' THEN reversal_id IS NOT NULL ELSE false END IS NOT TRUE) AS misnamed,
     count(*) FILTER (WHERE cover_to < cover_from OR cover_to IS NOT NULL AND cover_from IS NULL) AS uncovered
   FROM ${rows} AS r GROUP BY ${GROUP_KEYS}`;
