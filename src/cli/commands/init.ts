/** `reckoner init` and `reckoner migrate`: the home and its database. */
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Environment, readEnvironment, readSettings, settingsFile } from '../../config.ts';
import { EXIT, reasonOf, refuse } from '../../errors.ts';
import { makeFolder } from '../../folder.ts';
import { readGaps } from '../../reports/readiness.ts';
import { firstSettings } from '../../sandbox.ts';
import { withContext, withDatabase } from '../context.ts';
import { type Output, table } from '../output.ts';

export async function init(output: Output): Promise<number> {
  const environment = readEnvironment();
  const created = layOutHome(environment);
  readSettings(environment);
  const migrations = await withDatabase(environment, { unmigrated: true }, (database) => database.migrations.run());
  const file = settingsFile(environment);
  output.print({ home: environment.home, environment: environment.name, settings: created, migrations }, () =>
    [
      created === 'created' ? `Wrote ${file}.` : `Kept ${file} as it is.`,
      migrations.length > 0
        ? `Brought the database up to date: ${migrations.join(', ')}.`
        : 'The database is up to date.',
      environment.name === 'sandbox'
        ? 'This is a sandbox: its settings are fictitious, and its documents say so on their face.'
        : `Now complete ${file}; 'reckoner init --check' lists what is missing.`,
    ].join('\n'),
  );
  return EXIT.done;
}

/** Makes the folder and, where there are none, the settings. Safe to repeat: what is there stays. */
function layOutHome(environment: Environment): 'created' | 'kept' {
  const file = settingsFile(environment);
  try {
    makeFolder(join(environment.home, 'outbox'));
    if (existsSync(file)) return 'kept';
    const text = `${JSON.stringify(firstSettings(environment.name), null, 2)}\n`;
    // Written whole under another name first: a full disk or a kill must not leave half a file that init would keep.
    const draft = `${file}.${process.pid}.tmp`;
    try {
      writeFileSync(draft, text, { flush: true });
      linkSync(draft, file);
    } finally {
      rmSync(draft, { force: true });
    }
    return 'created';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && existsSync(file)) return 'kept';
    throw refuse('file_unwritable', { file, reason: reasonOf(error) }, error);
  }
}

export async function initCheck(output: Output): Promise<number> {
  return withContext(async ({ environment, settings, database }) => {
    const missing = await database.reading((tx) => readGaps(tx, settings));
    output.print({ environment: environment.name, missing }, () =>
      missing.length === 0
        ? 'Nothing is missing for production.'
        : `${table(
            ['of', 'which', 'lacks'],
            missing.map((gap) => [gap.scope, gap.id, gap.lacks]),
          )}\n\n${missing.length} thing(s) are missing for production.`,
    );
    return missing.length === 0 ? EXIT.done : EXIT.attention;
  });
}

export async function migrate(output: Output): Promise<number> {
  const environment = readEnvironment();
  const migrations = await withDatabase(environment, { unmigrated: true }, (database) => database.migrations.run());
  output.print({ migrations }, () =>
    migrations.length > 0
      ? `Brought the database up to date: ${migrations.join(', ')}.`
      : 'The database is up to date.',
  );
  return EXIT.done;
}
