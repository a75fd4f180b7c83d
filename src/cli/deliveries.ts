/** Delivering with a bar for people and a remark on what did not go out. */
import { type DeliveryOptions, deliverPending, deliverThese } from '../delivery/deliver.ts';
import type { Delivery } from '../delivery/document.ts';
import { recordEvent } from '../people/audit-events.ts';
import type { Context } from './context.ts';
import type { Output, Progress } from './output.ts';

/** Of all that waits, or of the documents of these numbers alone. Gives how many documents it sent. */
export async function deliverWithProgress(
  context: Context,
  output: Output,
  numbers?: readonly string[],
): Promise<number> {
  let sent = 0;
  let progress: Progress | undefined;
  const remarks: Delivery[] = [];
  try {
    const options: DeliveryOptions = {
      ...context,
      onStart: (documents) => {
        progress = output.progress('Delivering', documents);
      },
      onDelivery: (delivery) => {
        progress?.advance();
        if (delivery.status === 'sent' && !delivery.before) sent += 1;
        const { status, link } = delivery;
        if ((status !== 'sent' && status !== 'withdrawn') || link !== undefined) remarks.push(delivery);
      },
    };
    await (numbers === undefined ? deliverPending(options) : deliverThese(options, numbers));
  } finally {
    progress?.done();
  }
  for (const { number, status, detail, link } of remarks) {
    if (link !== undefined) output.note(`${number} ${link}`);
    if (status !== 'sent' && status !== 'withdrawn')
      output.note(`${number} ${status === 'deferred' ? 'not delivered yet' : status}: ${detail}`);
  }
  return sent;
}

/** A run that sent something leaves an event. What a command does besides sending has one of its own. */
export async function recordDeliveries({ database, environment, actor }: Context, sent: number): Promise<void> {
  if (sent === 0) return;
  const event = { action: 'delivery.run', subject: `${sent} sent`, details: { sent }, now: environment.now().toISO() };
  await database.transaction((tx) => recordEvent(tx, actor, event));
}
