import { clientCreate, clientRevoke, clientRotate } from '../../acts/client.ts';
import { readClients } from '../../partners/client-queries.ts';
import type { Sheet } from '../../sheet.ts';
import { wholeNumberArgument } from '../arguments.ts';
import { type CommandContext, type Definition, readingNow } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';
import { doing } from '../run-act.ts';

interface Days {
  readonly validDays?: number;
  readonly overlapDays?: number;
}

export const define: Definition = (client, act) => {
  const days = (option: string, least: number) => wholeNumberArgument(option, least, 3650);
  const VALID_DAYS = [
    '--valid-days <days>',
    'let the secret expire after this many days',
    days('--valid-days', 1),
  ] as const;
  client
    .command('create <partner>')
    .description('Create a client for a partner and show its secret once')
    .option(...VALID_DAYS)
    .action(act(doing(clientCreate, (partnerId: string, options: Days) => ({ partnerId, ...options }))));
  client
    .command('rotate <client>')
    .description('Add a secret; the previous one stays valid for a while')
    .option(
      '--overlap-days <days>',
      'how long (default: 7; 0 ends it now, its tokens within an hour)',
      days('--overlap-days', 0),
    )
    .option(...VALID_DAYS)
    .action(act(doing(clientRotate, (clientId: string, options: Days) => ({ clientId, ...options }))));
  client
    .command('revoke <client>')
    .description('Revoke a client with its secrets and tokens, permanently')
    .action(act(doing(clientRevoke, (clientId: string) => ({ clientId }))));
  client
    .command('list [partner]')
    .description('List clients and their valid secrets')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(readingNow(clientList)));
};

async function clientList(
  { database, environment, output }: CommandContext,
  partnerId: string | undefined,
  options: PresentOptions,
): Promise<void> {
  const rows = await database.reading((tx) => readClients(tx, { partnerId, now: environment.now().toISO() }));
  const clients = rows.map(({ client_id, partner_id, created_at, revoked_at, last_used_at, live_secrets }) => ({
    client_id,
    partner_id,
    created_at,
    revoked_at,
    last_used_at,
    secrets: live_secrets.map(({ sequence, ends_at }) => ({ sequence, ends_at })),
  }));
  const listed = () =>
    clients.length === 0
      ? "There are no API clients. Create one with 'reckoner client create PARTNER'."
      : table(
          ['client', 'partner', 'created', 'last used', 'secrets'],
          clients.map(({ client_id, partner_id, created_at, revoked_at, last_used_at, secrets }) => [
            client_id,
            partner_id,
            created_at.slice(0, 10),
            last_used_at?.slice(0, 10) ?? 'never',
            revoked_at === null ? `${secrets.length} valid` : `revoked ${revoked_at.slice(0, 10)}`,
          ]),
        );
  await present(output, options, clients, () => sheetOf(clients), listed);
}

type ListedClient = Readonly<{ client_id: string; secrets: readonly unknown[] }>;

const sheetOf = (clients: readonly ListedClient[]): Sheet => ({
  name: 'API clients',
  columns: {
    client_id: 'text',
    partner_id: 'text',
    created_at: 'date',
    revoked_at: 'date',
    last_used_at: 'date',
    valid_secrets: 'count',
  },
  rows: clients.map((client) => ({ ...client, valid_secrets: client.secrets.length })),
});
