/** `reckoner deliver`. */
import { deliverForever } from '../../delivery/deliver.ts';
import { countDeliveries } from '../../delivery/queries.ts';
import { EXIT, reasonOf } from '../../errors/refusals.ts';
import { mailSeals } from '../../reports/seal-letter.ts';
import { type Context, withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import { deliverWithProgress, recordDeliveries } from '../deliveries.ts';
import { describeNotice, sendAllNotices } from '../notices.ts';
import type { Output } from '../output.ts';

export const define: Definition = (command, act) => {
  command.option('--watch', 'keep running as a worker').action(act(deliver));
};

export async function deliver(output: Output, options: { watch?: boolean }): Promise<number> {
  const stopping = new AbortController();
  return withContext(
    async (context) => {
      if (options.watch) {
        output.note('Delivering what is issued; stop with Ctrl-C.');
        let sent = 0;
        await deliverForever(
          {
            ...context,
            onDelivery: ({ number, status, detail, before }) => {
              if (before) return;
              if (status === 'sent') sent += 1;
              output.note(`${number} ${status}: ${detail}`);
            },
            besides: () =>
              sendBesides(context, (text) => output.note(text)).catch((error: unknown) => {
                output.note(`What is no document's was not sent: ${reasonOf(error)}`);
              }),
          },
          stopping.signal,
        );
        await recordDeliveries(context, sent);
      } else {
        await recordDeliveries(context, await deliverWithProgress(context, output));
        await sendBesides(context, (text) => output.note(text));
      }
      const deliveries = await context.database.reading((tx) => countDeliveries(tx));
      const { sent, pending, held, failed, uncertain } = deliveries;
      output.print(
        { deliveries },
        () =>
          `Deliveries: ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain.` +
          (held + failed + uncertain > 0 ? "\n'reckoner status' says what each of them waits for." : ''),
      );
      return held + failed + uncertain > 0 ? EXIT.attention : EXIT.done;
    },
    { by: output.by, ...(options.watch && { onStop: () => stopping.abort() }) },
  );
}

/** The e-mails that carry no document: seals to the auditor, reports of closes, reminders. Notes what did not go out. */
async function sendBesides(context: Context, note: (text: string) => void): Promise<void> {
  await mailSeals(context);
  await sendAllNotices(context, (outcome) => {
    if (outcome.status !== 'sent') note(describeNotice(outcome));
  });
}
