/** `reckoner webhook`. */
import { Publisher } from '../../partner-events/publish.ts';
import {
  removeWebhook,
  resumeWebhook,
  rotateWebhook,
  type SetWebhook,
  setWebhook,
  type Webhook,
  webhookNamed,
  webhookOf,
} from '../../partner-events/webhook.ts';
import { readWebhooks } from '../../partner-events/webhook-queries.ts';
import type { Sheet } from '../../sheet.ts';
import { plural } from '../../text.ts';
import { wholeNumberArgument } from '../arguments.ts';
import { acting, type CommandContext, type Definition } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (webhook, act) => {
  const after = (what: string) =>
    ['--after <position>', what, wholeNumberArgument('--after', 0, Number.MAX_SAFE_INTEGER)] as const;
  webhook
    .command('set <partner>')
    .description('Send a partner its events, and show the secret that signs them once')
    .requiredOption('--url <url>', "the partner's address for events; https in production")
    .option(...after('send the events after this position (default: those from now on; 0: all)'))
    .action(act(acting(webhookSet)));
  webhook
    .command('rotate <partner>')
    .description('Make a new secret; the previous one signs too for 24 hours')
    .action(act(acting(webhookRotate)));
  webhook
    .command('resume <partner>')
    .description('Send again at once, after a pause or failures')
    .option(...after('send the events after this position, again or leaving some out'))
    .action(act(acting(webhookResume)));
  webhook
    .command('remove <partner>')
    .description('Send a partner no events any more')
    .action(act(acting(remove)));
  webhook
    .command('show <partner>')
    .description('Show where and how far events are sent')
    .action(act(acting(show)));
  webhook
    .command('list')
    .description('List all webhooks')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(acting(list)));
};

const ONCE =
  "Give it to the partner by a safe way. It is shown only once; 'reckoner webhook rotate PARTNER' makes another.";

async function webhookSet(
  context: CommandContext,
  partnerId: string,
  options: { url: string; after?: number },
): Promise<void> {
  const { database, output } = context;
  // What is recorded by now is not "from now on".
  await new Publisher(database).publish(5000);
  const made = await database.transaction((tx) => setWebhook(tx, context, { partnerId, ...options }));
  output.print(made, () => `${described(made, context)}\n${secretOf(made)}`);
}

async function webhookRotate(context: CommandContext, partnerId: string): Promise<void> {
  const made = await context.database.transaction((tx) => rotateWebhook(tx, context, partnerId));
  const previous =
    made.previous_secret_until === null
      ? 'The previous secret signs nothing any more.'
      : `Events are signed with the previous secret, too, until ${made.previous_secret_until}.`;
  context.output.print(made, () => `${secretOf(made)}\n${previous}`);
}

const secretOf = ({ secret }: SetWebhook): string =>
  secret === null ? 'The secret stays as it was.' : `  secret        ${secret}\n${ONCE}`;

async function webhookResume(context: CommandContext, partnerId: string, options: { after?: number }): Promise<void> {
  const { database, output } = context;
  const resumed = await database.transaction((tx) => resumeWebhook(tx, context, { partnerId, ...options }));
  output.print(resumed, () => `${described(resumed, context)}\n'reckoner deliver' sends them now.`);
}

async function remove({ database, output, ...context }: CommandContext, partnerId: string): Promise<void> {
  const removed = await database.transaction((tx) => removeWebhook(tx, context, partnerId));
  output.print(
    removed,
    () => `The webhook of ${partnerId} is removed. The partner can still read its events by the API.`,
  );
}

async function show(context: CommandContext, partnerId: string): Promise<void> {
  const { database, output } = context;
  const found = await database.reading((tx) => webhookNamed(tx, partnerId));
  output.print(found, () => described(found, context));
}

async function list({ database, output }: CommandContext, options: PresentOptions): Promise<void> {
  const webhooks = (await database.reading((tx) => readWebhooks(tx))).map(webhookOf);
  const listed = () =>
    webhooks.length === 0
      ? "There are no webhooks. Set one with 'reckoner webhook set PARTNER --url URL'."
      : table(
          ['~partner', '~url', 'state', '>sent to', '>waiting', 'last failure'],
          webhooks.map((each) => [
            ...[each.partner_id, each.url, each.state, each.acknowledged, each.waiting],
            each.last_failure ?? '',
          ]),
        );
  await present(output, options, webhooks, () => sheetOf(webhooks), listed);
}

const sheetOf = (webhooks: readonly Webhook[]): Sheet => ({
  name: 'Webhooks',
  columns: {
    ...({ partner_id: 'text', url: 'text', state: 'text', acknowledged: 'count', waiting: 'count' } as const),
    ...({ failing_since: 'text', last_failure: 'text', next_attempt_at: 'text', paused_at: 'text' } as const),
  },
  rows: webhooks.map((webhook) => ({ ...webhook })),
});

function described(webhook: Webhook, { environment }: Pick<CommandContext, 'environment'>): string {
  const { partner_id, url, state, acknowledged, waiting, last_failure: failure } = webhook;
  const lines = [
    `Webhook of ${partner_id} for ${environment.name}:`,
    `  url           ${url}`,
    `  state         ${state}${webhook.paused_at === null ? '' : ` since ${webhook.paused_at}`}`,
    `  sent up to    position ${acknowledged}, ${plural(waiting, 'event')} waiting`,
  ];
  if (failure !== null) lines.push(`  last failure  ${failure}`);
  if (webhook.next_attempt_at !== null) lines.push(`  next attempt  ${webhook.next_attempt_at}`);
  if (webhook.previous_secret_until !== null) lines.push(`  both secrets  until ${webhook.previous_secret_until}`);
  return lines.join('\n');
}
