/**
 * Reads settings, and checks the actions that their approval rules name. Refusals: settings_missing, settings_invalid.
 */
import { ADJUSTMENTS } from '../approvals/amounts-before.ts';
import type { Environment } from '../config/environment.ts';
import { readSettings, type Settings, settingsFile } from '../config/settings.ts';
import { refuse } from '../errors/refusals.ts';
import { APPROVABLE_ACTIONS } from './registry.ts';

export function readCheckedSettings(environment: Environment): Settings {
  const settings = readSettings(environment);
  const names: readonly string[] = [ADJUSTMENTS, ...APPROVABLE_ACTIONS];
  const problems = Object.keys(settings.approvals)
    .filter((name) => !names.includes(name))
    .map((name) => ({
      path: `approvals.${name}`,
      reason: `is neither '${ADJUSTMENTS}' nor an action that can need approval: ${APPROVABLE_ACTIONS.join(', ')}`,
    }));
  if (problems.length > 0) throw refuse('settings_invalid', { file: settingsFile(environment), problems });
  return settings;
}
