/** The rules of approval that `init --check` advises. */

/**
 * The rules that production should have once two people can approve: what moves money to somebody else, or decides who may ask
 * for it, where e-mails go and where money is sent; and the actions by which one administrator could make the second person, or
 * (`user.deactivate`, from a third approver on: see advisedRules) remove one.
 */
export const ADVISED_RULES: readonly string[] = [
  ...['partner.import', 'client.create', 'credit.refund', 'invoice.write_off', 'instructions.adopt'],
  ...['user.invite', 'user.link', 'user.role', 'user.deactivate'],
];

/** Of two approvers, each has to be able to remove the other: a rule would need the one who has left. */
export const advisedRules = (approvers: number): readonly string[] =>
  approvers < 2 ? [] : ADVISED_RULES.filter((action) => action !== 'user.deactivate' || approvers > 2);
