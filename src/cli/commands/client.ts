/** `reckoner client create|rotate|revoke|list`. */
import { EXIT } from '../../errors/refusals.ts';
import { readClients } from '../../partners/client-queries.ts';
import { type Act, createClient, OVERLAP_DAYS, revokeClient, rotateSecret } from '../../partners/clients.ts';
import { acting, type Context, withContext } from '../context.ts';
import { type Output, table } from '../output.ts';

const actOf = ({ actor, environment }: Context): Act => ({
  actor,
  environment: environment.name,
  now: environment.now(),
});

const ONCE = 'The secret is shown this once; it is kept nowhere. Put it into a secret store.';

export async function clientCreate(
  output: Output,
  partnerId: string,
  options: { validDays?: number },
): Promise<number> {
  return acting(output, async (context) => {
    const made = await context.database.transaction((tx) => createClient(tx, partnerId, options, actOf(context)));
    output.print(
      made,
      () =>
        `Client of ${made.partner_id} for ${context.environment.name}:\n` +
        `  client_id      ${made.client_id}\n  client_secret  ${made.client_secret}\n${ONCE}`,
    );
    return EXIT.done;
  });
}

export async function clientRotate(
  output: Output,
  clientId: string,
  options: { overlapDays?: number; validDays?: number },
): Promise<number> {
  const rotation = { overlapDays: options.overlapDays ?? OVERLAP_DAYS, validDays: options.validDays };
  return acting(output, async (context) => {
    const made = await context.database.transaction((tx) => rotateSecret(tx, clientId, rotation, actOf(context)));
    output.print(
      made,
      () =>
        `New secret of ${made.client_id}:\n  client_secret  ${made.client_secret}\n` +
        `The one before works until ${made.previous_ends_at}. ${ONCE}`,
    );
    return EXIT.done;
  });
}

export async function clientRevoke(output: Output, clientId: string): Promise<number> {
  return acting(output, async (context) => {
    const revoked = await context.database.transaction((tx) => revokeClient(tx, clientId, actOf(context)));
    output.print(
      revoked,
      () => `Client ${revoked.client_id} of ${revoked.partner_id} is revoked: its secrets and tokens no longer work.`,
    );
    return EXIT.done;
  });
}

export async function clientList(output: Output, partnerId: string | undefined): Promise<number> {
  return withContext(async ({ database, environment }) => {
    const rows = await database.reading((tx) => readClients(tx, { partnerId, now: environment.now().toISO() }));
    const clients = rows.map(({ client_id, partner_id, created_at, revoked_at, live_secrets }) => ({
      client_id,
      partner_id,
      created_at,
      revoked_at,
      secrets: live_secrets.map(({ sequence, ends_at }) => ({ sequence, ends_at })),
    }));
    output.print(clients, () =>
      clients.length === 0
        ? "There are no API clients. Create one with 'reckoner client create PARTNER'."
        : table(
            ['client', 'partner', 'created', 'secrets'],
            clients.map(({ client_id, partner_id, created_at, revoked_at, secrets }) => [
              client_id,
              partner_id,
              created_at.slice(0, 10),
              revoked_at === null ? `${secrets.length} live` : `revoked ${revoked_at.slice(0, 10)}`,
            ]),
          ),
    );
    return EXIT.done;
  });
}
