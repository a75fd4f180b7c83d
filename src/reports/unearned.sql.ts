import { querying } from '#database/transaction';

export type UnearnedLine = Readonly<{
  partner_id: string;
  name: string;
  policy_id: string;
  currency: string;
  unearned: string;
  /** The part that is earned within twelve months. */
  within_a_year: string;
  /** The last month in which a part is earned, `YYYY-MM`. */
  earned_by: string;
}>;

/**
 * What closed months billed by a day and later months earn. A part is earned at the end of its month. The year after 28
 * February ends with the next February, also if one of the two has 29 days.
 */
export const readUnearnedLines = querying<UnearnedLine, { asOf: string }>(`
  SELECT s.partner_id, p.name, s.policy_id, s.currency, sum(s.amount) AS unearned,
         coalesce(sum(s.amount) FILTER (WHERE y.is_within), 0) AS within_a_year,
         max(s.release_month) AS earned_by
  FROM revenue_schedules s JOIN partners p USING (partner_id)
  CROSS JOIN LATERAL (SELECT last_day(s.release_month) < greatest(
    :asOf::date + interval '1 year' + interval '1 day', :asOf::date + 1 + interval '1 year') AS is_within) AS y
  WHERE last_day(s.month) <= :asOf::date AND last_day(s.release_month) > :asOf::date
  GROUP BY s.partner_id, p.name, s.policy_id, s.currency
  HAVING sum(s.amount) <> 0 OR sum(s.amount) FILTER (WHERE y.is_within) <> 0
  ORDER BY s.currency, s.partner_id COLLATE "C", s.policy_id COLLATE "C"`);
