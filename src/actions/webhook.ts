import { Block } from '#blocks';
import { Transaction } from '#database/transaction';
import { Publisher } from '#partner-events/publish';
import {
  removeWebhook,
  resumeWebhook,
  rotateWebhook,
  SetWebhook,
  setWebhook,
  Webhook,
  webhookOf,
} from '#partner-events/webhook';
import { readWebhooks } from '#partner-events/webhooks.sql';
import { DELIVER } from '#remedy';
import { plural } from '#text';
import { ActionContext, defineAction, Facts, OF_PARTNER, partner, text, whole } from './action.ts';

const PARTNER = () => partner();
const after = (help: string) =>
  whole('After position', help, { least: 0, most: Number.MAX_SAFE_INTEGER, value: 'position' }).optional();

const OF_WEBHOOK = {
  ...OF_PARTNER,
  role: 'administrator',
  async facts(tx: Transaction, { partnerId }: { partnerId: string }): Promise<Facts> {
    const found = (await readWebhooks(tx)).map(webhookOf).find((each) => each.partner_id === partnerId);
    if (found === undefined) return {};
    // Not the position: events are published meanwhile.
    const { url, state } = found;
    return { [`the webhook of ${partnerId}`]: { url, state } };
  },
} as const;

export const webhookSet = defineAction({
  name: 'webhook.set',
  title: "Send a partner's events to its server",
  command: {
    summary: 'Send a partner its events, and show the signing secret once',
    arguments: { partnerId: '<partner>' },
  },
  ...OF_WEBHOOK,
  input: {
    partnerId: PARTNER(),
    url: text('URL', "The partner's address for events; https in production."),
    after: after('Send the events after this position. Default: from now on; 0: all.'),
  },
  perform: setWebhook,
  async begin({ database }) {
    // Publishes the events recorded so far, because the default `from now on` must leave them out.
    await new Publisher(database).publish(5000);
  },
  report: async ({ result: made, preview }, context) => ({
    json: preview ? { ...made, secret: null } : made,
    text: preview ? `The webhook of ${made.partner_id} is set.` : secretOf(made),
    blocks: [webhookBlock(made, context)],
  }),
});

export const webhookRotate = defineAction({
  name: 'webhook.rotate',
  title: 'Create a new secret for a webhook',
  command: {
    summary: 'Create a new secret; the previous one stays valid for 24 hours',
    arguments: { partnerId: '<partner>' },
  },
  ...OF_WEBHOOK,
  input: { partnerId: PARTNER() },
  perform: (tx, context, { partnerId }) => rotateWebhook(tx, context, partnerId),
  async report({ result: made, preview }) {
    const previous =
      made.previous_secret_until === null
        ? 'The previous secret is no longer used.'
        : `Events are also signed with the previous secret until ${made.previous_secret_until}.`;
    return {
      json: preview ? { ...made, secret: null } : made,
      text: preview ? previous : `${secretOf(made)}\n${previous}`,
    };
  },
});

const ONCE = 'Give it to the partner in a safe way. It is shown only once. To get another, rotate the secret.';

const secretOf = ({ secret }: SetWebhook) =>
  secret === null ? 'The secret is unchanged.' : `  secret        ${secret}\n${ONCE}`;

export const webhookResume = defineAction({
  name: 'webhook.resume',
  title: 'Resume a webhook',
  command: { summary: 'Resume sending at once, after a pause or failures', arguments: { partnerId: '<partner>' } },
  ...OF_WEBHOOK,
  input: { partnerId: PARTNER(), after: after('Send the events after this position, repeating or skipping some.') },
  perform: resumeWebhook,
  report: async ({ result: resumed }, context) => ({
    json: resumed,
    text: `The webhook of ${resumed.partner_id} sends again.`,
    blocks: [webhookBlock(resumed, context)],
    remedies: [{ ...DELIVER, label: 'Send them now' }],
  }),
});

export const webhookRemove = defineAction({
  name: 'webhook.remove',
  danger: true,
  title: "Remove a partner's webhook",
  command: { arguments: { partnerId: '<partner>' } },
  ...OF_WEBHOOK,
  input: { partnerId: PARTNER() },
  perform: (tx, context, { partnerId }) => removeWebhook(tx, context, partnerId),
  report: async ({ input: { partnerId }, result: removed }) => ({
    json: removed,
    text: `The webhook of ${partnerId} is removed. The partner can still read its events through the API.`,
  }),
});

export function webhookBlock(webhook: Webhook, { environment }: Pick<ActionContext, 'environment'>): Block {
  const { partner_id, url, state, acknowledged, waiting, last_failure: failure } = webhook;
  const facts: [string, string][] = [
    ['url', url],
    ['state', `${state}${webhook.paused_at === null ? '' : ` since ${webhook.paused_at}`}`],
    ['sent up to', `position ${acknowledged}, ${plural(waiting, 'event')} waiting`],
  ];
  if (failure !== null) facts.push(['last failure', failure]);
  if (webhook.next_attempt_at !== null) facts.push(['next attempt', webhook.next_attempt_at]);
  if (webhook.previous_secret_until !== null) facts.push(['both secrets', `until ${webhook.previous_secret_until}`]);
  return { title: `Webhook of ${partner_id} for ${environment.name}`, facts };
}
