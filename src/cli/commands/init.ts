import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readCheckedSettings } from '#actions/rules';
import {
  CommandContext,
  Definition,
  EXIT,
  Output,
  reading,
  reasonOf,
  refuse,
  table,
  withContext,
  wrapped,
} from '#cli/command';
import { withCommands } from '#cli/remedies';
import { Environment, isLogHost, LOG_HOST_FORM, readEnvironment } from '#config/environment';
import { firstSettings } from '#config/first-settings';
import { settingsFile } from '#config/settings';
import { readLogHost } from '#database/installation.sql';
import { Transaction } from '#database/transaction';
import { makeFolder, writeWhole } from '#files';
import { readOrigin } from '#log/checkpoints.sql';
import { dkimRecord } from '#mail/dkim';
import { Readiness, readReadiness } from '#reports/readiness';
import { plural } from '#text';
import { describeDkim } from './mail.ts';
import { bringUpToDate, describeMigrations } from './migrate.ts';

export const define: Definition = (command, action) => {
  command
    .option('--check', 'list what is still missing for production, by partner and currency')
    .option('--log-host <host>', 'name the log of facts after this host; the name never changes')
    .addHelpText('after', HELP)
    .action(
      action((output, options: { check?: boolean; logHost?: string }) =>
        options.check ? reading(initCheck)(output) : init(output, options.logHost),
      ),
    );
};

const HELP = `
The log is named HOST/LEDGER, in a sandbox sandbox.HOST/LEDGER. This name
is in every checkpoint and signature of the log. It never changes, even if
public_url does. Without --log-host or RECKONER_LOG_HOST, HOST is
reckoner.invalid.`;

async function init(output: Output, host: string | undefined) {
  const environment = environmentWith(host);
  const created = await layOutHome(environment);
  readCheckedSettings(environment);
  const migrations = await bringUpToDate(output, environment);
  // Records the current settings, so that later changes can be found.
  const origin = await withContext(({ database }) => database.reading((tx) => readName(tx, environment)), {
    ...{ by: output.by, unattended: true },
  });
  const file = settingsFile(environment);
  output.print({ home: environment.home, environment: environment.name, settings: created, migrations, origin }, () =>
    [
      created === 'created' ? `Wrote ${file}.` : `Kept ${file} unchanged.`,
      describeMigrations(migrations),
      `The log is named ${origin}. This name never changes.`,
      environment.name === 'sandbox'
        ? 'This is a sandbox: its settings are fictitious, and its documents state this.'
        : `Complete ${file}. 'reckoner init --check' lists what is missing.`,
    ].join('\n'),
  );
  return EXIT.done;
}

function environmentWith(host: string | undefined) {
  const environment = readEnvironment();
  if (host === undefined) return environment;
  if (!isLogHost(host))
    throw refuse('argument_invalid', { argument: '--log-host', value: host, reason: LOG_HOST_FORM });
  return { ...environment, logHost: host };
}

async function readName(tx: Transaction, { logHost }: Environment) {
  const { log_host: host } = await readLogHost(tx);
  if (logHost !== undefined && logHost !== host) throw refuse('log_host_fixed', { host, given: logHost });
  return readOrigin(tx);
}

/** Creates the folder and, if there are none, the settings. Existing files are kept. */
async function layOutHome(environment: Environment) {
  const file = settingsFile(environment);
  try {
    await makeFolder(join(environment.home, 'outbox'));
    if (existsSync(file)) return 'kept';
    const text = `${JSON.stringify(firstSettings(environment.name), null, 2)}\n`;
    // A full disk or a killed process could leave a partial file, which the next `init` would keep.
    await writeWhole(file, text, 'publish');
    return 'created';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && existsSync(file)) return 'kept';
    throw refuse('file_unwritable', { file, reason: reasonOf(error) }, error);
  }
}

async function initCheck({ environment, settings, database, output }: CommandContext) {
  const readiness = await database.reading((tx) => readReadiness(tx, { environment, settings }));
  const dkim = dkimRecord({ environment, settings });
  const remedies = readiness.missing.flatMap((gap) => gap.remedies ?? []);
  const todo = await Promise.all(remedies.map((each) => withCommands('', [each])));
  output.print({ environment: environment.name, ...readiness, ...(dkim && { dkim }) }, () =>
    [describeReadiness(readiness), ...new Set(todo), ...(dkim === null ? [] : [describeDkim(dkim)])].join('\n'),
  );
  return readiness.missing.length === 0 ? EXIT.done : EXIT.attention;
}

/** The width of the table's last column on a terminal of 80 columns. */
const NEEDS_WIDTH = 38;

function describeReadiness({ missing, link_limits: limits, premium_taxes_not_calculated: insured }: Readiness) {
  const rows = missing.flatMap((gap) => {
    const [first = '', ...more] = wrapped(`${gap.needs}${forPartners(gap.partners)}`, NEEDS_WIDTH);
    return [[gap.scope, gap.id, first], ...more.map((text) => ['', '', text])];
  });
  return [
    ...(missing.length === 0
      ? ['Nothing is missing for production.']
      : [table(['of', '~which', 'needs'], rows), '', `Missing for production: ${plural(missing.length, 'item')}.`]),
    ...Object.entries(limits).map(([currency, limit]) => `Payment links in ${currency}: ${limit}.`),
    ...(insured.length === 0
      ? []
      : wrapped(
          `Not calculated: premium taxes of insurance${forPartners(insured)}, such as IPT or surplus lines tax.`,
          78,
        )),
  ].join('\n');
}

function forPartners(partners: readonly string[] = []) {
  if (partners.length === 0) return '';
  const named = partners.slice(0, 3).join(', ');
  return partners.length > 3 ? ` for ${named} and ${partners.length - 3} more` : ` for ${named}`;
}
