/** `reckoner init` and `reckoner migrate`: the home and its database. */
import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Environment, readEnvironment } from '../../config/environment.ts';
import { firstSettings } from '../../config/first-settings.ts';
import { readSettings, settingsFile } from '../../config/settings.ts';
import { EXIT, reasonOf, refuse } from '../../errors/refusals.ts';
import { makeFolder } from '../../folder.ts';
import { lockLedgerWhole } from '../../ledger/lock.ts';
import { packageVersion } from '../../package.ts';
import { recordEvent, thisProcess } from '../../people/audit-events.ts';
import { type Readiness, readReadiness } from '../../reports/readiness.ts';
import { readUnsealedMonths } from '../../seals/queries.ts';
import { sealClosedMonths } from '../../seals/seal.ts';
import { withContext, withDatabase } from '../context.ts';
import { type Output, short, table, wrapped } from '../output.ts';

export async function init(output: Output): Promise<number> {
  const environment = readEnvironment();
  const created = layOutHome(environment);
  readSettings(environment);
  const migrations = await bringUpToDate(output, environment);
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
    const readiness = await database.reading((tx) => readReadiness(tx, { environment, settings }));
    output.print({ environment: environment.name, ...readiness }, () => describeReadiness(readiness));
    return readiness.missing.length === 0 ? EXIT.done : EXIT.attention;
  });
}

/** What is left for the last column of a line of 80. */
const LACKS_WIDTH = 38;

function describeReadiness({ missing, link_limits: limits }: Readiness): string {
  const rows = missing.flatMap((gap) => {
    const [first = '', ...more] = wrapped(`${gap.lacks}${forPartners(gap.partners)}`, LACKS_WIDTH);
    return [[gap.scope, short(gap.id, 26), first], ...more.map((text) => ['', '', text])];
  });
  return [
    ...(missing.length === 0
      ? ['Nothing is missing for production.']
      : [table(['of', 'which', 'lacks'], rows), '', `${missing.length} thing(s) are missing for production.`]),
    ...Object.entries(limits).map(([currency, limit]) => `Payment links in ${currency}: ${limit}.`),
  ].join('\n');
}

/** ` for p-1, p-2 and 3 more` */
function forPartners(partners: readonly string[] = []): string {
  if (partners.length === 0) return '';
  const named = partners.slice(0, 3).join(', ');
  return partners.length > 3 ? ` for ${named} and ${partners.length - 3} more` : ` for ${named}`;
}

export async function migrate(output: Output): Promise<number> {
  const environment = readEnvironment();
  const migrations = await bringUpToDate(output, environment);
  output.print({ migrations }, () =>
    migrations.length > 0
      ? `Brought the database up to date: ${migrations.join(', ')}.`
      : 'The database is up to date.',
  );
  return EXIT.done;
}

/** Migrates, and seals what was closed before there were seals. An event tells of either. */
function bringUpToDate(output: Output, environment: Environment): Promise<string[]> {
  return withDatabase(environment, { unmigrated: true }, async (database) => {
    const migrations = await database.migrations.run();
    await database.transaction(async (tx) => {
      await lockLedgerWhole(tx);
      const now = environment.now().toISO();
      // First, so that the seals have it: sealing is the last that is recorded.
      const unsealed = await readUnsealedMonths(tx);
      if (migrations.length + unsealed.length > 0) {
        await recordEvent(tx, thisProcess('command', output.by), {
          action: 'database.migrate',
          subject: packageVersion,
          details: { migrations, sealed: unsealed },
          now,
        });
      }
      await sealClosedMonths(tx, now);
    });
    return migrations;
  });
}
