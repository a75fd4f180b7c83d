/** What `verify` finds, by check and by rule. */
import type { Difference } from '../../src/audit/checks/query.ts';
import type { Verification } from '../../src/audit/verify.ts';

type Verified = Pick<Verification, 'checks'>;

const ruleOf = ({ subject }: Difference): string => subject.slice(0, subject.indexOf(':'));

/** The names of the checks that find something, and of the rules that are broken. */
export function failing({ checks }: Verified): string[] {
  const broken = checks.filter(({ differences }) => differences.length > 0);
  const rules = broken.filter(({ check }) => check === 'rules_hold').flatMap(({ differences }) => differences);
  return [...broken.map(({ check }) => check), ...new Set(rules.map(ruleOf))];
}

/** The differences that a check or a rule finds. The subject of a rule's difference begins with its name. */
export const foundBy = ({ checks }: Verified, name: string): readonly Difference[] =>
  checks.find(({ check }) => check === name)?.differences ??
  checks
    .filter(({ check }) => check === 'rules_hold')
    .flatMap(({ differences }) => differences.filter((each) => ruleOf(each) === name));
