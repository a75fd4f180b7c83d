/** `reckoner checkpoint`: seals the rows and facts of the open month so far, and sends its letter. */
import { EXIT } from '../../errors/refusals.ts';
import { failpoint } from '../../failpoint.ts';
import { sendEmails } from '../../month-end/month-end.ts';
import { takeCheckpoint } from '../../seals/checkpoint.ts';
import { acting, type CommandContext, type Definition, type DeliverOption, NO_DELIVER } from '../define.ts';
import { withProgress } from '../deliveries.ts';

export const define: Definition = (command, act) => {
  command.option(...NO_DELIVER).action(act(acting(checkpoint)));
};

async function checkpoint(context: CommandContext, { deliver }: DeliverOption): Promise<number> {
  const { database, output, settings } = context;
  const taken = await database.transaction((tx) => takeCheckpoint(tx, context));
  failpoint('checkpoint.committed');
  let unsent = false;
  if (deliver) {
    await withProgress(output, (reporter) =>
      sendEmails(context, {
        onEmail(result) {
          if (['held', 'failed', 'uncertain'].includes(result.status)) unsent = true;
          reporter.onEmail?.(result);
        },
      }),
    );
  }
  output.print(taken, () => {
    const held = settings.auditor_email === '' ? ' Give it to the auditor: settings.json has no auditor_email.' : '';
    return `Checkpoint ${taken.checkpoint_number} was taken.${held}\n  seal  ${taken.seal}`;
  });
  return unsent ? EXIT.attention : EXIT.done;
}
