/** `reckoner client list`. */
import { readClients } from '../../partners/client-queries.ts';
import type { Sheet } from '../../sheet.ts';
import { type CommandContext, type Definition, readingNow } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (client, act) => {
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
