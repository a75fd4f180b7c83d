/** `reckoner payment events`. */
import { EXIT } from '../../../errors/refusals.ts';
import { failpoint } from '../../../failpoint.ts';
import { type EventsReport, processEvents } from '../../../payments/processor-events/process.ts';
import { storeEvents } from '../../../payments/processor-events/store.ts';
import { plural } from '../../../text.ts';
import { acting, type Definition, type Done } from '../../define.ts';
import { readInput } from '../../input.ts';
import { type Output, printable, wrapped } from '../../output.ts';

export const define: Definition = (payment, act) => {
  payment
    .command('events')
    .argument('[file]', "the processor's events as NDJSON; '-' is stdin (default: only pending events)")
    .description('Store processor events and process them; safe to repeat and to reorder')
    .action(act(paymentEvents));
};

/** Feeds the inbox from a file and works it off; without a file, only works off what waits. */
function paymentEvents(output: Output, name: string | undefined): Done {
  const text = name === undefined ? undefined : readInput(name).toString('utf8');
  return acting(async (context) => {
    const stored =
      text === undefined
        ? { stored: 0, known: 0, accounts: [] }
        : await context.database.transaction((tx) => storeEvents(tx, context, { name: name ?? '', text }));
    failpoint('inbox.stored');
    const report = await context.database.transaction((tx) => processEvents(tx, context));
    failpoint('inbox.processed');
    output.print({ ...stored, ...report }, () => describeInbox(stored, report));
    return report.manual_review.length + report.waiting.length > 0 ? EXIT.attention : EXIT.done;
  })(output);
}

function describeInbox(stored: { stored: number; known: number }, report: EventsReport): string {
  const lines = [
    `${plural(stored.stored, 'event')} stored, ${stored.known} already stored. Processed: ${report.effects} with an effect, ` +
      `${report.without_effect} without.`,
  ];
  for (const each of report.waiting)
    lines.push(...wrapped(`waiting: ${each.id} (${each.type}): ${printable(each.reason)}`, 80, '  '));
  for (const each of report.manual_review)
    lines.push(...wrapped(`needs review: ${each.id} (${each.type}): ${printable(each.reason)}`, 80, '  '));
  return lines.join('\n');
}
