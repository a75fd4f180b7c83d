/** `reckoner webhook show|list`. */
import { webhookText } from '../../acts/webhook.ts';
import { type Webhook, webhookNamed, webhookOf } from '../../partner-events/webhook.ts';
import { readWebhooks } from '../../partner-events/webhook-queries.ts';
import type { Sheet } from '../../sheet.ts';
import { type CommandContext, type Definition, readingNow } from '../define.ts';
import { table } from '../output.ts';
import { FORMAT, OUT, type PresentOptions, present } from '../present.ts';

export const define: Definition = (webhook, act) => {
  webhook
    .command('show <partner>')
    .description('Show where and how far events are sent')
    .action(act(readingNow(show)));
  webhook
    .command('list')
    .description('List all webhooks')
    .option(...FORMAT)
    .option(...OUT)
    .action(act(readingNow(list)));
};

async function show(context: CommandContext, partnerId: string): Promise<void> {
  const { database, output } = context;
  const found = await database.reading((tx) => webhookNamed(tx, partnerId));
  output.print(found, () => webhookText(found, context));
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
