/** `reckoner deliver`. */
import { EXIT, reasonOf } from '../../errors/refusals.ts';
import { countDeliveries } from '../../mail/queries.ts';
import { deliverAll, deliverAllForever, type Reporter } from '../../month-end/month-end.ts';
import { withContext } from '../context.ts';
import type { Definition } from '../define.ts';
import { describeEmail, withProgress } from '../deliveries.ts';
import type { Output } from '../output.ts';

export const define: Definition = (command, act) => {
  command.option('--watch', 'keep running as a worker').action(act(deliver));
};

export async function deliver(output: Output, options: { watch?: boolean }): Promise<number> {
  const stopping = new AbortController();
  return withContext(
    async (context) => {
      if (options.watch) {
        output.note('Delivering issued documents. Press Ctrl-C to stop.');
        await deliverAllForever(context, notesOf(output), stopping.signal);
      } else {
        await withProgress(output, (reporter) => deliverAll(context, reporter));
      }
      const deliveries = await context.database.reading((tx) => countDeliveries(tx));
      const { sent, pending, held, failed, uncertain } = deliveries;
      output.print(
        { deliveries },
        () =>
          `Deliveries: ${sent} sent, ${pending} pending, ${held} held, ${failed} failed, ${uncertain} uncertain.` +
          (held + failed + uncertain > 0 ? "\n'reckoner status' lists the reasons." : ''),
      );
      return held + failed + uncertain > 0 ? EXIT.attention : EXIT.done;
    },
    { by: output.by, ...(options.watch && { onStop: () => stopping.abort() }) },
  );
}

/** A worker notes each delivery as it happens. */
const notesOf = (output: Output): Reporter => ({
  onDelivery: ({ number, status, detail, before }) => {
    if (!before) output.note(`${number} ${status}: ${detail}`);
  },
  onEmail: (result) => {
    if (result.status !== 'sent') output.note(describeEmail(result));
  },
  onEmailsFailed: (error) => output.note(`The e-mails without a document were not sent: ${reasonOf(error)}`),
});
