/** `reckoner webhook show`. */
import { webhookText } from '../../actions/webhook.ts';
import { webhookNamed } from '../../partner-events/webhook.ts';
import { type CommandContext, type Definition, readingNow } from '../define.ts';

export const define: Definition = (webhook, action) => {
  webhook
    .command('show <partner>')
    .description('Show where and how far events are sent')
    .action(action(readingNow(show)));
};

async function show(context: CommandContext, partnerId: string): Promise<void> {
  const { database, output } = context;
  const found = await database.reading((tx) => webhookNamed(tx, partnerId));
  output.print(found, () => webhookText(found, context));
}
