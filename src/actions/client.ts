import { Transaction } from '#database/transaction';
import { Action as ClientAction, createClient, OVERLAP_DAYS, revokeClient, rotateSecret } from '#partners/clients';
import { readClients } from '#partners/clients.sql';
import { plural } from '#text';
import { ActionContext, defineAction, Facts, OF_PARTNER, partner, text, whole } from './action.ts';

const actionOf = ({ actor, environment }: ActionContext): ClientAction => ({
  actor,
  environment: environment.name,
  now: environment.now(),
});

const CLIENT = () => text('Client', 'The id of the client.');
const VALID_DAYS = () =>
  whole('Valid days', 'The number of days after which the secret expires. Default: never.', {
    most: 3650,
    value: 'days',
  }).optional();

const ONCE = 'The secret is shown only once and is not stored. Put it in a secret store now.';

export const clientCreate = defineAction({
  name: 'client.create',
  title: 'Create an API client for a partner',
  command: {
    summary: "Create a client for a partner and show the client's secret once",
    arguments: { partnerId: '<partner>' },
  },
  role: 'administrator',
  needsProof: true,
  input: { partnerId: partner(), validDays: VALID_DAYS() },
  ...OF_PARTNER,
  perform: (tx, context, { partnerId, validDays }) => createClient(tx, partnerId, { validDays }, actionOf(context)),
  facts: async (_tx, { partnerId }, made): Promise<Facts> =>
    made === undefined ? {} : { 'a new client': { partner: partnerId } },
  report: async ({ result: made, preview }, { environment }) => ({
    json: preview ? { partner_id: made.partner_id } : made,
    text: preview
      ? `A client of ${made.partner_id} for ${environment.name}. Its secret is shown once.`
      : `Client of ${made.partner_id} for ${environment.name}:\n` +
        `  client_id      ${made.client_id}\n  client_secret  ${made.client_secret}\n${ONCE}`,
  }),
});

const clientsNamed = (tx: Transaction, clientId: string, { environment }: ActionContext) =>
  readClients(tx, { clientId, now: environment.now().toISO() });

async function clientFacts(tx: Transaction, clientId: string, context: ActionContext): Promise<Facts> {
  const [client] = await clientsNamed(tx, clientId, context);
  if (client === undefined) return {};
  const secrets = plural(client.live_secrets.length, 'valid secret');
  return { [`client ${clientId}`]: { partner: client.partner_id, status: client.revoked_at ? 'revoked' : secrets } };
}

const OF_CLIENT = {
  subject: ({ clientId }: { clientId: string }) => clientId,
  partners: async (tx: Transaction, { clientId }: { clientId: string }, context: ActionContext) =>
    (await clientsNamed(tx, clientId, context)).map(({ partner_id }) => partner_id),
};

export const clientRotate = defineAction({
  name: 'client.rotate',
  title: 'Add a secret to an API client',
  command: { summary: 'Add a secret; the previous one stays valid for a while', arguments: { clientId: '<client>' } },
  role: 'administrator',
  needsProof: true,
  input: {
    clientId: CLIENT(),
    overlapDays: whole(
      'Overlap days',
      `How long the previous secret stays valid. Default: ${OVERLAP_DAYS}. With 0 that secret expires now, and its tokens ` +
        'within an hour.',
      { least: 0, most: 3650, value: 'days' },
    ).optional(),
    validDays: VALID_DAYS(),
  },
  ...OF_CLIENT,
  perform: (tx, context, { clientId, overlapDays = OVERLAP_DAYS, validDays }) =>
    rotateSecret(tx, clientId, { overlapDays, validDays }, actionOf(context)),
  facts: (tx, { clientId }, _made, context) => clientFacts(tx, clientId, context),
  report: async ({ result: made, preview }) => ({
    json: preview ? { ...made, client_secret: null } : made,
    text:
      (preview
        ? `A new secret for ${made.client_id} is shown once.\n`
        : `New secret for ${made.client_id}:\n  client_secret  ${made.client_secret}\n`) +
      `The previous secret is valid until ${made.previous_ends_at}.${preview ? '' : ` ${ONCE}`}`,
  }),
});

export const clientRevoke = defineAction({
  name: 'client.revoke',
  danger: true,
  title: 'Revoke an API client permanently',
  command: { summary: 'Revoke a client with its secrets and tokens, permanently', arguments: { clientId: '<client>' } },
  role: 'administrator',
  input: { clientId: CLIENT() },
  ...OF_CLIENT,
  perform: (tx, context, { clientId }) => revokeClient(tx, clientId, actionOf(context)),
  facts: (tx, { clientId }, _made, context) => clientFacts(tx, clientId, context),
  report: async ({ result: revoked }) => ({
    json: revoked,
    text: `Client ${revoked.client_id} of ${revoked.partner_id} has been revoked: its secrets and tokens are no longer valid.`,
  }),
});
