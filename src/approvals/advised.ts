/** The approval rules that `init --check` recommends. */

/**
 * The rules that production should have once two people can approve: actions that send money to others, decide who may
 * request it, or set where e-mails and money go; and those by which one administrator could create the second person,
 * or (`user.deactivate`, from a third approver on: see advisedRules) remove one.
 */
export const ADVISED_RULES: readonly string[] = [
  ...['partner.import', 'client.create', 'credit.refund', 'invoice.write_off', 'instructions.adopt'],
  ...['user.invite', 'user.link', 'user.role', 'user.deactivate'],
];

/** With two approvers, each must be able to remove the other: a rule would need the one who has left. */
export const advisedRules = (approvers: number): readonly string[] =>
  approvers < 2 ? [] : ADVISED_RULES.filter((action) => action !== 'user.deactivate' || approvers > 2);
