import { partnerIdOf } from '#actions/partner-names';
import { webhookBlock } from '#actions/webhook';
import { blocksText } from '#blocks';
import { CommandContext, Definition, readingNow } from '#cli/define';
import { webhookNamed } from '#partner-events/webhook';

export const define: Definition = (webhook, action) => {
  webhook
    .command('show <partner>')
    .description("Show a webhook's URL and progress")
    .action(action(readingNow(show)));
};

async function show(context: CommandContext, partnerId: string) {
  const { database, output } = context;
  const found = await database.reading(async (tx) => webhookNamed(tx, await partnerIdOf(tx, partnerId)));
  output.print(found, () => blocksText([webhookBlock(found, context)]));
}
