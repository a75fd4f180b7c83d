/**
 * Files in RECKONER_HOME/templates override the shipped templates of e-mails, but not pages. Refusals: settings_invalid
 * (an override of a page), file_unreadable.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { reasonOf, refuse } from '#errors/refusals';
import { Environment } from './environment.ts';

/** The names of the files in a folder; none if there is no folder. */
export function overridesIn(folder: string) {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw refuse('file_unreadable', { file: folder, reason: reasonOf(error) }, error);
  }
}

/** Refuses overrides of pages, which Reckoner would silently ignore. */
export function refusePageOverrides({ home }: Pick<Environment, 'home'>) {
  const folder = join(home, 'templates', 'pages');
  const [name] = overridesIn(folder).sort();
  if (name === undefined) return;
  const reason = 'pages cannot be overridden, only e-mails in templates/email. Delete this file, or move it elsewhere';
  throw refuse('settings_invalid', { file: join(folder, name), problems: [{ path: '', reason }] });
}
