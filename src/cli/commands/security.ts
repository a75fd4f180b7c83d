/** `reckoner security list`. */
import { readSecurityEvents, type SecurityEvent } from '../../reports/security.ts';
import type { Sheet } from '../../sheet.ts';
import { dateArgument, wholeNumberArgument } from '../arguments.ts';
import { type CommandContext, type Definition, reading } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

const HELP = `
Refused token exchanges, webhooks with a bad signature and callers over a limit
are counted by network and client within an hour. Changes of clients, webhooks,
settings and keys, and backups and restores, are audit events.`;

interface Options extends PresentOptions {
  readonly since?: string;
  readonly limit?: number;
}

export const define: Definition = (security, act) => {
  security
    .command('list')
    .description('List refused callers and what changed access, the latest last')
    .option('--since <date>', 'from this day on, in UTC', dateArgument('--since'))
    .option('--limit <count>', 'at most so many (default: 500)', wholeNumberArgument('--limit', 1, 1_000_000))
    .option(...FORMAT)
    .option(...OUT)
    .addHelpText('after', HELP)
    .action(act(reading(list)));
};

async function list({ database, output }: CommandContext, { since, limit = 500, ...options }: Options) {
  const found = await database.reading((tx) =>
    readSecurityEvents(tx, { since: since === undefined ? null : `${since}T00:00:00Z`, limit }),
  );
  const listed = () =>
    found.length === 0
      ? 'Nothing was refused or changed.'
      : table(
          ['at (UTC)', 'event', '~of', '>tries', '~by'],
          found.map((each) => [
            each.at.slice(0, 16).replace('T', ' '),
            each.event,
            each.subject ?? [each.network, each.client_id].filter(Boolean).join(' '),
            each.tries,
            each.by ?? '',
          ]),
        );
  await present(output, options, found, () => sheetOf(found), listed);
}

const sheetOf = (found: readonly SecurityEvent[]): Sheet => ({
  name: 'Security',
  columns: {
    ...({ at: 'text', event: 'text', subject: 'text', network: 'text' } as const),
    ...({ client_id: 'text', tries: 'count', by: 'text', host: 'text' } as const),
  },
  rows: found,
});
