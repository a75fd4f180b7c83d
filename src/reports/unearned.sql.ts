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

/** What closed months billed by a day and later months earn. A part is earned at the end of its month. */
export const readUnearnedLines = querying<UnearnedLine, { asOf: string }>(`
  SELECT s.partner_id, p.name, s.policy_id, s.currency, sum(s.amount) AS unearned,
         coalesce(sum(s.amount) FILTER (WHERE last_day(s.release_month) < :asOf::date + 1 + interval '1 year'), 0)
           AS within_a_year,
         max(s.release_month) AS earned_by
  FROM revenue_schedules s JOIN partners p USING (partner_id)
  WHERE last_day(s.month) <= :asOf::date AND last_day(s.release_month) > :asOf::date
  GROUP BY s.partner_id, p.name, s.policy_id, s.currency HAVING sum(s.amount) <> 0
  ORDER BY s.currency, s.partner_id COLLATE "C", s.policy_id COLLATE "C"`);
