/** The formats of the general ledger's files, and the rule of accounts.json for a posting. */
import { AccountRule } from '#config/accounts';

export const GL_FORMATS = ['generic', 'quickbooks', 'xero', 'netsuite'] as const;
export type GlFormat = (typeof GL_FORMATS)[number];

/** The part of a posting that rules match. */
export type PostingKey = Readonly<{
  control: string;
  /** The control account with its subaccount, such as `income:sales:skis`. */
  account: string;
  partner_id: string | null;
  policy_id: string | null;
  currency: string;
}>;

/**
 * The most specific rule for a posting; undefined if no rule matches. A rule that names the subaccount is the most
 * specific. Then come rules that name the partner, the policy, and the currency, in this order.
 */
export function ruleOf(rules: readonly AccountRule[], posted: PostingKey): AccountRule | undefined {
  let best: { rule: AccountRule; rank: number } | undefined;
  for (const rule of rules) {
    const { account, partner, policy, currency } = rule;
    const isOfControl = account === posted.control;
    if (!isOfControl && account !== posted.account) continue;
    if (partner !== undefined && partner !== posted.partner_id) continue;
    if (policy !== undefined && policy !== posted.policy_id) continue;
    if (currency !== undefined && currency !== posted.currency) continue;
    const named = [!isOfControl, partner !== undefined, policy !== undefined, currency !== undefined];
    const rank = named.reduce((sum, each) => sum * 2 + Number(each), 0);
    if (best === undefined || rank > best.rank) best = { rule, rank };
  }
  return best?.rule;
}
