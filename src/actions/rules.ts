/**
 * Reads settings, and checks the actions that their approval rules name. Refusals: settings_missing, settings_invalid.
 */
import { ADJUSTMENTS } from '#approvals/amounts-before';
import { Environment } from '#config/environment';
import { readSettings, SECTION_NAMES, Settings, settingsFile } from '#config/settings';
import { FieldProblem, refuse } from '#errors/refusals';
import { ADOPTION } from '#people/settings-changes';
import { APPROVABLE_ACTIONS } from './registry.ts';

export function readCheckedSettings(environment: Environment): Settings {
  const settings = readSettings(environment);
  const problems = approvalProblems(settings.approvals).map((each) => ({ ...each, path: `approvals.${each.path}` }));
  if (problems.length > 0) throw refuse('settings_invalid', { file: settingsFile(environment), problems });
  return settings;
}

/** The names of rules: actions, `adjustments`, and the adoption of a single section. */
const RULES: readonly string[] = [
  ...[ADJUSTMENTS, ...APPROVABLE_ACTIONS],
  ...SECTION_NAMES.map((section) => `${ADOPTION}.${section}`),
];

export const approvalProblems = (approvals: Settings['approvals']): FieldProblem[] =>
  Object.keys(approvals)
    .filter((name) => !RULES.includes(name))
    .map((path) => ({
      path,
      reason: `is neither '${ADJUSTMENTS}' nor an action that can need approval: ${APPROVABLE_ACTIONS.join(', ')}`,
    }));
